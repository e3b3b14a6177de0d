"""What a request asks of each partition, and what becomes of it there: the values that go into a
``ReplicaManager`` and come out of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from typing_extensions import Buffer

from stratalog.errors import StratalogError
from stratalog.replication.partition import PartitionRead
from stratalog.storage.appending import LogAppendInfo, ValidatedRecords
from stratalog.storage.layout import TopicPartition
from stratalog.storage.reading import Isolation


class AppendResult(NamedTuple):
    """What became of one partition's records: ``info`` if they were appended. With both, they
    were, and it is not known or not true that enough replicas have them."""

    info: LogAppendInfo | None = None
    error: StratalogError | None = None


@dataclass(slots=True, eq=False)
class PartitionAppend:
    """One partition's part of a request: its records, until they are appended or refused, and then
    what became of them, as in ``AppendResult``."""

    key: TopicPartition
    records: Buffer | ValidatedRecords | None
    info: LogAppendInfo | None = None
    error: StratalogError | None = None


class FetchPartition(NamedTuple):
    """What is asked of one partition."""

    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    # Of a follower: where its own log starts.
    log_start_offset: int = -1


class FetchResult(NamedTuple):
    """What one partition has to give. With an error ``read`` tells the watermarks, if known."""

    read: PartitionRead | None = None
    error: StratalogError | None = None


class FetchRequest(NamedTuple):
    """A consumer's fetch, or with ``replica_id`` >= 0 a follower's."""

    partitions: Mapping[TopicPartition, FetchPartition]
    max_wait_ms: int = 0
    min_bytes: int = 1
    max_bytes: int = 0x7FFFFFFF
    isolation: Isolation = Isolation.HIGH_WATERMARK
    replica_id: int = -1
    # Of how many partitions there may be records in the answer: each keeps a file open.
    files_max: int = 0x7FFFFFFF


Entries = Mapping[TopicPartition, Buffer | ValidatedRecords]
AppendResponse = Callable[[dict[TopicPartition, AppendResult]], None]
Done = Callable[[], None]
FetchResponse = Callable[[dict[TopicPartition, FetchResult]], None]
DeleteResponse = Callable[[dict[TopicPartition, "int | StratalogError"]], None]
