"""Predicates as a ``Where``: put together, sent along, and made of Spark's pushed filters.

Filters arrive as an AND of single comparisons of a column with a literal. Each one that is
understood narrows; each that is not is passed over, which only costs reading. All of them stay
with Spark, which filters every row again.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from stratalog.scans.where import Where

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def both(one: Where | None, other: Where | None) -> Where | None:
    """Rows that are in both; ``None`` is all rows."""
    if one is None or other is None:
        return one or other
    return one.intersect(other)


def write_where(where: Where) -> str:
    """As text, for an option of the source."""
    return json.dumps(
        {
            "topics": None if where.topics is None else sorted(where.topics),
            "partitions": None if where.partitions is None else sorted(where.partitions),
            "offsets": [where.min_offset, where.max_offset],
            "timestamps_ms": [where.min_timestamp_ms, where.max_timestamp_ms],
            "keys": None if where.keys is None else sorted(each.hex() for each in where.keys),
            "is_partitioned_by_key": where.is_partitioned_by_key,
        }
    )


def read_where(text: str) -> Where:
    told = json.loads(text)
    topics, partitions, keys = told["topics"], told["partitions"], told["keys"]
    return Where(
        topics=None if topics is None else frozenset(topics),
        partitions=None if partitions is None else frozenset(partitions),
        min_offset=told["offsets"][0],
        max_offset=told["offsets"][1],
        min_timestamp_ms=told["timestamps_ms"][0],
        max_timestamp_ms=told["timestamps_ms"][1],
        keys=None if keys is None else frozenset(bytes.fromhex(each) for each in keys),
        is_partitioned_by_key=told["is_partitioned_by_key"],
    )


def where_of_filters(filters: Iterable[Filter]) -> Where | None:
    """What the filters say together, or ``None`` if none of them is understood."""
    where: Where | None = None
    for each in filters:
        narrowed = _where(each)
        if narrowed is not None:
            where = both(where, narrowed)
    return where


def _where(told: Filter) -> Where | None:
    attribute: tuple[str, ...] = getattr(told, "attribute", ())
    value: Any = getattr(told, "value", None)
    if len(attribute) != 1 or value is None:
        return None
    column = attribute[0]
    if isinstance(told, EqualTo | EqualNullSafe):
        return _among(column, [value])
    if isinstance(told, In):
        return _among(column, list(value))
    if column == "offset":
        return _offset_range(told, value)
    if column == "timestamp":
        return _time_range(told, value)
    return None


def _among(column: str, values: list[object]) -> Where | None:
    # A NULL in a list matches nothing, and is left out.
    values = [each for each in values if each is not None]
    if column == "topic" and all(isinstance(each, str) for each in values):
        return Where(topics=frozenset(str(each) for each in values))
    keys = [bytes(each) for each in values if isinstance(each, bytes | bytearray)]
    if column == "key" and len(keys) == len(values):
        return Where(keys=frozenset(keys))
    numbers = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
    if column == "partition" and len(numbers) == len(values):
        return Where(partitions=frozenset(numbers))
    if not values:
        return None
    if column == "offset" and len(numbers) == len(values):
        return Where(min_offset=min(numbers), max_offset=max(numbers))
    times = [each for each in values if isinstance(each, datetime)]
    if column == "timestamp" and len(times) == len(values):
        return Where(min_timestamp_ms=_floor_ms(min(times)), max_timestamp_ms=_ceil_ms(max(times)))
    return None


def _offset_range(told: Filter, value: object) -> Where | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if isinstance(told, GreaterThan):
        return Where(min_offset=value + 1)
    if isinstance(told, GreaterThanOrEqual):
        return Where(min_offset=value)
    if isinstance(told, LessThan):
        return Where(max_offset=value - 1)
    if isinstance(told, LessThanOrEqual):
        return Where(max_offset=value)
    return None


def _time_range(told: Filter, value: object) -> Where | None:
    if not isinstance(value, datetime):
        return None
    # Open ends are taken as closed: one millisecond more is read, and Spark drops it.
    if isinstance(told, GreaterThan | GreaterThanOrEqual):
        return Where(min_timestamp_ms=_floor_ms(value))
    if isinstance(told, LessThan | LessThanOrEqual):
        return Where(max_timestamp_ms=_ceil_ms(value))
    return None


def _floor_ms(moment: datetime) -> int:
    return (_aware(moment) - _EPOCH) // timedelta(milliseconds=1)


def _ceil_ms(moment: datetime) -> int:
    return -((_EPOCH - _aware(moment)) // timedelta(milliseconds=1))


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
