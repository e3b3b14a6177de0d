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

/**
 * The classes that Kafka's shell scripts run, with their arguments, standard input and output.
 *
 * <p>A tool leaves by Kafka's Exit, which throws here: its code is part of the answer.
 */
final class KafkaTools {
    private KafkaTools() {
    }

    private static final class Left extends RuntimeException {
        private final int code;

        Left(int code) {
            super("left with " + code);
            this.code = code;
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
        Exit.setExitProcedure((code, message) -> {
            throw new Left(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new Left(code);
        });
        try (PrintStream out = new PrintStream(output, true, StandardCharsets.UTF_8);
             PrintStream err = new PrintStream(errors, true, StandardCharsets.UTF_8)) {
            System.setIn(input);
            System.setOut(out);
            System.setErr(err);
            main.invoke(null, (Object) arguments.toArray(new String[0]));
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Left) {
                return ((Left) error.getCause()).code;
            }
            throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
        } finally {
            System.setIn(stdin);
            System.setOut(stdout);
            System.setErr(stderr);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
        }
    }
}
