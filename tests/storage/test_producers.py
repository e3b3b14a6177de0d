"""Producer state: sequences, epochs, duplicates, transactions, the last stable offset (reference
4.4 and 4.1 step 8)."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from log_harness import (
    START_MS,
    append_transactional,
    batch,
    clock_of,
    content,
    end_transaction,
    new_log,
    produced,
    reopened,
)

from stratalog.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from stratalog.records import (
    AppendOrigin,
    build_batch,
    build_end_transaction_marker,
)
from stratalog.storage.log import Log
from stratalog.storage.producers import ProducerState

MakeLog = Callable[..., Log]
MAX = 2**31 - 1
DAY_MS = 86_400_000


def state_of(log: Log, producer_id: int = 1) -> ProducerState:
    state = log.producers.get(producer_id)
    assert state is not None, f"producer {producer_id} is not known"
    return state


def replicate(log: Log, data: bytes) -> None:
    """Append a produced batch as a follower would get it."""
    offset = log.log_end_offset.to_bytes(8, "big")
    log.append_as_follower(offset + data[8:12] + bytes(4) + data[16:])


# --- sequences -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sequence", [0, 1, 77, MAX])
def test_an_unknown_producer_may_begin_at_any_sequence(make_log: MakeLog, sequence: int) -> None:
    log = make_log()
    assert log.append_as_leader(produced(1, sequence)).first_offset == 0
    assert state_of(log).last_sequence == sequence


@given(st.integers(0, 9) | st.integers(MAX - 5, MAX), st.integers(1, 4), st.integers(-3, 3))
@example(MAX, 1, 0)
def test_a_known_producer_goes_on_with_the_next_sequence_and_no_other(
    first: int, count: int, slip: int
) -> None:
    log = new_log()
    log.append_as_leader(produced(1, first, count))
    following = (first + count) % (MAX + 1)
    sent = following + slip
    if slip == 0:
        assert log.append_as_leader(produced(1, sent)).first_offset == count
    elif sent >= 0 and not (sent == first and count == 1):
        with pytest.raises(OutOfOrderSequenceError):
            log.append_as_leader(produced(1, sent % (MAX + 1)))
        assert log.log_end_offset == count


def test_sequences_go_on_at_zero_after_the_largest(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, MAX - 1, 4))
    assert state_of(log).last_sequence == 1
    assert state_of(log).batches[-1].first_sequence == MAX - 1
    assert log.append_as_leader(produced(1, MAX - 1, 4)).is_duplicate
    assert log.append_as_leader(produced(1, 2)).first_offset == 4


def test_a_batch_that_overlaps_what_was_written_without_repeating_it_is_out_of_order(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0, 4))
    for sequence, count in ((0, 3), (1, 3), (0, 5), (3, 1)):
        with pytest.raises(OutOfOrderSequenceError):
            log.append_as_leader(produced(1, sequence, count))


@pytest.mark.parametrize("origin", [AppendOrigin.COORDINATOR, AppendOrigin.REPLICATION])
def test_sequences_are_checked_for_clients_only(make_log: MakeLog, origin: AppendOrigin) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    if origin is AppendOrigin.REPLICATION:
        replicate(log, produced(1, 50))
    else:
        log.append_as_leader(produced(1, 50), origin=origin)
    assert state_of(log).last_sequence == 50


def test_batches_without_a_producer_id_leave_no_state(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    assert len(log.producers) == 0


# --- duplicates ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.data())
def test_any_of_the_last_five_batches_is_recognised_and_not_written_again(
    counts: list[int], data: st.DataObject
) -> None:
    log = new_log()
    sent = []
    for count in counts:
        each = produced(1, sum(counts[: len(sent)]), count, timestamp_ms=len(sent))
        sent.append((each, log.append_as_leader(each)))
    before = content(log, 0, ".log")
    again, first = data.draw(st.sampled_from(sent))
    if (again, first) in sent[-5:]:
        info = log.append_as_leader(again)
        assert (info.first_offset, info.last_offset) == (first.first_offset, first.last_offset)
        assert (info.max_timestamp_ms, info.is_duplicate) == (first.max_timestamp_ms, True)
    else:
        with pytest.raises(OutOfOrderSequenceError):
            log.append_as_leader(again)
    assert content(log, 0, ".log") == before


def test_a_duplicate_is_answered_with_the_time_at_which_its_first_copy_was_appended(
    make_log: MakeLog,
) -> None:
    log = make_log(message_timestamp_type="LogAppendTime")
    log.append_as_leader(produced(1, 0))
    clock_of(log).advance(50)
    assert log.append_as_leader(produced(1, 0)).log_append_time_ms == START_MS


def test_a_duplicate_rolls_no_segment_and_begins_no_epoch(make_log: MakeLog) -> None:
    log = make_log(internal_segment_bytes=100)
    log.append_as_leader(produced(1, 0), leader_epoch=1)
    assert log.append_as_leader(produced(1, 0), leader_epoch=2).is_duplicate
    assert log.segments.base_offsets == [0]
    assert log.epochs.latest_epoch == 1


def test_a_batch_of_another_epoch_is_no_duplicate(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    info = log.append_as_leader(produced(1, 0, epoch=1))
    assert (info.is_duplicate, info.first_offset) == (False, 1)


def test_replication_writes_what_it_gets_even_if_it_repeats(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    replicate(log, produced(1, 0))
    assert log.log_end_offset == 2


# --- epochs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", [AppendOrigin.CLIENT, AppendOrigin.COORDINATOR])
def test_an_older_epoch_is_refused(make_log: MakeLog, origin: AppendOrigin) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0, epoch=3))
    with pytest.raises(InvalidProducerEpochError):
        log.append_as_leader(produced(1, 1, epoch=2), origin=origin)
    assert log.log_end_offset == 1


def test_replication_takes_an_older_epoch(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0, epoch=3))
    replicate(log, produced(1, 1, epoch=2))
    assert log.log_end_offset == 2


@pytest.mark.parametrize(("sequence", "taken"), [(0, True), (1, False), (5, False)])
def test_a_new_epoch_begins_at_sequence_zero(make_log: MakeLog, sequence: int, taken: bool) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    if taken:
        log.append_as_leader(produced(1, sequence, epoch=1))
    else:
        with pytest.raises(OutOfOrderSequenceError):
            log.append_as_leader(produced(1, sequence, epoch=1))


def test_a_new_epoch_forgets_the_batches_of_the_old_one(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    log.append_as_leader(produced(1, 0, 2, epoch=1))
    assert [each.last_sequence for each in state_of(log).batches] == [1]


def test_after_a_marker_with_a_higher_epoch_only_sequence_zero_goes_on(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True, epoch=1)
    assert (state_of(log).epoch, list(state_of(log).batches)) == (1, [])
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(produced(1, 1, epoch=1))
    log.append_as_leader(produced(1, 0, epoch=1))


def test_after_a_marker_of_the_same_epoch_the_sequence_goes_on(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True)
    assert log.append_as_leader(produced(1, 0, transactional=True)).is_duplicate
    assert append_transactional(log, 1, 1) == 2


# --- transactions --------------------------------------------------------------------------------


def test_a_plain_batch_inside_a_transaction_is_refused(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    with pytest.raises(InvalidTransactionStateError):
        log.append_as_leader(produced(1, 1))
    assert log.log_end_offset == 1
    assert state_of(log).last_sequence == 0


def test_a_transaction_opens_with_its_first_batch_and_ends_with_its_marker(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(3))
    append_transactional(log, 1, 0, count=2)
    append_transactional(log, 1, 2)
    assert state_of(log).transaction_first_offset == 3
    end_transaction(log, 1, commit=True, coordinator_epoch=5, timestamp_ms=99)
    state = state_of(log)
    assert state.transaction_first_offset is None
    assert (state.coordinator_epoch, state.last_timestamp_ms) == (5, 99)
    assert state.last_data_offset == 5


def test_a_marker_without_a_transaction_changes_epochs_and_time_only(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    end_transaction(log, 1, commit=False, coordinator_epoch=2, timestamp_ms=7)
    state = state_of(log)
    assert (state.coordinator_epoch, state.last_timestamp_ms, state.epoch) == (2, 7, 0)
    assert log.producers.first_unstable_offset is None


def test_a_marker_of_a_replaced_coordinator_is_refused(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError):
        end_transaction(log, 1, commit=True, coordinator_epoch=4)
    assert log.log_end_offset == 2


def test_replication_takes_a_marker_of_a_replaced_coordinator(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True, coordinator_epoch=5)
    late = build_end_transaction_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=4, timestamp_ms=5
    )
    replicate(log, late)
    assert log.log_end_offset == 3


def test_a_marker_of_an_older_producer_epoch_is_refused(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0, epoch=3))
    with pytest.raises(InvalidProducerEpochError):
        end_transaction(log, 1, commit=True, epoch=2)


def test_a_control_batch_that_compaction_has_emptied_tells_nothing(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    bare = build_batch(
        [], producer_id=1, producer_epoch=0, transactional=True, control=True, last_offset_delta=0
    )
    replicate(log, bare)
    assert state_of(log).transaction_first_offset == 0
    assert log.log_end_offset == 2


def test_the_last_timestamp_is_the_batchs_largest(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0, timestamp_ms=77))
    assert state_of(log).last_timestamp_ms == 77


# --- the last stable offset ----------------------------------------------------------------------


def test_the_last_stable_offset_is_the_high_watermark_where_no_transaction_is_open(
    make_log: MakeLog,
) -> None:
    log = make_log()
    log.append_as_leader(batch(5))
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3


def test_the_last_stable_offset_stops_at_the_oldest_open_transaction(make_log: MakeLog) -> None:
    log = make_log()
    log.append_as_leader(batch(2))
    append_transactional(log, 1, 0)
    append_transactional(log, 2, 0)
    log.update_high_watermark(4)
    assert log.last_stable_offset == 2
    end_transaction(log, 1, commit=True)
    log.update_high_watermark(5)
    assert log.last_stable_offset == 3
    end_transaction(log, 2, commit=False)
    log.update_high_watermark(6)
    assert log.last_stable_offset == 6


def test_a_finished_transaction_is_unstable_until_its_marker_is_below_the_high_watermark(
    make_log: MakeLog,
) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    end_transaction(log, 1, commit=True)
    for high_watermark, stable in ((1, 0), (2, 2)):
        log.update_high_watermark(high_watermark)
        assert log.last_stable_offset == stable


def test_the_oldest_transaction_counts_in_whatever_order_one_append_brings_them(
    make_log: MakeLog,
) -> None:
    """Producer 1 ends a transaction and begins another after producer 2 has begun its own."""
    log = make_log()
    begin, marker = (
        produced(1, 0, transactional=True),
        build_end_transaction_marker(
            commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=5
        ),
    )
    run = [begin, produced(2, 0, transactional=True), marker, produced(1, 1, transactional=True)]
    stamped = [offset.to_bytes(8, "big") + each[8:] for offset, each in enumerate(run)]
    log.append_as_follower(b"".join(stamped))
    log.update_high_watermark(4)
    assert log.last_stable_offset == 1


@given(st.lists(st.tuples(st.sampled_from("wca"), st.integers(1, 3)), max_size=25), st.data())
def test_the_last_stable_offset_is_what_the_open_transactions_say(
    steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    log = new_log(internal_segment_bytes=500)
    sequences: dict[int, int] = {}
    opened: dict[int, int] = {}
    finished: list[tuple[int, int]] = []
    for step, producer_id in steps:
        if step == "w":
            first = append_transactional(log, producer_id, sequences.get(producer_id, 0))
            sequences[producer_id] = sequences.get(producer_id, 0) + 1
            opened.setdefault(producer_id, first)
        else:
            marker = end_transaction(log, producer_id, commit=step == "c").last_offset
            if producer_id in opened:
                finished.append((opened.pop(producer_id), marker))
    high_watermark = log.update_high_watermark(data.draw(st.integers(0, log.log_end_offset)))
    unstable = [first for first, marker in finished if marker >= high_watermark]
    expected = min([high_watermark, *opened.values(), *unstable])
    assert log.last_stable_offset == expected
    assert reopened(log).last_stable_offset == min([high_watermark, *opened.values()])


# --- expiry, replay ------------------------------------------------------------------------------


@pytest.mark.parametrize(("idle_ms", "kept"), [(DAY_MS - 1, True), (DAY_MS, False)])
def test_a_producer_expires_when_it_has_been_idle_for_the_configured_time(
    make_log: MakeLog, idle_ms: int, kept: bool
) -> None:
    log = make_log()
    log.append_as_leader(produced(1, 0))
    log.producers.remove_expired(START_MS + idle_ms)
    assert (log.producers.get(1) is not None) == kept


def test_a_producer_with_an_open_transaction_never_expires(make_log: MakeLog) -> None:
    log = make_log()
    append_transactional(log, 1, 0)
    assert log.producers.remove_expired(START_MS + 100 * DAY_MS) == 0
    assert state_of(log).transaction_first_offset == 0


def append_any(log: Log, step: str, producer_id: int, bump: bool) -> None:
    """An idempotent or transactional batch, an end marker or a roll; ``bump`` raises the epoch."""
    state = log.producers.get(producer_id) or ProducerState(producer_id, epoch=0)
    epoch = state.epoch + bump
    if step == "r":
        log.roll()
    elif step in "ca":
        end_transaction(log, producer_id, commit=step == "c", epoch=epoch)
    else:
        sequence = 0 if bump else state.last_sequence + 1
        transactional = step == "w" or state.transaction_first_offset is not None
        log.append_as_leader(
            produced(producer_id, sequence, epoch=epoch, transactional=transactional)
        )


@given(st.lists(st.tuples(st.sampled_from("iiwcar"), st.integers(1, 3), st.booleans())))
def test_replaying_the_log_gives_the_state_that_appending_left(
    steps: list[tuple[str, int, bool]],
) -> None:
    log = new_log(internal_segment_bytes=600)
    for step in steps:
        append_any(log, *step)
    again = reopened(log, clean=False, recovery_point=0)
    for state in log.producers:
        found = state_of(again, state.producer_id)
        assert (found.epoch, found.coordinator_epoch) == (state.epoch, state.coordinator_epoch)
        assert found.last_sequence == state.last_sequence
        assert found.last_data_offset == state.last_data_offset
        assert found.last_timestamp_ms == state.last_timestamp_ms
        assert found.transaction_first_offset == state.transaction_first_offset
    assert len(again.producers) == len(log.producers)
    assert again.producers.first_unstable_offset == log.producers.first_unstable_offset
