"""When a log turns to a new segment, at which base offset, and in which order of steps (reference
4.6 and 15.1)."""

import json
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    batch,
    clock_of,
    content,
    disk_of,
    names,
    new_log,
    produced,
    read_all,
    reopened,
    sized_batch,
    trace_since,
)

from stratalog.config import TopicConfig
from stratalog.errors import DiskFullError, RecordBatchTooLargeError
from stratalog.records import Codec, read_headers
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.rolling import RollCause, plan_roll, room_in
from stratalog.storage.segment import NO_ROOM, Segment
from stratalog.testing import SimulatedFileSystem
from stratalog.testing.legacy import legacy_message_set

MakeLog = Callable[..., Log]
HOUR_MS = 3_600_000


def bases(log: Log) -> list[int]:
    return log.segments.base_offsets


def causes(log: Log) -> list[RollCause]:
    return [reason.cause for reason in log.own.rolls().values()]


@pytest.fixture
def segment() -> Iterator[Segment]:
    config = TopicConfig(segment_index_bytes=120)
    made = Segment.create(SimulatedFileSystem(), "/", 50, config, HandleCache(), now_ms=START_MS)
    yield made
    made.discard()


# --- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size_bytes", "rolls"), [(100, False), (101, True)])
def test_a_log_rolls_when_the_incoming_batch_would_pass_segment_bytes(
    make_log: MakeLog, size_bytes: int, rolls: bool
) -> None:
    log = make_log(internal_segment_bytes=200)
    log.append_as_leader(sized_batch(100))
    log.append_as_leader(sized_batch(size_bytes))
    assert bases(log) == ([0, 1] if rolls else [0])
    assert causes(log) == ([RollCause.SIZE] if rolls else [])


@given(st.lists(st.integers(70, 124), max_size=40), st.integers(124, 500))
def test_segments_are_filled_as_far_as_segment_bytes_allows(
    sizes: list[int], segment_bytes: int
) -> None:
    log = new_log(internal_segment_bytes=segment_bytes)
    expected, filled = [0], 0
    for offset, size_bytes in enumerate(sizes):
        log.append_as_leader(sized_batch(size_bytes))
        if filled and filled + size_bytes > segment_bytes:
            expected.append(offset)
            filled = 0
        filled += size_bytes
    assert bases(log) == expected
    assert len(read_all(log)) == len(sizes)


def test_an_append_larger_than_a_segment_is_refused_whole(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=100)
    with pytest.raises(RecordBatchTooLargeError):
        log.append_as_leader(sized_batch(101))
    assert log.log_end_offset == 0
    assert bases(log) == [0]


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("later_ms", "rolls"), [(HOUR_MS, False), (HOUR_MS + 1, True)])
def test_a_log_rolls_when_the_incoming_timestamp_is_too_far_from_the_first_batchs(
    make_log: MakeLog, later_ms: int, rolls: bool
) -> None:
    log = make_log(segment_ms=HOUR_MS)
    log.append_as_leader(batch(timestamp_ms=1000))
    log.append_as_leader(batch(timestamp_ms=500))
    log.append_as_leader(batch(timestamp_ms=1000 + later_ms))
    assert bases(log) == ([0, 2] if rolls else [0])


def test_the_clock_does_not_roll_a_segment_whose_batches_have_timestamps(make_log: MakeLog) -> None:
    log = make_log(segment_ms=HOUR_MS)
    log.append_as_leader(batch(timestamp_ms=1000))
    clock_of(log).advance(100 * HOUR_MS)
    log.append_as_leader(batch(timestamp_ms=1000))
    assert bases(log) == [0]


@pytest.mark.parametrize(("later_ms", "rolls"), [(HOUR_MS, False), (HOUR_MS + 1, True)])
def test_without_timestamps_a_segment_rolls_by_the_time_since_it_was_made(
    make_log: MakeLog, later_ms: int, rolls: bool
) -> None:
    log = make_log(segment_ms=HOUR_MS)
    log.append_as_leader(batch(timestamp_ms=-1))
    clock_of(log).advance(later_ms)
    log.append_as_leader(batch(timestamp_ms=-1))
    assert bases(log) == ([0, 1] if rolls else [0])


def test_an_empty_segment_never_rolls_by_time(make_log: MakeLog) -> None:
    log = make_log(segment_ms=1)
    clock_of(log).advance(HOUR_MS)
    log.append_as_leader(batch(timestamp_ms=START_MS + HOUR_MS))
    assert causes(log) == []


@pytest.mark.parametrize("clean", [True, False])
def test_the_first_batchs_timestamp_is_known_again_after_a_restart(
    make_log: MakeLog, clean: bool
) -> None:
    log = make_log(segment_ms=HOUR_MS)
    for timestamp_ms in (1000, 2000):
        log.append_as_leader(batch(timestamp_ms=timestamp_ms))
    log = reopened(log, clean=clean)
    log.append_as_leader(batch(timestamp_ms=1000 + HOUR_MS))
    assert bases(log) == [0]
    log.append_as_leader(batch(timestamp_ms=1001 + HOUR_MS))
    assert bases(log) == [0, 3]


def test_a_compacted_topic_rolls_in_time_for_max_compaction_lag(make_log: MakeLog) -> None:
    for policy, rolls in ((("compact",), True), (("delete",), False)):
        log = make_log(cleanup_policy=policy, max_compaction_lag_ms=1000, segment_ms=HOUR_MS)
        log.append_as_leader(batch(timestamp_ms=5000))
        log.append_as_leader(batch(timestamp_ms=6001))
        assert bases(log) == ([0, 1] if rolls else [0])


def test_jitter_brings_the_roll_forward_by_what_the_segment_drew(make_log: MakeLog) -> None:
    log = make_log(segment_ms=HOUR_MS, segment_jitter_ms=1000)
    log.append_as_leader(batch(timestamp_ms=0))
    jitter_ms = log.segments.active.jitter_ms
    assert 0 <= jitter_ms < 1000
    log.append_as_leader(batch(timestamp_ms=HOUR_MS - jitter_ms))
    assert bases(log) == [0]
    log.append_as_leader(batch(timestamp_ms=HOUR_MS - jitter_ms + 1))
    assert bases(log) == [0, 2]


@given(st.integers(0, 50), st.integers(1, 50))
def test_jitter_is_less_than_both_its_setting_and_segment_ms(jitter_ms: int, age_ms: int) -> None:
    config = TopicConfig(segment_jitter_ms=jitter_ms, segment_ms=age_ms, segment_index_bytes=120)
    files = SimulatedFileSystem()
    drawn = Segment.create(files, "/", 0, config, HandleCache(), now_ms=0).jitter_ms
    assert drawn == 0 if jitter_ms == 0 else 0 <= drawn < min(jitter_ms, age_ms)


# --- full indexes, far offsets -------------------------------------------------------------------


def test_a_full_offset_index_rolls_the_log(make_log: MakeLog) -> None:
    log = make_log(segment_index_bytes=39, index_interval_bytes=0)
    for _ in range(6):
        log.append_as_leader(batch(timestamp_ms=-1))
    assert bases(log) == [0, 5]
    assert causes(log) == [RollCause.OFFSET_INDEX_FULL]


def test_a_time_index_with_one_slot_left_rolls_the_log(make_log: MakeLog) -> None:
    log = make_log(segment_index_bytes=40, index_interval_bytes=0)
    for timestamp_ms in range(4):
        log.append_as_leader(batch(timestamp_ms=timestamp_ms + 1))
    assert bases(log) == [0, 3]
    assert causes(log) == [RollCause.TIME_INDEX_FULL]


def test_one_append_of_more_batches_than_the_index_has_room_for_is_taken_whole(
    make_log: MakeLog,
) -> None:
    log = make_log(segment_index_bytes=24, index_interval_bytes=0)
    run = [batch(base_offset=n, timestamp_ms=n, leader_epoch=0) for n in range(8)]
    log.append_as_follower(b"".join(run))
    assert (log.log_end_offset, read_all(log)) == (8, run)
    log.append_as_follower(batch(base_offset=8, leader_epoch=0))
    assert bases(log) == [0, 8]


@pytest.mark.parametrize("index_bytes", [4, 12])
def test_an_empty_segment_whose_index_is_too_small_is_replaced_by_a_new_one(
    make_log: MakeLog, index_bytes: int
) -> None:
    log = make_log(segment_index_bytes=index_bytes)
    for _ in range(3):
        log.append_as_leader(batch())
    assert bases(log) == [0, 1, 2]
    assert f"{0:020d}.log.deleted" in names(log)
    assert len(read_all(log)) == 3


@pytest.mark.parametrize(
    ("last_offset", "cause"),
    [
        (50, None),
        (50 + 2**31 - 1, None),
        (50 + 2**31, RollCause.OFFSET_OVERFLOW),
        (49, RollCause.OFFSET_OVERFLOW),
    ],
)
def test_an_offset_that_the_segment_cannot_hold_rolls_it(
    segment: Segment, last_offset: int, cause: RollCause | None
) -> None:
    reason = plan_roll(
        segment,
        TopicConfig(segment_index_bytes=120),
        incoming_bytes=100,
        incoming_last_offset=last_offset,
        incoming_max_timestamp_ms=START_MS,
        now_ms=START_MS,
    )
    assert (None if reason is None else reason.cause) is cause


# --- where the new segment begins ----------------------------------------------------------------


def test_the_new_segment_begins_at_the_first_offset_of_what_comes(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=150)
    log.append_as_follower(sized_batch(100, base_offset=0, leader_epoch=0))
    log.append_as_follower(sized_batch(100, base_offset=40, leader_epoch=0))
    assert bases(log) == [0, 40]


def test_a_far_offset_of_a_follower_begins_a_segment_of_its_own(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(batch(base_offset=3, leader_epoch=0))
    log.append_as_follower(batch(base_offset=2**33, leader_epoch=0))
    assert bases(log) == [0, 2**33]
    assert log.log_end_offset == 2**33 + 1


@pytest.mark.parametrize(
    ("first_offset", "base_offset"), [(10, 1), (2**31 + 10, 13)], ids=["near", "far"]
)
def test_an_old_compressed_message_begins_a_segment_far_enough_below_its_last_offset(
    make_log: MakeLog, first_offset: int, base_offset: int
) -> None:
    log = make_log(internal_segment_bytes=150)
    log.append_as_follower(sized_batch(100, base_offset=0, leader_epoch=0))
    records = [(b"k", b"v" * 20, 5)] * 3
    old = legacy_message_set(records, magic=1, base_offset=first_offset, codec=Codec.GZIP)
    log.append_as_follower(old)
    assert bases(log) == [0, base_offset]
    assert log.log_end_offset == first_offset + 3


# --- what a roll does, in order ------------------------------------------------------------------


def test_stray_files_with_the_new_segments_name_are_removed_first(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=150)
    log.append_as_leader(sized_batch(100))
    suffixes = (".log", ".index", ".timeindex", ".txnindex")
    for suffix in suffixes:
        disk_of(log).put(f"{log.directory}/{1:020d}{suffix}", b"stray" * 500)
    data = sized_batch(100)
    log.append_as_leader(data)
    assert len(content(log, 1, ".log")) == 100
    assert f"{1:020d}.txnindex" not in names(log)
    assert not any(content(log, 1, ".index"))


def test_a_preallocated_segment_has_its_full_length_until_it_is_left(make_log: MakeLog) -> None:
    log = make_log(preallocate=True, internal_segment_bytes=150)
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    assert len(content(log, 0, ".log")) == 100
    assert len(content(log, 1, ".log")) == 150


def test_the_steps_of_a_roll_come_in_order_and_before_the_append_that_caused_it(
    make_log: MakeLog,
) -> None:
    log = make_log(internal_segment_bytes=250, index_interval_bytes=0)
    log.append_as_leader(sized_batch(100))
    log.append_as_leader(sized_batch(100))
    log.flush()
    disk_of(log).put(f"{log.directory}/{2:020d}.log", b"stray")
    number = disk_of(log).operations
    log.append_as_leader(sized_batch(100))
    trace = [each for each in trace_since(log, number) if each[0] != "sync"]
    first, second = f"{0:020d}", f"{2:020d}"
    steps = [
        ("truncate", f"{first}.timeindex"),
        ("create", f"{second}.log"),
        ("create", f"{second}.snapshot"),
        ("write", f"{second}.snapshot"),
        ("write", f"{second}.log"),
    ]
    assert [trace.index(step) for step in steps] == sorted(trace.index(step) for step in steps)
    assert trace.index(("unlink", f"{second}.log")) < trace.index(("create", f"{second}.log"))
    assert trace.index(("truncate", f"{first}.index")) < trace.index(("create", f"{second}.log"))


def test_a_roll_leaves_the_log_end_and_the_high_watermark_where_they_are(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    log.update_high_watermark(2)
    segment = log.roll()
    assert (segment.base_offset, log.log_end_offset, log.high_watermark) == (3, 3, 2)
    assert log.append_as_leader(batch()).first_offset == 3


def test_a_roll_writes_a_snapshot_named_after_the_new_segment(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(7, 0, 3))
    log.roll()
    assert log.snapshots.offsets == [3]
    assert len(content(log, 3, ".snapshot")) == 56
    assert log.producers.last_snapshot_offset == 3


def test_the_flush_after_a_roll_makes_the_old_segment_and_the_snapshot_durable(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    log.roll()
    assert not disk_of(log).is_synced(f"{log.directory}/{3:020d}.snapshot")
    log.append_as_leader(batch())
    log.flush()
    for name in (f"{0:020d}.log", f"{3:020d}.snapshot", f"{3:020d}.log"):
        assert disk_of(log).is_synced(f"{log.directory}/{name}")
    assert log.recovery_point == 4


def test_a_roll_flushes_first_so_that_nothing_outlives_the_end_of_the_old_segment(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    number = disk_of(log).operations
    log.roll()
    trace = trace_since(log, number)
    created = trace.index(("create", f"{3:020d}.log"))
    assert ("sync", f"{0:020d}.log") in trace[:created]
    assert log.recovery_point == 3


def test_a_roll_that_the_disk_has_no_room_for_can_be_tried_again(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=150, index_interval_bytes=0)
    log.append_as_leader(sized_batch(100))
    disk_of(log).fail(lambda o: o.kind == "create" and o.path.endswith(f"{1:020d}.log"), 28)
    with pytest.raises(DiskFullError):
        log.append_as_leader(sized_batch(100))
    assert (log.log_end_offset, bases(log)) == (1, [0])
    log.append_as_leader(sized_batch(100))
    assert (log.log_end_offset, bases(log)) == (2, [0, 1])
    assert len(read_all(log)) == 2


def test_every_roll_leaves_its_reason_with_the_numbers(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=150)
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    log.roll()
    reasons = log.own.rolls()
    assert "100 bytes and 100 incoming exceed segment.bytes=150" in str(reasons[1])
    assert reasons[2].cause is RollCause.REQUESTED
    lines = disk_of(log).contents(f"{log.directory}/.stratalog/rolls").splitlines()
    assert [json.loads(line)["base_offset"] for line in lines] == [1, 2]


# --- room ----------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(70, 120), max_size=8),
    timestamp_ms=st.sampled_from([-1, 0, START_MS]),
    incoming_bytes=st.integers(0, 1_200),
    offset_delta=st.integers(0, 3) | st.integers(2**31 - 3, 2**31 + 3),
    later_ms=st.integers(-5, 1_100),
)
def test_where_there_is_room_nothing_rolls_and_the_limits_themselves_are_within(
    sizes: list[int], timestamp_ms: int, incoming_bytes: int, offset_delta: int, later_ms: int
) -> None:
    config = TopicConfig(
        internal_segment_bytes=1_000,
        segment_ms=1_000,
        segment_index_bytes=24,
        index_interval_bytes=0,
    )
    segment = Segment.create(SimulatedFileSystem(), "/", 50, config, HandleCache(), now_ms=START_MS)
    offset = 50
    for size_bytes in sizes:
        data = sized_batch(size_bytes, base_offset=offset, timestamp_ms=timestamp_ms)
        segment.append(read_headers(data), [data])
        offset += 1
    room = room_in(segment, config)
    incoming = {
        "incoming_bytes": incoming_bytes,
        "incoming_last_offset": offset + offset_delta,
        "incoming_max_timestamp_ms": timestamp_ms + later_ms,
        "now_ms": START_MS,
    }
    fits = (
        segment.size_bytes + incoming_bytes <= room.size_bytes
        and offset + offset_delta <= room.last_offset
        and timestamp_ms + later_ms <= room.max_timestamp_ms
    )

    reason = plan_roll(segment, config, **incoming)

    assert not (fits and reason is not None)
    if room != NO_ROOM:
        assert fits == (reason is None), "where there is room at all, it is all there is"
    segment.discard()


@pytest.mark.parametrize(
    ("size_bytes", "timestamp_ms", "rolls"),
    [
        (100, START_MS + 1_000, False),
        (101, START_MS + 1_000, True),
        (100, START_MS + 1_001, True),
    ],
)
def test_an_append_within_room_that_is_known_is_held_against_all_of_it(
    make_log: MakeLog, size_bytes: int, timestamp_ms: int, rolls: bool
) -> None:
    log = make_log(internal_segment_bytes=300, segment_ms=1_000)
    for _ in range(2):
        log.append_as_leader(sized_batch(100))
    assert log.segments.active.room != NO_ROOM

    log.append_as_leader(sized_batch(size_bytes, timestamp_ms=timestamp_ms))

    assert bases(log) == ([0, 2] if rolls else [0])


def test_room_is_not_remembered_beyond_an_index_entry_a_cut_or_another_config() -> None:
    config = TopicConfig(index_interval_bytes=100)
    segment = Segment.create(SimulatedFileSystem(), "/", 0, config, HandleCache(), now_ms=START_MS)

    def put(offset: int) -> None:
        data = sized_batch(90, base_offset=offset)
        segment.append(read_headers(data), [data])

    put(0)
    for change in (
        lambda: [put(offset) for offset in (1, 2)],
        lambda: segment.truncate_to(1, now_ms=START_MS),
        lambda: segment.configure(config),
        segment.become_inactive,
    ):
        segment.room = room_in(segment, config)
        assert segment.room != NO_ROOM
        change()
        assert segment.room == NO_ROOM
    segment.discard()
