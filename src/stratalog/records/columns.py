"""Records as Arrow columns: how scans read a log.

The rule: no Python per record. A compiled decoder (``_columns.pxi``) walks batches of any format
and fills memory in Arrow's own layout, which becomes a ``RecordBatch`` without another copy.

====================  =============================================================================
column                Arrow type
====================  =============================================================================
offset                int64
timestamp_ms          int64; -1 for none. With LogAppendTime, the batch's maximum for every record
timestamp_type        int8; 0 CreateTime, 1 LogAppendTime, -1 none (magic 0)
key, value            binary, nullable
headers               list<struct<key: string, value: binary>>; a key that is not UTF-8 gets U+FFFD
leader_epoch          int32; -1 for magic 0 and 1, as all producer columns
producer_id           int64
producer_epoch        int16
sequence              int32
is_control            bool
is_transactional      bool
codec                 int8, the id
batch_position        int64, where the record's batch begins in the file
batch_base_offset     int64
====================  =============================================================================

``key`` and ``value`` are ``binary``, never ``large_binary``: one ``RecordBatch`` is below 2 GiB,
and a longer run of batches becomes several (``iterate_columns``), so that a schema never depends
on the data. pyarrow is imported when the first columns are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from stratalog.errors import RecordTooLargeError
from stratalog.records._kernels import COLUMN_NAMES, ColumnDecoder

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Buffer

# (producer id, first offset, last offset) of an aborted transaction; the last is its marker's.
AbortedTransaction = tuple[int, int, int]

OFFSET_END = 2**63 - 1
BINARY_LIMIT_BYTES = 2**31 - 1
TARGET_BYTES = 32 * 1024 * 1024

KAFKA_COLUMNS = ("offset", "timestamp_ms", "timestamp_type", "key", "value", "headers")


@cache
def arrow_schema(columns: tuple[str, ...]) -> pyarrow.Schema:
    """The schema of a ``RecordBatch`` with these columns, in this order."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.binary())])
    types = {
        "offset": pa.int64(),
        "timestamp_ms": pa.int64(),
        "timestamp_type": pa.int8(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.field("element", header, nullable=False)),
        "leader_epoch": pa.int32(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "sequence": pa.int32(),
        "is_control": pa.bool_(),
        "is_transactional": pa.bool_(),
        "codec": pa.int8(),
        "batch_position": pa.int64(),
        "batch_base_offset": pa.int64(),
    }
    _wanted_bits(columns)
    nullable = ("key", "value")
    return pa.schema([pa.field(name, types[name], name in nullable) for name in columns])


class WhichRecords(TypedDict, total=False):
    """The records that are wanted of a buffer; by default, all of offset 0 and above that are not
    control records, their batches' CRCs checked."""

    start_offset: int
    end_offset: int
    check_crc: bool
    include_control: bool
    aborted: Iterable[AbortedTransaction] | None


def decode_columns(
    buffer: Buffer,
    *,
    columns: Sequence[str] = KAFKA_COLUMNS,
    position: int = 0,
    limit_bytes: int = BINARY_LIMIT_BYTES,
    **which: Unpack[WhichRecords],
) -> pyarrow.RecordBatch:
    """All records of the whole batches in ``buffer`` with an offset in the range, as one batch.

    ``position`` is the file position of the buffer's first byte. A batch that is cut at the end is
    left out. ``RecordTooLargeError`` if there are more than ``limit_bytes`` of records,
    decompressed; ``CorruptBatchError`` for a batch that is damaged.
    """
    decoder = _decoder(columns, limit_bytes, **which)
    decoder.add(buffer, 0, position, limit_bytes)
    if decoder.full:
        raise RecordTooLargeError("the records of a scan", limit_bytes + 1, limit_bytes)
    return _take(decoder, tuple(columns))


def iterate_columns(
    buffer: Buffer,
    *,
    columns: Sequence[str] = KAFKA_COLUMNS,
    position: int = 0,
    limit_bytes: int = BINARY_LIMIT_BYTES,
    target_bytes: int = TARGET_BYTES,
    **which: Unpack[WhichRecords],
) -> Iterator[pyarrow.RecordBatch]:
    """As ``decode_columns``, in pieces: each ends before the batch that would take it over
    ``target_bytes``, so it is larger only if a single batch is. ``limit_bytes`` bounds one batch.
    """
    decoder = _decoder(columns, target_bytes, **which)
    at = 0
    while True:
        at = decoder.add(buffer, at, position, limit_bytes)
        more = decoder.full
        if decoder.rows:
            yield _take(decoder, tuple(columns))
        else:
            decoder.take()
        if not more:
            return


def _decoder(
    columns: Sequence[str], target_bytes: int, **which: Unpack[WhichRecords]
) -> ColumnDecoder:
    if unknown := which.keys() - WhichRecords.__optional_keys__:
        raise TypeError(f"there is no argument {sorted(unknown)[0]!r}")
    return ColumnDecoder(
        _wanted_bits(columns),
        start_offset=which.get("start_offset", 0),
        end_offset=which.get("end_offset", OFFSET_END),
        check_crc=which.get("check_crc", True),
        include_control=which.get("include_control", False),
        target_bytes=target_bytes,
        aborted=which.get("aborted") or (),
    )


def _wanted_bits(columns: Sequence[str]) -> int:
    if not columns:
        raise ValueError("no columns: Arrow would count no rows either")
    return column_bits(columns)


def column_bits(columns: Iterable[str]) -> int:
    """What ``ColumnDecoder`` is asked for these columns with."""
    bits = 0
    for name in columns:
        if name not in COLUMN_NAMES:
            raise ValueError(f"no column {name!r}; there are {', '.join(COLUMN_NAMES)}")
        bits |= 1 << COLUMN_NAMES.index(name)
    return bits


def _take(decoder: ColumnDecoder, columns: tuple[str, ...]) -> pyarrow.RecordBatch:
    import pyarrow as pa

    schema = arrow_schema(columns)
    rows, memories = decoder.take()
    arrays = [_array(field.type, rows, memories[field.name], pa) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def take_arrays(
    decoder: ColumnDecoder, types: Mapping[str, pyarrow.DataType], *, null_headers: bool
) -> dict[str, Any]:
    """The rows of ``decoder`` as arrays by the columns' names, whose types may be any that lie in
    memory as those above do; it is empty afterwards. With ``null_headers``, a record without
    headers has null, as in Spark's Kafka source, and not an empty list."""
    import pyarrow as pa

    rows, memories = decoder.take()
    return {
        name: _array(kind, rows, memories[name], pa, null_headers) for name, kind in types.items()
    }


def _array(
    kind: Any, rows: int, memory: tuple[Any, ...], pa: Any, null_headers: bool = False
) -> Any:
    if pa.types.is_list(kind):
        return _headers_array(kind, rows, memory, pa, null_headers)
    if pa.types.is_binary(kind):
        return _binary_array(kind, rows, memory, pa)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(memory[0])], 0)


def _binary_array(kind: Any, rows: int, memory: tuple[Any, ...], pa: Any) -> Any:
    null_count, valid, offsets, data = memory
    buffers = [pa.py_buffer(valid) if null_count else None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, rows, [*buffers, pa.py_buffer(data)], null_count)


def _headers_array(
    kind: Any, rows: int, memory: tuple[Any, ...], pa: Any, null_headers: bool
) -> Any:
    header_count, without, valid, list_offsets, keys, values = memory
    element = kind.value_type
    key_array = _utf8_array(_binary_array(pa.binary(), header_count, keys, pa), pa)
    value_array = _binary_array(pa.binary(), header_count, values, pa)
    headers = pa.StructArray.from_arrays([key_array, value_array], fields=list(element))
    bits = pa.py_buffer(valid) if null_headers and without else None
    nulls = without if bits else 0
    buffers = [bits, pa.py_buffer(list_offsets)]
    return pa.Array.from_buffers(kind, rows, buffers, nulls, children=[headers])


def _utf8_array(keys: Any, pa: Any) -> Any:
    try:
        return keys.cast(pa.string())  # checks the encoding and copies nothing
    except pa.ArrowInvalid:
        # Java decodes what is not UTF-8 with U+FFFD in its place; nobody writes this on purpose.
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())


class StoredRecord(NamedTuple):
    """One record as a reader sees it."""

    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def decode_records(
    buffer: Buffer,
    *,
    limit_bytes: int = BINARY_LIMIT_BYTES,
    include_control: bool = True,
) -> list[StoredRecord]:
    """All records of ``buffer``, control records too if asked for, as Python objects.

    For dumps and tests of a few records; a data path decodes columns.
    """
    batch = decode_columns(
        buffer,
        limit_bytes=limit_bytes,
        start_offset=-OFFSET_END,
        include_control=include_control,
    )
    rows: Iterator[Any] = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return [
        StoredRecord._make([*fields, tuple((item["key"], item["value"]) for item in headers)])
        for *fields, headers in rows
    ]
