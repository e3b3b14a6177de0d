"""While a commit has a log stand still appends wait: in order, for as long as they may."""

import gc
from weakref import ref

import pytest
from nodes import ORDERS, PAYMENTS, Node, batch, values

from stratalog.errors import RequestTimedOutError, UnknownLogError
from stratalog.replication.parts import AppendResult
from stratalog.storage.layout import TopicPartition


def held(node: Node, key: TopicPartition = ORDERS) -> None:
    node.log(key).pause_appends("a test")


def go_on(node: Node, *keys: TopicPartition) -> None:
    for key in keys or (ORDERS,):
        node.log(key).resume_appends()
    node.replicas.committed(keys or (ORDERS,))


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_an_append_waits_until_the_log_goes_on_and_is_answered_then(acks: int) -> None:
    node = Node(1)
    node.lead()
    held(node)

    answers = node.produce(acks=acks)

    assert (answers, node.log().log_end_offset) == ([], 0)
    assert len(node.replicas.append_purgatory) == 1
    go_on(node)
    assert [each.error for each in answers] == [None]
    assert node.log().log_end_offset == 1
    assert len(node.replicas.append_purgatory) == 0


def test_appends_that_waited_are_made_in_the_order_they_came_in() -> None:
    node = Node(1)
    node.lead()
    wanted = [batch(b"v%d" % number) for number in range(20)]
    node.produce(wanted[0])
    held(node)
    answers = node.produce(*wanted[1:])
    go_on(node)
    node.produce(batch(b"later"))

    assert [each.info.first_offset for each in answers if each.info] == list(range(1, 20))
    assert values(node.log()) == [each[61:] for each in [*wanted, batch(b"later")]]


def test_an_append_whose_time_is_over_is_given_up_and_appended_nowhere() -> None:
    node = Node(1)
    node.lead()
    held(node)
    answers = node.produce(timeout_ms=500)

    node.advance(499)
    assert answers == []
    node.advance(1)

    (answer,) = answers
    assert isinstance(answer.error, RequestTimedOutError)
    go_on(node)
    assert node.log().log_end_offset == 0
    assert node.woken == [5_500], "somebody has to ring when its time is over"


def test_a_request_for_several_logs_waits_for_all_of_them_and_its_time_counts_from_the_start() -> (
    None
):
    node = Node(1, flush_on_ack=True)
    node.lead(ORDERS)
    node.lead(PAYMENTS)
    held(node, PAYMENTS)
    answers: list[dict[TopicPartition, AppendResult]] = []
    node.replicas.append_records(
        {ORDERS: batch(), PAYMENTS: batch()}, answers.append, required_acks=-1, timeout_ms=1_000
    )
    assert node.log(ORDERS).log_end_offset == 0
    node.advance(600)
    go_on(node, PAYMENTS)
    assert (node.log(ORDERS).log_end_offset, node.log(PAYMENTS).log_end_offset) == (1, 1)

    node.advance(400)

    (answer,) = answers
    assert {type(each.error) for each in answer.values()} == {RequestTimedOutError}


def test_other_logs_take_appends_meanwhile() -> None:
    node = Node(1)
    node.lead(ORDERS)
    node.lead(PAYMENTS)
    held(node, ORDERS)

    (answer,) = node.produce(key=PAYMENTS)

    assert answer.info is not None


def test_who_waits_for_a_log_that_goes_away_is_told() -> None:
    node = Node(1)
    node.lead()
    held(node)
    answers = node.produce()

    node.replicas.drop(ORDERS)

    assert [type(each.error) for each in answers] == [UnknownLogError]


def test_readers_that_wait_see_what_a_commit_has_put_there() -> None:
    node = Node(1)
    node.lead()
    fetched = node.fetch(max_wait_ms=1_000)
    log = node.log()
    log.append_as_leader(batch())
    assert fetched == []

    node.replicas.committed([ORDERS])

    assert log.high_watermark == 1
    assert len(fetched) == 1


class Kept(bytearray):
    """Records of which one can see when the last one has let go of them."""


@pytest.mark.parametrize("is_in_time", [True, False])
def test_what_was_kept_for_an_append_is_let_go_when_that_is_over(is_in_time: bool) -> None:
    """The purgatory remembers operations until their time, with all that they hold."""
    node = Node(1)
    node.lead()
    held(node)
    records = Kept(batch())
    is_there = ref(records)
    answers = node.produce(records, timeout_ms=60_000)
    del records
    gc.collect()
    assert is_there() is not None

    if is_in_time:
        go_on(node)
    else:
        node.replicas.append_purgatory.expire(node.clock.now_ms() + 60_000)

    assert len(answers) == 1
    gc.collect()
    assert is_there() is None
