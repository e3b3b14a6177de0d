"""Who appends is answered first, and then those who waited for it: all of them, whatever becomes of
the answer, and with all that the append has brought."""

from typing import NoReturn

import pytest
from nodes import EVERYTHING, ORDERS, PAYMENTS, Node, batch

from stratalog.replication.parts import (
    AppendResult,
    FetchPartition,
    FetchRequest,
    FetchResult,
)
from stratalog.storage.layout import TopicPartition

BOTH = (ORDERS, PAYMENTS)


def wait_for_both(node: Node) -> list[dict[TopicPartition, FetchResult]]:
    """What a reader of both partitions is answered."""
    answers: list[dict[TopicPartition, FetchResult]] = []
    asked = {key: FetchPartition(0, EVERYTHING) for key in BOTH}
    node.replicas.fetch(FetchRequest(asked, max_wait_ms=1_000), answers.append)
    assert answers == []
    return answers


def found(answer: dict[TopicPartition, FetchResult]) -> dict[TopicPartition, bool]:
    return {key: read is not None and read.data.size_bytes > 0 for key, (read, _) in answer.items()}


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_who_appends_is_answered_before_who_waited_for_it(acks: int) -> None:
    node = Node(1)
    node.lead()
    node.lead(PAYMENTS)
    answers = wait_for_both(node)
    before: list[int] = []

    node.replicas.append_records(
        {ORDERS: batch()},
        lambda _results: before.append(len(answers)),
        required_acks=acks,
        timeout_ms=0,
    )

    assert before == [0]
    assert len(answers) == 1


def test_who_waited_finds_all_that_one_append_has_brought() -> None:
    node = Node(1)
    node.lead()
    node.lead(PAYMENTS)
    answers = wait_for_both(node)

    node.replicas.append_records(
        dict.fromkeys(BOTH, batch()), lambda _results: None, required_acks=1, timeout_ms=0
    )

    assert [found(each) for each in answers] == [dict.fromkeys(BOTH, True)]


def test_who_waited_is_answered_though_the_one_who_appended_cannot_be() -> None:
    node = Node(1)
    node.lead()
    node.lead(PAYMENTS)
    answers = wait_for_both(node)

    def fail(_results: dict[TopicPartition, AppendResult]) -> NoReturn:
        raise ValueError("a fault of ours")

    with pytest.raises(ValueError, match="a fault of ours"):
        node.replicas.append_records({PAYMENTS: batch()}, fail, required_acks=1, timeout_ms=0)

    assert [found(each) for each in answers] == [{ORDERS: False, PAYMENTS: True}]


@pytest.mark.parametrize("lagging", BOTH)
def test_acks_all_waits_for_the_one_partition_that_others_have_to_copy(
    lagging: TopicPartition,
) -> None:
    node = Node(1)
    for key in BOTH:
        node.lead(key, replicas=(1, 2) if key == lagging else (1,))
    answered: list[dict[TopicPartition, AppendResult]] = []

    node.replicas.append_records(
        dict.fromkeys(BOTH, batch()), answered.append, required_acks=-1, timeout_ms=1_000
    )

    assert answered == []
    node.fetch(1, lagging, replica_id=2)
    ((results),) = answered
    assert [result.error for result in results.values()] == [None, None]
