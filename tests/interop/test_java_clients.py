"""The Java clients of the pinned release, through our broker and through Apache Kafka's.

One process is told by lines what to do (kafka/Driver.java). Every test runs against both brokers:
where they differ, ours is wrong.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import KafkaDistribution
from tools_brokers import BROKERS, serving
from tools_java import JavaClient, JavaDriver, eventually
from tools_served import ServedBroker

pytestmark = pytest.mark.interop

START_MS = 1_700_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
COOPERATIVE = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": COOPERATIVE,
}
FROM_START = {"auto.offset.reset": "earliest"}


@pytest.fixture(scope="module", params=BROKERS)
def java(
    request: pytest.FixtureRequest,
    kafka: KafkaDistribution,
    driver: JavaDriver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[JavaClient]:
    with serving(request.param, kafka, tmp_path_factory.mktemp("java")) as address:
        yield JavaClient(driver, address)


def member(group: str, **configs: str) -> dict[str, str]:
    """The configs of a member of a group that starts where the log does."""
    named = {name.replace("_", "."): value for name, value in configs.items()}
    return {"group.id": group, **FROM_START, "heartbeat.interval.ms": "200", **named}


# Producing and consuming


@pytest.mark.parametrize("codec", CODECS)
def test_what_an_idempotent_producer_compressed_is_consumed_as_it_was_written(
    java: JavaClient, codec: str
) -> None:
    topic = f"codec-{codec}"
    java.create(topic, partitions=2)
    configs = {"compression.type": codec, "acks": "all", "enable.idempotence": "true"}
    written = java.client("produce_many", configs, topic=topic, count=2000, size=300, partitions=2)
    assert written == {"ends": {"0": 1000, "1": 1000}}

    places = [[topic, 0, 0], [topic, 1, 0]]
    read = java.client("consume", assign=places, count=2000, summary=True)

    values = [str(number).encode().ljust(300, b"x") for number in range(2000)]
    assert read == {
        "count": 2000,
        "size_bytes": 2000 * 300,
        "is_in_order": True,
        "next_offsets": {"0": 1000, "1": 1000},
        "checksums": {str(slot): zlib.crc32(b"".join(values[slot::2])) for slot in (0, 1)},
    }


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_keys_headers_timestamps_and_nulls_come_back(java: JavaClient, acks: str) -> None:
    topic = f"acks-{acks}"
    java.create(topic)
    records = [
        {"key": "k", "value": "v", "timestamp": START_MS, "headers": [["h", "1"], ["h", None]]},
        {"key": None, "value": "no key", "timestamp": START_MS + 1},
        {"key": "deleted", "value": None, "timestamp": START_MS - 1},
        {"key": "", "value": "", "timestamp": 0},
    ]
    configs = {"acks": acks, "enable.idempotence": "false"}
    placed = java.client("produce", configs, topic=topic, records=records)["placed"]
    # Without an answer nothing is known of the offset: the producer says -1.
    assert [at[1] for at in placed] == ([-1] * 4 if acks == "0" else [0, 1, 2, 3])

    found = java.client("consume", assign=[[topic, 0, 0]], count=4)["records"]

    for offset, (record, read) in enumerate(zip(records, found, strict=True)):
        wanted = {"headers": [], **record, "partition": 0, "offset": offset}
        assert read == {**wanted, "timestamp_type": "CreateTime"}


def test_a_topic_with_log_append_time_tells_the_producer_its_time(java: JavaClient) -> None:
    java.create("appended", message_timestamp_type="LogAppendTime")
    records = [{"value": "v", "timestamp": START_MS}]
    ((_, _, told),) = java.client("produce", topic="appended", records=records)["placed"]
    (read,) = java.client("consume", assign=[["appended", 0, 0]], count=1)["records"]
    assert told > START_MS
    assert (read["timestamp"], read["timestamp_type"]) == (told, "LogAppendTime")


def test_a_big_record_passes_and_one_over_the_topics_limit_is_refused(java: JavaClient) -> None:
    java.create("big", max_message_bytes="2000000")
    roomy = {"max.request.size": "8000000", "buffer.memory": "33554432"}
    sizes = [1_900_000, 2_100_000, 10]
    placed = [java.produce("big", ["x" * size], roomy)[0] for size in sizes]
    assert [at if isinstance(at, dict) else at[1] for at in placed] == [
        0,
        {"error": "RecordTooLargeException", "message": placed[1]["message"]},
        1,
    ]
    # A record larger than what a fetch may hold is sent all the same: the consumer goes on.
    small = {"max.partition.fetch.bytes": "1000", "fetch.max.bytes": "1000"}
    read = java.client("consume", small, assign=[["big", 0, 0]], count=2)["records"]
    assert [len(record["value"]) for record in read] == [1_900_000, 10]


def test_a_topic_that_is_not_there_fails_the_producer_in_its_time(java: JavaClient) -> None:
    ((failed),) = java.produce("absent", ["v"], {"max.block.ms": "500"})
    assert failed["error"] == "TimeoutException"


def test_a_compacted_topic_refuses_a_record_without_a_key(java: JavaClient) -> None:
    java.create("compacted", cleanup_policy="compact")
    ((failed),) = java.produce("compacted", ["v"])
    assert failed["error"] == "InvalidRecordException"


def test_a_consumer_finds_offsets_by_place_and_by_time(java: JavaClient) -> None:
    java.create("timed")
    records = [{"value": str(n), "timestamp": START_MS + 1000 * n} for n in range(10)]
    java.client("produce", topic="timed", records=records)

    asked = java.client("offsets", topic="timed", partition=0, timestamp=START_MS + 4500)
    late = java.client("offsets", topic="timed", partition=0, timestamp=START_MS + 9001)

    assert asked == {"beginning": 0, "end": 10, "for_time": [5, START_MS + 5000]}
    assert late["for_time"] is None


def test_read_committed_reads_to_the_end_of_a_log_without_transactions(java: JavaClient) -> None:
    java.create("committed")
    java.produce("committed", ["a", "b"])
    configs = {"isolation.level": "read_committed"}
    read = java.client("consume", configs, assign=[["committed", 0, 0]], count=2)["records"]
    assert [record["value"] for record in read] == ["a", "b"]


def test_an_offset_beyond_the_end_is_out_of_range(java: JavaClient) -> None:
    java.create("short")
    java.produce("short", ["a"])
    configs = {"auto.offset.reset": "none"}
    failed = java.client("consume", configs, assign=[["short", 0, 99]], count=1)
    assert failed["error"] == "OffsetOutOfRangeException"


# Groups


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_three_members_share_a_topic_and_one_that_leaves_hands_over(
    java: JavaClient, assignor: str
) -> None:
    topic, group = f"shared-{assignor}", f"group-{assignor}"
    java.create(topic, partitions=6)
    configs = member(group, partition_assignment_strategy=ASSIGNORS[assignor])
    for name in ("a", "b", "c"):
        java.client("join", configs, name=name, topics=[topic])
    together = java.client("await", partitions=6)
    assert [len(each["held"]) for each in together.values()] == [2, 2, 2], together

    described = eventually(
        lambda: java.admin("describeConsumerGroups", group=group),
        lambda found: found["state"] == "Stable",
    )
    java.client("produce_many", topic=topic, count=600, size=50, partitions=6)
    java.client("await", partitions=6, records=600)
    left = java.client("leave", name="b")
    rest = java.client("await", partitions=6, records=600 - len(left["records"]))
    last = [java.client("leave", name=name) for name in ("a", "c")]

    assert (described["state"], described["assignor"]) == ("Stable", assignor)
    assert sorted(held for each in described["members"] for held in each["held"]) == [
        f"{topic}-{partition}" for partition in range(6)
    ]
    assert [len(each["held"]) for each in rest.values()] == [3, 3]
    # Each record was read once: who left had committed, and who took over went on from there.
    read = [tuple(place) for each in [left, *last] for place in each["records"]]
    assert sorted(read) == [(p, offset) for p in range(6) for offset in range(100)]
    assert [each["failed"] for each in [left, *last]] == [None] * 3
    if assignor == "cooperative-sticky":
        # Nobody gave up what it kept: a rebalance takes only what moves.
        assert all(event[0] != "revoked" for name in rest for event in rest[name]["events"][-1:])
    committed = java.admin("listConsumerGroupOffsets", group=group)
    assert committed == {f"{topic}-{partition}": [100, ""] for partition in range(6)}


def test_a_static_member_that_comes_back_finds_its_partitions_unmoved(java: JavaClient) -> None:
    java.create("static", partitions=4)
    configs = {name: member("statics", group_instance_id=name) for name in ("one", "two")}
    for name, each in configs.items():
        java.client("join", each, name=name, topics=["static"])
    before = java.client("await", partitions=4)

    java.client("leave", name="one")
    described = java.admin("describeConsumerGroups", group="statics")
    java.client("join", configs["one"], name="one", topics=["static"])
    after = java.client("await", partitions=4)

    assert {each["instance"] for each in described["members"]} == {"one", "two"}
    assert after["one"]["held"] == before["one"]["held"]
    assert after["two"] == before["two"], "who stayed noticed nothing"

    # An operator can remove one: the other takes all.
    java.client("leave", name="one")
    java.admin("removeMembersFromConsumerGroup", group="statics", instances=["one"])
    alone = java.client("await", partitions=4)
    java.client("leave", name="two")
    assert len(alone["two"]["held"]) == 4


def test_a_second_static_member_of_the_same_name_fences_the_first(java: JavaClient) -> None:
    java.create("fenced")
    configs = member("fencing", group_instance_id="same")
    java.client("join", configs, name="first", topics=["fenced"])
    java.client("await", partitions=1)
    java.client("join", configs, name="second", topics=["fenced"])
    java.client("await", partitions=1, failed="first")
    first = java.client("leave", name="first")
    java.client("await", partitions=1)
    second = java.client("leave", name="second")
    assert first["failed"]["error"] == "FencedInstanceIdException"
    assert second["failed"] is None


def test_partitions_that_are_added_reach_the_members(java: JavaClient) -> None:
    java.create("grows", partitions=1)
    configs = member("growers", metadata_max_age_ms="300")
    java.client("join", configs, name="only", topics=["grows"])
    java.client("await", partitions=1)
    assert java.admin("createPartitions", topic="grows", partitions=3) == {"grows": True}
    grown = java.client("await", partitions=3)
    java.client("leave", name="only")
    assert grown["only"]["held"] == ["grows-0", "grows-1", "grows-2"]


def test_offsets_of_a_group_are_moved_forgotten_and_deleted(java: JavaClient) -> None:
    java.create("offsets", partitions=2)
    java.client("produce_many", topic="offsets", count=20, size=10, partitions=2)
    java.client("consume", member("movers"), topic="offsets", count=20, summary=True, commit=True)
    committed = java.admin("listConsumerGroupOffsets", group="movers")
    java.admin("alterConsumerGroupOffsets", group="movers", offsets={"offsets-0": 3})
    moved = java.admin("listConsumerGroupOffsets", group="movers")
    java.admin("deleteConsumerGroupOffsets", group="movers", partitions=["offsets-1"])
    read = java.client(
        "consume", {**member("movers"), "auto.offset.reset": "latest"}, topic="offsets", count=7
    )
    listed = java.admin("listGroups")
    deleted = java.admin("deleteConsumerGroups", groups=["movers", "nobody"])

    assert committed == {"offsets-0": [10, ""], "offsets-1": [10, ""]}
    assert moved == {"offsets-0": [3, "moved"], "offsets-1": [10, ""]}
    assert [(each["partition"], each["offset"]) for each in read["records"]] == [
        (0, offset) for offset in range(3, 10)
    ]
    assert listed["movers"] == ["Classic", "consumer", "Empty"]
    assert deleted["movers"] is True
    assert deleted["nobody"]["error"] == "GroupIdNotFoundException"
    assert "movers" not in java.admin("listGroups")


def test_a_group_with_members_cannot_be_deleted(java: JavaClient) -> None:
    java.create("busy")
    java.client("join", member("busy"), name="only", topics=["busy"])
    java.client("await", partitions=1)
    refused = java.admin("deleteConsumerGroups", groups=["busy"])
    java.client("leave", name="only")
    assert refused["busy"]["error"] == "GroupNotEmptyException"


# Topics, configs, records and the cluster


def test_topics_are_made_described_by_name_and_id_and_deleted(java: JavaClient) -> None:
    wanted = [
        {"name": "made", "partitions": 3, "configs": {"retention.ms": "1000"}},
        {"name": "bad name", "partitions": 1},
        {"name": "too-many-replicas", "replication_factor": 5},
        {"name": "bad-config", "configs": {"retention.ms": "soon"}},
    ]
    tried = java.admin("createTopics", topics=wanted, validate_only=True)
    made = java.admin("createTopics", topics=wanted)
    again = java.admin("createTopics", topics=wanted[:1])
    identity = made["made"]["id"]
    by_name = java.admin("describeTopics", names=["made", "unmade"])
    by_id = java.admin("describeTopics", ids=[identity])
    listed = java.admin("listTopics")
    deleted = java.admin("deleteTopics", ids=[identity])
    gone = java.admin("deleteTopics", names=["made"])

    assert (made["made"]["partitions"], made["made"]["retention.ms"]) == (3, "1000")
    assert tried["made"]["partitions"] == 3
    for answer in (tried, made):
        assert answer["bad name"]["error"] == "InvalidTopicException"
        assert answer["too-many-replicas"]["error"] == "InvalidReplicationFactorException"
        assert answer["bad-config"]["error"] == "InvalidConfigurationException"
    assert again["made"]["error"] == "TopicExistsException"
    node = by_name["made"]["partitions"][0][1]
    assert by_name["made"] == by_id[identity]
    assert by_name["made"] == {
        "name": "made",
        "id": identity,
        "internal": False,
        "partitions": [[partition, node, [node], [node]] for partition in range(3)],
    }
    assert by_name["unmade"]["error"] == "UnknownTopicOrPartitionException"
    assert "made" in listed
    assert deleted == {identity: True}
    assert gone["made"]["error"] == "UnknownTopicOrPartitionException"


def test_a_topic_made_anew_has_another_id_and_none_of_the_old_records(java: JavaClient) -> None:
    first = java.create("anew")
    java.produce("anew", ["old"])
    java.admin("deleteTopics", names=["anew"])
    second = java.create("anew")
    java.produce("anew", ["new"])
    read = java.client("consume", assign=[["anew", 0, 0]], count=1)["records"]
    assert first != second
    assert [record["value"] for record in read] == ["new"]


def test_partitions_only_grow(java: JavaClient) -> None:
    java.create("growing", partitions=2)
    fewer = java.admin("createPartitions", topic="growing", partitions=1)
    tried = java.admin("createPartitions", topic="growing", partitions=4, validate_only=True)
    unmade = java.admin("createPartitions", topic="nowhere", partitions=4)
    described = java.admin("describeTopics", names=["growing"])["growing"]
    assert fewer["growing"]["error"] == "InvalidPartitionsException"
    assert tried == {"growing": True}
    assert unmade["nowhere"]["error"] == "UnknownTopicOrPartitionException"
    assert len(described["partitions"]) == 2


def test_configs_are_set_appended_subtracted_and_deleted(java: JavaClient) -> None:
    java.create("configured")

    def alter(*operations: list[str]) -> object:
        return java.admin(
            "incrementalAlterConfigs", type="TOPIC", name="configured", operations=operations
        )

    def described(config: str) -> list[str]:
        found = java.admin("describeConfigs", type="TOPIC", name="configured")
        return list(found[config])

    assert alter(["SET", "segment.ms", "60000"], ["APPEND", "cleanup.policy", "compact"]) == {}
    assert described("segment.ms") == ["60000", "DYNAMIC_TOPIC_CONFIG", "LONG"]
    both = ["delete,compact", "DYNAMIC_TOPIC_CONFIG", "LIST"]
    assert described("cleanup.policy") == both
    assert alter(["SUBTRACT", "cleanup.policy", "delete"], ["DELETE", "segment.ms", ""]) == {}
    assert described("segment.ms") == ["604800000", "DEFAULT_CONFIG", "LONG"]
    assert described("cleanup.policy") == ["compact", "DYNAMIC_TOPIC_CONFIG", "LIST"]
    refused = alter(["SET", "segment.ms", "never"])
    assert isinstance(refused, dict)
    assert refused["error"] == "InvalidConfigurationException"
    unknown = java.admin("describeConfigs", type="TOPIC", name="unheard-of")
    assert unknown["error"] == "UnknownTopicOrPartitionException"


def test_a_config_of_the_broker_takes_effect_and_is_told_as_dynamic(java: JavaClient) -> None:
    node = str(java.admin("describeCluster")["nodes"][0])
    change = {"type": "BROKER", "name": node}
    name = "log.cleaner.backoff.ms"
    operations = [["SET", name, "12345"]]
    assert java.admin("incrementalAlterConfigs", **change, operations=operations) == {}

    def described(value: str) -> object:
        return eventually(
            lambda: java.admin("describeConfigs", **change)[name], lambda told: told[0] == value
        )

    assert described("12345") == ["12345", "DYNAMIC_BROKER_CONFIG", "LONG"]
    java.admin("incrementalAlterConfigs", **change, operations=[["DELETE", name, ""]])
    assert described("15000") == ["15000", "DEFAULT_CONFIG", "LONG"]


def test_records_are_deleted_up_to_an_offset_and_offsets_tell_of_it(java: JavaClient) -> None:
    java.create("shortened")
    records = [{"value": str(n), "timestamp": START_MS + (n * 7) % 10} for n in range(10)]
    java.client("produce", topic="shortened", records=records)
    one = ["shortened-0"]
    before = java.admin("listOffsets", partitions=one, spec="earliest")
    newest = java.admin("listOffsets", partitions=one, spec="max_timestamp")
    timed = java.admin("listOffsets", partitions=one, spec=str(START_MS + 8))
    deleted = java.admin("deleteRecords", offsets={"shortened-0": 4})
    beyond = java.admin("deleteRecords", offsets={"shortened-0": 11})
    after = [java.admin("listOffsets", partitions=one, spec=s) for s in ("earliest", "latest")]
    local = java.admin("listOffsets", partitions=one, spec="earliest_local")
    read = java.client("consume", FROM_START, assign=[["shortened", 0, 0]], count=6)["records"]
    everything = java.admin("deleteRecords", offsets={"shortened-0": -1})

    assert before == {"shortened-0": [0, -1]}
    assert newest == {"shortened-0": [7, START_MS + 9]}
    assert timed == {"shortened-0": [4, START_MS + 8]}
    assert deleted == {"shortened-0": 4}
    assert beyond["shortened-0"]["error"] == "OffsetOutOfRangeException"
    assert after == [{"shortened-0": [4, -1]}, {"shortened-0": [10, -1]}]
    assert local == {"shortened-0": [4, -1]}
    assert [record["offset"] for record in read] == [4, 5, 6, 7, 8, 9]
    assert everything == {"shortened-0": 10}


def test_the_cluster_and_its_directories_are_described(java: JavaClient) -> None:
    java.create("measured")
    java.produce("measured", ["x" * 1000])
    cluster = java.admin("describeCluster")
    (directory,) = java.admin("describeLogDirs").values()
    assert len(cluster["nodes"]) == 1
    assert cluster["controller"] == cluster["nodes"][0]
    assert len(cluster["id"]) == 22
    assert 1000 < directory["sizes"]["measured-0"] < 1200
    assert 0 < directory["usable_bytes"] <= directory["total_bytes"]


# A broker that stalls, and one that dies

QUICK = {
    "reconnect.backoff.ms": "20",
    "reconnect.backoff.max.ms": "100",
    "retry.backoff.ms": "20",
    "request.timeout.ms": "1000",
}


def test_what_a_producer_sends_twice_to_a_broker_that_stalled_is_kept_once(
    driver: JavaDriver, tmp_path: Path
) -> None:
    with ServedBroker(tmp_path) as broker:
        java = JavaClient(driver, broker.bootstrap_server)
        java.create("stalls")
        java.client("start", QUICK, topic="stalls")
        for _ in range(2):
            count = java.client("acknowledged", count=0)["count"]
            java.client("acknowledged", count=count + 500)
            broker.pause()
            # The producer gives up waiting and sends the same again on another connection.
            java.client("acknowledged", count=10**9, timeout_ms=2000)
            broker.resume()
        sent = java.client("stop")
        read = java.client("consume", assign=[["stalls", 0, 0]], count=len(sent["offsets"]))

    assert sent["failures"] == []
    assert sent["offsets"] == list(range(len(sent["offsets"])))
    assert [int(each["value"]) for each in read["records"]] == sent["offsets"]


def test_a_producer_and_a_group_outlive_kill_9_of_the_broker(
    driver: JavaDriver, tmp_path: Path
) -> None:
    kills = 3
    with ServedBroker(tmp_path) as broker:
        java = JavaClient(driver, broker.bootstrap_server)
        java.create("survives")
        java.client("start", QUICK, topic="survives")
        configs = {**member("survivors", auto_commit_interval_ms="50"), **QUICK}
        java.client("join", configs, name="only", topics=["survives"])
        java.client("await", partitions=1, records=1)
        for _ in range(kills):
            count = java.client("acknowledged", count=0)["count"]
            java.client("acknowledged", count=count + 500)
            broker.kill()
            broker.start()
        count = java.client("acknowledged", count=0)["count"]
        java.client("acknowledged", count=count + 500)
        sent = java.client("stop")
        heard = java.client("await", partitions=1, records=len(sent["offsets"]))["only"]
        java.client("leave", name="only")
        read = java.client("consume", assign=[["survives", 0, 0]], count=len(sent["offsets"]))

    assert sent["failures"] == []
    # Numbers and offsets are the same: nothing was lost, doubled or moved.
    assert sent["offsets"] == list(range(len(sent["offsets"])))
    assert [int(each["value"]) for each in read["records"]] == sent["offsets"]
    # The group may read again what it had not committed, and skips nothing.
    assert sorted({offset for _, offset in heard["records"]}) == sent["offsets"]
    assert heard["failed"] is None
