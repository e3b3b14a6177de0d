"""Appends, fetches and deletions: answered at once, when what they wait for comes true, or when
their time is over."""

import errno

import pytest
from nodes import EVERYTHING, ORDERS, PAYMENTS, Node, batch

from stratalog.errors import (
    DiskError,
    DiskFullError,
    FencedLeaderEpochError,
    InvalidRequiredAcksError,
    InvalidTopicError,
    LogClosedError,
    NotLeaderError,
    OffsetOutOfRangeError,
    OutOfMemoryError,
    RequestTimedOutError,
    StratalogError,
    UnknownLogError,
)
from stratalog.records import AppendOrigin
from stratalog.replication.delayed import DISK_WAIT_MS
from stratalog.replication.parts import (
    AppendResult,
    FetchPartition,
    FetchRequest,
    FetchResult,
)
from stratalog.storage.layout import TopicPartition
from stratalog.storage.reading import Isolation

OFFSETS = TopicPartition("__consumer_offsets", 0)


def sizes(answers: list[FetchResult]) -> list[int]:
    return [answer.read.data.size_bytes for answer in answers if answer.read is not None]


def waiting(node: Node) -> tuple[int, int, int]:
    manager = node.replicas
    return (
        len(manager.produce_purgatory),
        len(manager.fetch_purgatory),
        len(manager.delete_purgatory),
    )


# --- appending --------------------------------------------------------------------------------


@pytest.mark.parametrize(("acks", "flush_on_ack"), [(0, True), (0, False), (1, False)])
def test_who_waits_for_no_disk_is_answered_when_the_leader_has_it(
    acks: int, flush_on_ack: bool
) -> None:
    node = Node(1, flush_on_ack=flush_on_ack)
    node.lead(replicas=(1, 2))

    (answer,) = node.produce(acks=acks)

    assert answer.info is not None
    assert (answer.info.first_offset, answer.error) == (0, None)
    assert node.log().high_watermark == 0
    assert node.appended == [node.log()], "there is something to flush"


def test_what_acks_one_was_answered_can_be_seen() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    seen: list[int] = []

    node.replicas.append_records(
        {ORDERS: batch()},
        lambda _results: seen.append(node.log().high_watermark),
        required_acks=1,
        timeout_ms=0,
    )
    assert seen == []
    node.flush()

    assert seen == [1]


def test_acks_one_waits_for_the_disk_of_the_leader_and_for_no_follower() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead(replicas=(1, 2))
    answers = node.produce(acks=1)
    assert answers == []

    node.flush()

    assert [answer.error for answer in answers] == [None]
    assert node.log().high_watermark == 0, "the follower has fetched nothing"


@pytest.mark.parametrize("acks", [1, -1])
def test_the_timeout_of_a_client_is_not_that_of_the_leaders_own_disk(acks: int) -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    answers = node.produce(acks=acks, timeout_ms=0)
    node.advance(DISK_WAIT_MS - 1)
    assert answers == []

    node.advance(1)

    assert [type(answer.error) for answer in answers] == [RequestTimedOutError]


def test_the_coordinator_waits_for_its_records_as_long_as_it_says() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead(OFFSETS)
    coordinator = AppendOrigin.COORDINATOR
    answers = node.produce(
        key=OFFSETS, timeout_ms=100, origin=coordinator, allow_internal_topics=True
    )

    node.advance(100)

    assert [type(answer.error) for answer in answers] == [RequestTimedOutError]


def test_acks_one_is_refused_when_the_disk_fails_that_it_waits_for() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    answers = node.produce(acks=1)

    node.log().fail(DiskError("fsync", "/data", 5, "no"))
    node.replicas.failed([ORDERS])

    assert [type(answer.error) for answer in answers] == [DiskError]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_disk_that_fails_fails_all_who_wait_though_their_log_was_flushed(acks: int) -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    answers = node.produce(acks=acks)

    node.log().flush()
    node.logs.directories[0].fail("another log of it has failed")
    node.replicas.failed([ORDERS])

    assert [type(answer.error) for answer in answers] == [LogClosedError]
    assert node.log().high_watermark == 0, "nothing is seen that was not acknowledged"


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused_and_nothing_is_appended(acks: int) -> None:
    node = Node(1)
    node.lead()

    (answer,) = node.produce(acks=acks)

    assert isinstance(answer.error, InvalidRequiredAcksError)
    assert node.log().log_end_offset == 0


def test_internal_topics_are_written_by_the_broker_alone() -> None:
    node = Node(1)
    node.lead(OFFSETS)

    (refused,) = node.produce(key=OFFSETS)
    (taken,) = node.produce(
        key=OFFSETS, origin=AppendOrigin.COORDINATOR, allow_internal_topics=True
    )

    assert isinstance(refused.error, InvalidTopicError)
    assert taken.error is None
    assert node.log(OFFSETS).log_end_offset == 1
    assert isinstance(node.delete(0, OFFSETS)[0], InvalidTopicError)


def test_each_partition_has_an_answer_of_its_own() -> None:
    node = Node(1)
    node.lead()
    node.hold(PAYMENTS)
    node.follow(PAYMENTS, leader_id=2)
    unknown = TopicPartition("orders", 7)
    answered: list[dict[TopicPartition, AppendResult]] = []

    node.replicas.append_records(
        {PAYMENTS: batch(), unknown: batch(), ORDERS: batch(), OFFSETS: batch()},
        answered.append,
        required_acks=-1,
        timeout_ms=0,
    )

    ((results),) = answered
    kinds = {key: type(result.error) for key, result in results.items()}
    assert kinds == {
        PAYMENTS: NotLeaderError,
        unknown: UnknownLogError,
        ORDERS: type(None),
        OFFSETS: InvalidTopicError,
    }


def test_acks_all_waits_for_each_partition_and_is_answered_once() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    node.lead(PAYMENTS, replicas=(1, 2))
    answered: list[dict[TopicPartition, AppendResult]] = []
    node.replicas.append_records(
        {ORDERS: batch(), PAYMENTS: batch()},
        answered.append,
        required_acks=-1,
        timeout_ms=1_000,
    )

    node.flush(ORDERS)
    node.flush(PAYMENTS)
    assert answered == []
    node.fetch(1, PAYMENTS, replica_id=2)

    ((results),) = answered
    assert [result.error for result in results.values()] == [None, None]
    node.advance(10_000)
    assert len(answered) == 1


def test_acks_all_is_answered_at_once_where_nobody_has_to_be_waited_for() -> None:
    node = Node(1)
    node.lead()

    assert [answer.error for answer in node.produce()] == [None]
    assert node.woken == []


def test_acks_all_that_takes_too_long_times_out_and_says_where_it_was_appended() -> None:
    node = Node(1)
    node.lead(replicas=(1, 2))
    answers = node.produce(timeout_ms=300)
    assert node.woken == [node.clock.now_ms() + 300] == [node.replicas.next_deadline_ms()]

    node.advance(299)
    assert answers == []
    node.advance(1)

    (answer,) = answers
    assert isinstance(answer.error, RequestTimedOutError)
    assert answer.info is not None
    assert answer.info.first_offset == 0
    assert waiting(node) == (0, 0, 0)
    assert node.replicas.next_deadline_ms() is None


def test_who_waits_for_a_partition_that_goes_is_told() -> None:
    node = Node(1)
    node.lead(replicas=(1, 2))
    produced = node.produce()
    fetched = node.fetch(0, max_wait_ms=1_000)
    deleted = node.delete(0)

    node.replicas.drop(ORDERS)

    assert isinstance(produced[0].error, NotLeaderError)
    assert isinstance(fetched[0].error, UnknownLogError)
    assert isinstance(deleted[0], NotLeaderError)
    assert waiting(node) == (0, 0, 0)


def test_who_waits_for_a_leader_that_follows_now_is_told() -> None:
    node = Node(1)
    node.lead(replicas=(1, 2))
    produced = node.produce()
    fetched = node.fetch(0, max_wait_ms=1_000)

    node.follow(leader_id=2, epoch=1, replicas=(1, 2))

    assert isinstance(produced[0].error, NotLeaderError)
    assert isinstance(fetched[0].error, NotLeaderError)


def test_a_disk_that_fails_fails_all_that_wait_for_it() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    node.lead(PAYMENTS)
    orders, payments = node.produce(), node.produce(key=PAYMENTS)

    node.log().fail(DiskError("fsync", "/data", errno.EIO, "broken"))
    node.replicas.failed([ORDERS])

    assert isinstance(orders[0].error, DiskError)
    assert isinstance(payments[0].error, LogClosedError), "it is on the same disk"
    assert waiting(node) == (0, 0, 0)


def test_an_append_that_finds_the_disk_broken_fails_the_others_that_wait() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    node.lead(PAYMENTS)
    waited = node.produce()
    node.files.fail(lambda operation: operation.kind == "write")

    (failed,) = node.produce(key=PAYMENTS)

    assert isinstance(failed.error, DiskError)
    assert [type(answer.error) for answer in waited] == [LogClosedError]


def test_an_append_without_memory_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object, **_named: object) -> None:
        raise MemoryError

    node = Node(1, flush_on_ack=True)
    node.lead()
    node.lead(PAYMENTS)
    waited = node.produce()
    with monkeypatch.context() as patched:
        patched.setattr(node.log(PAYMENTS), "append_as_leader", no_memory)
        (refused,) = node.produce(key=PAYMENTS)
    again = node.produce(key=PAYMENTS)
    node.flush()
    node.flush(PAYMENTS)

    assert isinstance(refused.error, OutOfMemoryError)
    assert [answer.error for answer in (*waited, *again)] == [None, None]


def test_a_full_disk_leaves_those_alone_that_wait() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead()
    waited = node.produce()
    node.files.fail(lambda operation: operation.kind == "write", errno.ENOSPC)

    (refused,) = node.produce()
    node.flush()

    assert isinstance(refused.error, DiskFullError)
    assert [answer.error for answer in waited] == [None]


# --- fetching ---------------------------------------------------------------------------------


def test_a_fetch_waits_for_enough_bytes() -> None:
    node = Node(1)
    node.lead()
    size_bytes = len(batch())
    answers = node.fetch(0, max_wait_ms=1_000, min_bytes=2 * size_bytes)

    node.produce(acks=1)
    assert answers == []
    node.produce(acks=1)

    assert sizes(answers) == [2 * size_bytes]
    assert waiting(node) == (0, 0, 0)


def test_a_fetch_waits_for_what_its_partitions_have_together() -> None:
    node = Node(1)
    node.lead()
    node.lead(PAYMENTS)
    size_bytes = len(batch())
    answered: list[dict[TopicPartition, FetchResult]] = []
    wanted = {key: FetchPartition(0, EVERYTHING) for key in (ORDERS, PAYMENTS)}
    node.replicas.fetch(
        FetchRequest(wanted, max_wait_ms=1_000, min_bytes=3 * size_bytes), answered.append
    )

    node.produce(acks=1)
    node.produce(key=PAYMENTS, acks=1)
    assert answered == []
    node.produce(acks=1)

    (results,) = answered
    assert sizes(list(results.values())) == [2 * size_bytes, size_bytes]


def test_a_fetch_is_answered_with_what_there_is_when_its_time_is_over() -> None:
    node = Node(1)
    node.lead()
    answers = node.fetch(0, max_wait_ms=500, min_bytes=EVERYTHING)
    node.produce(acks=1)

    node.advance(499)
    assert answers == []
    node.advance(1)

    assert sizes(answers) == [len(batch())]


@pytest.mark.parametrize(("max_wait_ms", "min_bytes"), [(0, 1), (1_000, 0), (-1, 1)])
def test_a_fetch_that_does_not_want_to_wait_does_not(max_wait_ms: int, min_bytes: int) -> None:
    node = Node(1)
    node.lead()

    assert sizes(node.fetch(0, max_wait_ms=max_wait_ms, min_bytes=min_bytes)) == [0]


def test_a_consumer_waits_until_what_was_appended_is_flushed_and_a_follower_does_not() -> None:
    node = Node(1, flush_on_ack=True)
    node.lead(replicas=(1, 2))
    consumer = node.fetch(0, max_wait_ms=1_000)
    follower = node.fetch(0, max_wait_ms=1_000, replica_id=2)

    node.produce(acks=1)
    assert (sizes(consumer), sizes(follower)) == ([], [len(batch())])
    node.fetch(1, replica_id=2)
    assert sizes(consumer) == []
    node.flush()

    assert sizes(consumer) == [len(batch())]


def test_a_reader_of_committed_data_waits_for_the_end_of_the_transaction() -> None:
    node = Node(1, transaction_partition_verification_enable=False)
    node.lead()
    node.produce(batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))

    uncommitted = node.fetch(0, max_wait_ms=1_000)
    committed = node.fetch(0, max_wait_ms=1_000, isolation=Isolation.TXN_COMMITTED)

    assert sizes(uncommitted) == [len(batch())]
    assert committed == []


@pytest.mark.parametrize("offset", [-1, 1, 100])
def test_a_fetch_out_of_range_is_told_at_once(offset: int) -> None:
    node = Node(1)
    node.lead()

    (answer,) = node.fetch(offset, max_wait_ms=1_000)

    assert isinstance(answer.error, OffsetOutOfRangeError)


def test_an_error_of_one_partition_answers_for_all() -> None:
    node = Node(1)
    node.lead()
    answered: list[dict[TopicPartition, FetchResult]] = []
    wanted = {ORDERS: FetchPartition(0, EVERYTHING), PAYMENTS: FetchPartition(0, EVERYTHING)}

    node.replicas.fetch(FetchRequest(wanted, max_wait_ms=1_000), answered.append)

    (results,) = answered
    assert results[ORDERS].error is None
    assert isinstance(results[PAYMENTS].error, UnknownLogError)


def test_a_fetch_whose_epoch_is_fenced_while_it_waits_is_told() -> None:
    node = Node(1)
    node.lead(epoch=3)
    answers = node.fetch(0, max_wait_ms=1_000, current_leader_epoch=3)

    node.lead(epoch=4)

    assert [type(answer.error) for answer in answers] == [FencedLeaderEpochError]


def test_the_first_partition_with_records_gives_a_batch_however_small_the_limit_is() -> None:
    node = Node(1)
    keys = [TopicPartition("many", number) for number in range(3)]
    for key in keys:
        node.lead(key)
    for key in keys[1:]:
        node.produce(key=key, acks=1)
    answered: list[dict[TopicPartition, FetchResult]] = []
    wanted = {key: FetchPartition(0, EVERYTHING) for key in keys}

    node.replicas.fetch(FetchRequest(wanted, max_bytes=1), answered.append)

    assert sizes(list(answered[0].values())) == [0, len(batch()), 0]


def test_limits_are_of_all_partitions_together() -> None:
    node = Node(1)
    keys = [TopicPartition("many", number) for number in range(5)]
    for key in keys:
        node.lead(key)
        node.produce(batch(), batch(), key=key, acks=1)
    answered: list[dict[TopicPartition, FetchResult]] = []
    size_bytes = len(batch())
    wanted = {key: FetchPartition(0, 2 * size_bytes) for key in keys}

    node.replicas.fetch(FetchRequest(wanted, max_bytes=5 * size_bytes), answered.append)

    assert sizes(list(answered[0].values())) == [2 * size_bytes, 2 * size_bytes, size_bytes, 0, 0]


def test_who_has_gone_is_not_waited_for() -> None:
    node = Node(1)
    node.lead()
    answers: list[object] = []
    operation = node.replicas.fetch(
        FetchRequest({ORDERS: FetchPartition(0, EVERYTHING)}, max_wait_ms=2**31 - 1),
        answers.append,
    )
    assert operation is not None

    node.replicas.fetch_purgatory.cancel(operation)
    node.produce(acks=1)
    node.advance(2**32)

    assert answers == []
    assert waiting(node) == (0, 0, 0)


def test_a_reader_at_the_end_of_a_log_that_has_failed_waits_as_at_any_other() -> None:
    node = Node(1)
    node.lead()
    node.produce(acks=1)
    node.log().fail(DiskError("write", "/data", errno.EIO, "broken"))

    assert node.fetch(1, max_wait_ms=500) == [], "to answer nothing at once would make it spin"
    assert sizes(node.fetch(0, max_wait_ms=500)) == [len(batch())]


# --- deleting records -------------------------------------------------------------------------


def test_records_are_deleted_up_to_an_offset_or_to_the_high_watermark() -> None:
    node = Node(1)
    node.lead()
    node.produce(*[batch()] * 5, acks=1)

    assert node.delete(2) == [2]
    assert node.delete(1) == [2], "they are gone already"
    assert node.delete(-1) == [5]


@pytest.mark.parametrize("offset", [-2, 6])
def test_what_is_beyond_the_log_is_not_deleted(offset: int) -> None:
    node = Node(1)
    node.lead()
    node.produce(*[batch()] * 5, acks=1)

    assert isinstance(node.delete(offset)[0], OffsetOutOfRangeError)


def test_a_deletion_waits_until_every_replica_has_forgotten() -> None:
    node = Node(1)
    node.lead(replicas=(1, 2, 3))
    node.produce(*[batch()] * 5, acks=1)
    for follower in (2, 3):
        node.fetch(5, replica_id=follower, log_start_offset=0)
    answers = node.delete(3)

    node.fetch(5, replica_id=2, log_start_offset=3)
    assert answers == []
    node.fetch(5, replica_id=3, log_start_offset=4)

    assert answers == [3]


def test_a_deletion_is_answered_when_no_crash_brings_the_records_back() -> None:
    node = Node(1, deletes_later=True)
    node.lead()
    node.produce(*[batch()] * 5, acks=1)
    answers = node.delete(3, timeout_ms=0)
    again = node.delete(2)
    assert (answers, again) == ([], [])
    assert node.deleted == [node.log()] * 2

    node.log().keep_log_start()
    node.replicas.flushed([ORDERS])

    assert (answers, again) == ([3], [3])
    assert node.delete(3) == [3], "it is on disk already"


def test_who_waits_for_a_deletion_is_told_when_the_disk_fails() -> None:
    node = Node(1, deletes_later=True)
    node.lead()
    node.produce(acks=1)
    answers = node.delete(1)

    node.log().fail(DiskError("fsync", "/data", 5, "no"))
    node.replicas.failed()

    assert [type(answer) for answer in answers] == [DiskError]


def test_a_deletion_that_takes_too_long_times_out() -> None:
    node = Node(1)
    node.lead(replicas=(1, 2))
    node.produce(acks=1)
    node.fetch(1, replica_id=2, log_start_offset=0)
    answers: list[int | StratalogError] = node.delete(1, timeout_ms=100)

    node.advance(100)

    assert [type(answer) for answer in answers] == [RequestTimedOutError]


def test_partitions_are_counted_and_listed() -> None:
    node = Node(1)
    node.lead()
    node.lead(PAYMENTS)

    assert len(node.replicas) == 2
    assert [each.log.topic_partition for each in node.replicas] == [ORDERS, PAYMENTS]
