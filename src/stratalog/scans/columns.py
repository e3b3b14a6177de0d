"""What a scan can return: names, Arrow types, and how they are made of what the kernels decode.

The first eight are those of Spark's Kafka source, by name and type. The others are what only the
files know.

===============  ================================  ===============================================
key, value       binary
topic            string
partition        int32
offset           int64
timestamp        timestamp[us, tz=UTC]             -1 ms where a record has none
timestampType    int32                             -1 none, 0 CreateTime, 1 LogAppendTime
headers          list<struct<key: string,          null, not empty, where a record has none
                 value: binary>>
batchPosition    int64                             where the record's batch begins in the file
producerId       int64                             -1 for none, as the next three
producerEpoch    int16
sequence         int32
leaderEpoch      int32
isTransactional  bool
codec            string                            none, gzip, snappy, lz4, zstd
segmentFile      string                            orders-0/00000000000000000042.log
===============  ================================  ===============================================

Columns never decide which rows there are: control records are not returned whatever is asked for.
A scan for gaps has rows of another shape, ``GAP_COLUMNS``.

What all rows of a slice have in common (topic, partition, file) is made once and sliced, so that
it costs nothing a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from stratalog.records.compression import Codec
from stratalog.scans.errors import ScanOptionError

if TYPE_CHECKING:
    import pyarrow

KAFKA_COLUMNS = (
    *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType"),
    "headers",
)
METADATA_COLUMNS = (
    *("batchPosition", "producerId", "producerEpoch", "sequence", "leaderEpoch"),
    *("isTransactional", "codec", "segmentFile"),
)
SCAN_COLUMNS = (*KAFKA_COLUMNS, *METADATA_COLUMNS)
GAP_COLUMNS = ("topic", "partition", "startOffset", "endOffset", "reason")

# The columns that the kernels decode, by the name they have there.
_DECODED = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    "timestamp": "timestamp_ms",
    "timestampType": "timestamp_type",
    "headers": "headers",
    "batchPosition": "batch_position",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "sequence": "sequence",
    "leaderEpoch": "leader_epoch",
    "isTransactional": "is_transactional",
    "codec": "codec",
}


@cache
def _types() -> dict[str, Any]:
    import pyarrow as pa

    return {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(
            pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
        ),
        "batchPosition": pa.int64(),
        "producerId": pa.int64(),
        "producerEpoch": pa.int16(),
        "sequence": pa.int32(),
        "leaderEpoch": pa.int32(),
        "isTransactional": pa.bool_(),
        "codec": pa.string(),
        "segmentFile": pa.string(),
    }


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """The same, or the sentence that says which of them a scan does not have."""
    for name in columns:
        if name not in SCAN_COLUMNS:
            raise ScanOptionError(
                "columns", name, f"a scan has no such column; it has {', '.join(SCAN_COLUMNS)}"
            )
    if not columns:
        raise ScanOptionError("columns", "", "name at least one column")
    if len(set(columns)) < len(columns):
        raise ScanOptionError("columns", ", ".join(columns), "a column is named twice")
    return tuple(columns)


def scan_schema(columns: Sequence[str]) -> pyarrow.Schema:
    """The schema of a scan's record batches; all nullable, as those of Spark's Kafka source."""
    return _schema(check_columns(columns))


@cache
def _schema(columns: tuple[str, ...]) -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema([(name, _types()[name]) for name in columns])


@cache
def gap_schema() -> pyarrow.Schema:
    """The schema of the record batches of a scan for gaps; ``endOffset`` is exclusive."""
    import pyarrow as pa

    types: tuple[Any, ...] = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.string())
    return pa.schema(list(zip(GAP_COLUMNS, types, strict=True)))


# These are narrower in the kernels, and made into what they are here afterwards.
_NARROW = ("timestampType", "codec")


def decoded_types(columns: Iterable[str]) -> dict[str, Any]:
    """What the kernels have to decode for these columns, by their names there."""
    import pyarrow as pa

    return {
        _DECODED[name]: pa.int8() if name in _NARROW else _types()[name]
        for name in columns
        if name in _DECODED
    }


class Repeated:
    """An array of one value, grown when a longer one is needed, and else sliced."""

    def __init__(self, value: str | int, kind: Any) -> None:
        self._value = value
        self._kind = kind
        self._array: Any = None

    def __call__(self, rows: int) -> Any:
        if self._array is None or len(self._array) < rows:
            import pyarrow as pa

            length = 1 << max(10, (rows - 1).bit_length())
            self._array = pa.repeat(pa.scalar(self._value, self._kind), length)
        return self._array[:rows]


@cache
def _codec_names() -> Any:
    import pyarrow as pa

    return pa.array([codec.name.lower() for codec in sorted(Codec)], pa.string())


def _codec_array(codes: Any) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(codes, _codec_names()).dictionary_decode()


class ColumnAssembly:
    """Makes record batches of a scan's columns for the rows of one slice."""

    def __init__(
        self, columns: Sequence[str], *, topic: str, partition: int, segment_file: str
    ) -> None:
        self.schema = scan_schema(columns)
        self.decoded = decoded_types(columns)
        constants: dict[str, str | int] = {
            "topic": topic,
            "partition": partition,
            "segmentFile": segment_file,
        }
        self._makers: list[Callable[[int, dict[str, Any]], Any]] = [
            self._constant(Repeated(constants[field.name], field.type))
            if field.name in constants
            else self._variable(field)
            for field in self.schema
        ]

    @staticmethod
    def _constant(repeated: Repeated) -> Callable[[int, dict[str, Any]], Any]:
        return lambda rows, _: repeated(rows)

    @staticmethod
    def _variable(field: Any) -> Callable[[int, dict[str, Any]], Any]:
        name = _DECODED[field.name]
        if field.name == "codec":
            return lambda _, arrays: _codec_array(arrays[name])
        if field.name in _NARROW:
            return lambda _, arrays: arrays[name].cast(field.type)
        return lambda _, arrays: arrays[name]

    def batch(self, rows: int, arrays: dict[str, Any]) -> pyarrow.RecordBatch:
        """A record batch of ``rows``, of what was decoded by the kernels' names."""
        import pyarrow as pa

        columns = [make(rows, arrays) for make in self._makers]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
