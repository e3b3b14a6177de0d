"""How much goes into a micro-batch: properties of the division, and positions as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.scans.errors import ScanOptionError
from stratalog.spark.admission import (
    Admission,
    count_new,
    limit_offsets,
    offsets_from_json,
    offsets_to_json,
    share,
)
from stratalog.storage.layout import TopicPartition

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b", "orders"]), st.integers(0, 11))
offsets = st.dictionaries(partitions, st.integers(0, 1 << 40), max_size=8)


@given(offsets, st.randoms(use_true_random=False))
def test_a_position_is_the_same_text_in_whatever_order_it_was_found(position, random):
    shuffled = list(position.items())
    random.shuffle(shuffled)

    text = json.dumps(offsets_to_json(position))

    assert json.dumps(offsets_to_json(dict(shuffled))) == text
    assert offsets_from_json(json.loads(text)) == position


def test_partitions_are_in_the_order_of_their_numbers():
    position = {TopicPartition("t", each): each for each in (10, 2, 0)}

    assert json.dumps(offsets_to_json(position)) == '{"t": {"0": 0, "2": 2, "10": 10}}'


@pytest.mark.parametrize("found", [{"orders": 3}, {"orders": {"x": 1}}, {"orders": {"0": None}}])
def test_what_is_no_position_is_refused_with_an_example(found):
    with pytest.raises(ScanOptionError, match="is no position of this source"):
        offsets_from_json(found)


sizes = st.dictionaries(partitions, st.integers(-5, 1 << 40), min_size=1, max_size=8)


@given(st.integers(1, 1 << 41), sizes)
def test_a_limit_is_shared_out_and_nobody_is_starved(limit, sizes):
    shares = share(limit, sizes)

    assert shares.keys() == sizes.keys()
    for each, size in sizes.items():
        assert (0 < shares[each] <= size) if size > 0 else shares[each] == 0
    # Rounding up gives each partition at most one more than its part.
    assert sum(shares.values()) <= limit + len(sizes)


@given(sizes)
def test_a_limit_that_is_large_enough_takes_everything(sizes):
    total = sum(max(0, size) for size in sizes.values())

    assert share(total + 1, sizes) == {each: max(0, size) for each, size in sizes.items()}


def test_shares_are_in_proportion_to_what_each_partition_has():
    a, b, c = (TopicPartition("t", each) for each in range(3))

    # As Spark's Kafka source divides: floor, but what is below one becomes one.
    assert share(10, {a: 900, b: 95, c: 5}) == {a: 9, b: 1, c: 1}


@given(st.integers(1, 1000), offsets, offsets)
def test_a_limited_batch_lies_between_its_start_and_the_end(limit, start, end):
    start = {each: start.get(each, 0) for each in end}

    limited = limit_offsets(limit, start, end)

    for each, offset in end.items():
        if offset > start[each]:
            assert start[each] < limited[each] <= offset
        else:
            assert limited[each] == offset
    assert count_new(start, limited) <= limit + len(end)


def test_a_batch_waits_for_enough_offsets_and_no_longer_than_it_may():
    admission = Admission(min_offsets=10, max_trigger_delay_ms=500)

    assert admission.should_wait(9, waited_ms=499)
    assert not admission.should_wait(10, waited_ms=0)
    assert not admission.should_wait(9, waited_ms=500)
    assert not Admission().should_wait(0, waited_ms=0)
