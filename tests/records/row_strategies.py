"""Rows to be encoded: as plain values, and as Arrow arrays of any shape that holds them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from stratalog.records import Codec, Record, build_batch

NOW_MS = 1_700_000_000_000

HEADERS = st.lists(
    st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=6)), max_size=3
).map(tuple)


@dataclass(frozen=True)
class Row:
    """``timestamp_us`` None is the time of writing, ``headers`` None is none."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] | None
    timestamp_us: int | None

    @property
    def record(self) -> Record:
        stamp_ms = NOW_MS if self.timestamp_us is None else self.timestamp_us // 1000
        return Record(self.key, self.value, self.headers or (), stamp_ms)


ROWS = st.builds(
    Row,
    partition=st.integers(0, 2),
    key=st.none() | st.binary(max_size=12),
    value=st.none() | st.binary(max_size=200),
    headers=st.none() | HEADERS,
    timestamp_us=st.none() | st.integers(0, 2**55),
)

BINARY, TEXT, NUMBER = pa.binary(), pa.string(), pa.int32()
BINARY_TYPES = st.sampled_from((pa.binary(), pa.large_binary(), pa.binary_view()))
TEXT_TYPES = st.sampled_from((pa.string(), pa.large_string(), pa.binary(), pa.string_view()))


@dataclass(frozen=True)
class Shape:
    """How rows lie in Arrow: types, how many others lie before and after, how many in a batch."""

    key: Any = BINARY
    value: Any = BINARY
    header_key: Any = TEXT
    header_value: Any = BINARY
    is_large_list: bool = False
    number: Any = NUMBER
    before: int = 0
    after: int = 0
    rows_a_batch: int = 1000


PLAIN = Shape()

SHAPES = st.builds(
    Shape,
    key=BINARY_TYPES,
    value=BINARY_TYPES,
    header_key=TEXT_TYPES,
    header_value=BINARY_TYPES,
    is_large_list=st.booleans(),
    number=st.sampled_from((pa.int32(), pa.int64(), pa.int8(), pa.uint16())),
    before=st.integers(0, 19),
    after=st.integers(0, 2),
    rows_a_batch=st.integers(1, 20),
)

OTHER = Row(0, b"another", b"row", (("of", b"no"), ("concern", None)), 1)


def arrow_batches(rows: Sequence[Row], shape: Shape = PLAIN) -> list[tuple[Any, Any]]:
    """Record batches and partitions, as slices of larger ones if the shape says so."""
    padded = [OTHER] * shape.before + list(rows) + [OTHER] * shape.after
    whole, partitions = arrow_batch(padded, shape)
    return [
        (whole.slice(start, size), partitions.slice(start, size))
        for start in range(shape.before, shape.before + len(rows), shape.rows_a_batch)
        for size in [min(shape.rows_a_batch, shape.before + len(rows) - start)]
    ]


def arrow_batch(rows: Sequence[Row], shape: Shape = PLAIN) -> tuple[Any, Any]:
    pair = pa.struct([("key", shape.header_key), ("value", shape.header_value)])
    lists = pa.large_list(pair) if shape.is_large_list else pa.list_(pair)
    headers = [
        None
        if row.headers is None
        else [{"key": key.encode(), "value": value} for key, value in row.headers]
        for row in rows
    ]
    columns = {
        "key": pa.array([row.key for row in rows], shape.key),
        "value": pa.array([row.value for row in rows], shape.value),
        "headers": pa.array(headers, lists),
        "timestamp": pa.array([row.timestamp_us for row in rows], pa.timestamp("us")),
    }
    partitions = pa.array([row.partition for row in rows], shape.number)
    return pa.RecordBatch.from_pydict(columns), partitions


def expected_batches(
    rows: Sequence[Row], batch_bytes: int, codec: Codec = Codec.NONE, level: int | None = None
) -> dict[int, list[bytes]]:
    """By partition, what the builder makes of the rows that go together."""
    gathered: dict[int, list[list[Record]]] = {}
    for row in rows:
        batches = gathered.setdefault(row.partition, [[]])
        longer = [*batches[-1], row.record]
        if batches[-1] and len(build_batch(longer)) > batch_bytes:
            batches.append([row.record])
        else:
            batches[-1] = longer
    return {
        partition: [build_batch(each, codec=codec, level=level) for each in batches]
        for partition, batches in gathered.items()
    }


def in_seconds(row: Row) -> Row:
    if row.timestamp_us is None:
        return row
    return replace(row, timestamp_us=row.timestamp_us // 1_000_000 * 1_000_000)
