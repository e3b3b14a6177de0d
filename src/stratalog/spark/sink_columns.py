"""The columns that the sink takes, checked when the query is analysed: those of Spark's Kafka sink,
and ``timestamp``.

=========  ========================================  ============================================
column     type                                      without it, or null
=========  ========================================  ============================================
value      string or binary                          required; a null is a tombstone
key        string or binary                          a record without a key
topic      string                                    the option ``topic``, which wins if both are
partition  int                                       by the key, as Kafka's own clients do it
headers    array<struct<key string, value binary>>   none
timestamp  timestamp                                 the time at which its task wrote it
=========  ========================================  ============================================

Other columns are ignored, as Spark's sink does.
"""

from collections.abc import Callable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from stratalog.scans.errors import ScanOptionError

VALUE, KEY, TOPIC, PARTITION, HEADERS, TIMESTAMP = (
    "value",
    "key",
    "topic",
    "partition",
    "headers",
    "timestamp",
)


def _is_text(kind: DataType) -> bool:
    return isinstance(kind, StringType | BinaryType)


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(each.name, each.dataType) for each in kind.elementType.fields]
    return (
        [name for name, _ in fields] == ["key", "value"]
        and isinstance(fields[0][1], StringType)
        and isinstance(fields[1][1], BinaryType)
    )


_RULES: dict[str, tuple[Callable[[DataType], bool], str]] = {
    VALUE: (_is_text, "string or binary"),
    KEY: (_is_text, "string or binary"),
    TOPIC: (lambda kind: isinstance(kind, StringType), "string"),
    PARTITION: (lambda kind: isinstance(kind, IntegerType), "int"),
    HEADERS: (_is_headers, "array<struct<key:string,value:binary>>"),
    TIMESTAMP: (lambda kind: isinstance(kind, TimestampType), "timestamp"),
}


def check_columns(schema: StructType, topic: str | None) -> tuple[str, ...]:
    """The names of the columns that will be written; what cannot be is told as Spark tells it."""
    if VALUE not in schema.names:
        raise ScanOptionError(
            "schema", schema.simpleString(), "Required attribute 'value' not found"
        )
    if topic is None and TOPIC not in schema.names:
        raise ScanOptionError(
            "topic",
            "",
            "topic option required when no 'topic' attribute is present. Use the topic option for "
            "setting a topic.",
        )
    used = []
    for field in schema.fields:
        if field.name not in _RULES or (field.name == TOPIC and topic is not None):
            continue
        is_fitting, wanted = _RULES[field.name]
        if not is_fitting(field.dataType):
            raise ScanOptionError(
                "schema",
                f"{field.name} {field.dataType.simpleString()}",
                f"{field.name} attribute type must be a {wanted}; cast the column",
            )
        if field.name in used:
            raise ScanOptionError("schema", field.name, "a column is named twice")
        used.append(field.name)
    return tuple(used)
