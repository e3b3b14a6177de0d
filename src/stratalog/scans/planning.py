"""Which bytes a scan reads, cut into tasks; and why, with the numbers.

The rule: a record that is asked for is in exactly one slice of one task. Slices of a partition
have offsets that do not overlap; positions only say where those were seen, and where files do not
tell, a slice is wider than it need be. Segments in the middle of what is asked for are not opened.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stratalog.errors import DiskError
from stratalog.scans.absences import absence_errors
from stratalog.scans.errors import DataLostError, ScanOptionError
from stratalog.scans.gaps import EXPIRED
from stratalog.scans.holes import Holes
from stratalog.scans.keys import place_keys
from stratalog.scans.places import SegmentPlaces
from stratalog.scans.pruning import Skip, Tally, TimePruner
from stratalog.scans.slices import FileIdentity, ScanIsolation, ScanSlice, ScanTask, SliceEnd
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot
from stratalog.scans.splitting import pack, split_by_bytes, split_by_records
from stratalog.scans.where import Where
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.inspection import ListedSegment
from stratalog.storage.layout import TopicPartition

MAX_BYTES_PER_TASK = 128 << 20
_NO_FILE = -1


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What is read of one partition, and what is not."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int
    segments: int
    segments_kept: int
    bytes_total: int
    bytes_kept: int
    tally: Tally


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """``notes`` are for people: what decided about whole topics, or could not. ``lost`` is what
    was asked for and is known not to be here."""

    tasks: tuple[ScanTask, ...]
    partitions: tuple[PartitionPlan, ...]
    where: Where
    max_lateness_ms: int | None = None
    notes: tuple[str, ...] = ()
    lost: tuple[DataLostError, ...] = ()
    log_directory: str = ""

    @property
    def bytes_total(self) -> int:
        return sum(each.bytes_total for each in self.partitions)

    @property
    def bytes_kept(self) -> int:
        return sum(each.bytes_kept for each in self.partitions)


def plan_scan(
    snapshot: DirectorySnapshot,
    *,
    ranges: Mapping[TopicPartition, tuple[int, int]] | None = None,
    isolation: ScanIsolation = ScanIsolation.READ_UNCOMMITTED,
    where: Where | None = None,
    max_bytes_per_task: int = MAX_BYTES_PER_TASK,
    min_tasks: int | None = None,
    max_records_per_task: int | None = None,
    max_lateness_ms: int | None = None,
    gaps: bool = False,
    files: FileSystem | None = None,
) -> ScanPlan:
    """What to read of ``snapshot``, as tasks of about ``max_bytes_per_task``.

    ``ranges`` are the offsets wanted, of the partitions wanted; without it, all there are. With
    ``min_tasks`` tasks get smaller until there are so many, if there are as many offsets; with
    ``max_records_per_task`` none spans more offsets. ``gaps``: it is the holes that are wanted, so
    that slices leave no offset out, and times and keys prune nothing.
    """
    if max_records_per_task is not None and max_records_per_task < 1:
        raise ScanOptionError("max_records_per_task", str(max_records_per_task), "it must be > 0")
    files = files or OsFileSystem()
    where = where or Where()
    planner = _Planner(files, snapshot, isolation, where, max_lateness_ms, gaps)
    slices: list[ScanSlice] = []
    partitions = []
    for key, partition in snapshot.partitions.items():
        wanted = None if ranges is None else ranges.get(key, (0, 0))
        plan = planner.plan_partition(partition, wanted, slices)
        partitions.append(plan)
    tasks = _tasks(
        files,
        slices,
        snapshot.path,
        planner.holes,
        max_bytes=max(max_bytes_per_task, 1),
        min_tasks=0 if gaps else max(min_tasks or 0, 0),
        max_records=None if gaps else max_records_per_task,
    )
    return ScanPlan(
        tuple(tasks),
        tuple(partitions),
        where,
        max_lateness_ms,
        (*planner.notes.values(), *_owner_notes(snapshot)),
        tuple(planner.lost),
        snapshot.path,
    )


def _owner_notes(snapshot: DirectorySnapshot) -> list[str]:
    """What a reader of a directory whose owner cannot be asked has to know."""
    if snapshot.owner.kind != "kafka":
        return []
    return [
        "Apache Kafka owns the directory, and what it has checkpointed counts: where logs end may "
        "be 5 seconds old, and where they begin 60, so that records below an answered "
        "DeleteRecords may still be returned"
    ]


def _tasks(
    files: FileSystem,
    slices: list[ScanSlice],
    log_directory: str,
    holes: Holes,
    *,
    max_bytes: int,
    min_tasks: int,
    max_records: int | None,
) -> list[ScanTask]:
    if max_records is not None:
        slices = list(split_by_records(files, slices, max_records, holes))
    if min_tasks:
        max_bytes = min(max_bytes, max(sum(each.size_bytes for each in slices) // min_tasks, 1))
    tasks = pack(
        split_by_bytes(files, slices, max_bytes),
        max_bytes,
        max_records=max_records,
        is_even=bool(min_tasks),
        log_directory=log_directory,
    )
    if len(tasks) >= min_tasks:
        return tasks
    # There are too few batches to cut between, so cuts go inside them.
    span = sum(each.end_offset - each.start_offset for each in slices)
    most = max(span // min_tasks, 1)
    return pack(
        split_by_records(files, slices, most, holes),
        max_bytes,
        max_records=most,
        is_even=True,
        log_directory=log_directory,
    )


class _Planner:
    """Makes the slices of partitions, one after the other."""

    def __init__(
        self,
        files: FileSystem,
        snapshot: DirectorySnapshot,
        isolation: ScanIsolation,
        where: Where,
        max_lateness_ms: int | None,
        gaps: bool,
    ) -> None:
        self._files = files
        self._directory_id = snapshot.directory_id
        self._is_owner_ours = snapshot.owner.kind == "stratalog"
        self._isolation = isolation
        self._where = where
        self._max_lateness_ms = max_lateness_ms
        self._gaps = gaps
        self._by_topic: dict[str, dict[int, PartitionSnapshot]] = {}
        for key, partition in snapshot.partitions.items():
            self._by_topic.setdefault(key.topic, {})[key.partition] = partition
        self._placed: dict[str, frozenset[int] | None] = {}
        self.holes = Holes(files)
        self.notes: dict[str, str] = {}
        self.lost: list[DataLostError] = []

    def plan_partition(
        self,
        partition: PartitionSnapshot,
        wanted: tuple[int, int] | None,
        slices: list[ScanSlice],
    ) -> PartitionPlan:
        """Add the partition's slices to ``slices``."""
        segments = partition.segments
        asked_start, asked_end = self._asked(partition, wanted)
        start = max(partition.start_offset, asked_start)
        end = min(partition.end_offset(self._isolation), asked_end)
        tally = Tally()
        total = segments.size_bytes
        kept_before, bytes_kept, segments_kept = len(slices), 0, 0
        reason = self._reason_against(partition.topic_partition)
        if reason is None:
            self._look_for_absent(partition, asked_start, asked_end)
        if reason is None and self._gaps:
            slices.extend(self._before(partition, asked_start, asked_end))
        if reason is None and start >= end:
            reason = Skip.OFFSETS
        if reason is not None:
            tally.skip(reason, total, segments=len(segments))
        else:
            slices.extend(self._partition_slices(partition, start, end, tally))
        if self._gaps and reason in (None, Skip.OFFSETS):
            slices.extend(self._behind(partition, asked_start, asked_end))
        if reason is None:
            kept = slices[kept_before:]
            segments_kept = len({each.base_offset for each in kept} - {_NO_FILE})
            bytes_kept = sum(each.size_bytes for each in kept)
        return PartitionPlan(
            partition.topic_partition,
            start,
            max(end, start),
            len(segments),
            segments_kept,
            total,
            bytes_kept,
            tally,
        )

    def _reason_against(self, key: TopicPartition) -> Skip | None:
        """Why nothing of a partition is wanted."""
        where = self._where
        is_topic = where.topics is None or key.topic in where.topics
        is_partition = where.partitions is None or key.partition in where.partitions
        if not is_topic or not is_partition or where.is_empty:
            return Skip.PARTITION
        if where.keys is None or not where.is_partitioned_by_key or self._gaps:
            return None
        if key.topic not in self._placed:
            placed = place_keys(self._files, where.keys, self._by_topic[key.topic])
            self._placed[key.topic] = placed.partitions
            self.notes[key.topic] = f"{key.topic}: keys are {placed.explanation}"
            if placed.partitions is None:
                self.notes[key.topic] = (
                    f"{key.topic}: keys do not choose partitions, for {placed.explanation}"
                )
        chosen = self._placed[key.topic]
        return None if chosen is None or key.partition in chosen else Skip.KEY

    def _asked(
        self, partition: PartitionSnapshot, wanted: tuple[int, int] | None
    ) -> tuple[int, int]:
        """The offsets asked for, which may begin below the log's start, or be absent."""
        start, end = partition.first_offset, partition.known_end_offset(self._isolation)
        if wanted is not None:
            start, end = max(wanted[0], 0), min(end, wanted[1])
        if self._where.min_offset is not None:
            start = max(start, self._where.min_offset)
        if self._where.max_offset is not None:
            end = min(end, self._where.max_offset + 1)
        return start, end

    def _look_for_absent(self, partition: PartitionSnapshot, start: int, end: int) -> None:
        key = partition.topic_partition
        self.lost += absence_errors(key, partition.absences, start, end)

    def _before(self, partition: PartitionSnapshot, start: int, end: int) -> Iterator[ScanSlice]:
        """What of ``[start, end)`` lies below the first segment, in slices that have no file."""
        yield from self._without_file(partition, start, min(end, partition.first_offset), EXPIRED)
        for each in partition.absences:
            if each.end_offset <= partition.start_offset:
                first, last = max(start, each.start_offset), min(end, each.end_offset)
                yield from self._without_file(partition, first, last, each.kind)

    def _behind(self, partition: PartitionSnapshot, start: int, end: int) -> Iterator[ScanSlice]:
        """What of ``[start, end)`` lies behind the end of the files, in slices that have none."""
        for each in partition.absences:
            if each.start_offset >= partition.high_watermark:
                first, last = max(start, each.start_offset), min(end, each.end_offset)
                yield from self._without_file(partition, first, last, each.kind)

    def _without_file(
        self, partition: PartitionSnapshot, start: int, end: int, gap: str
    ) -> Iterator[ScanSlice]:
        if start >= end:
            return
        yield ScanSlice(
            partition.topic_partition,
            partition.directory,
            self._directory_id,
            _NO_FILE,
            FileIdentity(0, 0, 0),
            start,
            end,
            0,
            0,
            gap=gap,
        )

    def _partition_slices(
        self, partition: PartitionSnapshot, start: int, end: int, tally: Tally
    ) -> Iterator[ScanSlice]:
        segments = partition.segments
        first_place = max(segments.floor(start), 0)
        tally.skip(Skip.OFFSETS, sum(segments.sizes_bytes[:first_place]), segments=first_place)
        pruner = None
        if self._where.has_time and not self._gaps:
            pruner = TimePruner(self._where, self._max_lateness_ms, tally)
        last_place = len(segments) - 1
        for place in range(first_place, len(segments)):
            each = segments[place]
            if each.base_offset >= end or (pruner is not None and pruner.is_over):
                reason = Skip.OFFSETS if each.base_offset >= end else Skip.LATENESS
                left = sum(segments.sizes_bytes[place:])
                tally.skip(reason, left, segments=len(segments) - place)
                return
            following = end if place == last_place else segments.base_offsets[place + 1]
            first, last = max(each.base_offset, start), min(following, end)
            wanted = _Wanted(
                each, first, last, last == following and place < last_place, place == last_place
            )
            if first >= last or (not each.size_bytes and not self._gaps):
                yield from self._hole_of_empty(partition, wanted)
                continue
            if wanted.is_end_known and first == each.base_offset and pruner is None:
                yield self._slice(partition, wanted, first, last, 0, each.size_bytes)
                continue
            yield from self._cut(partition, wanted, pruner, tally)

    def _hole_of_empty(
        self, partition: PartitionSnapshot, wanted: "_Wanted"
    ) -> Iterator[ScanSlice]:
        """A slice of a segment without bytes, only if reading it would tell that some are missing:
        compaction leaves many such."""
        if wanted.first >= wanted.last:
            return
        planned = self._slice(partition, wanted, wanted.first, wanted.last, 0, 0)
        if self.holes.may_be_missing(planned):
            yield planned

    def _cut(
        self,
        partition: PartitionSnapshot,
        wanted: "_Wanted",
        pruner: TimePruner | None,
        tally: Tally,
    ) -> list[ScanSlice]:
        """The slices of a segment of which not all is wanted, or nobody knows where it ends."""
        listed, first, last = wanted.listed, wanted.first, wanted.last
        try:
            with SegmentPlaces(self._files, partition.directory, listed) as places:
                begin, finish = _bounds(partition, places, wanted)
                tally.skip(Skip.OFFSETS, listed.size_bytes - (finish - begin))
                if pruner is None:
                    return [self._slice(partition, wanted, first, last, begin, finish)]
                parts = pruner.keep(
                    self._files,
                    places,
                    begin,
                    finish,
                    directory=partition.directory,
                    is_active=wanted.is_last and self._is_owner_ours,
                )
                slices = [
                    self._slice(
                        partition,
                        wanted,
                        _known(places, start_position, begin, first),
                        _known(places, end_position, finish, last),
                        start_position,
                        end_position,
                    )
                    for start_position, end_position in parts
                ]
                if not parts or parts[-1][1] < finish:
                    slices += self._hole_of_pruned(partition, places, wanted, finish)
                return slices
        except DiskError:
            # Gone since it was listed, or unreadable: the task finds it, or says what is lost.
            return [self._slice(partition, wanted, first, last, 0, listed.size_bytes)]

    def _hole_of_pruned(
        self,
        partition: PartitionSnapshot,
        places: SegmentPlaces,
        wanted: "_Wanted",
        finish: int,
    ) -> list[ScanSlice]:
        """Where the last batches of a segment are pruned, nobody reads what would show that the
        next segment is missing; so that is found out here."""
        if places.ends_at(wanted.last):
            return []
        next_offset = places.next_offset()
        if next_offset is None or next_offset >= wanted.last:
            return []
        first = max(next_offset, wanted.first)
        planned = self._slice(partition, wanted, first, wanted.last, finish, finish)
        return [planned] if self.holes.may_be_missing(planned) else []

    def _slice(
        self,
        partition: PartitionSnapshot,
        wanted: "_Wanted",
        first: int,
        last: int,
        begin: int,
        finish: int,
    ) -> ScanSlice:
        """The offsets ``[first, last)`` of the segment in ``wanted``."""
        listed = wanted.listed
        end = SliceEnd.COMMITTED if wanted.is_last else SliceEnd.BEFORE_NEXT
        return ScanSlice(
            partition.topic_partition,
            partition.directory,
            self._directory_id,
            listed.base_offset,
            FileIdentity(listed.inode, listed.size_bytes, listed.modified_ms),
            first,
            last,
            begin,
            finish,
            end if last == wanted.last else SliceEnd.UNKNOWN,
        )


class _Wanted(NamedTuple):
    """Offsets of one segment; ``is_end_known``: to its end, and another follows."""

    listed: ListedSegment
    first: int
    last: int
    is_end_known: bool
    is_last: bool


def _bounds(
    partition: PartitionSnapshot, places: SegmentPlaces, wanted: _Wanted
) -> tuple[int, int]:
    begin = places.start_of(wanted.first) if wanted.first > places.base_offset else 0
    finish = places.size_bytes
    is_to_end = wanted.is_last and wanted.last >= partition.high_watermark
    if is_to_end and partition.end_position >= 0:
        finish = partition.end_position
    elif not wanted.is_end_known:
        finish = places.end_of(wanted.last)
    return begin, max(begin, finish)


def _known(places: SegmentPlaces, position: int, edge_position: int, edge_offset: int) -> int:
    """The offset at ``position``; the edge's where the batch there does not tell, since bytes
    that are in no other slice cannot give a record twice."""
    if position == edge_position:
        return edge_offset
    found = places.offset_at(position)
    return edge_offset if found is None else found
