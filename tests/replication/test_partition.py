"""What one replica knows of the others, and what it does for whom."""

import pytest
from nodes import EVERYTHING, ORDERS, Node, batch, replicate, values

from stratalog.errors import (
    FencedLeaderEpochError,
    LogClosedError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
)
from stratalog.replication.partition import NEVER_MS, FollowerState
from stratalog.storage.epochs import EpochEnd
from stratalog.storage.lookup import SpecialTimestamp
from stratalog.storage.reading import Isolation

ALL = (1, 2, 3)


# --- who may append ---------------------------------------------------------------------------


def test_only_a_leader_appends() -> None:
    node = Node(1)
    node.follow(leader_id=2, replicas=ALL)

    (answer,) = node.produce(acks=1)

    assert isinstance(answer.error, NotLeaderError)
    assert node.log().log_end_offset == 0


@pytest.mark.parametrize(
    ("min_isr", "isr", "is_refused"),
    [(1, (1,), False), (2, (1,), True), (2, (1, 2), False), (3, (1, 2), True), (9, ALL, False)],
)
def test_acks_all_needs_min_insync_replicas_or_all_there_are(
    min_isr: int, isr: tuple[int, ...], is_refused: bool
) -> None:
    node = Node(1, topic={"min_insync_replicas": min_isr})
    node.lead(replicas=ALL, isr=isr)

    refused = node.produce(acks=-1)
    taken = node.produce(acks=1)

    assert bool(refused and isinstance(refused[0].error, NotEnoughReplicasError)) is is_refused
    assert taken[0].error is None, "who does not ask for all is not asked for all"
    assert node.log().log_end_offset == (1 if is_refused else 2)


def test_an_acknowledgement_is_of_the_replicas_that_are_in_sync_when_it_is_given() -> None:
    node = Node(1, topic={"min_insync_replicas": 2})
    node.lead(replicas=ALL, isr=(1, 2), partition_epoch=4)
    answers = node.produce()
    node.partition().followers[2].log_end_offset = 1
    # What is in sync shrinks, and only then is it seen how far the follower is.
    node.log().raise_high_watermark(1)
    node.lead(replicas=ALL, isr=(1,), partition_epoch=5)

    (answer,) = answers
    assert isinstance(answer.error, NotEnoughReplicasAfterAppendError)
    assert answer.info is not None
    assert answer.info.first_offset == 0


def test_a_replica_that_is_being_let_in_counts_for_an_acknowledgement() -> None:
    node = Node(1, topic={"min_insync_replicas": 2})
    node.lead(replicas=ALL, isr=(1,))
    partition = node.partition()
    node.produce(acks=1)
    node.log().raise_high_watermark(1)

    assert isinstance(partition.is_replicated(1), NotEnoughReplicasAfterAppendError)
    partition.propose_isr((1, 2))
    assert partition.is_replicated(1) is True


# --- the high watermark -----------------------------------------------------------------------


def test_the_high_watermark_is_the_lowest_end_of_the_in_sync_replicas() -> None:
    node = Node(1)
    partition = node.lead(replicas=ALL, isr=(1, 2))
    node.produce(*[batch()] * 10, acks=1)

    assert node.log().high_watermark == 0
    partition.follower_fetched(2, 4, node.clock.now_ms())
    assert node.log().high_watermark == 4
    partition.follower_fetched(2, 10, node.clock.now_ms())
    assert node.log().high_watermark == 10


def test_the_high_watermark_does_not_go_down_with_a_follower() -> None:
    node = Node(1)
    partition = node.lead(replicas=(1, 2))
    node.produce(*[batch()] * 5, acks=1)
    partition.follower_fetched(2, 5, node.clock.now_ms())

    assert not partition.follower_fetched(2, 3, node.clock.now_ms())

    assert node.log().high_watermark == 5


def test_the_high_watermark_waits_for_who_has_nearly_caught_up_though_not_in_sync_yet() -> None:
    node = Node(1, replica_lag_time_max_ms=600)
    partition = node.lead(replicas=(1, 2), isr=(1,))
    now_ms = node.clock.now_ms()
    partition.propose_isr((1,))  # so that nothing is proposed here
    partition.follower_fetched(2, 0, now_ms)
    node.produce(*[batch()] * 3, acks=1)

    assert node.log().high_watermark == 0

    node.clock.advance(601)
    assert partition.raise_high_watermark()
    assert node.log().high_watermark == 3


def test_the_high_watermark_stands_while_too_few_are_in_sync() -> None:
    node = Node(1, topic={"min_insync_replicas": 2})
    node.lead(replicas=ALL, isr=(1,), partition_epoch=1)
    node.produce(acks=1)
    assert node.log().high_watermark == 0

    node.lead(replicas=ALL, isr=(1, 2), partition_epoch=2)
    node.partition().follower_fetched(2, 1, node.clock.now_ms())

    assert node.log().high_watermark == 1


def test_the_high_watermark_never_passes_what_was_flushed() -> None:
    node = Node(1, flush_on_ack=True)
    partition = node.lead(replicas=(1, 2))
    answers = node.produce(batch(), batch())
    partition.follower_fetched(2, 2, node.clock.now_ms())
    assert (node.log().high_watermark, answers) == (0, [])

    node.flush()

    assert node.log().high_watermark == 2
    assert [answer.error for answer in answers] == [None, None]


def test_a_leader_alone_tells_at_once_what_it_finds_in_its_log() -> None:
    node = Node(1)
    node.lead()
    node.produce(acks=1)
    node.log().high_watermark = 0  # as a checkpoint of five seconds ago says

    node.lead(epoch=1)

    assert node.log().high_watermark == 1
    assert node.fetch(0)[0].read.data.size_bytes > 0  # type: ignore[union-attr]


# --- leader epochs ----------------------------------------------------------------------------


def test_who_asks_with_another_leader_epoch_is_told_which_is_older() -> None:
    node = Node(1)
    partition = node.lead(epoch=5)

    for epoch in (-1, 5):
        partition.check_leader(epoch)
    with pytest.raises(FencedLeaderEpochError):
        partition.check_leader(4)
    with pytest.raises(UnknownLeaderEpochError):
        partition.check_leader(6)
    node.follow(leader_id=2, epoch=6)
    with pytest.raises(NotLeaderError):
        partition.check_leader(6)


def test_a_new_leader_epoch_forgets_what_followers_had_of_the_last() -> None:
    node = Node(1)
    partition = node.lead(replicas=(1, 2))
    node.produce(acks=1)
    partition.follower_fetched(2, 1, node.clock.now_ms())
    node.produce(acks=1)

    node.lead(epoch=1, replicas=(1, 2))
    assert partition.followers[2].log_end_offset == -1
    assert partition.epoch_start_offset == 2
    assert node.log().epochs.latest_epoch == 1


def test_the_same_leader_epoch_keeps_what_followers_have() -> None:
    node = Node(1)
    partition = node.lead(replicas=(1, 2), partition_epoch=0)
    node.produce(acks=1)
    partition.follower_fetched(2, 1, node.clock.now_ms())

    node.lead(replicas=ALL, isr=(1, 2), partition_epoch=1)

    assert partition.followers[2].log_end_offset == 1
    assert partition.followers[3] == FollowerState()


def test_what_is_older_than_what_is_known_changes_nothing() -> None:
    node = Node(1)
    partition = node.lead(epoch=3, replicas=ALL, isr=(1,), partition_epoch=7)

    node.lead(epoch=3, replicas=ALL, isr=ALL, partition_epoch=6)
    node.follow(leader_id=2, epoch=2, replicas=ALL, partition_epoch=8)

    assert partition.is_leader
    assert partition.isr == {1}


# --- followers --------------------------------------------------------------------------------


def test_a_follower_gets_what_consumers_may_not_see_yet() -> None:
    leader, follower = Node(1), Node(2)
    leader.lead(replicas=(1, 2))
    follower.follow(leader_id=1, replicas=(1, 2))
    leader.produce(acks=1)

    assert leader.fetch(0)[0].read.data.size_bytes == 0  # type: ignore[union-attr]
    assert replicate(follower, leader)

    assert values(follower.log()) == values(leader.log())
    assert follower.log().high_watermark == 0
    assert replicate(follower, leader)
    assert leader.log().high_watermark == 1, "the next fetch tells that the last one arrived"


@pytest.mark.parametrize(("epoch", "error"), [(-1, NotLeaderError), (0, UnknownLeaderEpochError)])
def test_who_is_no_replica_is_refused(epoch: int, error: type[Exception]) -> None:
    node = Node(1)
    node.lead(replicas=(1, 2))

    (answer,) = node.fetch(0, replica_id=9, current_leader_epoch=epoch)

    assert isinstance(answer.error, error)


def test_a_follower_with_a_fenced_epoch_is_told_so_even_if_it_is_no_replica() -> None:
    node = Node(1)
    node.lead(epoch=4, replicas=(1, 2))

    (answer,) = node.fetch(0, replica_id=9, current_leader_epoch=3)

    assert isinstance(answer.error, FencedLeaderEpochError)


def test_a_follower_of_another_history_is_told_where_it_parts_and_given_nothing() -> None:
    node = Node(1)
    partition = node.lead(epoch=0, replicas=(1, 2))
    node.produce(*[batch()] * 3, acks=1)
    node.lead(epoch=2, replicas=(1, 2))
    node.produce(*[batch()] * 3, acks=1)

    (answer,) = node.fetch(5, replica_id=2, last_fetched_epoch=1)

    assert answer.read is not None
    assert answer.read.diverging == EpochEnd(0, 3)
    assert answer.read.data.records is None
    assert partition.followers[2].log_end_offset == -1, "what it has is not what is here"


def test_a_reader_below_the_log_start_is_out_of_range_though_its_history_is_another() -> None:
    node = Node(1)
    for epoch in (0, 2, 4):
        node.lead(epoch=epoch)
        node.produce(*[batch()] * 3, acks=1)
    node.delete(4)

    (below,) = node.fetch(2, last_fetched_epoch=3)
    (above,) = node.fetch(4, last_fetched_epoch=3)

    assert isinstance(below.error, OffsetOutOfRangeError)
    assert above.read is not None
    assert above.read.diverging == EpochEnd(2, 6)


def test_an_epoch_nobody_knows_is_out_of_range() -> None:
    node = Node(1)
    node.lead(epoch=2)

    (answer,) = node.fetch(0, last_fetched_epoch=7)

    assert isinstance(answer.error, OffsetOutOfRangeError)


def test_a_follower_is_as_caught_up_as_its_fetches_say() -> None:
    state = FollowerState()
    state.fetched(0, 10, 100)
    assert state.last_caught_up_ms == NEVER_MS
    state.fetched(5, 12, 200)
    assert state.last_caught_up_ms == NEVER_MS, "it has not reached the end of its last fetch"
    state.fetched(12, 20, 300)
    assert state.last_caught_up_ms == 200, "it has reached what was the end then"
    state.fetched(20, 20, 400)
    assert state.last_caught_up_ms == 400

    assert state.is_caught_up(20, 10_000, 50)
    assert state.is_caught_up(21, 450, 50)
    assert not state.is_caught_up(21, 451, 50)


def test_a_fetch_that_had_to_wait_tells_how_far_its_follower_is_once() -> None:
    node = Node(1)
    partition = node.lead(replicas=(1, 2))
    node.fetch(0, replica_id=2, max_wait_ms=500)
    fetched_ms = node.clock.now_ms()
    node.clock.advance(100)

    node.produce(acks=1)

    assert partition.followers[2].last_fetch_ms == fetched_ms


# --- offsets ----------------------------------------------------------------------------------


def test_the_latest_offset_of_a_new_leader_is_not_known_before_its_epoch_is_replicated() -> None:
    node = Node(1)
    node.lead(replicas=(1, 2))
    node.produce(*[batch()] * 3, acks=1)
    partition = node.lead(epoch=1, replicas=(1, 2))

    def listed(timestamp_ms: int, isolation: Isolation = Isolation.HIGH_WATERMARK) -> int:
        return partition.list_offset(timestamp_ms, isolation=isolation).offset

    with pytest.raises(OffsetNotAvailableError):
        listed(SpecialTimestamp.LATEST)
    with pytest.raises(OffsetNotAvailableError):
        listed(2**60)
    assert listed(SpecialTimestamp.EARLIEST) == 0
    assert listed(SpecialTimestamp.LATEST, Isolation.LOG_END) == 3

    partition.follower_fetched(2, 3, node.clock.now_ms())
    assert listed(SpecialTimestamp.LATEST) == 3
    assert listed(2**60) == -1


def test_the_latest_offset_has_the_leaders_epoch() -> None:
    partition = Node(1).lead(epoch=6)

    found = partition.list_offset(SpecialTimestamp.LATEST, isolation=Isolation.HIGH_WATERMARK)

    assert found.leader_epoch == 6


# --- failures ---------------------------------------------------------------------------------


def test_what_can_not_become_durable_any_more_is_not_waited_for() -> None:
    node = Node(1, flush_on_ack=True)
    partition = node.lead()
    node.produce()
    assert partition.is_replicated(1) is False

    node.logs.directories[0].fail("another log of it has failed")

    assert isinstance(partition.is_replicated(1), LogClosedError)


def test_what_was_durable_before_its_disk_failed_is_acknowledged() -> None:
    node = Node(1, flush_on_ack=True)
    partition = node.lead()
    node.produce()
    node.flush()
    node.logs.directories[0].fail("a disk fails")

    assert partition.is_replicated(1) is True


def test_a_first_batch_that_has_no_room_is_not_given_in_part() -> None:
    node = Node(1)
    partition = node.lead()
    node.produce(batch(b"x" * 1_000), acks=1)

    def read(max_bytes: int, min_one_message: bool) -> int:
        return partition.read(
            0,
            max_bytes=max_bytes,
            isolation=Isolation.HIGH_WATERMARK,
            min_one_message=min_one_message,
        ).data.size_bytes

    assert read(500, False) == 0
    assert read(500, True) == node.log().size_bytes
    assert read(EVERYTHING, False) == node.log().size_bytes


def test_records_of_a_compacted_topic_are_not_deleted() -> None:
    node = Node(1, topic={"cleanup_policy": ("compact",)})
    node.lead()

    (answer,) = node.delete(0, ORDERS)

    assert "cleanup.policy" in str(answer)
