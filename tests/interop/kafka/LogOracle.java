import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Apache Kafka's own log, cleaner and retention, one question a line: a JSON object on stdin is
 * answered by one JSON object on stdout. A failure is an answer too: {"error": class, "message": text}.
 *
 * Every question opens a partition directory, does one thing under the clock it names, and closes it:
 *
 *   open     no more than that, and how long it took; after an unclean stop if it says so
 *   plan     what the cleaner's manager would choose: first dirty and first uncleanable offset
 *   clean    that, and one round of the cleaner over it unless it is empty
 *   retain   one pass of deleteOldSegments
 *
 * Files that Kafka deletes after a delay are gone when the answer comes: nothing else would run here.
 */
public final class LogOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int MAX_MESSAGE_BYTES = 1_048_588;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // whatever else is printed must not look like an answer
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            answers.flush();
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            long started = System.nanoTime();
            OpenLog open = new OpenLog(question);
            double openedSeconds = (System.nanoTime() - started) / 1e9;
            try {
                switch (question.get("op").asText()) {
                    case "open" -> answer.put("opened_s", openedSeconds);
                    case "plan" -> plan(open, question, answer);
                    case "clean" -> clean(open, question, answer);
                    case "retain" -> retain(open, answer);
                    default -> throw new IllegalArgumentException("no such op");
                }
                answer.put("log_start_offset", open.log.logStartOffset());
                answer.put("log_end_offset", open.log.logEndOffset());
            } finally {
                open.close();
            }
        } catch (Throwable failure) {
            Throwable cause = failure instanceof InvocationTargetException ? failure.getCause() : failure;
            answer.put("error", cause.getClass().getSimpleName());
            answer.put("message", String.valueOf(cause.getMessage()));
        }
        return answer;
    }

    private static LogToClean plan(OpenLog open, JsonNode question, ObjectNode answer) throws Exception {
        Optional<Long> lastClean = question.hasNonNull("last_clean_offset")
            ? Optional.of(question.get("last_clean_offset").asLong())
            : Optional.empty();
        Object offsets = managersRule("cleanableOffsets", Optional.class)
            .invoke(null, open.log, lastClean, open.time.milliseconds());
        long firstDirtyOffset = component(offsets, "firstDirtyOffset");
        long firstUncleanable = component(offsets, "firstUncleanableDirtyOffset");
        long delayMs = (long) managersRule("maxCompactionDelay", long.class)
            .invoke(null, open.log, firstDirtyOffset, open.time.milliseconds());
        LogToClean chosen = new LogToClean(open.log, firstDirtyOffset, firstUncleanable, delayMs > 0);
        answer.put("first_dirty_offset", chosen.firstDirtyOffset());
        answer.put("first_uncleanable_offset", chosen.firstUncleanableOffset());
        answer.put("clean_bytes", chosen.cleanBytes());
        answer.put("cleanable_bytes", chosen.cleanableBytes());
        answer.put("compaction_delay_ms", delayMs);
        return chosen;
    }

    /** Only the manager itself may call these; they are what this class is here to ask for. */
    private static Method managersRule(String name, Class<?> offset) throws NoSuchMethodException {
        Method rule = LogCleanerManager.class.getDeclaredMethod(name, UnifiedLog.class, offset, long.class);
        rule.setAccessible(true);
        return rule;
    }

    private static long component(Object record, String name) throws Exception {
        Method reader = record.getClass().getDeclaredMethod(name);
        reader.setAccessible(true);
        return (long) reader.invoke(record);
    }

    private static void clean(OpenLog open, JsonNode question, ObjectNode answer) throws Exception {
        LogToClean chosen = plan(open, question, answer);
        if (chosen.cleanableBytes() == 0)
            return; // no cleaner would pick this log
        Throttler unthrottled = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(
            0,
            new SkimpyOffsetMap(question.get("map_bytes").asInt()),
            question.path("io_buffer_bytes").asInt(262_144),
            MAX_MESSAGE_BYTES,
            question.path("load_factor").asDouble(0.9),
            unthrottled,
            open.time,
            partition -> { });
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long started = System.nanoTime();
        long worked = threads.getCurrentThreadCpuTime();
        Map.Entry<Long, CleanerStats> cleaned = cleaner.doClean(chosen, open.time.milliseconds());
        answer.put("elapsed_s", (System.nanoTime() - started) / 1e9);
        answer.put("worked_s", (threads.getCurrentThreadCpuTime() - worked) / 1e9);
        CleanerStats stats = cleaned.getValue();
        answer.put("end_offset", cleaned.getKey());
        answer.put("bytes_read", stats.bytesRead());
        answer.put("bytes_written", stats.bytesWritten());
        answer.put("messages_read", stats.messagesRead());
        answer.put("messages_written", stats.messagesWritten());
        answer.put("invalid_messages_read", stats.invalidMessagesRead());
        answer.put("map_messages_read", stats.mapMessagesRead());
        answer.put("buffer_utilization", stats.bufferUtilization());
    }

    private static void retain(OpenLog open, ObjectNode answer) throws Exception {
        answer.put("deleted_segments", open.log.deleteOldSegments());
    }

    /** A partition directory, opened as a broker would after a clean stop, or after another one. */
    private static final class OpenLog implements AutoCloseable {
        final FixedTime time;
        final LaterScheduler scheduler = new LaterScheduler();
        final BrokerTopicStats stats = new BrokerTopicStats(false);
        final UnifiedLog log;

        OpenLog(JsonNode question) throws Exception {
            time = new FixedTime(question.get("now_ms").asLong());
            Map<String, String> configs = new HashMap<>();
            question.get("configs").properties().forEach(
                each -> configs.put(each.getKey(), each.getValue().asText()));
            int producerExpirationMs = question.path("producer_expiration_ms").asInt(86_400_000);
            log = UnifiedLog.create(
                new File(question.get("directory").asText()),
                new LogConfig(configs),
                question.path("checkpointed_start_offset").asLong(0),
                question.path("recovery_point").asLong(Long.MAX_VALUE),
                scheduler,
                stats,
                time,
                900_000,
                new ProducerStateManagerConfig(producerExpirationMs, false),
                600_000,
                new LogDirFailureChannel(1),
                question.path("is_clean").asBoolean(true),
                Optional.empty());
            log.updateHighWatermark(question.path("high_watermark").asLong(log.logEndOffset()));
            if (question.hasNonNull("log_start_offset"))
                log.maybeIncrementLogStartOffset(question.get("log_start_offset").asLong(),
                    LogStartOffsetIncrementReason.ClientRecordDeletion);
        }

        @Override
        public void close() {
            scheduler.runAll();
            log.close();
            log.removeLogMetrics();
            stats.close();
        }
    }

    /** The wall clock stands still; what only measures goes on. */
    private record FixedTime(long nowMs) implements Time {
        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return System.nanoTime();
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    /** Keeps what is to be done once until the question is answered; never does what recurs. */
    private static final class LaterScheduler implements Scheduler {
        private final Queue<Runnable> waiting = new ArrayDeque<>();

        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0)
                waiting.add(task);
            return new NeverDone();
        }

        @Override
        public void resizeThreadPool(int size) { }

        void runAll() {
            for (Runnable task = waiting.poll(); task != null; task = waiting.poll())
                task.run();
        }
    }

    private static final class NeverDone extends CompletableFuture<Object> implements ScheduledFuture<Object> {
        @Override
        public long getDelay(TimeUnit unit) {
            return Long.MAX_VALUE;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }

    private LogOracle() { }
}
