"""What the scenarios ask of a Kafka client, whichever library it is.

Each library has an adapter that speaks these words: records in and out as plain values, and a
refusal of the broker as its error code, whatever class the library wraps it in. The adapters add
nothing of their own: no retry, no check. What a library cannot do is left out of ``offers``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
DEADLINE_SECONDS = 60.0  # far above what a healthy run needs: only a failure waits for it
HEARTBEAT_MS = 100  # members learn of a rebalance from a heartbeat: let them ask often
SESSION_TIMEOUT_MS = 10_000
METADATA_AGE_MS = 300_000


class Feature(StrEnum):
    """What some of the libraries can do and others cannot."""

    INCREMENTAL_CONFIGS = "incremental configs"
    ALTER_GROUP_OFFSETS = "alter group offsets"
    DELETE_GROUP_OFFSETS = "delete group offsets"
    MAX_TIMESTAMP = "offset of the largest timestamp"
    LOG_DIRS = "describe log dirs"
    TOPIC_IDS = "topic ids"
    VALIDATE_PARTITIONS = "validate new partitions only"
    REMOVE_MEMBERS = "remove members of a group"
    NEW_PARTITIONS = "members that join again for new partitions"
    FENCING = "static members that are fenced"
    SENDS_ANYTHING = "topics that the library does not check itself"


class TopicPartition(NamedTuple):
    """A partition by name; equal to the tuple that a library's own class is."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Record:
    """A record to send, or one that was received: then partition and offset are known."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the broker said of a record it took."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create; -1 asks for the broker's default."""

    partitions: int = 1
    replication_factor: int = 1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """Where a partition lives."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One config of a resource, with the number of its source."""

    value: str | None
    source: int
    is_read_only: bool


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member as the coordinator tells it."""

    member_id: str
    client_id: str
    instance_id: str | None
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group as the coordinator tells it; the state in Kafka's words, without case or space."""

    state: str
    assignor: str
    members: tuple[MemberDescription, ...]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The brokers and who leads them."""

    cluster_id: str
    controller: int
    brokers: Mapping[int, tuple[str, int]]


class RefusedError(Exception):
    """The broker, or the library for it, said no; ``code`` is Kafka's error code."""

    def __init__(self, code: int, error: object) -> None:
        super().__init__(code, error)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """How a producer is to send."""

    acks: int = -1
    codec: str = "none"
    is_idempotent: bool = False
    max_request_bytes: int = 1_048_576


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """How a consumer is to read; without a group it is told what."""

    group: str | None = None
    assignor: str | None = None
    instance_id: str | None = None
    client_id: str = "scenario"
    reset: str = "earliest"
    max_partition_bytes: int = 1_048_576
    metadata_age_ms: int = METADATA_AGE_MS
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    is_committing: bool = False
    isolation: str = "read_uncommitted"


class Producer(Protocol):
    """Sends records."""

    def send(self, topic: str, records: Sequence[Record]) -> list[Delivered]:
        """Send all, wait for all answers, in order; RefusedError for the first that failed."""
        ...

    def close(self) -> None: ...


class Consumer(Protocol):
    """Receives records, alone or in a group."""

    def assign(self, positions: Mapping[TopicPartition, int | str]) -> None:
        """Read these partitions from an offset, or from ``beginning`` or ``end``."""
        ...

    def subscribe(self, topics: Sequence[str]) -> None: ...

    def poll(self, timeout_seconds: float) -> list[Record]:
        """What has arrived; the topic is the reader's to know."""
        ...

    def assignment(self) -> set[TopicPartition]: ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or the positions; return when the broker has answered."""
        ...

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | None]: ...

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]: ...

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        """The first offset and the one after the last."""
        ...

    def close(self) -> None: ...


class Admin(Protocol):
    """Asks and changes what is not records. A result of 0 is the code for no error."""

    def create_topics(
        self, topics: Mapping[str, TopicSpec], *, validate_only: bool = False
    ) -> dict[str, int]: ...

    def delete_topics(self, names: Sequence[str]) -> dict[str, int]: ...

    def topics(self) -> set[str]: ...

    def describe_topic(self, name: str) -> dict[int, PartitionDescription]:
        """The partitions; RefusedError when there is no such topic."""
        ...

    def create_partitions(self, topic: str, count: int, *, validate_only: bool = False) -> int: ...

    def describe_configs(self, kind: str, name: str) -> dict[str, ConfigValue]:
        """``kind`` is ``topic`` or ``broker``."""
        ...

    def replace_configs(self, kind: str, name: str, configs: Mapping[str, str]) -> int: ...

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset left in each; RefusedError when one failed."""
        ...

    def groups(self) -> set[str]: ...

    def describe_group(self, group: str) -> GroupDescription: ...

    def delete_group(self, group: str) -> int: ...

    def group_offsets(self, group: str) -> dict[TopicPartition, int]: ...

    def describe_cluster(self) -> ClusterDescription: ...

    def close(self) -> None: ...


class Client:
    """One library, told where a broker is; an adapter says what the options are called there."""

    name: str
    offers: frozenset[Feature]
    assignors: tuple[str, ...]

    def producer(self, **options: Any) -> Producer:
        """Takes what ``ProducerOptions`` has."""
        return self.make_producer(ProducerOptions(**options))

    def consumer(self, group: str | None = None, **options: Any) -> Consumer:
        """Takes what ``ConsumerOptions`` has."""
        return self.make_consumer(ConsumerOptions(group, **options))

    def make_producer(self, options: ProducerOptions) -> Producer:
        raise NotImplementedError

    def make_consumer(self, options: ConsumerOptions) -> Consumer:
        raise NotImplementedError

    def admin(self) -> Any:
        raise NotImplementedError
