"""Scenarios of topics: metadata, creation, deletion, more partitions, log directories."""

from typing import Any

from recorded_requests import Talk, ends, every
from recorded_requests_data import NO_ID, PLAIN, UNKNOWN_ID

from stratalog.protocol.api import ApiKey
from stratalog.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from stratalog.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from stratalog.protocol.messages.describe_cluster import DescribeClusterRequest
from stratalog.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from stratalog.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NAMED_BY_ID = 12
BAD_NAMES = ("", ".", "..", "has space", "slash/ed", "ü", "x" * 250)


def named(*names: str | None, auto_create: bool = False, **asked: Any) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics, auto_create, **asked)


def metadata(talk: Talk) -> None:
    """Topics by name, by id, all of them, none of them."""
    topic_id = talk.have_topic("metadata", 3)
    talk.have_topic("metadata-other")
    talk.ask_every("one topic", named("metadata"))
    talk.ask_every("two topics", named("metadata", "metadata-other"))
    talk.ask_every("one topic twice", named("metadata", "metadata"))
    talk.ask_every("unknown topic", named("metadata-unknown"), since=4)
    talk.ask_about_all("all", [0], MetadataRequest([]))
    talk.ask_about_all("all", every(ApiKey.METADATA, 1), MetadataRequest(None))
    talk.ask_every("none", MetadataRequest([]), since=1)
    for name in BAD_NAMES:
        talk.ask_ends(f"a topic called {name[:20]!r}", named(name), since=4)
        made = named(name, auto_create=True)
        talk.ask_ends(f"a topic called {name[:20]!r} to be made", made)
    by_id = MetadataRequest([MetadataRequestTopic(topic_id, None)], False)
    talk.ask_every("by id", by_id, since=10)
    both = MetadataRequest([MetadataRequestTopic(topic_id, "metadata")], False)
    talk.ask_every("by id and name", both, since=10)
    other = MetadataRequest([MetadataRequestTopic(topic_id, "metadata-other")], False)
    talk.ask_every("by id and another's name", other, since=10)
    unknown = MetadataRequest([MetadataRequestTopic(UNKNOWN_ID, None)], False)
    talk.ask_every("unknown id", unknown, since=10)
    neither = MetadataRequest([MetadataRequestTopic(NO_ID, None)], False)
    talk.ask_every("neither id nor name", neither, since=10)
    mixed = MetadataRequest(
        [MetadataRequestTopic(topic_id, None), MetadataRequestTopic(NO_ID, "metadata-other")], False
    )
    talk.ask_every("one by id and one by name", mixed, since=NAMED_BY_ID)
    for version in every(ApiKey.METADATA, 8):
        talk.ask(
            "with what is allowed",
            version,
            named(
                "metadata",
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=True,
            ),
        )
    _made_by_asking(talk)


def _made_by_asking(talk: Talk) -> None:
    for version in (0, 3, 4, 13):
        name = f"metadata-made-{version}"
        talk.ask_until(
            "a topic is made by asking",
            version,
            named(name, auto_create=True),
            lambda answer: (
                not answer.topics[0].error_code
                and len(answer.topics[0].partitions) == 2
                and all(p.leader_id >= 0 and not p.error_code for p in answer.topics[0].partitions)
            ),
        )
    talk.have_topic("metadata.dotted")
    talk.ask_ends("a name that collides", named("metadata_dotted", auto_create=True))


def describe_topic_partitions(talk: Talk) -> None:
    talk.have_topic("describe-tp-a", 3)
    talk.have_topic("describe-tp-b", 2)

    def ask(step: str, *names: str, **asked: Any) -> None:
        topics = [TopicRequest(name) for name in names]
        talk.ask_every(step, DescribeTopicPartitionsRequest(topics, **asked))

    ask("two topics", "describe-tp-b", "describe-tp-a")
    ask("unknown topic", "describe-tp-unknown", "describe-tp-a")
    ask("a name no topic can have", "describe tp")
    ask("two partitions at most", "describe-tp-a", "describe-tp-b", response_partition_limit=2)
    cursor = Cursor("describe-tp-a", 2)
    ask("from a cursor", "describe-tp-a", "describe-tp-b", cursor=cursor)
    ask("from an unknown topic", "describe-tp-b", cursor=Cursor("describe-tp-a5", 0))
    ask("from a negative partition", "describe-tp-a", cursor=Cursor("describe-tp-a", -1))
    ask("no partitions", "describe-tp-a", response_partition_limit=0)


def new(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assignments: list[list[int]] | dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    settings = [
        CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()
    ]
    given = assignments or {}
    placed = given.items() if isinstance(given, dict) else enumerate(given)
    places = [CreatableReplicaAssignment(index, brokers) for index, brokers in placed]
    return CreatableTopic(name, partitions, replicas, places, settings)


def create_topics(talk: Talk) -> None:
    """Topics that can be made, in every version."""
    for version in every(ApiKey.CREATE_TOPICS):
        _create(talk, version)


def _create(talk: Talk, version: int) -> None:
    node = talk.node_id

    def ask(step: str, *topics: CreatableTopic, **asked: Any) -> None:
        talk.ask(step, version, CreateTopicsRequest(topics, 30_000, **asked))

    name = f"create-v{version}"
    ask("one", new(name))
    talk.have_led(name, 1)
    ask("one that exists", new(name))
    ask("checked only", new(f"{name}-checked", 3), validate_only=True)
    ask("checked only, exists", new(name), validate_only=True)
    ask("checked only, wrong", new(f"{name}-checked", 0), validate_only=True)
    ask("with configs", new(f"{name}-c", 2, cleanup_policy="compact", segment_bytes="1048576"))
    ask("defaults", new(f"{name}-d", -1, -1))
    ask("placed", new(f"{name}-p", -1, -1, [[node], [node]]))
    ask("two", new(f"{name}-x"), new(f"{name}-y", 0))
    ask("the same twice", new(f"{name}-t"), new(f"{name}-t", 2))
    ask("an unknown config", new(f"{name}-u", no_such_config="1"))


def create_topics_refused(talk: Talk) -> None:
    """What cannot be made, in the lowest version and the highest."""
    node = talk.node_id
    talk.have_topic("create-refused.dotted")
    talk.have_coordinator("create-refused")

    def ask(step: str, *topics: CreatableTopic, **asked: Any) -> None:
        talk.ask_ends(step, CreateTopicsRequest(topics, 30_000, **asked))

    ask("nothing")
    for name in BAD_NAMES:
        ask(f"called {name[:20]!r}", new(name))
    ask("a name that collides", new("create-refused_dotted"))
    ask("the topic of offsets", new("__consumer_offsets"))
    ask("the topic of metadata", new("__cluster_metadata"))
    for count in (0, -2, -2147483648):
        ask(f"{count} partitions", new("create-refused-a", count))
    for count in (0, 2, -2, 32767):
        ask(f"{count} replicas", new("create-refused-a", 1, count))
    ask("placed, and counted", new("create-refused-a", 1, -1, [[node]]))
    ask("placed, and replicated", new("create-refused-a", -1, 1, [[node]]))
    ask("placed on an unknown broker", new("create-refused-a", -1, -1, [[99]]))
    ask("placed on nothing", new("create-refused-a", -1, -1, [[]]))
    ask("placed twice on one", new("create-refused-a", -1, -1, [[node, node]]))
    ask("placed with a gap", new("create-refused-a", -1, -1, {0: [node], 2: [node]}))
    ask("placed from one on", new("create-refused-a", -1, -1, {1: [node]}))
    ask("placed below zero", new("create-refused-a", -1, -1, {-1: [node]}))
    ask("placed differently", new("create-refused-a", -1, -1, [[node], [node, 99]]))
    for key, value in (
        ("retention_ms", "soon"),
        ("retention_ms", "-5"),
        ("retention_ms", ""),
        ("retention_ms", None),
        ("cleanup_policy", "keep"),
        ("cleanup_policy", ""),
        ("cleanup_policy", "compact,delete"),
        ("compression_type", "rar"),
        ("min_insync_replicas", "0"),
        ("segment_bytes", "1"),
        ("unclean_leader_election_enable", "maybe"),
        ("max_message_bytes", "-1"),
        ("min_cleanable_dirty_ratio", "2"),
        ("message_format_version", "3.0"),
        ("remote_storage_enable", "true"),
    ):
        topic = new("create-refused-config", 1, 1, **{key: value})
        ask(f"{key} {value!r}", topic, validate_only=True)
    twice = [CreatableTopicConfig("retention.ms", "1"), CreatableTopicConfig("retention.ms", "2")]
    topic = CreatableTopic("create-refused-config", 1, 1, configs=twice)
    ask("one config twice", topic, validate_only=True)


def delete_topics(talk: Talk) -> None:
    """By name, and from version 6 on by id."""
    for version in ends(ApiKey.DELETE_TOPICS):
        _delete_by_name(talk, version)
    for version in every(ApiKey.DELETE_TOPICS)[1:-1]:
        talk.have_topic(f"delete-v{version}")
        talk.ask("one", version, DeleteTopicsRequest([f"delete-v{version}"], timeout_ms=30_000))
    ids = [talk.have_topic(f"delete-id-{index}") for index in range(4)]

    def ask_state(step: str, *states: DeleteTopicState) -> None:
        talk.ask(step, 6, DeleteTopicsRequest(topics=states, timeout_ms=30_000))

    ask_state("by id", DeleteTopicState(None, ids[0]))
    talk.have_no_topic("delete-id-0")
    ask_state("by an id that is gone", DeleteTopicState(None, ids[0]))
    ask_state("by unknown id", DeleteTopicState(None, UNKNOWN_ID))
    ask_state("by id and name", DeleteTopicState("delete-id-1", ids[1]))
    ask_state("by neither", DeleteTopicState(None, NO_ID))
    ask_state(
        "one by id and by name",
        DeleteTopicState(None, ids[2]),
        DeleteTopicState("delete-id-2", NO_ID),
    )
    ask_state("one id twice", DeleteTopicState(None, ids[3]), DeleteTopicState(None, ids[3]))
    fresh = talk.have_topic("delete-id-0")
    assert fresh != ids[0]


def _delete_by_name(talk: Talk, version: int) -> None:

    def ask(step: str, *topics: tuple[str | None, bytes]) -> None:
        states = [DeleteTopicState(name, topic_id) for name, topic_id in topics]
        names = [name or "" for name, _ in topics]
        talk.ask(step, version, DeleteTopicsRequest(names, states, 30_000))

    name = f"delete-v{version}"
    talk.have_topic(name, 2)
    ask("one", (name, NO_ID))
    talk.have_no_topic(name)
    ask("one that is gone", (name, NO_ID))
    talk.have_topic(f"{name}-a")
    ask("one, and one unknown", (f"{name}-a", NO_ID), (f"{name}-unknown", NO_ID))
    talk.have_topic(f"{name}-t")
    ask("one twice", (f"{name}-t", NO_ID), (f"{name}-t", NO_ID))
    ask("nothing")
    ask("empty name", ("", NO_ID))
    ask("a name no topic can have", ("no such name!", NO_ID))


def create_partitions(talk: Talk) -> None:
    for version in every(ApiKey.CREATE_PARTITIONS):
        _create_partitions(talk, version)


def _create_partitions(talk: Talk, version: int) -> None:
    node = talk.node_id
    topic = f"create-partitions-v{version}"
    talk.have_topic(topic, 2)

    def ask(step: str, *topics: tuple[str, int, Any], checked: bool = False) -> None:
        asked = [
            CreatePartitionsTopic(
                name,
                count,
                None
                if places is None
                else [CreatePartitionsAssignment(brokers) for brokers in places],
            )
            for name, count, places in topics
        ]
        talk.ask(step, version, CreatePartitionsRequest(asked, 30_000, checked))

    ask("checked only", (topic, 5, None), checked=True)
    ask("checked only, wrong", (topic, 1, None), checked=True)
    ask("one more", (topic, 3, None))
    talk.have_led(topic, 3)
    ask("as many", (topic, 3, None))
    ask("fewer", (topic, 2, None))
    ask("none", (topic, 0, None))
    ask("less than none", (topic, -1, None))
    ask("unknown topic", (f"{topic}-unknown", 3, None))
    ask("nothing")
    ask("one twice", (topic, 4, None), (topic, 5, None))
    ask("placed", (topic, 5, [[node], [node]]))
    talk.have_led(topic, 5)
    ask("too few places", (topic, 7, [[node]]))
    ask("too many places", (topic, 6, [[node], [node]]))
    ask("no places", (topic, 6, []))
    ask("an unknown place", (topic, 6, [[99]]))
    ask("an empty place", (topic, 6, [[]]))
    ask("one place twice", (topic, 6, [[node, node]]))
    ask("one good and one bad", (topic, 6, None), (f"{topic}-unknown", 2, None))


def describe_cluster(talk: Talk) -> None:
    talk.ask_every("brokers", DescribeClusterRequest(False))
    talk.ask_every("with what is allowed", DescribeClusterRequest(True))
    for endpoint_type in (2, 0, 3):
        asked = DescribeClusterRequest(False, endpoint_type)
        talk.ask_every(f"endpoints of type {endpoint_type}", asked, since=1)
    talk.ask_every("with fenced brokers", DescribeClusterRequest(False, 1, True), since=2)


def log_dirs(talk: Talk) -> None:
    talk.have_topic("log-dirs", 2)
    talk.have_records("log-dirs", PLAIN, PLAIN)

    def ask(step: str, *topics: tuple[str, list[int]]) -> None:
        asked = [DescribableLogDirTopic(name, partitions) for name, partitions in topics]
        talk.ask_every(step, DescribeLogDirsRequest(asked))

    talk.ask_about_all("all", every(ApiKey.DESCRIBE_LOG_DIRS), DescribeLogDirsRequest(None))
    ask("one topic", ("log-dirs", [0, 1]))
    ask("one partition", ("log-dirs", [1]))
    ask("no partitions", ("log-dirs", []))
    ask("unknown partition", ("log-dirs", [0, 7]))
    ask("unknown topic", ("log-dirs-unknown", [0]))
    ask("nothing")


SCENARIOS = {
    "metadata": metadata,
    "describe-tp": describe_topic_partitions,
    "create": create_topics,
    "create-refused": create_topics_refused,
    "delete": delete_topics,
    "create-partitions": create_partitions,
    "describe-cluster": describe_cluster,
    "log-dirs": log_dirs,
}
