"""Appending: what a leader and a follower accept, the order of the steps, and that a refused append
changes nothing."""

import errno
import struct
import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    append_transactional,
    batch,
    clock_of,
    content,
    disk_of,
    end_transaction,
    fetch,
    new_log,
    produced,
    read_all,
    reopened,
    sized_batch,
    trace_since,
)

from stratalog.errors import (
    CorruptBatchError,
    DiskError,
    DiskFullError,
    InvalidRecordError,
    InvalidTimestampError,
    LogClosedError,
    OffsetsOutOfOrderError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    StratalogError,
    UnexpectedAppendOffsetError,
)
from stratalog.records import Codec, Record, build_batch, read_headers
from stratalog.storage.checkpoint import EpochEntry
from stratalog.storage.context import DirectoryState, DiskState
from stratalog.storage.log import Log
from stratalog.testing.legacy import legacy_message_set
from stratalog.testing.strategies import batch_runs, batches

MakeLog = Callable[..., Log]


def state_of(log: Log) -> object:
    """All that an append may change, in memory and on disk."""
    return (
        log.log_end_offset,
        log.segments.base_offsets,
        log.epochs.entries,
        list(log.producers),
        log.producers.first_unstable_offset,
        [segment.offset_index.content() for segment in log.segments],
        disk_of(log).tree(log.directory),
    )


# --- as a leader ---------------------------------------------------------------------------------


@given(st.lists(batches(), max_size=8))
def test_a_leader_gives_each_batch_the_next_offsets_and_stores_it_otherwise_as_it_came(
    sent: list[bytes],
) -> None:
    log = new_log(internal_segment_bytes=4000)
    expected = []
    for each in sent:
        end = log.log_end_offset
        info = log.append_as_leader(each, leader_epoch=3)
        count = read_headers(each)[0].record_count
        assert (info.first_offset, info.last_offset) == (end, end + count - 1)
        expected.append(struct.pack(">q", end) + each[8:12] + struct.pack(">i", 3) + each[16:])
    assert read_all(log) == expected
    assert read_all(reopened(log)) == expected


@given(batches())
def test_the_offset_and_epoch_a_leader_writes_are_outside_the_crc(sent: bytes) -> None:
    log = new_log()
    log.append_as_leader(batch(5), leader_epoch=7)
    log.append_as_leader(sent, leader_epoch=8)
    (stored,) = fetch(log, 5)
    assert stored.crc == read_headers(sent)[0].crc
    assert (stored.base_offset, stored.partition_leader_epoch) == (5, 8)


def test_an_append_says_where_it_landed(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    info = log.append_as_leader(batch(2, timestamp_ms=77))
    assert (info.first_offset, info.last_offset, info.max_timestamp_ms) == (3, 4, 77)
    assert (info.log_append_time_ms, info.log_start_offset, info.is_duplicate) == (-1, 0, False)
    assert log.log_end_offset == 5


def test_a_topic_with_append_time_stamps_the_batch_and_says_so(make_log: MakeLog) -> None:
    log = make_log(message_timestamp_type="LogAppendTime")
    clock_of(log).advance(5)
    info = log.append_as_leader(batch(2, timestamp_ms=77))
    assert (info.log_append_time_ms, info.max_timestamp_ms) == (START_MS + 5, START_MS + 5)
    (stored,) = fetch(log, 0)
    assert (stored.is_log_append_time, stored.max_timestamp_ms) == (True, START_MS + 5)


def test_a_topic_with_its_own_codec_compresses_what_comes(make_log: MakeLog) -> None:
    log = make_log(compression_type="zstd")
    log.append_as_leader(batch(4, codec=Codec.GZIP))
    (stored,) = fetch(log, 0)
    assert (stored.codec_id, stored.record_count) == (Codec.ZSTD, 4)


@pytest.mark.parametrize(
    ("config", "sent", "error"),
    [
        ({}, batch(base_offset=1), InvalidRecordError),
        ({}, batch(control=True, producer_id=1, producer_epoch=0), InvalidRecordError),
        ({}, produced(1, -1), InvalidRecordError),
        ({}, batch() + batch(), InvalidRecordError),
        ({}, b"", InvalidRecordError),
        ({}, batch()[:-1] + b"\xff", CorruptBatchError),
        ({"max_message_bytes": 99}, sized_batch(100), RecordTooLargeError),
        ({"cleanup_policy": ("compact",)}, sized_batch(100), InvalidRecordError),
        (
            {"message_timestamp_before_max_ms": 10},
            batch(timestamp_ms=START_MS - 11),
            InvalidTimestampError,
        ),
        (
            {"message_timestamp_after_max_ms": 10},
            batch(timestamp_ms=START_MS + 11),
            InvalidTimestampError,
        ),
    ],
    ids=[
        "base offset",
        "control",
        "no sequence",
        "two batches",
        "nothing",
        "crc",
        "too large",
        "no key",
        "too old",
        "too new",
    ],
)
def test_a_produced_batch_that_breaks_a_rule_is_refused_and_changes_nothing(
    make_log: MakeLog, config: dict[str, object], sent: bytes, error: type[Exception]
) -> None:
    log = make_log(**config)
    before = state_of(log)
    with pytest.raises(error):
        log.append_as_leader(sent)
    assert state_of(log) == before


def test_a_changed_setting_counts_from_the_next_append_on(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(sized_batch(100))
    log.configure(log.config.altered(max_message_bytes=99))
    with pytest.raises(RecordTooLargeError):
        log.append_as_leader(sized_batch(100))


# --- as a follower -------------------------------------------------------------------------------


@given(batch_runs(gaps=True), st.integers(1, 3))
def test_a_follower_stores_the_leaders_bytes_untouched(run: list[bytes], at_once: int) -> None:
    log = new_log(internal_segment_bytes=20_000)
    for start in range(0, len(run), at_once):
        log.append_as_follower(b"".join(run[start : start + at_once]))
    assert b"".join(read_all(log)) == b"".join(run)
    assert log.log_end_offset == read_headers(run[-1])[0].next_offset
    assert read_all(reopened(log)) == run


def test_a_follower_drops_a_batch_that_is_cut_at_the_end(make_log: MakeLog) -> None:
    log = make_log()
    whole = batch(2, base_offset=0, leader_epoch=0)
    info = log.append_as_follower(whole + batch(1, base_offset=2, leader_epoch=0)[:-1])
    assert info.last_offset == 1
    assert content(log, 0, ".log") == whole


def test_a_follower_that_gets_no_whole_batch_appends_nothing(make_log: MakeLog) -> None:
    log = make_log()
    before = state_of(log)
    assert log.append_as_follower(b"").size_bytes == 0
    assert log.append_as_follower(batch()[:40]).size_bytes == 0
    assert state_of(log) == before


def test_a_follower_refuses_a_batch_below_its_log_end(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(batch(5, base_offset=0, leader_epoch=0))
    before = state_of(log)
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(batch(5, base_offset=4, leader_epoch=0))
    assert state_of(log) == before


def test_a_follower_judges_an_old_compressed_message_by_its_last_offset(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(batch(5, base_offset=0))
    records = [(b"k", b"v", 5)] * 3
    with pytest.raises(UnexpectedAppendOffsetError):
        log.append_as_follower(
            legacy_message_set(records, magic=1, base_offset=2, codec=Codec.GZIP)
        )
    log.append_as_follower(legacy_message_set(records, magic=1, base_offset=5, codec=Codec.GZIP))
    assert log.log_end_offset == 8


def test_a_follower_refuses_batches_whose_offsets_do_not_grow(make_log: MakeLog) -> None:
    log = make_log()
    before = state_of(log)
    for second in (batch(1, base_offset=4), batch(3, base_offset=2)):
        with pytest.raises(OffsetsOutOfOrderError):
            log.append_as_follower(batch(5, base_offset=0) + second)
    assert state_of(log) == before


def test_a_follower_refuses_a_batch_with_a_wrong_crc(make_log: MakeLog) -> None:
    log = make_log()
    before = state_of(log)
    with pytest.raises(CorruptBatchError):
        log.append_as_follower(batch(5)[:-1] + b"\xff")
    assert state_of(log) == before


def test_a_follower_takes_batches_above_max_message_bytes(make_log: MakeLog) -> None:
    log = make_log(max_message_bytes=10)
    log.append_as_follower(sized_batch(100, leader_epoch=0))
    assert log.log_end_offset == 1


def test_a_follower_leaves_out_batches_of_an_epoch_it_does_not_know_yet(make_log: MakeLog) -> None:
    log = make_log()
    epochs = (1, 2, 1)
    run = [batch(1, base_offset=n, leader_epoch=epoch) for n, epoch in enumerate(epochs)]
    log.append_as_follower(b"".join(run), leader_epoch=1)
    assert log.log_end_offset == 1
    log.append_as_follower(b"".join(run[1:]), leader_epoch=2)
    assert log.log_end_offset == 3


# --- epochs, order of steps ----------------------------------------------------------------------


def test_the_epoch_file_is_durable_before_the_bytes_of_the_epoch_are_written(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(2), leader_epoch=4)
    number = disk_of(log).operations
    log.append_as_leader(batch(2), leader_epoch=5)
    trace = trace_since(log, number)
    assert trace == [
        ("create", "leader-epoch-checkpoint.tmp"),
        ("write", "leader-epoch-checkpoint.tmp"),
        ("sync", "leader-epoch-checkpoint.tmp"),
        ("rename", "leader-epoch-checkpoint.tmp"),
        ("sync_directory", log.directory.rpartition("/")[2]),
        ("write", f"{0:020d}.log"),
    ]
    assert log.epochs.entries == (EpochEntry(4, 0), EpochEntry(5, 2))


def test_an_append_in_the_same_epoch_is_one_write_and_no_sync(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    number = disk_of(log).operations
    log.append_as_leader(batch(2))
    assert trace_since(log, number) == [("write", f"{0:020d}.log")]


def test_every_batch_of_a_followers_append_may_begin_an_epoch(make_log: MakeLog) -> None:
    log = make_log()
    run = [batch(2, base_offset=2 * n, leader_epoch=e) for n, e in enumerate((1, 1, 3, 4))]
    log.append_as_follower(b"".join(run))
    assert log.epochs.entries == (EpochEntry(1, 0), EpochEntry(3, 4), EpochEntry(4, 6))


def test_an_old_message_clears_the_epochs(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(batch(1, leader_epoch=3))
    log.append_as_follower(legacy_message_set([(b"k", b"v", 5)], magic=1, base_offset=1))
    assert log.epochs.entries == ()


def test_the_topic_id_is_durable_before_the_first_append(make_log: MakeLog) -> None:
    log = make_log()
    log.assign_topic_id(uuid.UUID(int=77))
    assert disk_of(log).is_synced(f"{log.directory}/partition.metadata")
    log.append_as_leader(batch())
    assert reopened(log).topic_id == uuid.UUID(int=77)


@pytest.mark.parametrize("flush_messages", [1, 3])
def test_flush_messages_flushes_when_that_many_records_wait(
    make_log: MakeLog, flush_messages: int
) -> None:
    log = make_log(flush_messages=flush_messages)
    for end in range(1, 8):
        log.append_as_leader(batch())
        assert log.recovery_point == end - end % flush_messages


# --- refusals that must not leave a trace --------------------------------------------------------


def test_a_batch_out_of_sequence_begins_no_epoch_and_rolls_no_segment(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=150)
    log.append_as_leader(produced(1, 0), leader_epoch=1)
    before = state_of(log)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(produced(1, 7), leader_epoch=2)
    assert state_of(log) == before


@pytest.mark.parametrize("state", [DiskState.FULL, DiskState.OFFLINE])
def test_a_log_whose_directory_is_full_or_offline_refuses_appends_and_serves_reads(
    make_log: MakeLog, state: DiskState
) -> None:
    log = make_log()
    log.append_as_leader(batch())
    log.context.directory_state.state = state
    with pytest.raises((DiskFullError, LogClosedError)):
        log.append_as_leader(batch())
    assert len(fetch(log, 0)) == 1
    log.context.directory_state = DirectoryState()
    assert log.append_as_leader(batch()).first_offset == 1


@pytest.mark.parametrize("written_bytes", [0, 30, 70])
def test_a_write_that_finds_the_disk_full_leaves_the_log_as_it_was_and_can_be_tried_again(
    make_log: MakeLog, written_bytes: int
) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    before = state_of(log)
    disk_of(log).fail(lambda o: o.kind == "write", errno.ENOSPC, written_bytes=written_bytes)
    with pytest.raises(DiskFullError):
        log.append_as_leader(produced(1, 1))
    assert state_of(log) == before
    assert log.append_as_leader(produced(1, 1)).first_offset == 1


def append_transactions(log: Log) -> int:
    """Twelve short transactions, as far as they are taken; returns how many ended."""
    ended = 0
    for producer_id in range(12):
        with suppress(DiskError, LogClosedError):
            append_transactional(log, producer_id, 0, 2)
            end_transaction(log, producer_id, commit=bool(producer_id % 2))
            ended += 1
    return ended


def check_whole(log: Log, ended: int) -> None:
    """Every offset up to the log end is read, and all that was acknowledged is there."""
    headers = [read_headers(each)[0] for each in read_all(log)]
    assert [h.base_offset for h in headers] == [0, *[h.next_offset for h in headers]][:-1]
    assert (headers[-1].next_offset if headers else 0) == log.log_end_offset
    assert sum(h.is_control for h in headers) >= ended


@pytest.mark.parametrize("number", range(1, 31, 2))
def test_whatever_write_finds_the_disk_full_the_log_stays_whole_and_goes_on(
    make_log: MakeLog, number: int
) -> None:
    log = make_log(internal_segment_bytes=400, index_interval_bytes=0, segment_index_bytes=60)
    left = iter(range(number, -1, -1))
    disk_of(log).fail(lambda o: "sync" not in o.kind and next(left) == 0, errno.ENOSPC)
    ended = append_transactions(log)
    assert ended >= 11
    assert log.failure is None
    check_whole(log, ended)
    check_whole(reopened(log), ended)


def test_whatever_operation_fails_for_good_what_was_acknowledged_before_it_is_still_read() -> None:
    for number in range(1, 41):
        log = new_log(internal_segment_bytes=400, index_interval_bytes=0, segment_index_bytes=60)
        disk_of(log).fail(disk_of(log).operations + number, errno.EIO)
        check_whole(log, append_transactions(log))


def test_an_input_output_error_takes_the_directory_offline(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch())
    disk_of(log).fail(lambda o: o.kind == "write", errno.EIO)
    with pytest.raises(DiskError):
        log.append_as_leader(batch())
    assert log.context.directory_state.state is DiskState.OFFLINE
    with pytest.raises(LogClosedError):
        log.append_as_leader(batch())
    assert len(fetch(log, 0)) == 1


def test_a_closed_log_refuses_appends_and_reads(make_log: MakeLog) -> None:
    log = make_log()
    log.close()
    for call in (lambda: log.append_as_leader(batch()), lambda: fetch(log, 0)):
        with pytest.raises(LogClosedError):
            call()


@given(st.binary(max_size=150))
def test_bytes_from_outside_are_refused_or_stored_and_never_break_the_log(junk: bytes) -> None:
    log = new_log()
    log.append_as_leader(batch())
    for append in (log.append_as_leader, log.append_as_follower):
        before = log.log_end_offset
        try:
            append(junk)
        except StratalogError:
            assert log.log_end_offset == before
    log.append_as_leader(build_batch([Record(b"k", b"v")]))
    assert len(read_all(log)) >= 2
