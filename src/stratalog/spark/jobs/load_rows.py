"""How the rows of any Spark source become records: expressions for key, value, headers, timestamp
and partition.

What nobody says is taken from a column of that name, if the rows have one; a value that is neither
said nor there is the whole row as JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stratalog.spark.jobs.errors import JobOptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

# ISO 8601, with all that Spark knows of a time: by itself its JSON ends at the millisecond. Zones
# of long ago have seconds.
_JSON_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordExpressions:
    """Each is Spark's SQL over the source's columns. ``headers`` is one expression for an array of
    (key, value), or one for each header's value by its name, in pairs where a name is repeated."""

    key: str | None = None
    value: str | None = None
    timestamp: str | None = None
    headers: str | Mapping[str, str] | Sequence[tuple[str, str]] | None = None
    partition: str | None = None
    where: str | None = None

    def records(self, rows: "DataFrame") -> "DataFrame":
        """The columns that the sink takes, of its types."""
        from pyspark.sql import functions as F

        kept = rows if self.where is None else rows.where(self.where)
        whole_row = F.to_json(F.struct("*"), _JSON_TIMES)
        value = self._said_or_there(kept, "value")
        chosen: dict[str, Column | None] = {
            "value": whole_row if value is None else value,
            "key": self._said_or_there(kept, "key"),
            "timestamp": self._said_or_there(kept, "timestamp"),
            "partition": self._said_or_there(kept, "partition"),
            "headers": self._headers(kept),
        }
        made = kept.select(
            *(column.alias(name) for name, column in chosen.items() if column is not None)
        )
        return _fitted(made)

    def _said_or_there(self, rows: "DataFrame", name: str) -> "Column | None":
        from pyspark.sql import functions as F

        said: str | None = getattr(self, name)
        if said is not None:
            return F.expr(said)
        # Columns that a whole row happens to have are in its JSON, and mean what they mean there.
        is_records = "value" in rows.columns and self.value is None
        return F.col(name) if is_records and name in rows.columns else None

    def _headers(self, rows: "DataFrame") -> "Column | None":
        from pyspark.sql import functions as F

        if self.headers is None or isinstance(self.headers, str):
            return self._said_or_there(rows, "headers")
        given = self.headers.items() if isinstance(self.headers, Mapping) else self.headers
        # Columns of their own first: only of these is the type known, and a number is to be text.
        values = [F.expr(text).alias(name) for name, text in given]
        kinds = [each.dataType for each in rows.select(*values).schema.fields]
        made = [
            F.struct(F.lit(name).alias("key"), _as_bytes(F.expr(text), kind).alias("value"))
            for (name, text), kind in zip(given, kinds, strict=True)
        ]
        return F.array(*made)


def _as_text(column: "Column", kind: "DataType") -> "Column":
    """Numbers and the like as text, structures as JSON; text and bytes as they are."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

    if isinstance(kind, StructType | ArrayType | MapType):
        return F.to_json(column, _JSON_TIMES)
    return column if isinstance(kind, BinaryType | StringType) else column.cast("string")


def _as_bytes(column: "Column", kind: "DataType") -> "Column":
    return _as_text(column, kind).cast("binary")


def _fitted(frame: "DataFrame") -> "DataFrame":
    """Keys and values as text or bytes, whole numbers as partitions."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import LongType, ShortType

    for name in ("key", "value"):
        if name in frame.columns:
            kind = frame.schema[name].dataType
            frame = frame.withColumn(name, _as_text(F.col(name), kind))
    if "partition" in frame.columns:
        kind = frame.schema["partition"].dataType
        if isinstance(kind, LongType | ShortType):
            frame = frame.withColumn("partition", _as_int(F.col("partition")))
    return frame


def _as_int(partition: "Column") -> "Column":
    """Refused if it is none: a plain cast, where ANSI mode is off, makes another number of it."""
    from pyspark.sql import functions as F

    told = F.concat(F.lit("there is no partition "), partition.cast("string"))
    return F.coalesce(
        partition.try_cast("int"), F.when(partition.isNotNull(), F.raise_error(told)).cast("int")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSource:
    """What ``spark.read`` is asked for: a format with its options and paths, or a table."""

    paths: Sequence[str] = ()
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    table: str | None = None

    def read(self, spark: "SparkSession") -> "DataFrame":
        if (self.table is None) == (not self.paths and self.format is None):
            raise JobOptionError(
                "source", self.table or list(self.paths), "name paths with a format, or one table"
            )
        reader = spark.read.options(**self.options)
        if self.schema is not None:
            reader = reader.schema(self.schema)
        if self.table is not None:
            return reader.table(self.table)
        if self.format is not None:
            reader = reader.format(self.format)
        # Some sources are named by their options alone, and take no path.
        return reader.load(list(self.paths)) if self.paths else reader.load()
