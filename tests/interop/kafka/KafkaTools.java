import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.utils.Exit;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The classes that Kafka's shell scripts run, with their arguments, standard input and output.
 *
 * <p>A tool leaves by Kafka's Exit, which throws here: its code is part of the answer.
 */
final class KafkaTools {
    private KafkaTools() {
    }

    /** Ends a tool; without a trace of its own, since some tools print whatever ends them. */
    private static final class Left extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Left() {
            super("left", null, false, false);
        }
    }

    static Object answer(JsonNode question) throws Exception {
        List<String> arguments = new ArrayList<>();
        question.get("arguments").forEach(each -> arguments.add(each.asText()));
        Method main =
            Class.forName(question.get("class").asText()).getMethod("main", String[].class);
        byte[] input = question.get("stdin").asText().getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        int code = run(main, arguments, new ByteArrayInputStream(input), output, errors);
        return Map.of("exit_code", code,
            "stdout", output.toString(StandardCharsets.UTF_8),
            "stderr", errors.toString(StandardCharsets.UTF_8));
    }

    private static int run(
        Method main, List<String> arguments, InputStream input,
        ByteArrayOutputStream output, ByteArrayOutputStream errors) throws Exception {
        InputStream stdin = System.in;
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        // Some tools catch whatever ends them and leave once more: their first word is their code.
        AtomicReference<Integer> firstCode = new AtomicReference<>();
        Exit.Procedure leave = (code, message) -> {
            firstCode.compareAndSet(null, code);
            throw new Left();
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        // What a tool leaves to the end of its process (the producer's last batch) ends with it.
        List<Runnable> hooks = new ArrayList<>();
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        try (PrintStream out = new PrintStream(output, true, StandardCharsets.UTF_8);
             PrintStream err = new PrintStream(errors, true, StandardCharsets.UTF_8)) {
            System.setIn(input);
            System.setOut(out);
            System.setErr(err);
            try {
                main.invoke(null, (Object) arguments.toArray(new String[0]));
            } finally {
                hooks.forEach(Runnable::run);
            }
            return firstCode.get() == null ? 0 : firstCode.get();
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Left) {
                return firstCode.get();
            }
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        } finally {
            System.setIn(stdin);
            System.setOut(stdout);
            System.setErr(stderr);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
            Exit.resetShutdownHookAdder();
        }
    }
}
