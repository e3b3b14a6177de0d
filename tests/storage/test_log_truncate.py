"""Cutting a log at its end and deleting segments from its start: what is left, and in which order
the files change."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_harness import (
    append_transactional,
    batch,
    content,
    disk_of,
    end_transaction,
    fetch,
    names,
    new_log,
    produced,
    read_all,
    reopened,
    trace_since,
)

from stratalog.errors import DiskError
from stratalog.records import read_headers
from stratalog.storage.checkpoint import EpochEntry
from stratalog.storage.log import Log

MakeLog = Callable[..., Log]
STEPS = st.lists(
    st.tuples(st.sampled_from("niwcar"), st.integers(1, 3), st.integers(1, 3)), max_size=20
)
Steps = list[tuple[str, int, int]]


def append_step(log: Log, step: str, producer_id: int, count: int, epoch: int) -> None:
    """Append as the leader of ``epoch``: plain, idempotent, in a transaction, or its end."""
    state = log.producers.get(producer_id)
    sequence = 0 if state is None else state.last_sequence + 1
    if step == "n":
        log.append_as_leader(batch(count), leader_epoch=epoch)
    elif step in "ca":
        end_transaction(log, producer_id, commit=step == "c")
    elif step == "r":
        log.roll()
    else:
        transactional = step == "w" or (state and state.transaction_first_offset is not None)
        data = produced(producer_id, sequence, count, transactional=bool(transactional))
        log.append_as_leader(data, leader_epoch=epoch)


def state_of(log: Log) -> object:
    """What a log knows, but for the batches of a producer before its last."""
    return (
        log.log_end_offset,
        read_all(log),
        [list(segment.transaction_index) for segment in log.segments if segment.size_bytes],
        {
            state.producer_id: (
                state.epoch,
                state.last_sequence,
                state.last_data_offset,
                state.transaction_first_offset,
                state.coordinator_epoch,
            )
            for state in log.producers
        },
        [segment.max_timestamp() for segment in log.segments if segment.size_bytes],
    )


@given(STEPS, st.data())
def test_a_log_cut_at_a_batch_is_the_log_that_was_never_appended_to_behind_it(
    steps: Steps, data: st.DataObject
) -> None:
    log, kept = (new_log(internal_segment_bytes=400, index_interval_bytes=90) for _ in "ab")
    cut = data.draw(st.integers(0, len(steps)))
    for epoch, step in enumerate(steps):
        append_step(log, *step, epoch=epoch // 3)
        if epoch < cut:
            append_step(kept, *step, epoch=epoch // 3)
    cut_anything = kept.log_end_offset < log.log_end_offset
    assert log.truncate_to(kept.log_end_offset) == cut_anything
    assert state_of(log) == state_of(kept)
    assert state_of(reopened(log)) == state_of(reopened(kept))


@given(STEPS.filter(bool), st.data())
def test_a_log_cut_anywhere_ends_there_and_goes_on_there(steps: Steps, data: st.DataObject) -> None:
    log = new_log(internal_segment_bytes=400, index_interval_bytes=90)
    for step in steps:
        append_step(log, *step, epoch=0)
    before = read_all(log)
    offset = data.draw(st.integers(0, log.log_end_offset))
    log.truncate_to(offset)
    left = [each for each in before if read_headers(each)[0].last_offset < offset]
    assert log.log_end_offset == offset
    assert read_all(log) == left
    assert log.append_as_leader(batch(2)).first_offset == offset
    assert read_all(log)[:-1] == left
    assert [h.base_offset for h in fetch(log, offset)] == [offset]


# --- the cases -----------------------------------------------------------------------------------


def filled(log: Log) -> Log:
    """Three segments of two batches of two records, each in an epoch of its own."""
    for epoch in range(3):
        for _ in range(2):
            log.append_as_leader(batch(2), leader_epoch=epoch)
        if epoch < 2:
            log.roll()
    log.flush()
    log.update_high_watermark(12)
    return log


@pytest.mark.parametrize("offset", [12, 13, 100])
def test_cutting_at_or_above_the_log_end_changes_only_the_epochs(
    make_log: MakeLog, offset: int
) -> None:
    log = filled(make_log())
    log.assign_leader_epoch(7)
    before = {n: c for n, c in disk_of(log).tree(log.directory).items() if "epoch" not in n}
    assert not log.truncate_to(offset)
    assert log.log_end_offset == 12
    assert log.epochs.latest_epoch == (2 if offset == 12 else 7)
    after = {n: c for n, c in disk_of(log).tree(log.directory).items() if "epoch" not in n}
    assert after == before


def test_cutting_lowers_high_watermark_recovery_point_and_epochs_with_the_log_end(
    make_log: MakeLog,
) -> None:
    log = filled(make_log())
    assert log.truncate_to(6)
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (6, 6, 6)
    assert log.segments.base_offsets == [0, 4]
    assert log.epochs.entries == (EpochEntry(0, 0), EpochEntry(1, 4))
    assert b"2 8" not in disk_of(log).contents(f"{log.directory}/leader-epoch-checkpoint")


def test_an_epoch_that_begins_at_the_cut_goes(make_log: MakeLog) -> None:
    log = filled(make_log())
    log.truncate_to(8)
    assert log.epochs.entries == (EpochEntry(0, 0), EpochEntry(1, 4))


def test_cutting_leaves_what_lies_below_the_cut_as_it_was(make_log: MakeLog) -> None:
    log = filled(make_log())
    log.update_high_watermark(3)
    log.recovery_point = 2
    log.truncate_to(6)
    assert (log.high_watermark, log.recovery_point, log.log_start_offset) == (3, 2, 0)


def test_cutting_below_the_log_start_lowers_it(make_log: MakeLog) -> None:
    log = filled(make_log())
    log.delete_records(3)
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)


def test_cutting_below_the_first_segment_empties_the_log_and_starts_it_there(
    make_log: MakeLog,
) -> None:
    log = filled(make_log())
    log.delete_segments([log.segments.first])
    assert log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (1, 1, [1])
    assert log.append_as_leader(batch()).first_offset == 1


def test_the_segment_that_becomes_active_has_room_in_its_indexes_again(make_log: MakeLog) -> None:
    log = filled(make_log(index_interval_bytes=0))
    log.truncate_to(6)
    assert len(content(log, 4, ".index")) < 1200
    log.append_as_leader(batch())
    log.append_as_leader(batch())
    log.flush()
    assert len(content(log, 4, ".index")) == 1200


def test_starting_anew_forgets_everything(make_log: MakeLog) -> None:
    log = reopened(filled(make_log()))
    assert log.snapshots.offsets == [4, 8, 12]
    append_transactional(log, 7, 0)
    log.truncate_fully_and_start_at(50)
    ends = (log.log_start_offset, log.log_end_offset, log.high_watermark, log.recovery_point)
    assert ends == (50, 50, 50, 50)
    assert (log.segments.base_offsets, log.epochs.entries) == ([50], ())
    assert (len(log.producers), log.producers.first_unstable_offset) == (0, None)
    assert (log.snapshots.offsets, read_all(log)) == ([], [])
    assert log.append_as_leader(batch()).first_offset == 50


def test_starting_anew_may_keep_a_lower_log_start() -> None:
    log = filled(new_log())
    log.truncate_fully_and_start_at(50, log_start_offset=40)
    assert (log.log_start_offset, log.log_end_offset) == (40, 50)


def test_starting_anew_at_a_known_base_does_not_bring_the_old_batches_back(
    make_log: MakeLog,
) -> None:
    log = filled(make_log())
    log.truncate_fully_and_start_at(4)
    assert content(log, 4, ".log") == b""
    log.run_deletes(2**62)
    assert read_all(reopened(log)) == []


def test_snapshots_above_the_cut_go_at_once_and_one_at_the_cut_is_made_durable(
    make_log: MakeLog,
) -> None:
    log = filled(make_log())
    assert log.snapshots.offsets == [4, 8]
    log.truncate_to(6)
    assert log.snapshots.offsets == [4, 6]
    assert f"{8:020d}.snapshot" not in names(log)
    assert disk_of(log).contents(log.snapshots.path(6))
    number = disk_of(log).operations
    log.truncate_to(5)
    assert ("unlink", f"{6:020d}.snapshot") in trace_since(log, number)


def test_aborts_at_or_above_the_cut_are_no_longer_listed(make_log: MakeLog) -> None:
    log = make_log()
    for sequence in range(3):
        append_transactional(log, 7, sequence)
        end_transaction(log, 7, commit=False)
    log.truncate_to(3)
    listed = [each.last_offset for each in log.segments.active.transaction_index]
    assert listed == [1]
    assert log.producers.first_unstable_offset == 0, "0 to 1 is above the high watermark"
    state = log.producers.get(7)
    assert state is not None
    assert state.transaction_first_offset == 2


# --- the order of the steps ----------------------------------------------------------------------


def test_the_recovery_point_is_checkpointed_before_anything_is_cut(make_log: MakeLog) -> None:
    log = filled(make_log())
    seen = []

    def checkpoint() -> None:
        seen.append((log.recovery_point, len(content(log, 4, ".log")), len(names(log))))

    before = len(content(log, 4, ".log")), len(names(log))
    log.context.checkpoint_recovery_points = checkpoint
    log.truncate_to(6)
    assert seen == [(6, *before)]
    log.truncate_to(5)
    log.recovery_point = 4
    log.truncate_to(4)
    assert len(seen) == 2, "it was not above the cut"


def test_a_cut_that_cannot_be_checkpointed_does_not_happen(make_log: MakeLog) -> None:
    log = filled(make_log())

    def fail() -> None:
        raise DiskError("write", "checkpoint", 5, "broken")

    log.context.checkpoint_recovery_points = fail
    with pytest.raises(DiskError):
        log.truncate_to(6)
    assert (log.log_end_offset, log.recovery_point, len(read_all(log))) == (12, 12, 6)


def test_later_segments_are_gone_for_good_before_the_active_one_is_cut(make_log: MakeLog) -> None:
    log = filled(make_log(index_interval_bytes=0))
    number = disk_of(log).operations
    log.truncate_to(6)
    trace = trace_since(log, number)
    steps = [
        ("rename", f"{8:020d}.log"),
        ("rename", f"{8:020d}.index"),
        ("rename", f"{8:020d}.timeindex"),
        ("sync_directory", "t-0"),
        ("truncate", f"{4:020d}.index"),
        ("truncate", f"{4:020d}.log"),
        ("sync", f"{4:020d}.log"),
        ("rename", "leader-epoch-checkpoint.tmp"),
        ("sync", f"{6:020d}.snapshot"),
    ]
    assert [trace.index(step) for step in steps] == sorted(trace.index(step) for step in steps)


def test_files_that_were_cut_off_are_unlinked_when_due(make_log: MakeLog) -> None:
    log = filled(make_log())
    log.truncate_to(6)
    assert f"{8:020d}.log.deleted" in names(log)
    log.run_deletes(2**62)
    assert not any(".deleted" in name for name in names(log))


# --- deleting from the start ---------------------------------------------------------------------


def test_deleting_segments_raises_the_log_start_and_renames_their_files_in_order(
    make_log: MakeLog,
) -> None:
    log = make_log()
    append_transactional(log, 7, 0)
    end_transaction(log, 7, commit=False)
    log.roll()
    log.append_as_leader(batch(2))
    log.roll()
    log.update_high_watermark(4)
    number = disk_of(log).operations
    log.delete_segments(list(log.segments)[:2])
    renamed = [name for kind, name in trace_since(log, number) if kind == "rename"]
    suffixes = (".log", ".index", ".timeindex", ".txnindex")
    assert renamed == [f"{0:020d}{each}" for each in suffixes] + [
        f"{2:020d}{each}" for each in (".log", ".index", ".timeindex", ".snapshot")
    ]
    assert (log.log_start_offset, log.segments.base_offsets) == (4, [4])


def test_deleting_segments_below_the_log_start_does_not_lower_it(make_log: MakeLog) -> None:
    log = filled(make_log())
    log.delete_records(5)
    log.delete_segments([log.segments.first])
    assert log.log_start_offset == 5


def test_a_log_whose_segments_all_go_rolls_first(make_log: MakeLog) -> None:
    log = filled(make_log())
    number = disk_of(log).operations
    log.delete_segments(list(log.segments))
    trace = trace_since(log, number)
    assert trace.index(("create", f"{12:020d}.log")) < trace.index(("rename", f"{0:020d}.log"))
    assert (log.log_start_offset, log.log_end_offset, log.segments.base_offsets) == (12, 12, [12])
    assert log.append_as_leader(batch()).first_offset == 12


def test_an_empty_active_segment_is_not_lost_when_every_segment_is_deleted(
    make_log: MakeLog,
) -> None:
    log = filled(make_log())
    log.roll()
    log.delete_segments(list(log.segments))
    assert log.segments.base_offsets == [12]
    assert log.append_as_leader(batch()).first_offset == 12
    log.run_deletes(2**62)
    assert len(read_all(reopened(log))) == 1


def test_deleting_nothing_does_nothing(make_log: MakeLog) -> None:
    log = filled(make_log())
    number = disk_of(log).operations
    log.delete_segments([])
    assert trace_since(log, number) == []
