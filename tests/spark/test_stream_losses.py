"""What a stream has lost, by comparing where it is with what is there."""

import pickle

from hypothesis import example, given, settings
from hypothesis import strategies as st

from stratalog.scans.errors import DataLostError
from stratalog.spark.losses import (
    PartitionGoneError,
    Span,
    find_losses,
    find_losses_of_batch,
)
from stratalog.storage.layout import TopicPartition

ORDERS = TopicPartition("orders", 0)


def ranges(losses):
    return [(each.topic_partition, each.start_offset, each.end_offset) for each in losses]


def test_retention_that_overtook_the_stream_is_told_as_the_exact_range():
    losses = list(find_losses({ORDERS: 5}, {ORDERS: Span(8, 20)}, {}))

    assert ranges(losses) == [(ORDERS, 5, 8)]
    assert "orders-0 has lost the offsets 5 to 7 (3 of them)" in str(losses[0])
    assert "failOnDataLoss" in str(losses[0])


def test_a_log_that_ends_before_the_position_went_back():
    assert ranges(find_losses({ORDERS: 5}, {ORDERS: Span(0, 3)}, {})) == [(ORDERS, 3, 5)]


def test_an_end_that_is_not_known_exactly_is_no_loss():
    assert not list(find_losses({ORDERS: 5}, {ORDERS: Span(0, 3, is_exact=False)}, {}))


def test_a_partition_that_is_gone_takes_with_it_what_was_last_seen():
    assert ranges(find_losses({ORDERS: 5}, {}, {ORDERS: 9})) == [(ORDERS, 5, 9)]


def test_a_partition_that_is_gone_is_told_of_also_when_all_of_it_had_been_read():
    losses = list(find_losses({ORDERS: 5}, {}, {ORDERS: 5}))

    assert [type(each) for each in losses] == [PartitionGoneError]
    assert "read up to offset 5" in str(pickle.loads(pickle.dumps(losses[0])))


def test_a_new_partition_that_does_not_begin_at_0_has_lost_its_beginning():
    assert ranges(find_losses({}, {ORDERS: Span(4, 9)}, {})) == [(ORDERS, 0, 4)]
    assert not list(find_losses({}, {ORDERS: Span(0, 9)}, {}))


def test_a_batch_that_is_written_down_says_what_of_it_is_no_longer_there():
    spans = {ORDERS: Span(4, 9)}

    assert ranges(find_losses_of_batch({ORDERS: 2}, {ORDERS: 12}, spans)) == [
        (ORDERS, 2, 4),
        (ORDERS, 9, 12),
    ]
    assert ranges(find_losses_of_batch({ORDERS: 2}, {ORDERS: 12}, {})) == [(ORDERS, 2, 12)]
    assert not list(find_losses_of_batch({ORDERS: 12}, {ORDERS: 2}, {}))


numbers = st.integers(0, 30)


@settings(max_examples=300)
@given(numbers, numbers, numbers, numbers)
@example(2, 5, 9, 12)  # all of it lies before the log's start
@example(9, 12, 2, 5)  # and all of it behind its end
def test_what_is_lost_of_a_batch_and_what_is_left_are_the_whole_batch(first, last, start, end):
    end = max(start, end)

    losses = list(find_losses_of_batch({ORDERS: first}, {ORDERS: last}, {ORDERS: Span(start, end)}))

    lost = [
        offset
        for each in losses
        if isinstance(each, DataLostError)
        for offset in range(each.start_offset, each.end_offset)
    ]
    left = [offset for offset in range(first, last) if start <= offset < end]
    assert sorted(lost + left) == list(range(first, last))
