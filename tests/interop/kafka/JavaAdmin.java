import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;

/**
 * The Admin of kafka-clients: one call a question, by the name of its method.
 *
 * <p>Where a call answers item by item, so does this: a value, or what was thrown for that item.
 * Partitions are written as "topic-partition", here and in questions.
 */
final class JavaAdmin {
    private JavaAdmin() {
    }

    static Object answer(JsonNode question) throws Exception {
        Map<String, Object> configs = new HashMap<>();
        configs.put("bootstrap.servers", question.get("bootstrap_server").asText());
        configs.put("default.api.timeout.ms", "30000");
        try (Admin admin = Admin.create(configs)) {
            String call = question.get("call").asText();
            if (call.contains("Group")) {
                return ofGroups(admin, call, question);
            }
            return ofTopics(admin, call, question);
        }
    }

    private static Object ofTopics(Admin admin, String call, JsonNode question) throws Exception {
        switch (call) {
            case "createTopics": return createTopics(admin, question);
            case "listTopics":
                return new TreeSet<>(admin.listTopics(new ListTopicsOptions()
                    .listInternal(question.path("internal").asBoolean())).names().get());
            case "describeTopics": return describeTopics(admin, question);
            case "deleteTopics":
                return question.has("ids")
                    ? each(admin.deleteTopics(TopicCollection.ofTopicIds(ids(question)))
                        .topicIdValues())
                    : each(admin.deleteTopics(texts(question.get("names"))).topicNameValues());
            case "createPartitions": return createPartitions(admin, question);
            case "describeConfigs": return describeConfigs(admin, question);
            case "incrementalAlterConfigs": return alterConfigs(admin, question);
            case "deleteRecords": return deleteRecords(admin, question);
            case "listOffsets": return listOffsets(admin, question);
            case "describeCluster": return describeCluster(admin);
            case "describeLogDirs": return describeLogDirs(admin);
            case "describeFeatures":
                return new TreeSet<>(
                    admin.describeFeatures().featureMetadata().get().finalizedFeatures().keySet());
            default: throw new IllegalArgumentException(call);
        }
    }

    private static Object ofGroups(Admin admin, String call, JsonNode question) throws Exception {
        String group = question.path("group").asText();
        switch (call) {
            case "listGroups": return listGroups(admin);
            case "describeConsumerGroups": return describeGroup(admin, group);
            case "listConsumerGroupOffsets":
                Map<String, Object> offsets = new TreeMap<>();
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                    .forEach((partition, at) -> offsets.put(partition.toString(),
                        at == null ? null : List.of(at.offset(), at.metadata())));
                return offsets;
            case "alterConsumerGroupOffsets":
                Map<TopicPartition, OffsetAndMetadata> wanted = new HashMap<>();
                question.get("offsets").properties().forEach(each -> wanted.put(
                    partition(each.getKey()),
                    new OffsetAndMetadata(each.getValue().asLong(), "moved")));
                admin.alterConsumerGroupOffsets(group, wanted).all().get();
                return Map.of();
            case "deleteConsumerGroupOffsets":
                Set<TopicPartition> gone = partitions(question.get("partitions"));
                admin.deleteConsumerGroupOffsets(group, gone).all().get();
                return Map.of();
            case "deleteConsumerGroups":
                return each(
                    admin.deleteConsumerGroups(texts(question.get("groups"))).deletedGroups());
            case "removeMembersFromConsumerGroup":
                List<MemberToRemove> members = new ArrayList<>();
                texts(question.get("instances")).forEach(each -> members.add(new MemberToRemove(each)));
                admin.removeMembersFromConsumerGroup(
                    group, new RemoveMembersFromConsumerGroupOptions(members)).all().get();
                return Map.of();
            default: throw new IllegalArgumentException(call);
        }
    }

    // Topics

    private static Object createTopics(Admin admin, JsonNode question) throws Exception {
        List<NewTopic> wanted = new ArrayList<>();
        for (JsonNode topic : question.get("topics")) {
            int partitions = topic.path("partitions").asInt(1);
            short replicas = (short) topic.path("replication_factor").asInt(1);
            Map<String, String> configs = new HashMap<>();
            topic.path("configs").properties()
                .forEach(each -> configs.put(each.getKey(), each.getValue().asText()));
            wanted.add(
                new NewTopic(topic.get("name").asText(), partitions, replicas).configs(configs));
        }
        CreateTopicsResult made = admin.createTopics(wanted,
            new CreateTopicsOptions().validateOnly(question.path("validate_only").asBoolean()));
        Map<String, Object> shown = new TreeMap<>();
        for (String name : made.values().keySet()) {
            try {
                Map<String, Object> facts = new LinkedHashMap<>();
                facts.put("partitions", made.numPartitions(name).get());
                facts.put("replication_factor", made.replicationFactor(name).get());
                facts.put("id", made.topicId(name).get().toString());
                for (ConfigEntry entry : made.config(name).get().entries()) {
                    if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                        facts.put(entry.name(), entry.value());
                    }
                }
                shown.put(name, facts);
            } catch (ExecutionException error) {
                shown.put(name, Driver.failure(error.getCause()));
            }
        }
        return shown;
    }

    private static Object describeTopics(Admin admin, JsonNode question) throws Exception {
        Map<String, KafkaFuture<TopicDescription>> asked = new TreeMap<>();
        if (question.has("ids")) {
            admin.describeTopics(TopicCollection.ofTopicIds(ids(question))).topicIdValues()
                .forEach((id, answer) -> asked.put(id.toString(), answer));
        } else {
            asked.putAll(admin.describeTopics(texts(question.get("names"))).topicNameValues());
        }
        Map<String, Object> shown = new TreeMap<>();
        for (Map.Entry<String, KafkaFuture<TopicDescription>> topic : asked.entrySet()) {
            try {
                shown.put(topic.getKey(), described(topic.getValue().get()));
            } catch (ExecutionException error) {
                shown.put(topic.getKey(), Driver.failure(error.getCause()));
            }
        }
        return shown;
    }

    private static Object described(TopicDescription topic) {
        List<Object> partitions = new ArrayList<>();
        for (TopicPartitionInfo each : topic.partitions()) {
            List<Integer> replicas = new ArrayList<>();
            each.replicas().forEach(node -> replicas.add(node.id()));
            List<Integer> inSync = new ArrayList<>();
            each.isr().forEach(node -> inSync.add(node.id()));
            partitions.add(List.of(each.partition(), each.leader().id(), replicas, inSync));
        }
        return Map.of("name", topic.name(), "id", topic.topicId().toString(),
            "internal", topic.isInternal(), "partitions", partitions);
    }

    private static Object createPartitions(Admin admin, JsonNode question) throws Exception {
        return each(admin.createPartitions(
            Map.of(question.get("topic").asText(),
                NewPartitions.increaseTo(question.get("partitions").asInt())),
            new CreatePartitionsOptions().validateOnly(question.path("validate_only").asBoolean()))
            .values());
    }

    private static Object deleteRecords(Admin admin, JsonNode question) throws Exception {
        Map<TopicPartition, RecordsToDelete> wanted = new HashMap<>();
        question.get("offsets").properties().forEach(each -> wanted.put(
            partition(each.getKey()), RecordsToDelete.beforeOffset(each.getValue().asLong())));
        Map<String, Object> shown = new TreeMap<>();
        for (var deleted : admin.deleteRecords(wanted).lowWatermarks().entrySet()) {
            try {
                shown.put(deleted.getKey().toString(), deleted.getValue().get().lowWatermark());
            } catch (ExecutionException error) {
                shown.put(deleted.getKey().toString(), Driver.failure(error.getCause()));
            }
        }
        return shown;
    }

    /** "spec" is earliest, latest, max_timestamp or a time in milliseconds. */
    private static Object listOffsets(Admin admin, JsonNode question) throws Exception {
        Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
        for (TopicPartition each : partitions(question.get("partitions"))) {
            wanted.put(each, spec(question.get("spec").asText()));
        }
        Map<String, Object> shown = new TreeMap<>();
        admin.listOffsets(wanted).all().get().forEach((partition, at) ->
            shown.put(partition.toString(), List.of(at.offset(), at.timestamp())));
        return shown;
    }

    private static OffsetSpec spec(String word) {
        switch (word) {
            case "earliest": return OffsetSpec.earliest();
            case "latest": return OffsetSpec.latest();
            case "max_timestamp": return OffsetSpec.maxTimestamp();
            case "earliest_local": return OffsetSpec.earliestLocal();
            default: return OffsetSpec.forTimestamp(Long.parseLong(word));
        }
    }

    // Configs

    private static ConfigResource resource(JsonNode question) {
        return new ConfigResource(
            ConfigResource.Type.valueOf(question.get("type").asText()),
            question.get("name").asText());
    }

    private static Object describeConfigs(Admin admin, JsonNode question) throws Exception {
        ConfigResource resource = resource(question);
        DescribeConfigsOptions options =
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        Map<String, Object> shown = new TreeMap<>();
        for (ConfigEntry entry :
            admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
            shown.put(entry.name(), List.of(
                String.valueOf(entry.value()), entry.source().name(), entry.type().name()));
        }
        return shown;
    }

    /** Operations are [kind, name, value]. */
    private static Object alterConfigs(Admin admin, JsonNode question) throws Exception {
        Collection<AlterConfigOp> operations = new ArrayList<>();
        for (JsonNode each : question.get("operations")) {
            operations.add(new AlterConfigOp(
                new ConfigEntry(each.get(1).asText(), each.get(2).asText()),
                AlterConfigOp.OpType.valueOf(each.get(0).asText())));
        }
        admin.incrementalAlterConfigs(Map.of(resource(question), operations)).all().get();
        return Map.of();
    }

    // Groups

    private static Object listGroups(Admin admin) throws Exception {
        Map<String, Object> shown = new TreeMap<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            shown.put(each.groupId(), List.of(
                each.type().map(Object::toString).orElse(""), each.protocol(),
                each.groupState().map(Object::toString).orElse("")));
        }
        return shown;
    }

    private static Object describeGroup(Admin admin, String group) throws Exception {
        ConsumerGroupDescription found =
            admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        List<Object> members = new ArrayList<>();
        for (MemberDescription member : found.members()) {
            TreeSet<String> held = new TreeSet<>();
            member.assignment().topicPartitions().forEach(each -> held.add(each.toString()));
            members.add(Map.of("client_id", member.clientId(), "host", member.host(),
                "instance", member.groupInstanceId().orElse(""), "held", held));
        }
        return Map.of("state", found.groupState().toString(), "type", found.type().toString(),
            "assignor", found.partitionAssignor(), "coordinator", found.coordinator().id(),
            "members", members);
    }

    // The cluster

    private static Object describeCluster(Admin admin) throws Exception {
        DescribeClusterResult found = admin.describeCluster();
        List<Integer> nodes = new ArrayList<>();
        found.nodes().get().forEach(node -> nodes.add(node.id()));
        return Map.of("id", found.clusterId().get(), "controller", found.controller().get().id(),
            "nodes", nodes);
    }

    private static Object describeLogDirs(Admin admin) throws Exception {
        int node = admin.describeCluster().nodes().get().iterator().next().id();
        Map<String, Object> shown = new TreeMap<>();
        for (Map.Entry<String, LogDirDescription> directory :
            admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).entrySet()) {
            Map<String, Object> sizes = new TreeMap<>();
            directory.getValue().replicaInfos()
                .forEach((partition, replica) -> sizes.put(partition.toString(), replica.size()));
            shown.put(directory.getKey(), Map.of("sizes", sizes,
                "total_bytes", directory.getValue().totalBytes().orElse(-1),
                "usable_bytes", directory.getValue().usableBytes().orElse(-1)));
        }
        return shown;
    }

    // What all of them need

    /** Each item's outcome: true, or what was thrown for it. */
    private static <K, V> Map<String, Object> each(Map<K, KafkaFuture<V>> outcomes)
        throws InterruptedException {
        Map<String, Object> shown = new TreeMap<>();
        for (Map.Entry<K, KafkaFuture<V>> outcome : outcomes.entrySet()) {
            try {
                outcome.getValue().get();
                shown.put(outcome.getKey().toString(), true);
            } catch (ExecutionException error) {
                shown.put(outcome.getKey().toString(), Driver.failure(error.getCause()));
            }
        }
        return shown;
    }

    private static List<String> texts(JsonNode list) {
        List<String> found = new ArrayList<>();
        list.forEach(each -> found.add(each.asText()));
        return found;
    }

    private static List<Uuid> ids(JsonNode question) {
        List<Uuid> found = new ArrayList<>();
        question.get("ids").forEach(each -> found.add(Uuid.fromString(each.asText())));
        return found;
    }

    private static Set<TopicPartition> partitions(JsonNode names) {
        Set<TopicPartition> found = new HashSet<>();
        names.forEach(each -> found.add(partition(each.asText())));
        return found;
    }

    private static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(
            name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }
}
