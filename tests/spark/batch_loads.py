"""Loads of format("stratalog"), and their rows as plain values."""

from pathlib import Path
from typing import Any

Place = tuple[str, int, int]


def load(spark: Any, path: Path, schema: str | None = None, **options: str) -> Any:
    """The topic ``orders``, unless ``options`` choose otherwise."""
    chosen = dict(options)
    if not chosen.keys() & {"subscribe", "subscribePattern", "assign"}:
        chosen["subscribe"] = "orders"
    reader = spark.read.format("stratalog").options(**chosen)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(str(path))


def places(frame: Any) -> list[Place]:
    """Topic, partition and offset of every row, in order."""
    rows = frame.select("topic", "partition", "offset").collect()
    return sorted((row[0], row[1], row[2]) for row in rows)


def all_places(topic: str, partitions: int, records_each: int) -> list[Place]:
    return [
        (topic, partition, offset)
        for partition in range(partitions)
        for offset in range(records_each)
    ]
