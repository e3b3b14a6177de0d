"""The index of aborted transactions: layout, order, search, truncation,
and what a log writes into it."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    append_transactional,
    batch,
    content,
    disk_of,
    end_transaction,
    names,
    produced,
    reopened,
)

from stratalog.errors import CorruptIndexError, DiskFullError
from stratalog.records import build_end_transaction_marker
from stratalog.storage.log import Log
from stratalog.storage.transactions import AbortedTransaction, TransactionIndex
from stratalog.testing import SimulatedFileSystem

MakeLog = Callable[..., Log]
PATH = "/1000.txnindex"


def transaction_index(files: SimulatedFileSystem, *, exists: bool = False) -> TransactionIndex:
    return TransactionIndex(files, PATH, 1000, exists=exists)


def entries_of(log: Log) -> list[AbortedTransaction]:
    return [aborted for segment in log.segments for aborted in segment.transaction_index]


@st.composite
def aborted_lists(draw: st.DrawFn) -> list[AbortedTransaction]:
    last_offset, found = 1000, []
    for _ in range(draw(st.integers(0, 12))):
        last_offset += draw(st.integers(1, 9))
        first_offset = last_offset - draw(st.integers(1, 20))
        stable = draw(st.integers(first_offset, last_offset + 1))
        found.append(AbortedTransaction(draw(st.integers(0, 3)), first_offset, last_offset, stable))
    return found


# --- the file ------------------------------------------------------------------------------------


def test_an_entry_is_version_producer_first_last_and_last_stable_offset() -> None:
    files = SimulatedFileSystem()
    transaction_index(files).append(AbortedTransaction(7, 1001, 1005, 1003))
    assert files.contents(PATH) == struct.pack(">hqqqq", 0, 7, 1001, 1005, 1003)


def test_the_file_appears_with_the_first_abort_and_is_not_preallocated(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True)
    append_transactional(log, 1, 1)
    assert f"{0:020d}.txnindex" not in names(log)
    end_transaction(log, 1, commit=False)
    assert len(content(log, 0, ".txnindex")) == 34


@given(aborted_lists())
def test_an_index_opened_again_lists_the_same_transactions(
    listed: list[AbortedTransaction],
) -> None:
    files = SimulatedFileSystem()
    index = transaction_index(files)
    for each in listed:
        index.append(each)
    assert list(index) == listed
    assert list(transaction_index(files, exists=bool(listed))) == listed


@pytest.mark.parametrize("last_offset", [1004, 1005])
def test_an_abort_must_come_after_the_one_before_it(last_offset: int) -> None:
    index = transaction_index(SimulatedFileSystem())
    index.append(AbortedTransaction(7, 1001, 1005, 1006))
    with pytest.raises(CorruptIndexError):
        index.append(AbortedTransaction(8, 1001, last_offset, 1006))
    assert len(list(index)) == 1


def test_a_partial_entry_at_the_end_is_ignored_and_written_over() -> None:
    files = SimulatedFileSystem()
    first, second = AbortedTransaction(7, 1001, 1005, 1006), AbortedTransaction(7, 1007, 1009, 1010)
    files.put(PATH, first.encode() + second.encode()[:20])
    index = transaction_index(files, exists=True)
    assert list(index) == [first]
    index.append(second)
    assert list(index) == [first, second]


def test_an_entry_of_a_later_version_is_refused() -> None:
    files = SimulatedFileSystem()
    files.put(PATH, b"\1\0" + AbortedTransaction(7, 1001, 1005, 1006).encode()[2:])
    with pytest.raises(CorruptIndexError, match="version"):
        list(transaction_index(files, exists=True))


def test_an_abort_below_the_segment_is_corrupt() -> None:
    files = SimulatedFileSystem()
    index = transaction_index(files)
    index.append(AbortedTransaction(7, 900, 1000, 1001))
    index.sanity_check()
    files.put(PATH, AbortedTransaction(7, 900, 999, 1000).encode())
    with pytest.raises(CorruptIndexError, match="below"):
        transaction_index(files, exists=True).sanity_check()


# --- searching and cutting -----------------------------------------------------------------------


@given(aborted_lists(), st.integers(980, 1080), st.data())
def test_a_search_lists_what_reaches_into_the_range_until_a_stable_offset_is_beyond_it(
    listed: list[AbortedTransaction], start: int, data: st.DataObject
) -> None:
    index = transaction_index(SimulatedFileSystem())
    near = st.sampled_from([start + 9, *(each.last_stable_offset for each in listed)])
    end = max(start, data.draw(near) + data.draw(st.integers(-1, 1)))
    expected, complete = [], False
    for each in listed:
        index.append(each)
        if not complete and each.last_offset >= start and each.first_offset < end:
            expected.append(each)
        complete = complete or each.last_stable_offset >= end
    found = index.collect(start, end)
    assert list(found.transactions) == expected
    assert found.is_complete == complete


@given(aborted_lists(), st.data())
def test_truncation_drops_the_aborts_from_the_first_at_or_above_the_offset(
    listed: list[AbortedTransaction], data: st.DataObject
) -> None:
    near = [1000, *(each.last_offset for each in listed)]
    offset = data.draw(st.sampled_from(near)) + data.draw(st.integers(-1, 1))
    files = SimulatedFileSystem()
    index = transaction_index(files)
    for each in listed:
        index.append(each)
    index.truncate_to(offset)
    kept = [each for each in listed if each.last_offset < offset]
    assert list(index) == kept
    assert list(transaction_index(files, exists=bool(listed))) == kept
    index.append(AbortedTransaction(1, offset, max(offset, 1000), offset))
    assert len(list(index)) == len(kept) + 1


# --- what a log writes into it -------------------------------------------------------------------


def test_an_abort_is_listed_with_its_first_offset_its_marker_and_the_stable_offset_after_it(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    append_transactional(log, 1, 0, count=2)
    append_transactional(log, 2, 0)
    log.append_as_leader(batch())
    end_transaction(log, 1, commit=False)
    end_transaction(log, 2, commit=False)
    assert entries_of(log) == [AbortedTransaction(1, 3, 7, 5), AbortedTransaction(2, 5, 8, 9)]


def test_the_stable_offset_after_an_abort_ignores_later_transactions_of_the_same_producer(
    make_log: MakeLog,
) -> None:
    """A follower gets several transactions in one append: all have begun when the first ends."""
    log = make_log()
    pieces = [
        produced(1, 0, transactional=True),
        build_end_transaction_marker(
            commit=False, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=5
        ),
        produced(1, 1, transactional=True),
    ]
    stamped = [struct.pack(">q", at) + piece[8:] for at, piece in enumerate(pieces)]
    log.append_as_follower(b"".join(stamped))
    assert entries_of(log) == [AbortedTransaction(1, 0, 1, 2)]


def test_an_abort_is_listed_in_the_segment_that_holds_its_marker(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    log.roll()
    end_transaction(log, 1, commit=False)
    first, second = log.segments
    assert not first.transaction_index.exists
    assert list(second.transaction_index) == [AbortedTransaction(1, 0, 1, 2)]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_without_a_transaction_is_not_listed(make_log: MakeLog, commit: bool) -> None:
    log = make_log()
    end_transaction(log, 1, commit=commit)
    assert entries_of(log) == []
    assert log.log_end_offset == 1


def test_a_commit_is_not_listed(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True)
    assert entries_of(log) == []


def test_a_full_disk_never_leaves_an_abort_written_and_not_listed(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    disk_of(log).fail(lambda o: o.kind in ("create", "write") and o.path.endswith("txnindex"), 28)
    try:
        end_transaction(log, 1, commit=False)
    except DiskFullError:
        assert log.log_end_offset == 1, "refused, so not written"
        end_transaction(log, 1, commit=False)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset
    log = reopened(log)
    assert [(each.producer_id, each.first_offset) for each in entries_of(log)] == [(1, 0)]


def test_an_abort_that_a_full_disk_refused_is_not_there_after_a_crash(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    before = content(log, 0, ".log")
    disk_of(log).fail(lambda o: o.kind in ("create", "write") and o.path.endswith("txnindex"), 28)
    with pytest.raises(DiskFullError):
        end_transaction(log, 1, commit=False, timestamp_ms=START_MS + 9)
    assert content(log, 0, ".log") == before
    assert log.segments.active.max_timestamp().timestamp_ms == START_MS
    again = reopened(log, clean=False)
    assert again.log_end_offset == 1
    assert again.producers.first_unstable_offset == 0, "its transaction is open"


def test_a_marker_of_replication_lists_its_abort_like_the_leaders(make_log: MakeLog) -> None:
    leader, follower = make_log(), make_log()
    append_transactional(leader, 4, 0, count=2)
    end_transaction(leader, 4, commit=False)
    data = content(leader, 0, ".log")
    follower.append_as_follower(data)
    assert entries_of(follower) == entries_of(leader)
    assert content(follower, 0, ".txnindex") == content(leader, 0, ".txnindex")
    assert follower.producers.get(4) == leader.producers.get(4)
