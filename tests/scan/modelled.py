"""Partitions of any batches on a real disk, and beside each the plain list of what it holds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from stratalog.records import Codec, Record, TimestampType, build_batch
from stratalog.records.control import build_end_transaction_marker
from stratalog.scans.slices import FileIdentity, ReadOptions, ScanSlice, ScanTask
from stratalog.storage.layout import TopicPartition
from stratalog.testing.legacy import legacy_message_set

ORDERS = TopicPartition("orders", 3)
PRODUCERS = (7, 8, 9)
START_MS = 1_700_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """One record as a scan may return it; ``reason`` is why readers of committed records do not
    get it."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    producer_id: int = -1
    sequence: int = -1
    leader_epoch: int = -1
    is_transactional: bool = False
    codec: Codec = Codec.NONE
    position: int = 0
    segment: int = 0
    reason: str = ""

    def columns(self) -> dict[str, Any]:
        headers = [{"key": key, "value": value} for key, value in self.headers]
        return {
            "key": self.key,
            "value": self.value,
            "topic": ORDERS.topic,
            "partition": ORDERS.partition,
            "offset": self.offset,
            "timestamp": _EPOCH + timedelta(milliseconds=self.timestamp_ms),
            "timestampType": self.timestamp_type,
            "headers": headers or None,
            "batchPosition": self.position,
            "producerId": self.producer_id,
            "producerEpoch": -1 if self.producer_id < 0 else 0,
            "sequence": self.sequence,
            "leaderEpoch": self.leader_epoch,
            "isTransactional": self.is_transactional,
            "codec": self.codec.name.lower(),
            "segmentFile": f"{ORDERS}/{self.segment:020d}.log",
        }


@dataclass(frozen=True)
class Batch:
    """Bytes, and the rows in them. ``start_offset`` is the first that the bytes may speak of."""

    content: bytes
    rows: tuple[Row, ...]
    start_offset: int
    end_offset: int
    producer_id: int = -1  # of a transaction
    ends: str = ""  # "committed" or "aborted", of a marker


@dataclass(frozen=True)
class Segment:
    base_offset: int
    batches: tuple[Batch, ...]

    @property
    def content(self) -> bytes:
        return b"".join(batch.content for batch in self.batches)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset


@dataclass(frozen=True)
class ModelLog:
    segments: tuple[Segment, ...]

    @property
    def end_offset(self) -> int:
        return self.segments[-1].end_offset

    @property
    def rows(self) -> list[Row]:
        """All records, markers too, each with what became of it."""
        batches = [batch for segment in self.segments for batch in segment.batches]
        rows: list[Row] = []
        for place, batch in enumerate(batches):
            reason = "control" if batch.ends else _fate(batches[place:])
            rows += [replace(row, reason=reason) for row in batch.rows]
        return _with_positions(self.segments, rows)

    def write(self, root: Path) -> Path:
        directory = root / str(ORDERS)
        directory.mkdir(exist_ok=True)
        for segment in self.segments:
            (directory / f"{segment.base_offset:020d}.log").write_bytes(segment.content)
        return directory

    def task(
        self, directory: Path, start_offset: int, end_offset: int, *, wider: int = 0
    ) -> ScanTask:
        """What a plan would say; ``wider``: with so many batches too many at either end."""
        slices = []
        for segment, following in zip(self.segments, [*self.segments[1:], None], strict=True):
            # The last offsets of a segment that nothing is left of belong to it all the same.
            limit = self.end_offset if following is None else following.base_offset
            start, end = max(start_offset, segment.base_offset), min(end_offset, limit)
            if start < end:
                slices.append(slice_of(directory, segment, start, end, wider=wider))
        return ScanTask(tuple(slices), str(directory.parent))


def _fate(batches: Sequence[Batch]) -> str:
    producer_id = batches[0].producer_id
    if producer_id < 0:
        return ""
    for batch in batches[1:]:
        if batch.ends and batch.producer_id == producer_id:
            return "aborted" if batch.ends == "aborted" else ""
    return ""


def _with_positions(segments: Iterable[Segment], rows: Iterable[Row]) -> list[Row]:
    remaining = iter(rows)
    placed = []
    for segment in segments:
        position = 0
        for batch in segment.batches:
            # A message of magic 0 or 1 that is not compressed is a batch of its own.
            single = len(batch.rows) > 1 and batch.rows[0].position < 0
            for row in batch.rows:
                inner = -1 - row.position if single else 0
                placed.append(
                    replace(next(remaining), position=position + inner, segment=segment.base_offset)
                )
            position += len(batch.content)
    return placed


def slice_of(
    directory: Path, segment: Segment, start_offset: int, end_offset: int, *, wider: int = 0
) -> ScanSlice:
    path = directory / f"{segment.base_offset:020d}.log"
    found = path.stat()
    first = [n for n, batch in enumerate(segment.batches) if batch.end_offset > start_offset]
    last = [n for n, batch in enumerate(segment.batches) if batch.start_offset < end_offset]
    from_batch = max((first[0] if first else len(segment.batches)) - wider, 0)
    to_batch = min((last[-1] + 1 if last else 0) + wider, len(segment.batches))
    sizes = [len(batch.content) for batch in segment.batches]
    start_position = sum(sizes[:from_batch])
    return ScanSlice(
        ORDERS,
        str(directory),
        "",
        segment.base_offset,
        FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns // 1_000_000),
        start_offset,
        end_offset,
        start_position,
        max(sum(sizes[:to_batch]), start_position),
    )


# --- drawing them -------------------------------------------------------------------------------

KEYS = st.none() | st.sampled_from((b"", b"a", b"bb", b"key-3"))
VALUES = st.none() | st.binary(max_size=30)
HEADERS = st.lists(
    st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=4)), max_size=2
).map(tuple)
TIMES = st.one_of(st.integers(START_MS - 5, START_MS + 5), st.integers(0, 2 * START_MS))
RECORDS = st.lists(
    st.builds(Record, key=KEYS, value=VALUES, headers=HEADERS, timestamp_ms=TIMES),
    min_size=1,
    max_size=5,
)


@st.composite
def data_batches(draw: st.DrawFn, base_offset: int) -> Batch:
    records = draw(RECORDS)
    deltas: list[int] = []
    for _ in records:
        deltas.append((deltas[-1] if deltas else -1) + 1 + draw(st.sampled_from((0, 0, 0, 1, 3))))
    last_delta = deltas[-1] + draw(st.sampled_from((0, 0, 2)))
    codec = draw(st.sampled_from(Codec))
    kind = draw(st.sampled_from(TimestampType))
    producer_id = draw(st.sampled_from((-1, -1, *PRODUCERS)))
    transactional = producer_id >= 0 and draw(st.booleans())
    sequence = -1 if producer_id < 0 else draw(st.sampled_from((0, 2**31 - 2)))
    epoch = draw(st.integers(0, 3))
    content = build_batch(
        records,
        base_offset=base_offset,
        codec=codec,
        timestamp_type=kind,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=sequence,
        transactional=transactional,
        leader_epoch=epoch,
        offset_deltas=deltas,
        last_offset_delta=last_delta,
    )
    newest_ms = max(record.timestamp_ms for record in records)
    rows = [
        Row(
            base_offset + delta,
            record.timestamp_ms if kind is TimestampType.CREATE_TIME else newest_ms,
            int(kind),
            record.key,
            record.value,
            tuple(record.headers),
            producer_id,
            -1 if sequence < 0 else (sequence + delta) % 2**31,
            epoch,
            transactional,
            codec,
        )
        for delta, record in zip(deltas, records, strict=True)
    ]
    return Batch(
        content,
        tuple(rows),
        base_offset,
        base_offset + last_delta + 1,
        producer_id if transactional else -1,
    )


@st.composite
def legacy_batches(draw: st.DrawFn, base_offset: int) -> Batch:
    magic = draw(st.sampled_from((0, 1)))
    codec = draw(st.sampled_from((Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)))
    records = [(record.key, record.value, record.timestamp_ms) for record in draw(RECORDS)]
    content = legacy_message_set(records, magic=magic, base_offset=base_offset, codec=codec)
    rows = []
    inner = 0
    for place, (key, value, timestamp_ms) in enumerate(records):
        rows.append(
            Row(
                base_offset + place,
                timestamp_ms if magic else -1,
                0 if magic else -1,
                key,
                value,
                codec=codec,
                position=0 if codec else -1 - inner,
            )
        )
        inner += 26 + 8 * magic + len(key or b"") + len(value or b"")
    return Batch(content, tuple(rows), base_offset, base_offset + len(records))


def marker(base_offset: int, producer_id: int, *, commit: bool) -> Batch:
    content = build_end_transaction_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=1,
        timestamp_ms=START_MS,
        base_offset=base_offset,
        leader_epoch=1,
    )
    row = Row(base_offset, START_MS, 0, None, None, producer_id=producer_id, leader_epoch=1)
    ends = "committed" if commit else "aborted"
    return Batch(content, (row,), base_offset, base_offset + 1, producer_id, ends)


@st.composite
def logs(draw: st.DrawFn, *, max_batches: int = 12) -> ModelLog:
    """Batches of every kind, over some segments; every transaction ends."""
    offset = draw(st.sampled_from((0, 0, 5, 2**33)))
    segments: list[Segment] = []
    batches: list[Batch] = []
    base_offset = offset
    opened: set[int] = set()
    for _ in range(draw(st.integers(1, max_batches))):
        if batches and draw(st.sampled_from((False, False, True))):
            offset += draw(st.sampled_from((0, 0, 4)))
            segments.append(Segment(base_offset, tuple(batches)))
            batches, base_offset = [], offset
        offset += draw(st.sampled_from((0, 0, 0, 1, 6)))
        kind = draw(st.sampled_from(("data", "data", "data", "legacy", "marker")))
        if kind == "marker" and opened:
            producer_id = draw(st.sampled_from(sorted(opened)))
            opened.discard(producer_id)
            batch = marker(offset, producer_id, commit=draw(st.booleans()))
        elif kind == "legacy":
            batch = draw(legacy_batches(offset))
        else:
            batch = draw(data_batches(offset))
            if batch.producer_id >= 0:
                opened.add(batch.producer_id)
        batches.append(batch)
        offset = batch.end_offset
    for producer_id in sorted(opened):
        if draw(st.booleans()):
            segments.append(Segment(base_offset, tuple(batches)))
            batches, base_offset = [], offset
        batches.append(marker(offset, producer_id, commit=draw(st.booleans())))
        offset += 1
    segments.append(Segment(base_offset, tuple(batches)))
    return ModelLog(tuple(segments))


@st.composite
def ranges(draw: st.DrawFn, log: ModelLog) -> tuple[int, int]:
    start = log.segments[0].base_offset
    edges = sorted({start, log.end_offset, *(row.offset for row in log.rows)})
    first, last = draw(st.sampled_from(edges)), draw(st.sampled_from(edges))
    if draw(st.booleans()):
        return start, log.end_offset
    return min(first, last), max(first, last) + draw(st.sampled_from((0, 1)))


def plain(columns: Sequence[str], **options: Any) -> ReadOptions:
    return ReadOptions(columns=tuple(columns), **options)
