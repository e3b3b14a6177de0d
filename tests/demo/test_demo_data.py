"""The demo's records: the same for the same seed, and what the demo says of them is in them."""

import json
from collections import Counter

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from stratalog.demo.data import (
    DAY_MS,
    HOUR_MS,
    LATE_MS_MAX,
    SPAN_DAYS,
    Records,
    busiest_hour,
    make_customers,
    make_orders,
)

END_MS = 1_790_000_000_000
SOME = settings(max_examples=20, deadline=None)
seeds = st.integers(0, 2**32)
counts = st.integers(1, 400)


def rows_of(records: Records) -> list[tuple[bytes, bytes | None, int, list[tuple[str, object]]]]:
    return list(records.rows(0, len(records)))


@SOME
@given(seed=seeds, count=counts)
def test_the_same_seed_makes_the_same_records_and_another_does_not(seed: int, count: int) -> None:
    def rows(number: int) -> list[object]:
        orders = make_orders(count, 50, end_ms=END_MS, seed=number)
        customers = make_customers(count + 50, 50, end_ms=END_MS, seed=number)
        return [*rows_of(orders), *rows_of(customers)]

    assert rows(seed) == rows(seed)
    assert rows(seed) != rows(seed + 1)


@SOME
@given(seed=seeds, count=counts, days=st.integers(1, SPAN_DAYS))
def test_times_lie_in_the_span_and_no_record_is_later_than_allowed(
    seed: int, count: int, days: int
) -> None:
    orders = make_orders(count, 50, end_ms=END_MS, seed=seed, days=days)
    times = orders.timestamps_ms
    assert times.min() >= END_MS - days * DAY_MS
    assert times.max() < END_MS
    # Sent in the order of their events, but for those that came late.
    assert (numpy.maximum.accumulate(times) - times).max() <= LATE_MS_MAX


def test_some_records_are_late_and_nights_are_quiet() -> None:
    times = make_orders(50_000, 500, end_ms=END_MS, seed=1).timestamps_ms
    assert 0 < numpy.count_nonzero(numpy.diff(times) < 0) < len(times) // 10
    hours = Counter((times // HOUR_MS % 24).tolist())
    assert hours[18] > 5 * hours[3]
    assert len({moment // DAY_MS for moment in times.tolist()}) >= SPAN_DAYS


@SOME
@given(seed=seeds, count=counts)
def test_orders_have_a_customer_as_key_headers_and_a_value_that_is_json(
    seed: int, count: int
) -> None:
    orders = make_orders(count, 50, end_ms=END_MS, seed=seed, first_id=1000)
    for number, (key, value, _, headers) in enumerate(rows_of(orders)):
        assert value is not None
        order = json.loads(value)
        assert order["customer"].encode() == key
        assert order["order"] == 1000 + number
        assert order["amount"] > 0
        assert [name for name, _ in headers] == ["channel", "trace-id"]


@SOME
@given(seed=seeds, customers=st.integers(1, 150), more=st.integers(0, 300))
def test_every_customer_is_there_and_a_tombstone_is_the_last_word_of_one(
    seed: int, customers: int, more: int
) -> None:
    changes = make_customers(customers + more, customers, end_ms=END_MS, seed=seed)
    rows = rows_of(changes)
    assert len({key for key, *_ in rows}) == customers
    dead: set[bytes] = set()
    for key, value, *_ in rows:
        assert key not in dead
        if value is None:
            dead.add(key)
        else:
            assert json.loads(value)["customer"].encode() == key
    last = changes.last_values()
    assert last.keys() == {key for key, *_ in rows} - dead
    assert changes.values.null_count == len(dead) == sum(n % 100 < 3 for n in range(customers))


@SOME
@given(seed=seeds, count=counts)
def test_the_busiest_hour_is_counted_as_a_reader_would(seed: int, count: int) -> None:
    orders = make_orders(count, 50, end_ms=END_MS, seed=seed)
    start_ms, end_ms = busiest_hour(orders)
    assert end_ms - start_ms == HOUR_MS
    hours = Counter(moment // HOUR_MS for _, _, moment, _ in rows_of(orders))
    assert orders.count_between(start_ms, end_ms) == max(hours.values())


def test_rows_of_a_part_are_that_part() -> None:
    orders = make_orders(100, 50, end_ms=END_MS, seed=3)
    assert list(orders.rows(20, 30)) == rows_of(orders)[20:30]
