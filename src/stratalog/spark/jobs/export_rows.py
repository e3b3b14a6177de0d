"""Which columns an export reads, computes and partitions its target by.

Everything is an expression in Spark's SQL over the source's columns. Only the columns that some
expression speaks of are decoded; where that cannot be told, all of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratalog.spark.api import columns_of
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import known_columns, source_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What people mean by it: the day of the record's timestamp, in the session's time zone.
BY_DATE = "to_date(timestamp) AS date"

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(r"(?is).+\sAS\s+`?(?P<name>[A-Za-z_]\w*)`?\s*")


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """``expression`` is None for a column that the rows have anyway."""

    name: str
    expression: str | None = None


def parse_partition_by(given: str | Sequence[str] | None) -> tuple[PartitionColumn, ...]:
    """``date``, names of columns, and expressions with a name: ``hour(timestamp) AS hour``."""
    texts = (given,) if isinstance(given, str) else tuple(given or ())
    return tuple(_partition_column(text) for text in texts)


def _partition_column(text: str) -> PartitionColumn:
    if text == "date":
        return PartitionColumn("date", BY_DATE)
    if _NAME.fullmatch(text):
        return PartitionColumn(text)
    match = _NAMED.fullmatch(text)
    if match is None:
        raise JobOptionError(
            "partition_by", text, "give the expression a name, as in hour(timestamp) AS hour"
        )
    return PartitionColumn(match["name"], text)


@dataclass(frozen=True, slots=True)
class ExportRows:
    """What becomes of the source's rows. ``columns`` None: they stay as they are. ``where`` is
    here for the columns that it speaks of."""

    columns: tuple[str, ...] | None
    partition_by: tuple[PartitionColumn, ...]
    where: str | None = None

    def needed(self, options: SourceOptions) -> tuple[str, ...]:
        """The columns of the source that have to be decoded, in its order."""
        default = tuple(source_schema(options).names)
        takes_all = self.columns is None
        spoken: set[str] = set()
        for text in self._expressions():
            found = columns_of(text)
            # An asterisk may be a multiplication; to decode more than is needed does no harm.
            takes_all |= found is None or "*" in text
            spoken |= {name.lower() for name in (_WORD.findall(text) if found is None else found)}
        known = tuple(name for name in known_columns() if name.lower() in spoken)
        if takes_all:
            return tuple(dict.fromkeys((*default, *known)))
        return known or ("offset",)

    def _expressions(self) -> tuple[str, ...]:
        computed = [each.expression or each.name for each in self.partition_by]
        return (*(self.columns or ()), *computed, *((self.where,) if self.where else ()))

    def select(self, frame: "DataFrame", default: Sequence[str]) -> "DataFrame":
        """``default`` are the columns that a row has if nobody chose any."""
        computed = [each.expression for each in self.partition_by if each.expression is not None]
        quoted = [f"`{name}`" for name in default]
        columns: list[str] = []
        for text in ("*",) if self.columns is None else self.columns:
            # The frame may have more, for some expression that speaks of it.
            columns += quoted if text.strip() == "*" else [text]
        return self._checked(frame.selectExpr(*columns, *computed))

    def _checked(self, frame: "DataFrame") -> "DataFrame":
        for each in self.partition_by:
            if frame.columns.count(each.name) != 1:
                what = "no column" if each.name not in frame.columns else "more than one column"
                raise JobOptionError(
                    "partition_by",
                    each.expression or each.name,
                    f"the rows have {what} {each.name}; they are {', '.join(frame.columns)}",
                )
        return frame
