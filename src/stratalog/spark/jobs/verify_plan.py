"""What ``verify`` is going to read, cut into tasks of about the same size.

A replica that fits a task is checked by one task, to the end. One that does not is read by several,
a run of segments each, and put together from what they tell. Everything here is small and pickled:
tasks list the directories themselves, since an owner may have changed them meanwhile.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from typing import TypeVar

from stratalog.errors import StorageError
from stratalog.storage.check_looks import Offsets
from stratalog.storage.files import FileSystem
from stratalog.storage.inspection import list_segments, topic_partition_of

TASK_BYTES_MIN = 64 << 20
TASK_BYTES_MAX = 2 << 30
# Enough that the last tasks end at about the same time, few enough that starting them costs little.
_TASKS_A_CORE = 3

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplicaToCheck:
    """``offsets`` are what checkpoints say of it; ``directory_id`` that of its log directory.
    ``not_compacted`` is its topic, if that is known of it."""

    log_directory: str
    path: str
    is_live: bool
    directory_id: str = ""
    offsets: dict[str, int] = field(default_factory=dict)
    not_compacted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """Some segments of a replica that several tasks read."""

    replica: ReplicaToCheck
    base_offsets: frozenset[int]


@dataclass(frozen=True, slots=True)
class VerifyPlan:
    """``whole`` and ``parts``: what each task does; ``size_bytes`` is about what they read."""

    whole: list[tuple[ReplicaToCheck, ...]]
    parts: list[tuple[SegmentRun, ...]]
    size_bytes: int

    @property
    def split(self) -> dict[str, ReplicaToCheck]:
        """The replicas that several tasks read, by their paths."""
        return {run.replica.path: run.replica for task in self.parts for run in task}


@dataclass(frozen=True, slots=True)
class _Sized:
    replica: ReplicaToCheck
    base_offsets: Sequence[int]
    sizes_bytes: Sequence[int]

    @property
    def size_bytes(self) -> int:
        return sum(self.sizes_bytes)


def replicas_of(
    log_directory: str,
    paths: Iterable[str],
    offsets: Offsets,
    *,
    is_live: bool,
    directory_id: str,
    not_compacted: frozenset[str] = frozenset(),
) -> list[ReplicaToCheck]:
    return [
        ReplicaToCheck(
            log_directory,
            path,
            is_live,
            directory_id,
            offsets.get(key, {}),
            not_compacted & {key.topic},
        )
        for path in paths
        for key in [topic_partition_of(path)]
    ]


def plan_verify(files: FileSystem, replicas: Iterable[ReplicaToCheck], *, cores: int) -> VerifyPlan:
    """Tasks for all of ``replicas``, on so many cores."""
    sized = [_size(files, each) for each in replicas]
    total = sum(each.size_bytes for each in sized)
    limit = min(max(total // (_TASKS_A_CORE * cores), TASK_BYTES_MIN), TASK_BYTES_MAX)
    small = [each for each in sized if each.size_bytes <= limit or len(each.base_offsets) < 2]
    large = [each for each in sized if each.size_bytes > limit and len(each.base_offsets) >= 2]
    runs = [part for each in large for part in _runs(each, limit)]
    whole = pack(
        [(each.size_bytes, each.replica) for each in small],
        _bins(sum(each.size_bytes for each in small), limit, cores, len(small)),
    )
    parts = pack(runs, _bins(sum(size for size, _ in runs), limit, cores, len(runs)))
    return VerifyPlan(whole, parts, total)


def _size(files: FileSystem, replica: ReplicaToCheck) -> _Sized:
    try:
        table = list_segments(files, replica.path).segments
    except StorageError:
        return _Sized(replica, (), ())  # whoever checks it says what is the matter
    return _Sized(replica, list(table.base_offsets), list(table.sizes_bytes))


def _runs(each: _Sized, limit: int) -> Iterable[tuple[int, SegmentRun]]:
    """Segments that follow each other, up to ``limit`` bytes at a time."""
    bases: list[int] = []
    size = 0
    for base_offset, size_bytes in zip(each.base_offsets, each.sizes_bytes, strict=True):
        if bases and size + size_bytes > limit:
            yield size, SegmentRun(each.replica, frozenset(bases))
            bases, size = [], 0
        bases.append(base_offset)
        size += size_bytes
    yield size, SegmentRun(each.replica, frozenset(bases))


def _bins(size_bytes: int, limit: int, cores: int, count: int) -> int:
    """No more tasks than things to do; and no core idle, where there are many small ones."""
    return min(count, max(-(-size_bytes // limit), cores))


def pack(things: Sequence[tuple[int, T]], count: int) -> list[tuple[T, ...]]:
    """``things`` with their sizes, in ``count`` bins: the largest first, each into the emptiest."""
    bins: list[list[T]] = [[] for _ in range(count)]
    emptiest = [(0, number) for number in range(count)]
    heapify(emptiest)
    for size, thing in sorted(things, key=lambda each: -each[0]):
        filled, number = emptiest[0]
        bins[number].append(thing)
        # One more byte for each: what is empty costs a task time as well.
        heapreplace(emptiest, (filled + size + 1, number))
    return [tuple(each) for each in bins if each]
