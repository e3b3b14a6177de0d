"""What Spark says otherwise in its versions: the one place that knows of them.

Everything is made for Spark 4.3, and tested on it. Spark 4.1 is there for table formats whose
jars are published for no newer one: on it a source in Python is asked for streams without limits.
"""

from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    import pyarrow

# Since Spark 4.2 a stream is told where a batch begins and how much it may take, and what the
# trigger AvailableNow is.
HAS_READ_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None

if TYPE_CHECKING or HAS_READ_LIMITS:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:
    from dataclasses import dataclass

    class ReadLimit:
        """How much a batch may take."""

    class ReadAllAvailable(ReadLimit):
        pass

    @dataclass(frozen=True)
    class ReadMaxRows(ReadLimit):
        max_rows: int

    @dataclass(frozen=True)
    class ReadMaxBytes(ReadLimit):
        max_bytes: int

    class SupportsTriggerAvailableNow:
        pass


__all__ = [
    "HAS_READ_LIMITS",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxBytes",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
]

# Before Spark 4.2 times are in UTC, and there is nothing to say.
_IN_UTC: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def arrow_schema(schema: StructType) -> "pyarrow.Schema":
    """The Arrow schema in which Spark expects rows of ``schema``."""
    return to_arrow_schema(schema, **_IN_UTC)
