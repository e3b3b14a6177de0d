import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/**
 * Kafka's clients and tools in one process, told what to do one line at a time.
 *
 * <p>A line of JSON on standard input names who is to do what; the answer is a line of JSON on
 * standard output. What was thrown is an answer too: {"error": class, "message": text}. To start a
 * process a question would take longer than all the questions.
 */
final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Driver() {
    }

    public static void main(String[] args) throws Exception {
        // The tools print: they are given another System.out, and this one stays ours.
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader questions =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0); // nothing that a tool or a member left may keep the process
    }

    private static Object answer(JsonNode question) {
        try {
            switch (question.get("who").asText()) {
                case "client": return JavaClients.answer(question);
                case "admin": return JavaAdmin.answer(question);
                case "tool": return KafkaTools.answer(question);
                default: throw new IllegalArgumentException(question.get("who").asText());
            }
        } catch (ExecutionException error) {
            return failure(error.getCause());
        } catch (Exception error) {
            return failure(error);
        }
    }

    static Map<String, Object> failure(Throwable error) {
        return Map.of(
            "error", error.getClass().getSimpleName(), "message", String.valueOf(error.getMessage()));
    }
}
