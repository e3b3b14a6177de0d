"""The pieces of a round that is worked at elsewhere: each a call, for a task of its own.

    clean_whole      the keys fit one map: all of the round, as the local cleaner does it
    scan_slice       the keys of some segments: marks of what is superseded among them;
                     join_found puts slices together
    scan_range       one range of the keys: marks of what is superseded
    scan_hashes      far too many keys: their hashes and offsets, to be sorted by somebody else,
                     which gives superseded offsets (``superseded_in``)
    mark_blocks      and those, brought together by block, to marks
    rewrite_groups   with all marks made: some of the new segments

None changes a log: all that they write lies in staging directories.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from typing_extensions import Buffer

from stratalog.records import OffsetMap
from stratalog.storage.cleaning.key_scan import (
    HashRange,
    HashScan,
    KeyScan,
    KeysFound,
    join_slices,
)
from stratalog.storage.cleaning.marks import (
    Marks,
    block_span,
    is_marks_file,
    sources_span,
    span_of,
)
from stratalog.storage.cleaning.planning import group_segments
from stratalog.storage.cleaning.rewriting import CleanerStats, RoundPlan, Source, Work
from stratalog.storage.cleaning.round_json import OutsideRound
from stratalog.storage.cleaning.staged import StagedRound, check_held
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.staged_log import make_staging_directory
from stratalog.storage.files import read_file
from stratalog.storage.layout import staging_directory

BUFFER_BYTES = 1 << 20
_SLOT_BYTES = 24
_NO_KEYS_BYTES = _SLOT_BYTES * 64
MAP_BYTES_MAX = 2**31 - 1
_TRANSACTIONAL = "-transactional"
_DAMAGED = ".damaged"

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What a task may use, and what all tasks of a compaction share. ``map_bytes`` are those of a
    map for as many keys as are expected, ``map_bytes_max`` what it may use for map and marks."""

    staging_id: str
    hash_key: bytes
    map_bytes: int
    attempt: str
    map_bytes_max: int = 0
    progress: Progress = field(default=lambda _bytes: None, compare=False)

    def make_map(self, round_: OutsideRound, *, holds_keys: bool = True) -> OffsetMap:
        if not holds_keys:  # of so few slots, the owner's load factor may leave none
            return OffsetMap(_NO_KEYS_BYTES, hash_name=round_.hash_name, key=self.hash_key)
        return OffsetMap(
            min(self.map_bytes, MAP_BYTES_MAX),
            load_factor=round_.load_factor,
            hash_name=round_.hash_name,
            key=self.hash_key,
        )

    def work(self, round_: OutsideRound, *, holds_keys: bool = True) -> Work:
        offset_map = self.make_map(round_, holds_keys=holds_keys)
        return Work(offset_map, BUFFER_BYTES, progress=self.progress)

    def directory(self, round_: OutsideRound) -> str:
        return staging_directory(round_.plan.directory, self.staging_id)


@dataclass(slots=True)
class Rewritten:
    """New segments, by the number of their group, and what making them came to."""

    files: dict[int, StagedFile]
    stats: dict[str, Any]


def groups_of(plan: RoundPlan) -> list[list[Source]]:
    """The segments of a round that is done in one pass, those together that become one."""
    return group_segments(
        plan.sources,
        segment_bytes=plan.config.segment_size_bytes,
        segment_index_bytes=plan.config.segment_index_bytes,
        first_uncleanable_offset=plan.upper_bound_offset,
    )


def clean_whole(round_: OutsideRound, effort: Effort) -> Rewritten:
    """With one map. Should it turn out too small, the keys are taken in ranges after all, with as
    large a map as there may be: each range is another look at the log."""
    work = effort.work(round_)
    staged = _staged_round(round_, work, effort)
    staged.build_map()
    groups = groups_of(round_.plan)
    if staged.stats.end_offset < round_.plan.upper_bound_offset:
        del staged, work  # the smaller map makes room
        marks_bytes = 2 * span_of(round_.plan).size_bytes
        map_bytes = max(effort.map_bytes, effort.map_bytes_max - marks_bytes)
        effort = replace(effort, map_bytes=map_bytes)
        work = effort.work(round_)
        path, keys = _scan(round_, HashRange(0, 2**64 - 1), effort, work)
        staged = _staged_round(round_, work, effort)
        staged.use_marks([path])
        staged.stats.map_entries = keys.keys
    files = {number: staged.stage(group) for number, group in enumerate(groups)}
    staged.settle()
    return Rewritten(files, staged.finish().as_dict())


def _staged_round(round_: OutsideRound, work: Work, effort: Effort) -> StagedRound:
    return StagedRound(round_.plan, work, staging_id=effort.staging_id, attempt=effort.attempt)


def scan_range(round_: OutsideRound, hashes: HashRange, effort: Effort) -> tuple[str, KeysFound]:
    """Where the marks were written, and what was counted."""
    return _scan(round_, hashes, effort, effort.work(round_))


def _scan(
    round_: OutsideRound, hashes: HashRange, effort: Effort, work: Work
) -> tuple[str, KeysFound]:
    marks = Marks(span_of(round_.plan))
    scan = KeyScan(round_.plan, work)
    scan.mark(hashes, marks)
    return _write_marks(marks, round_, effort), scan.found


def _write_marks(marks: Marks, round_: OutsideRound, effort: Effort, suffix: str = "") -> str:
    directory = effort.directory(round_)
    make_staging_directory(round_.plan.files, directory)
    path = marks.write(round_.plan.files, f"{directory}/{effort.attempt}{suffix}")
    marks.close()
    check_held(round_.plan, effort.staging_id)
    return path


@dataclass(frozen=True, slots=True)
class SliceFound:
    """Files of a slice: its marks, and the last places of its keys."""

    marks_path: str
    keys_path: str
    keys: int


def scan_slice(
    round_: OutsideRound, sources: Sequence[Source], effort: Effort
) -> SliceFound | None:
    """None: this round cannot be done in slices, whatever was thought of it."""
    marks = Marks(sources_span(round_.plan, sources))
    scan = KeyScan(round_.plan, effort.work(round_))
    entries = scan.mark_slice(sources, marks)
    if entries is None:
        return None
    marks_path = _write_marks(marks, round_, effort)
    keys_path = f"{effort.directory(round_)}/{effort.attempt}.keys"
    file = round_.plan.files.open(keys_path, create=True)
    try:
        if entries:
            file.write_at(0, [entries])
    finally:
        file.close()
    check_held(round_.plan, effort.staging_id)
    return SliceFound(marks_path, keys_path, scan.found.keys)


def join_found(
    round_: OutsideRound,
    slices: Sequence[SliceFound],
    effort: Effort,
    *,
    map_bytes_max: int = MAP_BYTES_MAX,
) -> tuple[list[str], int] | None:
    """All marks of a round that was scanned in slices, in order, and how many keys they have. None
    if those do not fit a map after all."""
    total = sum(each.keys for each in slices)
    # It takes what others have hashed, and is as full as we like: the load factor is for theirs.
    map_bytes = max(2 * total, 64) * _SLOT_BYTES
    if map_bytes > map_bytes_max:
        return None
    offset_map = OffsetMap(map_bytes)
    marks = Marks(span_of(round_.plan))
    files = round_.plan.files
    found = join_slices((read_file(files, each.keys_path) for each in slices), marks, offset_map)
    assert found, "twice the keys fit"
    path = _write_marks(marks, round_, effort)
    return [*(each.marks_path for each in slices), path], total


def hash_pieces(plan: RoundPlan) -> list[list[Source]]:
    """Sources that can be scanned apart from each other."""
    if any(source.aborted for source in plan.dirty):
        # Which transactions are under way is known by whoever has read all before.
        return [list(plan.sources)]
    return [[source] for source in plan.sources]


@dataclass(slots=True)
class HashesFound:
    """To be looked at when the columns are all taken."""

    path: str = ""
    keys: KeysFound = field(default_factory=KeysFound)


def scan_hashes(
    round_: OutsideRound, sources: Sequence[Source], effort: Effort, found: HashesFound
) -> Iterator[tuple[bytes, bytes, bytes]]:
    marks = Marks(sources_span(round_.plan, sources))
    scan = HashScan(round_.plan, effort.work(round_, holds_keys=False))
    yield from scan.pieces(sources, marks)
    found.keys = scan.found
    suffix = _TRANSACTIONAL if scan.found.transactional_batches else ""
    found.path = _write_marks(marks, round_, effort, suffix)


def note_damage(round_: OutsideRound, effort: Effort, sentence: str) -> None:
    """For ``found_damage``: a task whose rows are somebody else's can return nothing."""
    directory = effort.directory(round_)
    make_staging_directory(round_.plan.files, directory)
    path = f"{directory}/{effort.attempt}{_DAMAGED}"
    file = round_.plan.files.open(path, create=True)
    try:
        file.write_at(0, [sentence.encode()])
    finally:
        file.close()
    check_held(round_.plan, effort.staging_id)


def found_damage(round_: OutsideRound, effort: Effort) -> str | None:
    """What a task has noted, if one has."""
    directory, files = effort.directory(round_), round_.plan.files
    names = (entry.name for entry in files.list(directory))
    noted = min((name for name in names if name.endswith(_DAMAGED)), default=None)
    return None if noted is None else read_file(files, f"{directory}/{noted}").decode()


def found_marks(round_: OutsideRound, effort: Effort) -> tuple[list[str], bool]:
    """All marks that tasks have left for a round, and whether one of ``scan_hashes`` has met a
    transaction. Those of a task that was lost and run again say the same twice."""
    directory = effort.directory(round_)
    names = [entry.name for entry in round_.plan.files.list(directory)]
    marks = sorted(name for name in names if is_marks_file(name))
    is_transactional = any(f"{_TRANSACTIONAL}." in name for name in marks)
    return [f"{directory}/{name}" for name in marks], is_transactional


def mark_blocks(
    round_: OutsideRound, columns: Iterable[tuple[Iterable[int], Buffer]], effort: Effort
) -> list[str]:
    """Superseded offsets, each column with the blocks that they are of, to a file for each block.
    Whoever has some of a block has all of it."""
    whole = span_of(round_.plan)
    found: dict[int, Marks] = {}
    for blocks, offsets in columns:
        for block in blocks:
            if block not in found:
                found[block] = Marks(block_span(whole, block))
            found[block].supersede(offsets)
    return [_write_marks(marks, round_, effort) for marks in found.values()]


def rewrite_groups(
    round_: OutsideRound, numbers: Sequence[int], marks_paths: Sequence[str], effort: Effort
) -> Rewritten:
    staged = _staged_round(round_, effort.work(round_, holds_keys=False), effort)
    staged.use_marks(marks_paths)
    groups = groups_of(round_.plan)
    files = {number: staged.stage(groups[number]) for number in numbers}
    staged.settle()
    return Rewritten(files, staged.finish().as_dict())


def sum_stats(plan: RoundPlan, parts: Iterable[Rewritten], keys: int | None = None) -> CleanerStats:
    """What all tasks of a round came to."""
    total = CleanerStats(first_dirty_offset=plan.first_dirty_offset)
    total.end_offset = plan.upper_bound_offset
    for part in parts:
        for name, value in part.stats.items():
            if name in ("first_dirty_offset", "end_offset", "map_capacity"):
                continue
            if name == "largest_batch_bytes":
                total.largest_batch_bytes = max(total.largest_batch_bytes, value)
            else:
                setattr(total, name, getattr(total, name) + value)
    if keys is not None:
        total.map_entries = keys
    return total
