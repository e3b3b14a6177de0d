"""Pushed filters, predicates and snapshots as text: what prunes never loses a row."""

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)
from topics import write_topic

from stratalog.scans.errors import ScanOptionError
from stratalog.scans.selection import Subscribe
from stratalog.scans.snapshot import take_snapshot
from stratalog.scans.where import Where
from stratalog.spark.predicates import both, read_where, where_of_filters, write_where
from stratalog.spark.snapshot_text import read_snapshot, write_snapshot
from stratalog.spark.source import StratalogDataSource

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["orders", "bills", ""]),
    "partition": st.integers(-1, 4),
    "offset": st.integers(-2, 12),
    "key": st.sampled_from([b"", b"a", b"b"]),
    # Literals have microseconds; records have milliseconds.
    "timestamp": st.integers(-3000, 9000).map(lambda us: EPOCH + timedelta(microseconds=us)),
}
# Every value that a record of these tests can have in a column.
STORED: dict[str, list[Any]] = {
    "topic": ["orders", "bills", ""],
    "partition": list(range(-1, 5)),
    "offset": list(range(-2, 13)),
    "key": [None, b"", b"a", b"b"],
    "timestamp": [EPOCH + timedelta(milliseconds=ms) for ms in range(-3, 10)],
}
ONE_ROW = {name: values[-1] for name, values in STORED.items()}


@st.composite
def single_filters(draw: st.DrawFn, column: str) -> Filter:
    value, values = COLUMNS[column], st.lists(st.none() | COLUMNS[column], max_size=3).map(tuple)
    name = (column,)
    comparisons = (
        EqualTo,
        EqualNullSafe,
        GreaterThan,
        GreaterThanOrEqual,
        LessThan,
        LessThanOrEqual,
    )
    chosen: Filter = draw(
        st.one_of(
            st.builds(lambda kind, each: kind(name, each), st.sampled_from(comparisons), value),
            values.map(lambda several: In(name, several)),
            st.sampled_from([IsNull(name), IsNotNull(name)]),
            st.just(StringStartsWith(name, "o")) if column == "topic" else st.nothing(),
        )
    )
    return draw(st.sampled_from([chosen, Not(chosen)]))


def holds(told: Filter, row: dict[str, Any]) -> bool:
    """Whether SQL keeps the row: a comparison with NULL is neither true nor false."""
    return _truth(told, row) is True


def _truth(told: Filter, row: dict[str, Any]) -> bool | None:
    if isinstance(told, Not):
        inner = _truth(told.child, row)
        return None if inner is None else not inner
    found = row[told.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(told, IsNull | IsNotNull):
        return (found is None) is isinstance(told, IsNull)
    if isinstance(told, EqualNullSafe):
        return bool(found == told.value)
    if found is None:
        return None
    if isinstance(told, In):
        return True if found in told.value else (None if None in told.value else False)
    if isinstance(told, StringStartsWith):
        return bool(found.startswith(told.value))
    return bool(_COMPARE[type(told)](found, told.value))  # type: ignore[attr-defined]


_COMPARE: dict[type, Any] = {
    EqualTo: lambda found, value: found == value,
    GreaterThan: lambda found, value: found > value,
    GreaterThanOrEqual: lambda found, value: found >= value,
    LessThan: lambda found, value: found < value,
    LessThanOrEqual: lambda found, value: found <= value,
}


def is_within(where: Where | None, row: dict[str, Any]) -> bool:
    """Whether a scan for ``where`` may return the row."""
    if where is None:
        return True
    timestamp_ms = (row["timestamp"] - EPOCH) // timedelta(milliseconds=1)
    return all(
        (
            where.topics is None or row["topic"] in where.topics,
            where.partitions is None or row["partition"] in where.partitions,
            where.min_offset is None or row["offset"] >= where.min_offset,
            where.max_offset is None or row["offset"] <= where.max_offset,
            where.min_timestamp_ms is None or timestamp_ms >= where.min_timestamp_ms,
            where.max_timestamp_ms is None or timestamp_ms <= where.max_timestamp_ms,
            where.keys is None or row["key"] in where.keys,
        )
    )


@pytest.mark.parametrize("column", sorted(COLUMNS))
@settings(max_examples=150)
@given(st.data())
def test_pushed_filters_never_prune_a_row_that_they_keep(column: str, data: st.DataObject) -> None:
    filters = data.draw(st.lists(single_filters(column), min_size=1, max_size=2))
    where = where_of_filters(filters)

    for value in STORED[column]:
        row = {**ONE_ROW, column: value}
        assert is_within(where, row) or not all(holds(each, row) for each in filters), row


def test_what_is_understood_prunes() -> None:
    filters: list[Filter] = [
        EqualTo(("topic",), "orders"),
        In(("partition",), (1, 2)),
        GreaterThan(("offset",), 5),
        LessThanOrEqual(("offset",), 9),
        GreaterThanOrEqual(("timestamp",), EPOCH + timedelta(microseconds=1500)),
        LessThan(("timestamp",), EPOCH + timedelta(microseconds=8500)),
        EqualTo(("key",), b"a"),
        IsNotNull(("offset",)),
    ]
    assert where_of_filters(filters) == Where(
        topics=frozenset(["orders"]),
        partitions=frozenset([1, 2]),
        min_offset=6,
        max_offset=9,
        min_timestamp_ms=1,
        max_timestamp_ms=9,
        keys=frozenset([b"a"]),
    )


bounds = st.none() | st.integers(-(2**63), 2**63 - 1)
wheres = st.builds(
    Where,
    topics=st.none() | st.frozensets(st.text(max_size=3)),
    partitions=st.none() | st.frozensets(st.integers(0, 9)),
    min_offset=bounds,
    max_offset=bounds,
    min_timestamp_ms=bounds,
    max_timestamp_ms=bounds,
    keys=st.none() | st.frozensets(st.binary(max_size=3)),
    is_partitioned_by_key=st.booleans(),
)


@given(wheres)
def test_a_predicate_reads_back_as_it_was_written(where: Where) -> None:
    assert read_where(write_where(where)) == where


rows = st.fixed_dictionaries({name: st.sampled_from(each) for name, each in STORED.items()})


@given(st.none() | wheres, st.none() | wheres, rows)
def test_two_predicates_together_keep_what_each_keeps(
    one: Where | None, other: Where | None, row: dict[str, Any]
) -> None:
    kept_by_each = is_within(one, row) and is_within(other, row)
    assert is_within(both(one, other), row) is kept_by_each


def test_a_snapshot_reads_back_as_it_was_written(tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 3, 4)
    taken = take_snapshot(str(tmp_path), Subscribe(("orders",)))

    again = read_snapshot(write_snapshot(taken))

    assert (again.path, again.directory_id, again.owner) == (
        taken.path,
        taken.directory_id,
        taken.owner,
    )
    assert list(again.partitions) == list(taken.partitions)
    for key, partition in taken.partitions.items():
        found = again.partitions[key]
        assert list(found.segments) == list(partition.segments)
        for name in ("directory", "start_offset", "high_watermark", "last_stable_offset"):
            assert getattr(found, name) == getattr(partition, name)
        assert (found.is_end_exact, found.end_position) == (
            partition.is_end_exact,
            partition.end_position,
        )


@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda data: data.hex()))
def test_text_that_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(ScanOptionError, match="no snapshot"):
        read_snapshot(text)


def test_what_travels_to_tasks_has_neither_the_snapshot_nor_the_plan(tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 50, 2)
    source = StratalogDataSource({"path": str(tmp_path), "subscribe": "orders"})
    # Spark pickles it once it is made, and reads it again where it plans.
    planning = pickle.loads(pickle.dumps(source))

    reader = planning.reader(schema=planning.schema())
    (partition,) = reader.partitions()

    assert len(pickle.dumps((planning, reader))) < 4000
    again = pickle.loads(pickle.dumps((reader, partition)))
    assert sum(batch.num_rows for batch in again[0].read(again[1])) == 100
