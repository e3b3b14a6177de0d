"""What a round of compaction must leave of a log: the rules of Kafka's cleaner, one at a time.

The model is a list of batches and plain loops over it: no segments, no files, no hashing, no
buffers. It knows of each batch which transaction wrote it, so it needs no transaction index to
say what was aborted. ``clean`` is one round; ``encode`` are the bytes of a batch that was rebuilt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from stratalog.records import Codec, compress, read_header
from stratalog.records._kernels import encode_records, seal_batch
from stratalog.records.columns import decode_records

NO_TIMESTAMP = -1
SLOT_BYTES = 24
LOAD_FACTOR = 0.9


class Row(NamedTuple):
    """A record as a reader sees it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Marker(Enum):
    COMMIT = "commit"
    ABORT = "abort"
    OTHER = "another control type"


@dataclass(frozen=True)
class Transaction:
    """``number`` tells transactions of one producer apart; the marker says how it ended."""

    number: int
    producer_id: int


@dataclass(frozen=True)
class Batch:
    rows: tuple[Row, ...]
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    magic: int = 2
    codec: Codec = Codec.NONE
    is_log_append_time: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    leader_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False
    marker: Marker | None = None
    transaction: Transaction | None = None
    delete_horizon_ms: int | None = None
    stored: bytes | None = None
    """The bytes as they were appended; None once the batch has been rebuilt."""

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1


class AbortedEntry(NamedTuple):
    """An entry of a transaction index; ``last_offset`` is the abort marker's."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class LastRecord(NamedTuple):
    """What is known of an active producer: where its last data lies, if anywhere, and its epoch."""

    data_offset: int | None
    epoch: int


class UncleanableError(Exception):
    """The cleaner cannot go on: a message of magic 0 or 1 has no form without records."""


@dataclass(frozen=True)
class Round:
    """All that decides a round besides the batches themselves."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    now_ms: int
    delete_retention_ms: int
    slots: int
    bases: tuple[int, ...]
    """Base offsets of all segments, the active one last."""
    modified_ms: Mapping[int, int] = field(default_factory=dict)
    """By base offset, when the segment's ``.log`` was last written."""
    last_records: Mapping[int, LastRecord] = field(default_factory=dict)
    aborted: Mapping[Transaction, AbortedEntry] = field(default_factory=dict)
    """What the transaction indexes list."""
    log_start_offset: int = 0

    @property
    def usable(self) -> int:
        return int(self.slots * LOAD_FACTOR)

    def base_of(self, offset: int) -> int:
        return max(base for base in self.bases if base <= offset)

    def end_of(self, base_offset: int) -> int:
        """Where the next segment begins, or where the round ends."""
        later = [base for base in self.bases if base > base_offset]
        return min([*later, self.first_uncleanable_offset])


@dataclass(frozen=True)
class Cleaned:
    batches: tuple[Batch, ...]
    end_offset: int
    aborted: Mapping[Transaction, AbortedEntry]
    dropped_null_keys: int


# --- the map -------------------------------------------------------------------------------------


def build_map(batches: Sequence[Batch], plan: Round) -> tuple[dict[bytes, int], int]:
    """The last offset of each key of the dirty part, and the offset up to which that is known."""
    found: dict[bytes, int] = {}
    latest = -1
    first = plan.base_of(max(plan.first_dirty_offset, plan.bases[0]))
    for base in plan.bases:
        if not first <= base < plan.first_uncleanable_offset:
            continue
        for batch in batches:
            if plan.base_of(batch.last_offset) != base:
                continue
            if not batch.is_control and not is_aborted(batch, plan):
                for row in batch.rows:
                    if row.key is None or row.offset < plan.first_dirty_offset:
                        continue
                    if len(found) >= plan.usable:
                        return found, latest
                    found[row.key] = latest = row.offset
            if batch.last_offset >= plan.first_dirty_offset:
                latest = batch.last_offset
        latest = plan.end_of(base) - 1
    return found, latest


def is_aborted(batch: Batch, plan: Round) -> bool:
    entry = None if batch.transaction is None else plan.aborted.get(batch.transaction)
    return entry is not None and entry.last_offset >= plan.log_start_offset


# --- a round -------------------------------------------------------------------------------------


def clean(batches: Sequence[Batch], plan: Round) -> Cleaned:
    keys, latest = build_map(batches, plan)
    end_offset = latest + 1
    rewritten = [b for b in batches if plan.base_of(b.last_offset) < end_offset]
    untouched = [b for b in batches if plan.base_of(b.last_offset) >= end_offset]
    work = _Pass(plan, keys, latest)
    kept = [after for batch in rewritten if (after := work.filtered(batch)) is not None]
    aborted = dict(plan.aborted)
    for transaction, entry in plan.aborted.items():
        in_range = plan.base_of(entry.last_offset) < end_offset
        if in_range and transaction not in work.listed:
            del aborted[transaction]
    return Cleaned((*kept, *untouched), end_offset, aborted, work.dropped_null_keys)


class _Pass:
    """Batches one after the other, and which transactions had data among them."""

    def __init__(self, plan: Round, keys: Mapping[bytes, int], latest: int) -> None:
        self.plan = plan
        self.keys = keys
        self.latest = latest
        self.dropped_null_keys = 0
        self.listed: set[Transaction] = set()
        """Aborted transactions that the new transaction index lists."""
        self._seen_aborted: set[Transaction] = set()
        self._seen_committed: set[int] = set()

    def filtered(self, batch: Batch) -> Batch | None:
        can_discard = self._can_discard(batch)
        horizon = batch.delete_horizon_ms
        discards = can_discard
        if batch.is_control:
            discards = can_discard and horizon is not None and horizon <= self.plan.now_ms
        stays = self._is_last_of_producer(batch) or (
            batch.next_offset == self.plan.first_uncleanable_offset
        )
        rows: tuple[Row, ...] = ()
        if not discards:
            rows = tuple(row for row in batch.rows if self._keeps(row, batch))
        if not rows:
            return self._emptied(batch) if stays else None
        wants_horizon = any(row.value is None for row in rows) or (batch.is_control and can_discard)
        sets_horizon = wants_horizon and batch.delete_horizon_ms is None
        if batch.magic == 2 and rows == batch.rows and not sets_horizon:
            return batch
        if sets_horizon:
            sum_ms = _wrapped(self.plan.now_ms + self.plan.delete_retention_ms)
            horizon = sum_ms if sum_ms >= 0 else None
        return _rebuilt(batch, rows, horizon)

    def _can_discard(self, batch: Batch) -> bool:
        aborted = is_aborted(batch, self.plan)
        if not batch.is_control:
            if batch.is_transactional and not aborted:
                self._seen_committed.add(batch.producer_id)
            if aborted and batch.transaction is not None:
                self._seen_aborted.add(batch.transaction)
            return aborted
        if not batch.rows:
            return True
        if batch.marker is Marker.COMMIT:
            had_data = batch.producer_id in self._seen_committed
            self._seen_committed.discard(batch.producer_id)
            return not had_data
        if batch.marker is Marker.ABORT:
            if aborted and batch.transaction in self._seen_aborted:
                self.listed.add(batch.transaction)
                return False
            return True
        return False

    def _is_last_of_producer(self, batch: Batch) -> bool:
        last = self.plan.last_records.get(batch.producer_id)
        if batch.producer_id < 0 or last is None:
            return False
        if last.data_offset is not None:
            return batch.last_offset == last.data_offset
        return batch.is_control and batch.producer_epoch == last.epoch

    def _keeps(self, row: Row, batch: Batch) -> bool:
        if batch.is_control or row.offset > self.latest:
            return True
        if row.key is None:
            self.dropped_null_keys += 1
            return False
        if row.offset < self.keys.get(row.key, -1):
            return False
        return row.value is not None or self._keeps_tombstones(batch)

    def _keeps_tombstones(self, batch: Batch) -> bool:
        plan = self.plan
        if batch.magic == 2:
            return batch.delete_horizon_ms is None or plan.now_ms < batch.delete_horizon_ms
        clean_bases = [base for base in plan.bases if base < plan.first_dirty_offset]
        horizon = 0
        if clean_bases:
            horizon = plan.modified_ms[max(clean_bases)] - plan.delete_retention_ms
        return plan.modified_ms[plan.base_of(batch.last_offset)] > horizon

    def _emptied(self, batch: Batch) -> Batch:
        if batch.magic != 2:
            raise UncleanableError(f"the message at {batch.last_offset} would be empty")
        return replace(batch, rows=(), codec=Codec.NONE, delete_horizon_ms=None, stored=None)


def _rebuilt(batch: Batch, rows: tuple[Row, ...], horizon: int | None) -> Batch:
    newest = max(row.timestamp_ms for row in rows)
    if batch.is_log_append_time:
        newest = batch.max_timestamp_ms
    after = replace(
        batch, rows=rows, max_timestamp_ms=newest, delete_horizon_ms=horizon, magic=2, stored=None
    )
    if batch.magic < 2:
        after = replace(after, base_offset=rows[0].offset, last_offset=rows[-1].offset)
    return after


def _wrapped(value: int) -> int:
    """As a sum of two Java longs."""
    return (value + 2**63) % 2**64 - 2**63


# --- bytes ---------------------------------------------------------------------------------------


class Described(NamedTuple):
    """A batch without what compression decides: its size and its CRC."""

    magic: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    rows: tuple[Row, ...]


def describe_stored(content: bytes) -> Described:
    header = read_header(content)
    assert header is not None
    assert header.size_bytes == len(content)
    rows = tuple(
        Row(each.offset, each.timestamp_ms, each.key, each.value, each.headers)
        for each in decode_records(content)
    )
    return Described(
        header.magic,
        header.base_offset,
        header.last_offset,
        header.partition_leader_epoch,
        header.attributes,
        header.base_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
        rows,
    )


def encode(batch: Batch) -> bytes:
    """A rebuilt batch of magic 2."""
    assert batch.magic == 2
    base_timestamp_ms = batch.rows[0].timestamp_ms if batch.rows else NO_TIMESTAMP
    attributes = batch.codec | batch.is_log_append_time << 3
    attributes |= batch.is_transactional << 4 | batch.is_control << 5
    if batch.delete_horizon_ms is not None:
        attributes |= 1 << 6
        base_timestamp_ms = batch.delete_horizon_ms
    body: bytes | bytearray = encode_records(
        [row.key for row in batch.rows],
        [row.value for row in batch.rows],
        [row.headers for row in batch.rows],
        [row.timestamp_ms for row in batch.rows],
        base_timestamp_ms,
        [row.offset - batch.base_offset for row in batch.rows],
    )
    if batch.codec is not Codec.NONE:
        body = compress(batch.codec, body)
    return bytes(
        seal_batch(
            body,
            base_offset=batch.base_offset,
            last_offset_delta=batch.last_offset - batch.base_offset,
            record_count=len(batch.rows),
            attributes=attributes,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=batch.max_timestamp_ms,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            partition_leader_epoch=batch.leader_epoch,
        )
    )


def check_same(content: bytes, batch: Batch) -> None:
    """``content`` is the batch: byte by byte, unless it was compressed anew."""
    if batch.stored is not None:
        assert content == batch.stored, f"{describe_stored(content)} is not {batch}"
        return
    expected = encode(batch)
    assert describe_stored(content) == describe_stored(expected)
    if batch.codec is Codec.NONE:
        assert content == expected


# --- what readers know ---------------------------------------------------------------------------


def last_rows(rows: Iterable[Row], start_offset: int) -> dict[bytes, Row]:
    """The last record of each key that a reader from ``start_offset`` on has seen at the end."""
    found: dict[bytes, Row] = {}
    for row in rows:
        if row.key is not None and row.offset >= start_offset:
            found[row.key] = row
    return found


# --- groups --------------------------------------------------------------------------------------


class SegmentFacts(NamedTuple):
    base_offset: int
    log_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group(
    segments: Sequence[SegmentFacts],
    *,
    segment_bytes: int,
    index_bytes: int,
    first_uncleanable_offset: int,
) -> list[list[int]]:
    """Base offsets of the segments that become one, from all those of a round, in order."""
    groups: list[list[SegmentFacts]] = []
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        last = (first_uncleanable_offset if following is None else following) - 1
        joined = [*groups[-1], segment] if groups else []
        fits = (
            bool(joined)
            and sum(each.log_bytes for each in joined) <= segment_bytes
            and sum(each.offset_index_bytes for each in joined) <= index_bytes
            and sum(each.time_index_bytes for each in joined) <= index_bytes
            and (segment.log_bytes == 0 or last - joined[0].base_offset <= 2**31 - 1)
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return [[each.base_offset for each in members] for members in groups]
