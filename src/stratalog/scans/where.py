"""What a scan is to return, as far as partitions, offsets, times and keys can tell; and a condition
in Spark's SQL, read for that.

**Sound before clever.** Whatever is taken from a condition must hold for every row that it is true
for, with Spark's rules for types, NULLs and time zones; what is not certainly understood is left
to whoever filters rows. Offsets, partitions, topics and timestamps are never NULL; keys may be,
so nothing is concluded from what a key is not. Timestamps are whole milliseconds, which makes
every comparison with a finer one exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from stratalog.scans.errors import ScanOptionError
from stratalog.scans.slices import RowFilter

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTITIONS_MAX = 100_000
_EARLIEST_MS, _LATEST_MS = -(2**63), 2**63 - 1  # that a record can have
_INTEGERS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
_TIMES = frozenset(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"))
# Only the full forms, of which there is no doubt how Spark reads them.
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)
# What a comparison becomes when its sides are exchanged, or when it is denied.
_EXCHANGED = {"EQ": "EQ", "GT": "LT", "GTE": "LTE", "LT": "GT", "LTE": "GTE"}
_DENIED = {"GT": "LTE", "GTE": "LT", "LT": "GTE", "LTE": "GT"}


@dataclass(frozen=True, slots=True)
class Where:
    """All must hold; ``None`` is no bound. Ends of ranges are inclusive.

    ``is_partitioned_by_key``: the reader vouches that producers left it to Kafka's default
    partitioner where a key goes, so that keys choose partitions too.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    min_offset: int | None = None
    max_offset: int | None = None
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None
    keys: frozenset[bytes] | None = None
    is_partitioned_by_key: bool = False

    def intersect(self, other: Where) -> Where:
        """What both ask for."""
        return Where(
            _common(self.topics, other.topics),
            _common(self.partitions, other.partitions),
            _larger(self.min_offset, other.min_offset),
            _smaller(self.max_offset, other.max_offset),
            _larger(self.min_timestamp_ms, other.min_timestamp_ms),
            _smaller(self.max_timestamp_ms, other.max_timestamp_ms),
            _common(self.keys, other.keys),
            self.is_partitioned_by_key or other.is_partitioned_by_key,
        )

    def union(self, other: Where) -> Where:
        """The least that holds where one of the two does, or more: a range has no holes."""
        return Where(
            _joint(self.topics, other.topics),
            _joint(self.partitions, other.partitions),
            _min(self.min_offset, other.min_offset),
            _max(self.max_offset, other.max_offset),
            _min(self.min_timestamp_ms, other.min_timestamp_ms),
            _max(self.max_timestamp_ms, other.max_timestamp_ms),
            _joint(self.keys, other.keys),
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing can be it."""
        sets = (self.topics, self.partitions, self.keys)
        return (
            any(each is not None and not each for each in sets)
            or _is_reversed(self.min_offset, self.max_offset)
            or _is_reversed(self.min_timestamp_ms, self.max_timestamp_ms)
            or _is_reversed(self.min_timestamp_ms, _LATEST_MS)
            or _is_reversed(_EARLIEST_MS, self.max_timestamp_ms)
        )

    @property
    def has_time(self) -> bool:
        return self.min_timestamp_ms is not None or self.max_timestamp_ms is not None

    def row_filter(self) -> RowFilter | None:
        """What of it a reader has to check row by row; offsets are the slices' own."""
        found = RowFilter(self.min_timestamp_ms, self.max_timestamp_ms, self.keys)
        return None if found == RowFilter() else found


def _common(one: frozenset[T] | None, other: frozenset[T] | None) -> frozenset[T] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _joint(one: frozenset[T] | None, other: frozenset[T] | None) -> frozenset[T] | None:
    return None if one is None or other is None else one | other


def _larger(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _smaller(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _min(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def _max(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _is_reversed(low: int | None, high: int | None) -> bool:
    return low is not None and high is not None and low > high


_NOTHING = Where(partitions=frozenset())

# --- conditions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedWhere:
    """``where`` holds for every row that the condition is true for.

    The conjuncts in ``understood`` are exactly what ``where`` says of them; those in ``left`` are
    not, or say more, and somebody has to check them row by row.
    """

    where: Where
    understood: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def parse_where(sql: str, time_zone: str = "UTC") -> ParsedWhere:
    """What the condition ``sql`` says; ``time_zone`` is the one that local times are meant in."""
    if not sql.strip():
        raise ScanOptionError("where", sql, "there is no condition in it")
    root = _parse(sql)
    if root is None:
        return ParsedWhere(Where(), left=(sql,))
    reader = _Reader(time_zone)
    found = Where()
    understood: list[str] = []
    left: list[str] = []
    try:
        for conjunct in _conjuncts(root):
            meaning = reader.read(conjunct)
            if meaning is not None:
                found = found.intersect(meaning.where)
            is_exact = meaning is not None and meaning.is_exact
            (understood if is_exact else left).append(conjunct.sql(dialect="spark"))
    except RecursionError:
        return ParsedWhere(Where(), left=(sql,))
    return ParsedWhere(found, tuple(understood), tuple(left))


def _parse(sql: str) -> Any:
    """None for what is no single condition, or not for certain the one that Spark would see."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    if "\\" in sql or "${" in sql:
        return None  # how escapes are read is a setting of the session, and so are variables
    try:
        statements = sqlglot.parse(sql, dialect="spark")
    except (SqlglotError, RecursionError):
        return None
    return statements[0] if len(statements) == 1 else None


def _conjuncts(node: Any) -> list[Any]:
    from sqlglot import expressions as exp

    found: list[Any] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Paren):
            waiting.append(each.this)
        elif isinstance(each, exp.And):
            waiting += [each.expression, each.this]
        else:
            found.append(each)
    return found


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What is known to hold; ``is_exact`` if that is all that the condition says."""

    where: Where
    is_exact: bool = True


class _Reader:
    """Reads one condition. None means that nothing is known."""

    def __init__(self, time_zone: str) -> None:
        from sqlglot import expressions

        self._exp: Any = expressions
        self._zone = _zone(time_zone)

    def read(self, node: Any, *, denied: bool = False) -> _Meaning | None:
        exp = self._exp
        if isinstance(node, exp.Paren):
            return self.read(node.this, denied=denied)
        if isinstance(node, exp.Not):
            return self.read(node.this, denied=not denied)
        if isinstance(node, exp.Boolean):
            return _Meaning(Where() if bool(node.this) != denied else _NOTHING)
        if isinstance(node, (exp.And, exp.Or)):
            sides = [self.read(each, denied=denied) for each in (node.this, node.expression)]
            is_both = isinstance(node, exp.And) != denied
            return _both(*sides) if is_both else _either(*sides)
        if isinstance(node, exp.Between) and not denied:
            return self._between(node)
        if isinstance(node, exp.In) and not denied:
            return self._in(node)
        return self._comparison(node, denied=denied)

    def _comparison(self, node: Any, *, denied: bool) -> _Meaning | None:
        name = type(node).__name__
        if name == "NullSafeEQ" and not denied:
            name = "EQ"  # nothing that it is compared with here is NULL
        kind = _DENIED.get(name) if denied else name
        if kind is None or kind not in _EXCHANGED:
            return None
        column, literal = self._column(node.this), node.expression
        if column is None:
            column, literal = self._column(node.expression), node.this
            kind = _EXCHANGED[kind]
        return None if column is None else self._compare(column, kind, literal)

    def _compare(self, column: str, kind: str, literal: Any) -> _Meaning | None:
        readers: dict[str, Callable[[str, Any], Where | None]] = {
            "offset": self._offset,
            "timestamp": self._timestamp,
            "partition": self._partition,
            "topic": self._topic,
            "key": self._key,
        }
        reader = readers.get(column)
        found = None if reader is None else reader(kind, literal)
        return None if found is None else _Meaning(found)

    def _between(self, node: Any) -> _Meaning | None:
        column, low, high = self._column(node.this), node.args["low"], node.args["high"]
        if column is None or node.args.get("symmetric"):
            return None
        if column == "partition":
            first, last = self._integer(low), self._integer(high)
            if first is None or last is None or last > _PARTITIONS_MAX:
                return None
            return _Meaning(Where(partitions=frozenset(range(max(first, 0), last + 1))))
        return _both(self._compare(column, "GTE", low), self._compare(column, "LTE", high))

    def _in(self, node: Any) -> _Meaning | None:
        column, choices = self._column(node.this), node.expressions
        is_plain = not any(node.args.get(name) for name in ("query", "unnest", "field"))
        if column is None or not choices or not is_plain:
            return None
        found = self._compare(column, "EQ", choices[0])
        for each in choices[1:]:
            found = _either(found, self._compare(column, "EQ", each))
        return found

    # --- columns ------------------------------------------------------------------------------

    def _column(self, node: Any) -> str | None:
        """The name of a column of the scan; a key may be cast to a string, which keeps bytes."""
        exp = self._exp
        if isinstance(node, (exp.Cast, exp.TryCast)) and node.to.this.name == "TEXT":
            inner = self._column(node.this)
            return inner if inner == "key" else None
        while isinstance(node, exp.Paren):
            node = node.this
        if not isinstance(node, exp.Column) or len(node.parts) != 1:
            return None
        return str(node.name).lower()

    def _offset(self, kind: str, literal: Any) -> Where | None:
        value = self._integer(literal)
        if value is None:
            return None
        if kind == "EQ":
            return Where(min_offset=value, max_offset=value)
        if kind in ("GT", "GTE"):
            return Where(min_offset=value + (kind == "GT"))
        return Where(max_offset=value - (kind == "LT"))

    def _partition(self, kind: str, literal: Any) -> Where | None:
        value = self._integer(literal)
        if value is None:
            return None
        if kind == "EQ":
            return Where(partitions=frozenset((value,)))
        if kind in ("GT", "GTE") or value > _PARTITIONS_MAX:
            return None
        return Where(partitions=frozenset(range(value + (kind == "LTE"))))

    def _topic(self, kind: str, literal: Any) -> Where | None:
        text = self._text(literal)
        if text is None or kind != "EQ":
            return None
        return Where(topics=frozenset((text,)))

    def _key(self, kind: str, literal: Any) -> Where | None:
        if kind != "EQ":
            return None
        text = self._text(literal)
        if text is not None:
            return Where(keys=frozenset((text.encode(),)))
        if isinstance(literal, self._exp.HexString) and len(str(literal.this)) % 2 == 0:
            try:
                return Where(keys=frozenset((bytes.fromhex(str(literal.this)),)))
            except ValueError:
                return None
        return None

    def _timestamp(self, kind: str, literal: Any) -> Where | None:
        micros = self._micros(literal)
        if micros is None:
            return None
        floor, ceiling = micros // 1000, -(-micros // 1000)
        if kind == "EQ":
            return Where(min_timestamp_ms=ceiling, max_timestamp_ms=floor)
        if kind == "GT":
            return Where(min_timestamp_ms=floor + 1)
        if kind == "GTE":
            return Where(min_timestamp_ms=ceiling)
        if kind == "LT":
            return Where(max_timestamp_ms=ceiling - 1)
        return Where(max_timestamp_ms=floor)

    # --- literals -----------------------------------------------------------------------------

    def _text(self, node: Any) -> str | None:
        is_text = isinstance(node, self._exp.Literal) and node.is_string
        return str(node.this) if is_text else None

    def _integer(self, node: Any) -> int | None:
        exp = self._exp
        if isinstance(node, exp.Paren):
            return self._integer(node.this)
        if isinstance(node, exp.Neg):
            value = self._integer(node.this)
            # The negative of a smallest value may be one too many for its type.
            return None if value is None or value < 0 else -value
        if isinstance(node, (exp.Cast, exp.TryCast)):
            bits, value = _INTEGERS.get(node.to.this.name), self._integer(node.this)
            if bits is None or value is None or not -(2**bits) <= value < 2**bits:
                return None
            return value
        if not isinstance(node, exp.Literal) or node.is_string:
            return None
        text = str(node.this)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 40 else None

    def _micros(self, node: Any) -> int | None:
        """Microseconds since the epoch, of a timestamp, a date, or a text that is cast to one."""
        exp = self._exp
        if isinstance(node, (exp.Cast, exp.TryCast)):
            kind, text = node.to.this.name, self._text(node.this)
            if text is None or kind not in (*_TIMES, "DATE"):
                return None
            if kind == "DATE" and len(text) != len("2024-01-31"):
                return None
            # One without a time zone is compared as if it were local; with one, it is not clear.
            if kind == "TIMESTAMPNTZ" and (text.endswith("Z") or _OFFSET.search(text)):
                return None
            return _micros_of(text, self._zone)
        text = self._text(node)
        return None if text is None else _micros_of(text, self._zone)


def _both(one: _Meaning | None, other: _Meaning | None) -> _Meaning | None:
    if one is None or other is None:
        known = other if one is None else one
        return None if known is None else _Meaning(known.where, is_exact=False)
    return _Meaning(one.where.intersect(other.where), one.is_exact and other.is_exact)


def _either(one: _Meaning | None, other: _Meaning | None) -> _Meaning | None:
    if one is None or other is None:
        return None
    if one.where.is_empty or other.where.is_empty:
        known = other if one.where.is_empty else one
        return _Meaning(known.where, one.is_exact and other.is_exact)
    # Sets of one and the same column add up; ranges would close the gap between them.
    choices = _only_choice(one.where), _only_choice(other.where)
    is_exact = one.is_exact and other.is_exact and choices[0] == choices[1] is not None
    return _Meaning(one.where.union(other.where), is_exact)


def _only_choice(where: Where) -> str | None:
    """The field, if ``where`` says nothing but which of some values it is."""
    for name in ("topics", "partitions", "keys"):
        values = getattr(where, name)
        if values is not None:
            return name if where == Where(**{name: values}) else None
    return None


def _zone(name: str) -> tzinfo | None:
    """None for a name that is not certainly the zone that Spark means by it."""
    if name in ("Z", "UTC", "GMT", "Etc/UTC"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        return _fixed(offset)
    try:
        return ZoneInfo(name) if "/" in name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _fixed(found: re.Match[str]) -> tzinfo | None:
    minutes = int(found[2]) * 60 + int(found[3])
    if minutes > 18 * 60 or int(found[3]) > 59:
        return None
    return timezone(timedelta(minutes=minutes if found[1] == "+" else -minutes))


def _micros_of(text: str, local: tzinfo | None) -> int | None:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    date, time, fraction, zone_text = found.groups()
    zone = local
    if zone_text is not None:
        offset = _OFFSET.fullmatch(zone_text)
        zone = UTC if offset is None else _fixed(offset)
    if zone is None:
        return None
    try:
        # In a gap or an overlap of local time, fold=0 is what java.time chooses too.
        moment = datetime.fromisoformat(f"{date} {time or '00:00:00'}").replace(tzinfo=zone)
        micros = (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return micros + int((fraction or "").ljust(6, "0"))
