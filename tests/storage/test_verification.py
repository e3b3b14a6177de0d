"""A transaction's first batch needs its coordinator's word, and the word must be about it."""

from dataclasses import replace

import pytest
from log_harness import new_log
from managers import ORDERS, PAYMENTS, started

from stratalog.errors import InvalidTransactionStateError, OutOfOrderSequenceError
from stratalog.records import AppendOrigin, Record, build_batch, build_end_transaction_marker
from stratalog.storage.log import Log
from stratalog.storage.verification import VerificationGuard
from stratalog.testing import SimulatedFileSystem

DAY_MS = 86_400_000


def verifying_log() -> Log:
    log = new_log()
    log.context.verify_transactions = True
    return log


def data(sequence: int = 0, *, epoch: int = 0) -> bytes:
    return build_batch(
        [Record(b"k", b"v", timestamp_ms=1)],
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=True,
    )


def end(log: Log, *, epoch: int = 0) -> None:
    marker = build_end_transaction_marker(
        commit=False, producer_id=7, producer_epoch=epoch, coordinator_epoch=0, timestamp_ms=1
    )
    log.append_as_leader(marker, origin=AppendOrigin.COORDINATOR)


def ask(log: Log, sequence: int = 0, **more: object) -> VerificationGuard | None:
    return log.start_verification(7, sequence=sequence, epoch=int(more.pop("epoch", 0)), **more)


def test_a_first_batch_without_a_guard_is_refused_and_changes_nothing() -> None:
    log = verifying_log()
    with pytest.raises(InvalidTransactionStateError):
        log.append_as_leader(data())
    assert log.log_end_offset == 0


def test_a_first_batch_with_its_guard_is_taken_and_the_next_needs_none() -> None:
    log = verifying_log()
    log.append_as_leader(data(), verification_guard=ask(log))
    assert ask(log, 1) is None
    assert log.append_as_leader(data(1)).last_offset == 1


def test_a_guard_of_an_aborted_transaction_does_not_open_the_next() -> None:
    log = verifying_log()
    stale = ask(log)
    end(log)
    with pytest.raises(InvalidTransactionStateError):
        log.append_as_leader(data(), verification_guard=stale)


def test_a_manager_has_its_logs_verify_and_takes_a_change_of_that() -> None:
    files = SimulatedFileSystem()
    files.make_directory("/data")
    logs = started(files)
    old = logs.create(ORDERS)
    with pytest.raises(InvalidTransactionStateError):
        old.append_as_leader(data())

    logs.reconfigure(replace(logs.config, transaction_partition_verification_enable=False))

    for log in (old, logs.create(PAYMENTS)):
        assert log.append_as_leader(data()).last_offset == 0


def test_an_answer_about_another_question_is_refused() -> None:
    log = verifying_log()
    ask(log)
    with pytest.raises(InvalidTransactionStateError):
        log.append_as_leader(data(), verification_guard=VerificationGuard())


def test_asking_again_gives_the_same_guard() -> None:
    log = verifying_log()
    assert ask(log) is ask(log, 3)


def test_a_higher_sequence_than_the_lowest_that_asked_has_to_wait() -> None:
    log = verifying_log()
    ask(log, 2)
    guard = ask(log, 1)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(data(2), verification_guard=guard)
    assert log.append_as_leader(data(1), verification_guard=guard).last_offset == 0


def test_a_new_epoch_asks_anew() -> None:
    log = verifying_log()
    ask(log, 1)
    guard = ask(log, 5, epoch=1)
    assert log.append_as_leader(data(5, epoch=1), verification_guard=guard).last_offset == 0


def test_a_producer_whose_epochs_grow_with_transactions_begins_at_sequence_0() -> None:
    log = verifying_log()
    guard = ask(log, 1, supports_epoch_bump=True)
    with pytest.raises(OutOfOrderSequenceError):
        log.append_as_leader(data(1), verification_guard=guard)


def test_its_marker_leaves_the_question_about_the_next_transaction_open() -> None:
    log = verifying_log()
    log.append_as_leader(data(), verification_guard=ask(log))
    guard = ask(log, epoch=1, supports_epoch_bump=True)
    end(log, epoch=1)
    assert log.append_as_leader(data(epoch=1), verification_guard=guard).last_offset == 2


def test_a_follower_asks_nobody() -> None:
    log = verifying_log()
    assert log.append_as_follower(data()).last_offset == 0


def test_a_question_is_forgotten_with_the_producers_of_its_time() -> None:
    log = verifying_log()
    ask(log)
    now_ms = log.context.clock.now_ms()
    log.producers.remove_expired(now_ms + DAY_MS - 1)
    assert len(log.producers.verifications) == 1
    log.producers.remove_expired(now_ms + DAY_MS)
    assert len(log.producers.verifications) == 0
