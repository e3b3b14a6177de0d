"""Conditions: whatever is read out of one holds for every row that it is true for."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.scans.errors import ScanOptionError
from stratalog.scans.slices import RowFilter
from stratalog.scans.where import Where, parse_where

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def meaning(sql: str, time_zone: str = "UTC") -> dict[str, Any]:
    """What is concluded, of a condition that is understood as a whole."""
    parsed = parse_where(sql, time_zone)
    assert not parsed.left
    return said(parsed.where)


def said(where: Where) -> dict[str, Any]:
    nothing = Where()
    return {
        name: getattr(where, name)
        for name in Where.__slots__
        if getattr(where, name) != getattr(nothing, name)
    }


def ms(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("offset >= 10 AND offset < 20", {"min_offset": 10, "max_offset": 19}),
        ("10 < offset AND 20 >= offset", {"min_offset": 11, "max_offset": 20}),
        ("OFFSET BETWEEN -5 AND 7L", {"min_offset": -5, "max_offset": 7}),
        ("`offset` = 3", {"min_offset": 3, "max_offset": 3}),
        ("offset == 3 AND TRUE", {"min_offset": 3, "max_offset": 3}),
        ("NOT (offset < 5 OR 7 <= offset)", {"min_offset": 5, "max_offset": 6}),
        ("NOT NOT offset > 1", {"min_offset": 2}),
        ("partition IN (1, 2)", {"partitions": frozenset((1, 2))}),
        ("partition = 1 OR (partition = 2)", {"partitions": frozenset((1, 2))}),
        ("partition BETWEEN 2 AND 4", {"partitions": frozenset((2, 3, 4))}),
        ("partition < 2", {"partitions": frozenset((0, 1))}),
        ("partition <= 2 AND partition = 9", {"partitions": frozenset()}),
        ("topic IN ('a', \"b\")", {"topics": frozenset(("a", "b"))}),
        ("key = X'6162'", {"keys": frozenset((b"ab",))}),
        ("CAST(key AS STRING) IN ('é', '')", {"keys": frozenset(("é".encode(), b""))}),
        ("key <=> 'a' OR key = 'b'", {"keys": frozenset((b"a", b"b"))}),
        ("false", {"partitions": frozenset()}),
        ("offset > 99999999999999999999", {"min_offset": 10**20}),
    ],
)
def test_a_condition_is_read_exactly(sql: str, expected: dict[str, Any]) -> None:
    assert meaning(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        # other columns, functions, types that Spark would cast
        *("value IS NULL", "length(key) > 3", "offset > 1.5", "offset > 1e3", "offset > '10'"),
        *(
            "offset + 1 = 5",
            "partition % 2 = 0",
            "topic LIKE 'a%'",
            "topic > 'a'",
            "timestampType = 0",
        ),
        *("timestamp > now()", "date(timestamp) = DATE '2024-01-01'", "headers[0].key = 'a'"),
        *("CAST(offset AS STRING) = '1'", "offset > 70000S", "key = x'ABC'", "key = 'a' 'b'"),
        *("topic = 'A' COLLATE UTF8_LCASE", "string(topic) = 'a'", "timestamp = 5"),
        # other tables, queries, parameters
        *("t.offset = 1", "offset IN (SELECT 1)", "offset > :a", "offset = 5 = true"),
        # what a key is not says nothing: it may be NULL
        *("NOT key = 'a'", "key <> 'a'", "key IS NULL", "NOT (key = 'a' AND offset = 1)"),
        *("offset <> 1", "offset NOT BETWEEN 1 AND 2", "partition NOT IN (1)", "partition > 1"),
        *("partition IN (1, NULL)", "offset = NULL", "offset IN ()"),
        # escapes, which are read by a setting; more than one condition; none that is SQL
        *(r"topic = 'a\x'", "offset = 1; offset = 2", "offset >", "SELECT 1", "((("),
        # times that only Spark knows how to read
        *("timestamp > '2024'", "timestamp > '2024-1-1'", "timestamp > 'epoch'"),
        *("timestamp > '2024-01-01 10:00'", "timestamp > '2024-01-01 10:00:00 CET'"),
        *("timestamp > '2024-02-30'", "timestamp > '2024-01-01 00:00:00+19:00'"),
        *("timestamp > TIMESTAMP_NTZ '2024-01-01 00:00:00Z'",),
        *("timestamp > DATE '2024-01-01 00:00:00'",),
        "topic = '${spark.app.name}'",  # Spark puts in what it stands for
        "offset > -CAST(-2147483648 AS INT)",
    ],
)
def test_what_is_not_certain_is_left_to_others(sql: str) -> None:
    parsed = parse_where(sql)
    assert parsed.where == Where()
    assert not parsed.understood
    assert len(parsed.left) == 1


def test_conjuncts_are_sorted_into_those_understood_and_those_left() -> None:
    parsed = parse_where("offset > 5 AND (value IS NULL AND partition = 1)")
    assert said(parsed.where) == {"min_offset": 6, "partitions": frozenset((1,))}
    assert parsed.understood == ("offset > 5", "partition = 1")
    assert parsed.left == ("value IS NULL",)


def test_an_alternative_prunes_by_what_its_sides_have_in_common_and_is_left_too() -> None:
    parsed = parse_where("(offset < 5 AND partition = 1) OR offset BETWEEN 8 AND 9")
    assert said(parsed.where) == {"max_offset": 9}
    assert len(parsed.left) == 1
    assert said(parse_where("offset IN (1, 5)").where) == {"min_offset": 1, "max_offset": 5}
    assert parse_where("offset IN (1, 5)").left


def test_a_deep_condition_is_left_rather_than_fail() -> None:
    deep = "(" * 3_000 + "offset = 1" + ")" * 3_000
    assert parse_where(deep).where in (Where(), Where(min_offset=1, max_offset=1))


@pytest.mark.parametrize("sql", ["", "  "])
def test_no_condition_is_refused(sql: str) -> None:
    with pytest.raises(ScanOptionError, match="there is no condition"):
        parse_where(sql)


# --- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "zone", "moment"),
    [
        ("timestamp >= '2024-01-01'", "UTC", "2024-01-01T00:00:00+00:00"),
        ("timestamp >= DATE '2024-01-01'", "Europe/Berlin", "2024-01-01T00:00:00+01:00"),
        ("timestamp >= '2024-07-01T00:00:00'", "Europe/Berlin", "2024-07-01T00:00:00+02:00"),
        (
            "timestamp >= TIMESTAMP '2024-07-01 00:00:00Z'",
            "Asia/Tokyo",
            "2024-07-01T00:00:00+00:00",
        ),
        ("timestamp >= '2024-07-01 00:00:00-03:30'", "UTC", "2024-07-01T00:00:00-03:30"),
        ("timestamp >= CAST('2024-07-01' AS TIMESTAMP)", "-05:00", "2024-07-01T00:00:00-05:00"),
        ("timestamp >= TIMESTAMP_LTZ '2024-07-01 01:02:03.004'", "UTC", "2024-07-01T01:02:03.004Z"),
        # an hour that is left out, and one that is there twice: java.time's choices
        ("timestamp >= '2024-03-31 02:30:00'", "Europe/Berlin", "2024-03-31T01:30:00+00:00"),
        ("timestamp >= '2024-10-27 02:30:00'", "Europe/Berlin", "2024-10-27T00:30:00+00:00"),
        ("timestamp >= '1969-12-31 23:59:59.999'", "UTC", "1969-12-31T23:59:59.999+00:00"),
    ],
)
def test_times_are_of_the_zone_that_is_given(sql: str, zone: str, moment: str) -> None:
    assert meaning(sql, zone) == {"min_timestamp_ms": ms(moment)}


@pytest.mark.parametrize("zone", ["PST", "Mars/Olympus", "+25:00", "GMT+3", "../../etc/passwd"])
def test_local_times_of_an_uncertain_zone_are_left(zone: str) -> None:
    assert parse_where("timestamp > '2024-01-01'", zone).left
    assert not parse_where("timestamp > '2024-01-01 00:00:00Z'", zone).left


COMPARISONS = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "=": lambda a, b: a == b,
}


@given(
    micros=st.integers(-3_000, 3_000),
    rows=st.lists(st.integers(-4, 4), max_size=5),
    comparison=st.sampled_from(sorted(COMPARISONS)),
    is_denied=st.booleans(),
    is_exchanged=st.booleans(),
)
def test_comparing_milliseconds_with_microseconds_is_exact(
    micros: int, rows: list[int], comparison: str, is_denied: bool, is_exchanged: bool
) -> None:
    text = (EPOCH + timedelta(microseconds=micros)).strftime("'%Y-%m-%d %H:%M:%S.%f'")
    sides = (text, "timestamp") if is_exchanged else ("timestamp", text)
    parsed = parse_where(f"{'NOT ' if is_denied else ''}{sides[0]} {comparison} {sides[1]}")
    if is_denied and comparison == "=":
        assert parsed.left
        return
    assert not parsed.left
    compare = COMPARISONS[comparison]
    for row_ms in rows:
        values = (micros, row_ms * 1000) if is_exchanged else (row_ms * 1000, micros)
        assert is_met(parsed.where, timestamp_ms=row_ms) == (compare(*values) != is_denied)


def is_met(where: Where, *, timestamp_ms: int = 0, offset: int = 0, partition: int = 0) -> bool:
    low_ms, high_ms = where.min_timestamp_ms, where.max_timestamp_ms
    return (
        (low_ms is None or low_ms <= timestamp_ms)
        and (high_ms is None or timestamp_ms <= high_ms)
        and (where.min_offset is None or where.min_offset <= offset)
        and (where.max_offset is None or offset <= where.max_offset)
        and (where.partitions is None or partition in where.partitions)
    )


@given(st.integers(ms("1950-01-01T00:00:00Z") // 1000, ms("2035-01-01T00:00:00Z") // 1000))
def test_a_moment_is_found_by_its_local_time_and_the_first_where_that_is_there_twice(
    seconds: int,
) -> None:
    local = (EPOCH + timedelta(seconds=seconds)).astimezone(ZoneInfo("America/New_York"))
    found = meaning(f"timestamp = '{local:%Y-%m-%d %H:%M:%S}'", "America/New_York")
    expected = seconds - 3_600 * local.fold  # of the hour that is there twice, the first
    assert found == {
        "min_timestamp_ms": expected * 1_000,
        "max_timestamp_ms": expected * 1_000,
    }


# --- any condition --------------------------------------------------------------------------------

INTEGERS = st.integers(-1, 4)
TERMS = st.builds(
    lambda column, comparison, value: (
        f"{column} {comparison} {value}",
        lambda row: COMPARISONS[comparison](row[column], value),
    ),
    st.sampled_from(("offset", "partition")),
    st.sampled_from(sorted(COMPARISONS)),
    INTEGERS,
)
CONDITIONS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        st.builds(lambda a: (f"NOT ({a[0]})", lambda row: not a[1](row)), inner),
        st.builds(
            lambda a, b: (f"({a[0]}) AND ({b[0]})", lambda row: a[1](row) and b[1](row)),
            inner,
            inner,
        ),
        st.builds(
            lambda a, b: (f"({a[0]}) OR ({b[0]})", lambda row: a[1](row) or b[1](row)),
            inner,
            inner,
        ),
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_no_row_is_pruned_that_the_condition_keeps(condition: tuple[str, Any]) -> None:
    sql, is_true = condition
    parsed = parse_where(sql)
    for offset in range(-2, 6):
        for partition in range(6):
            is_kept = is_met(parsed.where, offset=offset, partition=partition)
            wanted = is_true({"offset": offset, "partition": partition})
            assert is_kept or not wanted
            # Of what is understood as a whole, nothing else is kept either.
            assert parsed.left or is_kept == (wanted and not parsed.where.is_empty)


# --- values ---------------------------------------------------------------------------------------


def test_what_two_ask_for_is_what_both_do() -> None:
    one = Where(topics=frozenset("ab"), min_offset=1, max_offset=9, keys=frozenset((b"x",)))
    other = Where(topics=frozenset("bc"), min_offset=3, is_partitioned_by_key=True)
    both = one.intersect(other)
    assert both == other.intersect(one)
    assert said(both) == {
        "topics": frozenset("b"),
        "min_offset": 3,
        "max_offset": 9,
        "keys": frozenset((b"x",)),
        "is_partitioned_by_key": True,
    }
    assert not both.is_empty
    assert both.intersect(Where(max_offset=2)).is_empty


def test_only_times_and_keys_are_left_for_rows() -> None:
    assert Where(min_offset=3, partitions=frozenset((1,))).row_filter() is None
    assert Where(max_timestamp_ms=3).row_filter() == RowFilter(max_timestamp_ms=3)
