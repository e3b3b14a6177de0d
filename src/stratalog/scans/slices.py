"""What a plan says and a task reads: slices of segments, as values that travel between processes.

A slice names its bytes twice: by offsets, which say what is meant, and by positions of batches,
which say where it was when the plan was made. A task reads by position and checks that the file
is still the one that was planned for. Slices are tuples: a plan may have a million of them.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from stratalog.storage.layout import TopicPartition


class ScanIsolation(Enum):
    """Kafka's words for what a reader sees of transactions."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class ReadMode(Enum):
    """What damage does to a scan: an error, or so many bytes passed over and counted."""

    FAIL_FAST = "failfast"
    PERMISSIVE = "permissive"


class SliceEnd(Enum):
    """What is known of the offsets between a slice's last batch and its end."""

    UNKNOWN = "compaction may have removed them"
    BEFORE_NEXT = "another segment follows: they were removed by compaction, or are missing"
    COMMITTED = "they are below the high watermark, and in no other segment"


class FileIdentity(NamedTuple):
    """Which file a plan was made for. A rename keeps it; compaction makes another file."""

    inode: int
    size_bytes: int
    modified_ms: int


class ScanSlice(NamedTuple):
    """The offsets [start_offset, end_offset) of one segment: bytes [start_position, end_position).

    A batch begins at ``start_position``; ``end_position`` is where one ends. The first and last
    batch may hold offsets outside the range, which are not returned.

    A slice with a ``gap`` has no file, and its base offset is -1: the offsets are not here for
    that reason, a name of ``gaps.REASONS``.
    """

    topic_partition: TopicPartition
    directory: str
    directory_id: str
    base_offset: int
    identity: FileIdentity
    start_offset: int
    end_offset: int
    start_position: int
    end_position: int
    end: SliceEnd = SliceEnd.UNKNOWN
    gap: str = ""

    @property
    def size_bytes(self) -> int:
        return self.end_position - self.start_position


@dataclass(frozen=True, slots=True)
class ScanTask:
    """What one task reads, in order. ``lease_ids`` are renewed while it does, each time for
    ``lease_seconds``."""

    slices: tuple[ScanSlice, ...]
    log_directory: str
    lease_ids: tuple[str, ...] = ()
    lease_seconds: int = 600

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.slices)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows that are returned, exactly; ``None`` is no bound. Ends are inclusive."""

    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    keys: frozenset[bytes] | None = None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a task reads. ``columns`` are names of ``scan.columns``, in the order of the result."""

    columns: tuple[str, ...]
    isolation: ScanIsolation = ScanIsolation.READ_UNCOMMITTED
    row_filter: RowFilter | None = None
    gaps: bool = False
    mode: ReadMode = ReadMode.FAIL_FAST
    target_bytes: int = 8 << 20
