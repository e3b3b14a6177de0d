"""What a coordinator knows after it has read its log again, and what it says meanwhile."""

import gc
import logging
import time
from pathlib import Path

import pytest
from group_world import GROUP, SESSION_MS, MemoryLog, World
from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import BrokerConfig
from stratalog.coordinator.committing import NewOffset
from stratalog.coordinator.coordinator import abs_java_hash
from stratalog.coordinator.group import Group
from stratalog.coordinator.loading import load_groups, read_batches
from stratalog.coordinator.log_records import (
    CommittedOffset,
    StoredGroup,
    group_key,
    group_value,
    offset_key,
    offset_value,
)
from stratalog.coordinator.offsets import GroupOffsets
from stratalog.coordinator.states import GroupState
from stratalog.errors import StorageError
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records import Codec, Record, build_batch, build_end_transaction_marker
from stratalog.records.columns import decode_records
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock


def offset_record(partition: int, offset: int | None, group_id: str = GROUP) -> Record:
    value = None if offset is None else offset_value(CommittedOffset(offset))
    return Record(offset_key(group_id, "t", partition), value, timestamp_ms=1)


def load(*batches: bytes) -> dict[str, Group]:
    log = MemoryLog()
    for batch in batches:
        log.append(0, batch, lambda _code: None)
    groups: dict[str, Group] = {}
    for _ in load_groups(log.read(0), groups, 0):
        pass
    return groups


def offsets_of(groups: dict[str, Group]) -> dict[tuple[str, int], int]:
    return {
        (group_id, partition): committed.offset
        for group_id, group in groups.items()
        for _, partition, committed in group.offsets
    }


WRITES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.none() | st.integers(0, 99)),
    max_size=30,
)


@given(WRITES, st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]), st.integers(1, 5))
def test_of_each_offset_the_last_record_counts(
    writes: list[tuple[str, int, int | None]], codec: Codec, batch_size: int
) -> None:
    expected: dict[tuple[str, int], int] = {}
    records = []
    for group_id, partition, offset in writes:
        records.append(offset_record(partition, offset, group_id))
        if offset is None:
            expected.pop((group_id, partition), None)
        else:
            expected[group_id, partition] = offset
    starts = range(0, len(records), batch_size)
    batches = [build_batch(records[at : at + batch_size], codec=codec) for at in starts]

    assert offsets_of(load(*batches)) == expected


def transaction(producer_id: int, *records: Record) -> bytes:
    return build_batch(
        records, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(producer_id: int, *, commit: bool) -> bytes:
    return build_end_transaction_marker(
        commit=commit,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=1,
    )


def test_offsets_of_a_transaction_count_when_it_is_committed_and_vanish_with_it() -> None:
    groups = load(
        transaction(1, offset_record(0, 10), offset_record(1, 11)),
        transaction(2, offset_record(1, 21), offset_record(2, 22)),
        marker(1, commit=True),
        marker(2, commit=False),
    )

    assert offsets_of(groups) == {(GROUP, 0): 10, (GROUP, 1): 11}


def test_a_later_plain_commit_is_not_undone_by_the_end_of_a_transaction() -> None:
    groups = load(
        transaction(1, offset_record(0, 10)),
        build_batch([offset_record(0, 50)]),
        marker(1, commit=True),
    )

    assert offsets_of(groups) == {(GROUP, 0): 50}


def test_offsets_of_an_open_transaction_are_known_to_be_open() -> None:
    groups = load(transaction(1, offset_record(0, 10)), build_batch([offset_record(1, 5)]))

    offsets = groups[GROUP].offsets
    assert offsets_of(groups) == {(GROUP, 1): 5}
    assert offsets.has_open_transaction("t", 0)
    assert not offsets.has_open_transaction("t", 1)


def test_offsets_of_an_open_transaction_neither_expire_nor_let_their_group_go() -> None:
    world = World(offsets_retention_minutes=1)
    world.log.append(0, transaction(1, offset_record(0, 10)), lambda _code: None)
    world.commit(NewOffset("t", 0, 1), NewOffset("t", 1, 1))
    world.start()

    world.advance(1_200_000)

    assert world.offsets() == {("t", 0): 1}
    answers: list[object] = []
    world.coordinator.delete_offsets(GROUP, [("t", 0)], answers.append)
    assert not world.group().offsets.has_open_transaction("t", 0)


def test_marks_in_the_log_that_say_nothing_of_transactions_are_passed_over() -> None:
    strange = [Record(b"\x00\x00\x00\x02", b"\x00\x00", timestamp_ms=1)]
    broken = [Record(b"\x00", None, timestamp_ms=1)]

    groups = load(
        transaction(1, offset_record(0, 10), Record(b"\x00\x02", b"?", timestamp_ms=1)),
        build_batch(strange, control=True, transactional=True, producer_id=1, producer_epoch=0),
        build_batch(broken, control=True, transactional=True, producer_id=1, producer_epoch=0),
    )

    assert groups[GROUP].offsets.has_open_transaction("t", 0)


def test_a_tombstone_ends_what_a_transaction_had_begun() -> None:
    groups = load(
        transaction(1, offset_record(0, 10)),
        build_batch([offset_record(0, None)]),
        marker(1, commit=True),
    )

    assert offsets_of(groups) == {}


def test_records_that_cannot_be_read_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    good = offset_record(0, 5)
    bad = [
        Record(None, b"value", timestamp_ms=1),
        Record(b"", b"value", timestamp_ms=1),
        Record(b"\x00\x01\x00\x09short", b"value", timestamp_ms=1),
        Record(group_key("h"), b"\x00\x03\x00", timestamp_ms=1),
        Record(offset_key("h", "t", 0), b"\x00\x09", timestamp_ms=1),
        Record(b"\x00\x03\x00\x01g", b"\x00\x00\x00\x00\x00\x01\x00", timestamp_ms=1),
        Record(b"\x7f\xff", b"value", timestamp_ms=1),
    ]

    with caplog.at_level(logging.WARNING):
        groups = load(build_batch([*bad, good, *bad]))

    assert offsets_of(groups) == {(GROUP, 0): 5}
    assert list(groups) == [GROUP]
    counts = {record.fields["reason"]: record.fields["records"] for record in caplog.records}  # type: ignore[attr-defined]
    assert counts["a key of type 3"] == 1
    assert counts["a record without a key"] == 2


@given(st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=20)), max_size=8))
def test_arbitrary_records_are_no_reason_to_fail(records: list[tuple[bytes, bytes | None]]) -> None:
    batch = build_batch(
        [Record(key, value, timestamp_ms=1) for key, value in records] + [offset_record(0, 5)]
    )

    assert offsets_of(load(batch))[GROUP, 0] == 5


def test_a_stored_group_with_members_that_contradict_each_other_is_loaded() -> None:
    member = b"\x00\x01m" + b"\x00\x01i" + b"\x00\x01c" + b"\x00\x01h" + bytes(8) + bytes(8)
    head = group_value(StoredGroup("consumer", 3, None, "nobody", 1, []))[:-4]
    value = head + b"\x00\x00\x00\x02" + member * 2

    groups = load(build_batch([Record(group_key(GROUP), value, timestamp_ms=1)]))

    group = groups[GROUP]
    assert list(group.members) == ["m"]
    assert group.leader_id == "m"
    assert group.joined(group.members["m"]).protocol_name == ""


def test_members_are_in_as_before_and_have_their_session_timeout_to_say_so() -> None:
    world = World()
    leader, follower = world.stable(2)
    before = {each: world.group().members[each].assignment for each in (leader, follower)}

    world.start()

    group = world.group()
    assert group.state is GroupState.STABLE
    assert group.leader_id == leader
    assert {each: group.members[each].assignment for each in before} == before
    world.advance(SESSION_MS - 1)
    assert world.heartbeat(follower, 2) is ErrorCode.NONE
    world.advance(1)
    assert leader not in world.group().members


def test_while_groups_are_being_loaded_everybody_is_told_to_come_back() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.commit(NewOffset("t", 0, 1), generation_id=1, member_id=member_id)
    world.start(is_loaded=False)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator = world.coordinator

    assert coordinator.is_loading
    assert coordinator.heartbeat(GROUP, 1, member_id) is ErrorCode.NONE
    assert coordinator.leave(GROUP, []) is loading
    assert coordinator.find(GROUP) is loading
    assert world.fetch() == [loading]
    assert list(coordinator.all()) == []
    answers: list[object] = []
    coordinator.delete_groups([GROUP], answers.append)
    coordinator.delete_offsets(GROUP, [("t", 0)], answers.append)
    assert answers == [{GROUP: loading}, loading]

    world.settle()

    assert world.heartbeat(member_id, 1) is ErrorCode.NONE
    assert world.offsets() == {("t", 0): 1}


def test_loading_asks_to_be_gone_on_with_until_it_is_done() -> None:
    world = World()
    for start in range(0, 6_000, 500):
        world.commit(*[NewOffset("t", start + number, 1) for number in range(500)])
    world.start(is_loaded=False)
    turns = 0

    while world.coordinator.is_loading:
        assert world.wakes[-1] <= world.clock.now_ms()
        world.wakes.clear()
        world.coordinator.run_due(world.clock.now_ms())
        turns += 1

    assert turns > 3
    assert len(world.offsets()) == 6_000


def test_a_partition_that_is_dropped_while_it_is_loaded_stays_dropped() -> None:
    world = World()
    (member_id,) = world.stable(1)
    world.start(is_loaded=False)

    world.coordinator.on_dropped(0)
    world.settle()

    assert world.heartbeat(member_id, 1) is ErrorCode.NOT_COORDINATOR
    assert world.coordinator.next_deadline_ms() is None


def test_where_a_partition_is_not_led_requests_are_sent_elsewhere() -> None:
    world = World()
    leader, follower = world.stable(2)
    joining = world.join(leader)
    world.log.hold = True
    committing = world.commit(NewOffset("t", 0, 1), generation_id=2, member_id=follower)
    stable = world.fetch(require_stable=True)

    world.coordinator.on_dropped(0)

    elsewhere = ErrorCode.NOT_COORDINATOR
    assert joining[0].error_code is elsewhere
    assert world.heartbeat(leader, 2) is elsewhere
    assert world.join()[0].error_code is elsewhere
    assert world.coordinator.next_deadline_ms() is None
    world.log.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert committing == [[elsewhere]]
    assert stable == [elsewhere]


def test_a_partition_that_is_led_again_in_a_later_epoch_is_loaded_again() -> None:
    world = World()
    world.commit(NewOffset("t", 0, 1))
    group = world.group()
    world.coordinator.on_leading(0, 0)
    assert world.group() is group

    world.coordinator.on_leading(0, 1)
    world.settle()

    assert world.group() is not group
    assert world.offsets() == {("t", 0): 1}


def test_a_partition_that_cannot_be_read_is_not_coordinated_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World()
    world.commit(NewOffset("t", 0, 1))

    def fail(_partition: int) -> list[bytes]:
        raise StorageError("the disk is gone")

    world.log.read = fail  # type: ignore[method-assign,assignment]
    with caplog.at_level(logging.ERROR):
        world.start()

    assert world.fetch() == [ErrorCode.NOT_COORDINATOR]
    assert [record.message for record in caplog.records] == ["groups_not_loaded"]


def test_a_group_that_has_become_too_large_rebalances_when_it_is_loaded() -> None:
    world = World()
    ids = world.stable(3)
    world.config = World(group_max_size=2).config

    world.start()

    assert world.group().state is GroupState.PREPARING_REBALANCE
    answers = [world.join(each) for each in ids]
    assert answers[2][0].error_code is ErrorCode.GROUP_MAX_SIZE_REACHED
    # There is nobody left to wait for.
    assert [each[0].error_code for each in answers[:2]] == [ErrorCode.NONE] * 2
    assert len(world.group().members) == 2


def test_groups_live_in_the_partition_that_their_hash_points_to() -> None:
    world = World(partitions=50)
    world.commit(NewOffset("t", 0, 1), group_id="my-group")
    world.commit(NewOffset("t", 0, 1), group_id="g")

    assert sorted(world.log.partitions) == [3, 12]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("my-group", 1906497762),
        ("g", 103),
        ("polygenelubricants", 0),  # -2^31, which has no opposite
        ("\N{SNAKE}", 1772400),
    ],
)
def test_the_hash_of_a_group_is_javas(text: str, expected: int) -> None:
    assert abs_java_hash(text) == expected


def test_a_log_is_read_whole_in_pieces(tmp_path: Path) -> None:
    config = BrokerConfig(log_dirs=(str(tmp_path),), log_dir_reserve_bytes=0)
    logs = LogManager(config, clock=ManualClock(), is_threaded=False)
    logs.start()
    log = logs.create(TopicPartition("__consumer_offsets", 0))
    for number in range(20):
        log.append_as_leader(build_batch([offset_record(number, number)]), leader_epoch=0)
    groups: dict[str, Group] = {}

    for _ in load_groups(read_batches(log, read_bytes=200), groups, 0):
        pass

    assert offsets_of(groups) == {(GROUP, number): number for number in range(20)}
    logs.shutdown()


def test_loading_is_quick_and_never_takes_long_at_once() -> None:
    count = 20_000
    records = [offset_record(number, number, f"g{number % 7}") for number in range(count)]
    batches = [build_batch(records[at : at + 10]) for at in range(0, count, 10)]
    chunks = [b"".join(batches[at : at + 100]) for at in range(0, len(batches), 100)]
    groups: dict[str, Group] = {}

    def decode() -> float:
        started = time.thread_time()
        assert sum(1 for chunk in chunks for _ in decode_records(chunk)) == count
        return time.thread_time() - started

    decode()  # what is imported for it is none of its cost
    started = time.thread_time()
    steps = sum(1 for _ in load_groups(chunks, groups, 0))
    loading = time.thread_time() - started

    assert sum(len(group.offsets) for group in groups.values()) == count
    # It takes three times as long as to decode the records and forget them, on any machine.
    assert loading < 20 * decode()
    assert steps >= count / 250


def test_offsets_that_are_kept_are_nothing_to_the_garbage_collector() -> None:
    world = World()
    world.commit(NewOffset("t", 0, 1))
    gc.collect()
    assert not gc.is_tracked(world.group().offsets.topics["t"][0])

    world.start()
    gc.collect()

    assert not gc.is_tracked(world.group().offsets.topics["t"][0])


def test_a_missing_group_is_no_group_offsets_at_all() -> None:
    (found,) = World().fetch("nobody")

    assert isinstance(found, GroupOffsets)
    assert not found
