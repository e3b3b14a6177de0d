"""Reading: bounds, the first batch, sizes, and the aborted transactions that go with it (reference
5.1, 5.2), and the log start (5.3). The model of a log is the list of its batches."""

import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    EVERYTHING,
    append_transactional,
    batch,
    disk_of,
    end_transaction,
    fetch,
    new_context,
    new_log,
    reopened,
    sized_batch,
)

from stratalog.errors import OffsetOutOfRangeError
from stratalog.records import BatchHeader, read_headers
from stratalog.storage.files import OsFileSystem
from stratalog.storage.log import Log
from stratalog.storage.reading import FetchedData, Isolation
from stratalog.storage.transactions import AbortedTransaction

MakeLog = Callable[..., Log]
SMALL_SEGMENTS = {"internal_segment_bytes": 400, "index_interval_bytes": 90}


# Offset entries that could be true, though nothing says that they are.
PLAUSIBLE = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 400)).map(lambda each: struct.pack(">ii", *each)),
    max_size=6,
).map(b"".join)


@dataclass
class Follower:
    """A log filled with batches of one record each, at offsets with gaps between them."""

    log: Log
    stored: list[bytes] = field(default_factory=list)

    def append(self, offset: int, size_bytes: int) -> None:
        data = sized_batch(size_bytes, base_offset=offset, leader_epoch=0)
        self.log.append_as_follower(data)
        self.stored.append(data)

    def from_offset(self, offset: int) -> list[bytes]:
        return [each for each in self.stored if read_headers(each)[0].last_offset >= offset]


@st.composite
def followers(draw: st.DrawFn) -> Follower:
    follower = Follower(new_log(**SMALL_SEGMENTS))
    offset = 0
    for _ in range(draw(st.integers(1, 20))):
        offset += draw(st.integers(0, 4))
        follower.append(offset, draw(st.integers(70, 124)))
        offset += 1
    return follower


def raw(fetched: FetchedData) -> bytes:
    return b"" if fetched.records is None else fetched.records.read()


# --- the bounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("isolation", Isolation)
@pytest.mark.parametrize("offset", [2, 7])
def test_an_offset_below_the_log_start_or_above_the_log_end_is_out_of_range(
    make_log: MakeLog, isolation: Isolation, offset: int
) -> None:
    log = make_log()
    log.append_as_leader(batch(6))
    log.update_high_watermark(6)
    log.delete_records(3)
    with pytest.raises(OffsetOutOfRangeError) as raised:
        log.read(offset, max_bytes=EVERYTHING, isolation=isolation)
    assert (raised.value.log_start_offset, raised.value.log_end_offset) == (3, 6)


@pytest.mark.parametrize(
    ("isolation", "bound"),
    [(Isolation.LOG_END, 8), (Isolation.HIGH_WATERMARK, 6), (Isolation.TXN_COMMITTED, 2)],
)
def test_each_isolation_sees_as_far_as_its_bound_and_nothing_from_there_to_the_log_end(
    make_log: MakeLog, isolation: Isolation, bound: int
) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    append_transactional(log, 1, 0, count=4)
    log.append_as_leader(batch(2))
    log.update_high_watermark(6)
    assert fetch(log, 0, isolation=isolation)[-1].next_offset == bound
    for offset in range(bound, 9):
        assert log.read(offset, max_bytes=EVERYTHING, isolation=isolation).records is None


@given(followers(), st.data())
def test_a_read_returns_the_batches_of_one_segment_from_the_first_that_ends_at_the_offset(
    follower: Follower, data: st.DataObject
) -> None:
    log = follower.log
    start = data.draw(st.integers(0, log.log_end_offset))
    found = raw(log.read(start, max_bytes=EVERYTHING, isolation=Isolation.LOG_END))
    expected = follower.from_offset(start)
    assert b"".join(expected).startswith(found)
    assert bool(found) == bool(expected)
    if expected:
        first = read_headers(expected[0])[0].base_offset
        base = max(each for each in log.segments.base_offsets if each <= first)
        owner = log.segments.floor(base)
        assert owner is not None
        assert owner.file().read_at(0, owner.size_bytes).endswith(found)


@given(followers(), st.data())
def test_a_reader_at_the_high_watermark_sees_every_batch_below_it_and_none_above(
    follower: Follower, data: st.DataObject
) -> None:
    log = follower.log
    stored = [read_headers(each)[0] for each in follower.stored]
    ends = [0, *(header.next_offset for header in stored)]
    high_watermark = log.update_high_watermark(data.draw(st.sampled_from(ends)))
    offset, seen = 0, []
    while True:
        found = fetch(log, offset, max_bytes=200, isolation=Isolation.HIGH_WATERMARK)
        if not found:
            break
        seen += [header.base_offset for header in found]
        offset = found[-1].next_offset
    assert seen == [h.base_offset for h in stored if h.last_offset < high_watermark]


@given(followers(), st.data())
def test_damage_to_the_indexes_changes_no_answer(follower: Follower, data: st.DataObject) -> None:
    log = follower.log
    log.close()
    files = disk_of(log)
    indexes = [n for n in files.tree(log.directory) if n.endswith("index")]
    for name in data.draw(st.lists(st.sampled_from(sorted(indexes)), min_size=1, unique=True)):
        files.put(f"{log.directory}/{name}", data.draw(st.binary(max_size=60) | PLAUSIBLE))
    log = reopened(log)
    assert log.log_end_offset == read_headers(follower.stored[-1])[0].next_offset
    for start in range(log.log_end_offset):
        expected = follower.from_offset(start)[0]
        fetched = log.read(start, max_bytes=1, isolation=Isolation.LOG_END)
        assert raw(fetched) == expected


# --- sizes ---------------------------------------------------------------------------------------


@given(followers(), st.integers(0, 700), st.booleans(), st.data())
def test_the_size_is_bounded_by_max_bytes_but_for_one_whole_batch_where_asked(
    follower: Follower, max_bytes: int, min_one_message: bool, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, follower.log.log_end_offset - 1))
    whole = raw(follower.log.read(start, max_bytes=EVERYTHING, isolation=Isolation.LOG_END))
    first = read_headers(whole)[0].size_bytes
    fetched = follower.log.read(
        start, max_bytes=max_bytes, isolation=Isolation.LOG_END, min_one_message=min_one_message
    )
    size = min(len(whole), max(max_bytes, first if min_one_message else 0))
    given_size = len(raw(fetched))
    assert raw(fetched) == whole[:given_size]
    # Shorter only by what the reader would drop, or by small batches behind an indexed one.
    boundaries = [each.position for each in read_headers(whole) if each.position >= first]
    assert given_size == size or (given_size < size and given_size in boundaries)
    assert fetched.is_first_batch_incomplete == (0 < size < first)


def test_max_bytes_of_zero_gives_nothing_unless_one_message_is_asked_for(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(sized_batch(100))
    read = Isolation.LOG_END
    assert log.read(0, max_bytes=0, isolation=read, min_one_message=False).records is None
    assert log.read(0, max_bytes=0, isolation=read).size_bytes == 100


def test_a_slice_may_begin_below_the_offset_and_end_inside_a_batch(make_log: MakeLog) -> None:
    log = make_log()
    first = batch(5)
    log.append_as_leader(first)
    log.append_as_leader(batch(5))
    fetched = log.read(3, max_bytes=len(first) + 10, isolation=Isolation.LOG_END)
    assert (fetched.start_offset, fetched.segment_base_offset) == (3, 0)
    assert read_headers(raw(fetched))[0].base_offset == 0
    assert len(raw(fetched)) == len(first) + 10


def test_a_gap_at_the_end_of_a_segment_is_read_from_the_next_one(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_follower(batch(2, base_offset=0, leader_epoch=0))
    log.append_as_follower(batch(1, base_offset=2**32, leader_epoch=0))
    assert [h.base_offset for h in fetch(log, 2)] == [2**32]
    assert [h.base_offset for h in fetch(log, 2**32 - 1)] == [2**32]


def test_a_slice_stays_readable_when_its_segment_is_deleted(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    held = log.read(0, max_bytes=EVERYTHING, isolation=Isolation.LOG_END)
    log.roll()
    before = disk_of(log).contents(f"{log.directory}/{0:020d}.log")
    log.delete_segments([log.segments.first])
    log.run_deletes(2**62)
    assert raw(held) == before


# --- aborted transactions ------------------------------------------------------------------------


@dataclass
class History:
    """Transactions of three producers, mixed with plain batches, over several segments."""

    log: Log
    aborted: list[tuple[int, int, int]] = field(default_factory=list)


@st.composite
def histories(draw: st.DrawFn) -> History:
    history = History(new_log(**SMALL_SEGMENTS))
    log, opened, sequences = history.log, dict[int, int](), dict[int, int]()
    for step in draw(st.lists(st.sampled_from("wwwwnca"), max_size=30)):
        producer_id = draw(st.integers(1, 3))
        if step == "n":
            log.append_as_leader(batch())
        elif step == "w":
            first = append_transactional(log, producer_id, sequences.get(producer_id, 0))
            sequences[producer_id] = sequences.get(producer_id, 0) + 1
            opened.setdefault(producer_id, first)
        else:
            marker = end_transaction(log, producer_id, commit=step == "c").last_offset
            first = opened.pop(producer_id, -1)
            if step == "a" and first >= 0:
                history.aborted.append((producer_id, first, marker))
    log.update_high_watermark(log.log_end_offset)
    return history


def surviving(headers: list[BatchHeader], aborted: tuple[AbortedTransaction, ...]) -> list[int]:
    """What a consumer keeps: it drops a producer's batches from an abort's start to its marker."""
    pending = sorted(aborted, key=lambda each: each.first_offset)
    dropping: set[int] = set()
    kept = []
    for header in headers:
        while pending and pending[0].first_offset <= header.last_offset:
            dropping.add(pending.pop(0).producer_id)
        if header.is_control:
            dropping.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropping):
            kept.append(header.base_offset)
    return kept


def check_committed(log: Log, aborted: list[tuple[int, int, int]], start: int, size: int) -> None:
    fetched = log.read(start, max_bytes=size, isolation=Isolation.TXN_COMMITTED)
    headers = read_headers(raw(fetched))
    assert fetched.aborted is not None
    expected = [
        header.base_offset
        for header in headers
        if not header.is_control
        and not any(
            header.is_transactional
            and header.producer_id == producer_id
            and first <= header.base_offset < last
            for producer_id, first, last in aborted
        )
    ]
    assert surviving(headers, fetched.aborted) == expected
    assert all(header.last_offset < log.last_stable_offset for header in headers)


@given(histories(), st.integers(1, 500))
def test_a_reader_of_committed_data_is_told_of_every_abort_in_what_it_reads(
    history: History, max_bytes: int
) -> None:
    for start in range(history.log.last_stable_offset):
        check_committed(history.log, history.aborted, start, max_bytes)
    again = reopened(history.log)
    for start in range(again.last_stable_offset):
        check_committed(again, history.aborted, start, max_bytes)


@given(histories(), st.data())
def test_a_garbled_offset_index_hides_no_abort(history: History, data: st.DataObject) -> None:
    log = history.log
    log.close()
    files = disk_of(log)
    for name in [n for n in files.tree(log.directory) if n.endswith(".index")]:
        size = len(files.contents(f"{log.directory}/{name}"))
        entry = st.tuples(st.integers(0, 40), st.integers(1, 2**31 - 1))
        entries = data.draw(st.lists(entry, min_size=size // 8, max_size=size // 8))
        garbled = b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in entries)
        files.put(f"{log.directory}/{name}", garbled)
    log = reopened(log)
    for start in range(log.last_stable_offset):
        check_committed(log, history.aborted, start, EVERYTHING)


def test_an_index_entry_beyond_the_file_hides_no_abort() -> None:
    log = new_log(index_interval_bytes=90)
    for _ in range(4):
        log.append_as_leader(batch())
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=False)
    log.roll()
    log.update_high_watermark(log.log_end_offset)
    log.close()
    garbled = struct.pack(">iiii", 1, 10**6, 2, 10**6)
    disk_of(log).put(f"{log.directory}/{0:020d}.index", garbled)
    check_committed(reopened(log), [(1, 4, 5)], 0, EVERYTHING)


def test_the_aborted_list_stops_where_the_slice_ends(make_log: MakeLog) -> None:
    log = make_log(index_interval_bytes=0)
    for producer_id in (1, 2):
        append_transactional(log, producer_id, 0)
        end_transaction(log, producer_id, commit=False)
        for _ in range(4):
            log.append_as_leader(sized_batch(100))
    log.update_high_watermark(log.log_end_offset)
    first = log.read(0, max_bytes=1, isolation=Isolation.TXN_COMMITTED).aborted
    later = log.read(7, max_bytes=EVERYTHING, isolation=Isolation.TXN_COMMITTED).aborted
    assert [each.producer_id for each in first or ()] == [1]
    assert [each.producer_id for each in later or ()] == [2]


def test_only_readers_of_committed_data_get_a_list_and_an_empty_read_gets_an_empty_one(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch())
    log.update_high_watermark(1)
    assert log.read(0, max_bytes=1, isolation=Isolation.HIGH_WATERMARK).aborted is None
    assert log.read(0, max_bytes=1, isolation=Isolation.TXN_COMMITTED).aborted == ()
    assert log.read(1, max_bytes=1, isolation=Isolation.TXN_COMMITTED).aborted == ()


# --- the log start -------------------------------------------------------------------------------


def test_deleting_records_raises_the_log_start_to_the_offset_and_never_lowers_it(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(6))
    log.update_high_watermark(5)
    assert log.delete_records(3) == 3
    assert log.delete_records(2) == 3
    assert log.delete_records(-1) == 5
    assert (log.high_watermark, log.log_end_offset) == (5, 6)


@pytest.mark.parametrize("offset", [6, -2])
def test_records_above_the_high_watermark_cannot_be_deleted(make_log: MakeLog, offset: int) -> None:
    log = make_log()
    log.append_as_leader(batch(6))
    log.update_high_watermark(5)
    with pytest.raises(OffsetOutOfRangeError):
        log.delete_records(offset)
    assert log.log_start_offset == 0


def test_raising_the_log_start_flushes_what_it_stands_behind_and_cuts_the_epochs(
    make_log: MakeLog,
) -> None:
    log = make_log()
    for epoch in (1, 2, 3):
        log.append_as_leader(batch(2), leader_epoch=epoch)
    log.update_high_watermark(6)
    log.raise_log_start_offset(5)
    assert log.recovery_point == 6
    assert [(e.epoch, e.start_offset) for e in log.epochs.entries] == [(3, 5)]


def test_finished_transactions_below_the_log_start_hold_no_reader_back(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0, count=3)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 0
    log.raise_log_start_offset(2)
    assert log.last_stable_offset == 2, "the open one is moved up to the log start"
    end_transaction(log, 1, commit=False)
    log.append_as_leader(batch())
    assert log.last_stable_offset == 2
    log.update_high_watermark(5)
    log.raise_log_start_offset(5)
    assert log.last_stable_offset == 5


def test_finished_transactions_of_deleted_segments_are_forgotten(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True)
    log.roll()
    assert log.producers.first_unstable_offset == 0
    log.delete_segments([log.segments.first])
    assert log.producers.first_unstable_offset is None
    assert (log.log_start_offset, log.high_watermark, log.recovery_point) == (2, 2, 2)


def test_the_log_start_after_a_load_is_the_higher_of_checkpoint_and_first_segment(
    make_log: MakeLog,
) -> None:
    log = make_log()
    for _ in range(2):
        log.append_as_leader(batch(5))
        log.roll()
    log.update_high_watermark(10)
    log.delete_segments([log.segments.first])
    assert log.log_start_offset == 5
    log.raise_log_start_offset(7)
    log = reopened(log)
    assert log.log_start_offset == 7
    log.log_start_offset = 0
    assert reopened(log).log_start_offset == 5


# --- on a real disk ------------------------------------------------------------------------------


def test_slices_of_real_files_can_be_sent_without_being_read(tmp_path: Path) -> None:
    log = new_log(context=new_context(OsFileSystem()), directory=str(tmp_path / "logs" / "t-0"))
    log.append_as_leader(batch(3))
    log.roll()
    log.append_as_leader(batch(3))
    fetched = log.read(3, max_bytes=EVERYTHING, isolation=Isolation.LOG_END)
    assert fetched.records is not None
    with (tmp_path / "received").open("wb+") as received:
        sent = os.sendfile(
            received.fileno(),
            fetched.records.fileno(),
            fetched.records.position,
            fetched.size_bytes,
        )
        received.seek(0)
        assert received.read() == raw(fetched)
    assert sent == fetched.size_bytes
    again = reopened(log)
    assert [h.base_offset for h in (*fetch(again, 0), *fetch(again, 3))] == [0, 3]
    again.close()


def test_a_slice_of_large_batches_ends_with_a_batch_where_the_index_knows_the_next(
    make_log: MakeLog,
) -> None:
    log = make_log(index_interval_bytes=90)
    for offset in range(5):
        log.append_as_follower(sized_batch(100, base_offset=offset, leader_epoch=0))

    log.read(0, max_bytes=1, isolation=Isolation.LOG_END)  # learns that batches are large
    sizes = [
        log.read(1, max_bytes=limit, isolation=Isolation.LOG_END).size_bytes
        for limit in (99, 100, 199, 200, 250, 399, 400, 1000)
    ]

    assert sizes == [100, 100, 100, 200, 200, 300, 400, 400]
