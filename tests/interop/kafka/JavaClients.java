import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;

/**
 * The producer and the consumer of kafka-clients: one operation a question.
 *
 * <p>Members of groups live from "join" to "leave" on threads of their own, and "await" tells what
 * they hold. What is right is for the asker to judge: nothing is asserted here.
 */
final class JavaClients {
    private static final Map<String, Member> MEMBERS = new TreeMap<>();
    private static final long CLOSE_SECONDS = 20;
    private static Stream stream;

    static Object answer(JsonNode question) throws Exception {
        switch (question.get("op").asText()) {
            case "produce": return produce(question);
            case "produce_many": return produceMany(question);
            case "consume": return consume(question);
            case "offsets": return offsets(question);
            case "join": return join(question);
            case "await": return await(question);
            case "leave": return leave(question);
            case "start": return start(question);
            case "acknowledged": return acknowledged(question);
            case "stop": return stop(question);
            default: throw new IllegalArgumentException(question.get("op").asText());
        }
    }

    // Producing

    private static Object produce(JsonNode question) throws Exception {
        List<Object> placed = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(question)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : question.get("records")) {
                sent.add(producer.send(toSend(question.get("topic").asText(), record)));
            }
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                try {
                    RecordMetadata at = each.get(30, TimeUnit.SECONDS);
                    placed.add(List.of(at.partition(), at.offset(), at.timestamp()));
                } catch (ExecutionException error) {
                    placed.add(Driver.failure(error.getCause()));
                }
            }
        }
        return Map.of("placed", placed);
    }

    /** The value of record N is its number in decimal, then 'x' up to the size. */
    private static Object produceMany(JsonNode question) throws Exception {
        String topic = question.get("topic").asText();
        int size = question.get("size").asInt();
        int partitions = question.get("partitions").asInt();
        Map<Integer, Long> ends = new TreeMap<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(question)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < question.get("count").asInt(); number++) {
                byte[] value = new byte[size];
                Arrays.fill(value, (byte) 'x');
                byte[] digits = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
                System.arraycopy(digits, 0, value, 0, digits.length);
                sent.add(producer.send(
                    new ProducerRecord<>(topic, number % partitions, digits, value)));
            }
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                RecordMetadata at = each.get(30, TimeUnit.SECONDS);
                ends.merge(at.partition(), at.offset() + 1, Math::max);
            }
        }
        return Map.of("ends", ends);
    }

    private static Object start(JsonNode question) {
        stream = new Stream(producer(question), question.get("topic").asText());
        stream.start();
        return Map.of();
    }

    /** Until the producer that was started has heard of "count" records: how many it has. */
    private static Object acknowledged(JsonNode question) throws InterruptedException {
        long deadline = deadline(question);
        int count = question.get("count").asInt();
        while (stream.acknowledgedCount() < count && System.nanoTime() < deadline) {
            Thread.sleep(5);
        }
        return Map.of("count", stream.acknowledgedCount());
    }

    private static Object stop(JsonNode question) throws InterruptedException {
        return stream.finished();
    }

    /** Sends numbers, one after the other, with no more than a few unanswered. */
    private static final class Stream extends Thread {
        private static final int UNANSWERED = 200;
        private final KafkaProducer<byte[], byte[]> producer;
        private final String topic;
        private final Semaphore room = new Semaphore(UNANSWERED);
        private final List<Long> offsets = new ArrayList<>();
        private final List<Object> failures = new ArrayList<>();
        private volatile boolean isStopping;

        Stream(KafkaProducer<byte[], byte[]> producer, String topic) {
            this.producer = producer;
            this.topic = topic;
            setDaemon(true);
        }

        @Override
        public void run() {
            try (producer) {
                for (int number = 0; !isStopping; number++) {
                    room.acquire();
                    byte[] value = Integer.toString(number).getBytes(StandardCharsets.UTF_8);
                    producer.send(new ProducerRecord<>(topic, 0, null, value), this::answered);
                }
                producer.flush();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }

        private synchronized void answered(RecordMetadata at, Exception error) {
            room.release();
            if (error == null) {
                offsets.add(at.offset());
            } else {
                failures.add(Driver.failure(error));
            }
        }

        synchronized int acknowledgedCount() {
            return offsets.size();
        }

        Object finished() throws InterruptedException {
            isStopping = true;
            join(TimeUnit.SECONDS.toMillis(CLOSE_SECONDS));
            synchronized (this) {
                return Map.of("offsets", offsets, "failures", failures);
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> toSend(String topic, JsonNode record) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.path("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        Integer partition = record.hasNonNull("partition") ? record.get("partition").asInt() : null;
        Long timestamp = record.hasNonNull("timestamp") ? record.get("timestamp").asLong() : null;
        byte[] key = bytes(record.get("key"));
        return new ProducerRecord<>(
            topic, partition, timestamp, key, bytes(record.get("value")), headers);
    }

    private static KafkaProducer<byte[], byte[]> producer(JsonNode question) {
        return new KafkaProducer<>(
            configs(question), new ByteArraySerializer(), new ByteArraySerializer());
    }

    // Consuming

    /** With "summary", only a count, the bytes and a checksum of the values by partition. */
    private static Object consume(JsonNode question) {
        int count = question.get("count").asInt();
        Summary summary = new Summary();
        List<Object> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(question)) {
            if (question.has("topic")) {
                consumer.subscribe(List.of(question.get("topic").asText()));
            } else {
                assign(consumer, question.get("assign"));
            }
            long deadline = deadline(question);
            while (summary.count < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    summary.add(record);
                    if (!question.path("summary").asBoolean()) {
                        records.add(shown(record));
                    }
                }
            }
            if (question.path("commit").asBoolean()) {
                consumer.commitSync();
            }
        }
        return question.path("summary").asBoolean() ? summary.shown() : Map.of("records", records);
    }

    /** Offsets as a consumer sees them: beginning, end, the first at or after a time, committed. */
    private static Object offsets(JsonNode question) {
        TopicPartition partition =
            new TopicPartition(question.get("topic").asText(), question.get("partition").asInt());
        Set<TopicPartition> one = Set.of(partition);
        Map<String, Object> found = new LinkedHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(question)) {
            found.put("beginning", consumer.beginningOffsets(one).get(partition));
            found.put("end", consumer.endOffsets(one).get(partition));
            OffsetAndTimestamp at = consumer.offsetsForTimes(
                Map.of(partition, question.get("timestamp").asLong())).get(partition);
            found.put("for_time", at == null ? null : List.of(at.offset(), at.timestamp()));
            if (question.get("configs").has("group.id")) {
                OffsetAndMetadata committed = consumer.committed(one).get(partition);
                found.put("committed", committed == null ? null : committed.offset());
            }
        }
        return found;
    }

    private static void assign(Consumer<byte[], byte[]> consumer, JsonNode places) {
        Map<TopicPartition, Long> offsets = new LinkedHashMap<>();
        for (JsonNode place : places) {
            TopicPartition at = new TopicPartition(place.get(0).asText(), place.get(1).asInt());
            offsets.put(at, place.get(2).asLong());
        }
        consumer.assign(offsets.keySet());
        offsets.forEach(consumer::seek);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(JsonNode question) {
        return new KafkaConsumer<>(
            configs(question), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Object shown(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("partition", record.partition());
        shown.put("offset", record.offset());
        shown.put("key", text(record.key()));
        shown.put("value", text(record.value()));
        shown.put("timestamp", record.timestamp());
        shown.put("timestamp_type", record.timestampType().name);
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), text(header.value())));
        }
        shown.put("headers", headers);
        return shown;
    }

    private static final class Summary {
        int count;
        private long sizeBytes;
        private final Map<Integer, Long> nextOffsets = new TreeMap<>();
        private final Map<Integer, CRC32> checksums = new TreeMap<>();
        private boolean isInOrder = true;

        void add(ConsumerRecord<byte[], byte[]> record) {
            Long expected = nextOffsets.put(record.partition(), record.offset() + 1);
            isInOrder &= expected == null || expected == record.offset();
            count++;
            if (record.value() != null) {
                sizeBytes += record.value().length;
                checksums.computeIfAbsent(record.partition(), any -> new CRC32())
                    .update(record.value());
            }
        }

        Object shown() {
            Map<Integer, Long> sums = new TreeMap<>();
            checksums.forEach((partition, sum) -> sums.put(partition, sum.getValue()));
            return Map.of("count", count, "size_bytes", sizeBytes, "is_in_order", isInOrder,
                "next_offsets", nextOffsets, "checksums", sums);
        }
    }

    // Members of groups

    private static Object join(JsonNode question) {
        Member member = new Member(consumer(question), question.get("topics"));
        MEMBERS.put(question.get("name").asText(), member);
        member.start();
        return Map.of();
    }

    /**
     * Until the members hold "partitions" together, each at least one, and have read "records"; or,
     * if "failed" names one, until that one has failed.
     */
    private static Object await(JsonNode question) throws InterruptedException {
        long deadline = deadline(question);
        int partitions = question.get("partitions").asInt();
        int records = question.path("records").asInt();
        Member failing = MEMBERS.get(question.path("failed").asText());
        while (System.nanoTime() < deadline
            && !(failing == null ? isSettled(partitions, records) : failing.hasFailed())) {
            Thread.sleep(20);
        }
        Map<String, Object> members = new TreeMap<>();
        MEMBERS.forEach((name, member) -> members.put(name, member.shown()));
        return members;
    }

    private static boolean isSettled(int partitions, int records) {
        TreeSet<String> held = new TreeSet<>();
        int sum = 0;
        int read = 0;
        for (Member member : MEMBERS.values()) {
            List<String> mine = member.held();
            if (mine.isEmpty()) {
                return false;
            }
            held.addAll(mine);
            sum += mine.size();
            read += member.recordCount();
        }
        return held.size() == partitions && sum == partitions && read >= records;
    }

    private static Object leave(JsonNode question) throws InterruptedException {
        Member member = MEMBERS.remove(question.get("name").asText());
        member.leave();
        return member.shown();
    }

    private static final class Member extends Thread {
        private final KafkaConsumer<byte[], byte[]> consumer;
        private final List<String> topics = new ArrayList<>();
        private final TreeSet<String> held = new TreeSet<>();
        private final List<Object> events = new ArrayList<>();
        private final List<Object> records = new ArrayList<>();
        private Throwable failed;
        private volatile boolean isLeaving;

        Member(KafkaConsumer<byte[], byte[]> consumer, JsonNode topics) {
            this.consumer = consumer;
            topics.forEach(topic -> this.topics.add(topic.asText()));
            setDaemon(true);
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(topics, new Listener());
                while (!isLeaving) {
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(50))) {
                        synchronized (this) {
                            records.add(List.of(each.partition(), each.offset()));
                        }
                    }
                }
            } catch (WakeupException error) {
                // told to leave
            } catch (Throwable error) {
                synchronized (this) {
                    failed = error;
                }
            }
        }

        void leave() throws InterruptedException {
            isLeaving = true;
            join(TimeUnit.SECONDS.toMillis(CLOSE_SECONDS));
        }

        synchronized List<String> held() {
            return new ArrayList<>(held);
        }

        synchronized int recordCount() {
            return records.size();
        }

        synchronized boolean hasFailed() {
            return failed != null;
        }

        synchronized Object shown() {
            Map<String, Object> shown = new HashMap<>();
            shown.put("held", new ArrayList<>(held));
            shown.put("events", new ArrayList<>(events));
            shown.put("records", new ArrayList<>(records));
            shown.put("failed", failed == null ? null : Driver.failure(failed));
            return shown;
        }

        private final class Listener implements ConsumerRebalanceListener {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                changed("revoked", partitions);
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                changed("assigned", partitions);
            }

            @Override
            public void onPartitionsLost(Collection<TopicPartition> partitions) {
                changed("lost", partitions);
            }

            private void changed(String what, Collection<TopicPartition> partitions) {
                TreeSet<String> names = new TreeSet<>();
                partitions.forEach(each -> names.add(each.toString()));
                synchronized (Member.this) {
                    if (what.equals("assigned")) {
                        held.addAll(names);
                    } else {
                        held.removeAll(names);
                    }
                    events.add(List.of(what, names));
                }
            }
        }
    }

    // What all of them need

    private static Map<String, Object> configs(JsonNode question) {
        Map<String, Object> configs = new HashMap<>();
        question.get("configs").properties()
            .forEach(each -> configs.put(each.getKey(), each.getValue().asText()));
        return configs;
    }

    private static long deadline(JsonNode question) {
        return System.nanoTime()
            + TimeUnit.MILLISECONDS.toNanos(question.path("timeout_ms").asLong(30_000));
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }
}
