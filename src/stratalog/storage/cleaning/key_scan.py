"""Which records a cleaning takes away, found out without a map that holds all keys.

The keys are parted into ranges of their hashes, and the log is read once for each range, with a
map for that range alone. A map that turns out too small is no failure: its range is halved, and
the log read once more. What was found are marks (``marks``), a bit for each offset of the round.

For far more keys, the hashes and offsets themselves are the result (``HashScan``): whoever asked
sorts them, and the runs of equal hashes tell the offsets to be marked (``superseded_in``).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from typing_extensions import Buffer

from stratalog.errors import CorruptSegmentError
from stratalog.records import (
    CleanedTransactions,
    KeyHashes,
    MapBuilder,
    OffsetMap,
    SupersededRuns,
    SupersededScan,
)
from stratalog.storage.cleaning.marks import Marks
from stratalog.storage.cleaning.rewriting import RoundPlan, RoundWork, Source, Work, aborted_fields

_HASHES = 1 << 64
_ROWS_A_PIECE = 1 << 18
# A range of so few hashes that still fills a map is no range of keys any more.
_NARROWEST = 1 << 20


@dataclass(frozen=True, slots=True)
class HashRange:
    """Hashes whose upper halves are from ``first`` to ``last``."""

    first: int
    last: int

    def halves(self) -> "tuple[HashRange, HashRange]":
        middle = (self.first + self.last) // 2
        return HashRange(self.first, middle), HashRange(middle + 1, self.last)


def hash_ranges(count: int) -> list[HashRange]:
    """All hashes, in so many ranges of the same size."""
    edges = [_HASHES * number // count for number in range(count + 1)]
    return [HashRange(first, end - 1) for first, end in pairwise(edges)]


@dataclass(slots=True)
class KeysFound:
    """What scans of keys have counted."""

    keys: int = 0
    scans: int = 0
    messages_read: int = 0
    bytes_read: int = 0
    transactional_batches: int = 0


class KeyScan(RoundWork):
    """Marks what is superseded of one range of keys; ``work.map`` is the map it may use."""

    def __init__(self, plan: RoundPlan, work: Work) -> None:
        super().__init__(plan, work)
        self.found = KeysFound()

    def mark(self, hashes: HashRange, marks: Marks) -> None:
        waiting = [hashes]
        while waiting:
            narrowed = waiting.pop()
            if self._mark(narrowed, marks):
                continue
            if narrowed.last - narrowed.first < _NARROWEST:
                raise MemoryError(f"a map for {self._map.capacity} keys is too small")
            waiting.extend(narrowed.halves())

    def _mark(self, hashes: HashRange, marks: Marks) -> bool:
        """False if the map was full before all keys were read."""
        plan, offsets = self.plan, self._map
        offsets.clear(plan.upper_bound_offset - plan.first_dirty_offset)
        offsets.restrict(hashes.first, hashes.last)
        marks.lend(offsets)
        self.found.scans += 1
        builder = MapBuilder(offsets, self._dirty_transactions(), plan.first_dirty_offset)
        for source in plan.dirty:
            self._read(source, builder, source.first_dirty_position)
            if builder.is_full:
                return False
            self._check_end(source, builder.position, offsets.latest_offset)
        self.found.keys += offsets.size
        self.found.messages_read += builder.messages_read
        self.found.transactional_batches += builder.transactional_batches
        self._mark_the_rest(builder.transactional_batches > 0)
        offsets.clear()
        return True

    def mark_slice(self, sources: Sequence[Source], marks: Marks) -> bytearray | None:
        """Mark what is superseded inside a slice of the dirty part; returns the last places of its
        keys, to be put together with those of the other slices. None if that cannot be: the map
        was full, or there are transactions, of which the map need not have been told."""
        plan, offsets = self.plan, self._map
        offsets.clear(sources[-1].end_offset - sources[0].base_offset)
        marks.lend(offsets)
        self.found.scans += 1
        builder = MapBuilder(offsets, CleanedTransactions(), plan.first_dirty_offset)
        for source in sources:
            self._read(source, builder, source.first_dirty_position)
            if builder.is_full or builder.transactional_batches:
                return None
            self._check_end(source, builder.position, offsets.latest_offset)
        self.found.keys += offsets.size
        self.found.messages_read += builder.messages_read
        entries = offsets.entries()
        offsets.clear()
        return entries

    def _mark_the_rest(self, has_transactions: bool) -> None:
        """What the map was not told of: below the dirty part, and in transactions."""
        plan = self.plan
        scan = SupersededScan(self._map, plan.first_dirty_offset)
        for source in plan.sources:
            if has_transactions or source.base_offset < plan.first_dirty_offset:
                self._read(source, scan, 0)
        self.found.transactional_batches += scan.transactional_batches

    def _dirty_transactions(self) -> CleanedTransactions:
        transactions = CleanedTransactions()
        aborted = {each: None for source in self.plan.dirty for each in source.aborted}
        transactions.add_aborted(aborted_fields(each) for each in aborted)
        return transactions

    def _read(self, source: Source, walk: MapBuilder | SupersededScan, position: int) -> None:
        for read in self._walk(source, walk, position):
            self.found.bytes_read += read

    def _check_end(self, source: Source, position: int, latest_offset: int) -> None:
        if latest_offset >= source.end_offset:
            raise CorruptSegmentError(
                source.path,
                position,
                latest_offset,
                f"its batches pass the next segment's base offset {source.end_offset}",
            )


class HashScan(RoundWork):
    """The hashes of all keys of some sources, and where they are, as columns."""

    def __init__(self, plan: RoundPlan, work: Work) -> None:
        super().__init__(plan, work)
        self.found = KeysFound()

    def pieces(
        self, sources: Sequence[Source], marks: Marks
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        """``sources`` follow each other, and are all of the dirty part if any has an abort."""
        plan = self.plan
        self._map.clear(1)
        marks.lend(self._map)
        transactions = CleanedTransactions()
        aborted = {each: None for source in plan.dirty for each in source.aborted}
        transactions.add_aborted(aborted_fields(each) for each in aborted)
        untold = CleanedTransactions()
        hashes: KeyHashes | None = None
        was_dirty = False
        for source in sources:
            for is_dirty, start, end in _parts(plan, source):
                if hashes is None or is_dirty != was_dirty:
                    told = transactions if is_dirty else untold
                    hashes = KeyHashes(self._map, told, plan.first_dirty_offset)
                    was_dirty = is_dirty
                yield from self._piece(source, hashes, start, end)
        self._map.clear()

    def _piece(
        self, source: Source, hashes: KeyHashes, start: int, end: int
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        before = hashes.transactional_batches
        for read in self._walk(source, hashes, start, end):
            self.found.bytes_read += read
            if hashes.rows >= _ROWS_A_PIECE:
                self.found.messages_read += hashes.rows
                yield hashes.take()
        if hashes.rows:
            self.found.messages_read += hashes.rows
            yield hashes.take()
        self.found.transactional_batches += hashes.transactional_batches - before


def _parts(plan: RoundPlan, source: Source) -> Iterator[tuple[bool, int, int]]:
    """Where the clean and the dirty part of a source lie: a cleaning's map begins at the second
    with nothing known of transactions."""
    if source.end_offset <= plan.first_dirty_offset:
        yield False, 0, source.size_bytes
        return
    if source.first_dirty_position:
        yield False, 0, source.first_dirty_position
    yield True, source.first_dirty_position, source.size_bytes


def dirty_slices(plan: RoundPlan, count: int) -> list[list[Source]]:
    """The dirty part in so many slices at most, of about the same size; none where the log has a
    clean part or aborted transactions, whose records no slice can decide about."""
    is_whole = plan.sources[0].base_offset >= plan.first_dirty_offset
    if not is_whole or any(source.aborted for source in plan.sources):
        return []
    wanted = sum(source.size_bytes for source in plan.sources) / count
    slices: list[list[Source]] = [[]]
    filled = 0.0
    for source in plan.sources:
        if slices[-1] and filled + source.size_bytes / 2 > wanted * len(slices):
            slices.append([])
        slices[-1].append(source)
        filled += source.size_bytes
    return slices


def join_slices(entries: Iterable[Buffer], marks: Marks, offset_map: OffsetMap) -> bool:
    """Mark what later slices supersede of earlier ones; False if ``offset_map`` is too small."""
    offset_map.clear()
    marks.lend(offset_map)
    is_whole = all(offset_map.put_entries(each) for each in entries)
    offset_map.clear()
    return is_whole


def superseded_in(
    columns: Iterable[tuple[memoryview, memoryview, memoryview]],
) -> Iterator[bytes]:
    """The superseded offsets, as 64-bit numbers, of what ``HashScan`` gave, sorted by hash and then
    from the last place to the first."""
    runs = SupersededRuns()
    for lows, highs, places in columns:
        yield runs.feed(lows, highs, places)
