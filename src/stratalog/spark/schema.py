"""The source's columns as Spark's types: those of Spark's Kafka source, and what is ours.

A reader may name some of the columns in any order; only those are decoded and shipped. Spark
compares Arrow schemas exactly, down to the names inside lists, so each batch is made to fit.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from stratalog.scans.errors import ScanOptionError
from stratalog.spark.options import KNOWN_OPTIONS, SourceOptions
from stratalog.spark.versions import arrow_schema

if TYPE_CHECKING:
    import pyarrow

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_KAFKA: dict[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
_METADATA: dict[str, DataType] = {
    "batchPosition": LongType(),
    "producerId": LongType(),
    "producerEpoch": ShortType(),
    "sequence": IntegerType(),
    "leaderEpoch": IntegerType(),
    "isTransactional": BooleanType(),
    "codec": StringType(),
    "segmentFile": StringType(),
}
_GAPS: dict[str, DataType] = {
    "topic": StringType(),
    "partition": IntegerType(),
    "startOffset": LongType(),
    "endOffset": LongType(),
    "reason": StringType(),
}
_ALL: dict[str, DataType] = {**_KAFKA, "headers": _HEADERS, **_METADATA}


def source_schema(options: SourceOptions) -> StructType:
    """What the source returns when the reader names no columns."""
    if options.gaps:
        return _struct(_GAPS)
    columns = dict(_KAFKA)
    if options.include_headers:
        columns["headers"] = _HEADERS
    if options.include_metadata:
        columns.update(_METADATA)
    return _struct(columns)


def known_columns(*, gaps: bool = False) -> tuple[str, ...]:
    """Every column that can be asked for by name."""
    return tuple(_GAPS if gaps else _ALL)


def columns_schema(columns: Sequence[str], *, gaps: bool = False) -> StructType:
    """The schema that asks for these columns, by names that the source has."""
    known = _GAPS if gaps else _ALL
    for name in columns:
        if name not in known:
            raise _no_such_column(name, known)
    return _struct({name: known[name] for name in columns})


def check_schema(schema: StructType, *, gaps: bool = False) -> None:
    """A schema that a reader gave must consist of columns that there are, of their types."""
    known = _GAPS if gaps else _ALL
    if not schema.fields:
        raise ScanOptionError("schema", "", f"name at least one of {', '.join(known)}")
    if len(set(schema.names)) < len(schema.names):
        raise ScanOptionError("schema", ", ".join(schema.names), "a column is named twice")
    for field in schema.fields:
        if field.name not in known:
            raise _no_such_column(field.name, known)
        if not _is_same(field.dataType, known[field.name]):
            raise ScanOptionError(
                "schema",
                f"{field.name} {field.dataType.simpleString()}",
                f"this column is of type {known[field.name].simpleString()}",
            )


# --- options in a catalog table's schema -----------------------------------------------------

_OPTIONS_KEY = "stratalog.options"


def remember_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The same schema, with the source's own ``options`` noted on its first column."""
    known = {name.lower() for name in KNOWN_OPTIONS}
    told = {name: value for name, value in options.items() if name.lower() in known}
    first, *others = schema.fields
    noted = StructField(first.name, first.dataType, first.nullable, {_OPTIONS_KEY: told})
    return StructType([noted, *others])


def recalled_options(schema: StructType) -> dict[str, str]:
    """What ``remember_options`` noted, or nothing."""
    for field in schema.fields:
        told = (field.metadata or {}).get(_OPTIONS_KEY)
        if isinstance(told, dict):
            return {str(name): str(value) for name, value in told.items()}
    return {}


# --- fitting ---------------------------------------------------------------------------------


def _no_such_column(name: str, known: dict[str, DataType]) -> ScanOptionError:
    return ScanOptionError("schema", name, f"there is no such column; there are {', '.join(known)}")


def _is_same(given: DataType, known: DataType) -> bool:
    # Whether it may be null is the reader's promise to Spark, and changes no value.
    return given.simpleString() == known.simpleString()


def _struct(columns: dict[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


class BatchFitting:
    """Makes record batches carry exactly the Arrow schema that Spark expects for ``schema``."""

    def __init__(self, schema: StructType) -> None:
        self._schema: Any = arrow_schema(schema)

    def __call__(self, batch: "pyarrow.RecordBatch") -> "pyarrow.RecordBatch":
        if batch.schema.equals(self._schema):
            return batch
        columns = [
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return type(batch).from_arrays(columns, schema=self._schema)
