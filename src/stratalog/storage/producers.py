"""What a log remembers of its producers: epochs, sequences, open transactions.

A producer with an id numbers its batches. The last five of each are kept, so that a batch sent
twice is recognised, and one that skips ahead is refused. The same state tells where the oldest
unfinished transaction began, and so how far a reader of committed data may read.

``ProducerStates`` changes in two steps, because a batch is checked before it is written and
counts only after: ``prepare`` collects an append's changes in ``ProducerAppend`` values and
raises if one is not allowed; ``apply`` makes them true.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stratalog.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from stratalog.records import AppendOrigin, BatchHeader, ControlRecord, ControlType
from stratalog.storage.transactions import AbortedTransaction
from stratalog.storage.verification import Verification, Verifications

BATCHES_REMEMBERED = 5
NO_SEQUENCE = -1
NO_PRODUCER_EPOCH = -1
SEQUENCE_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """A batch a producer wrote, as far as it takes to recognise it when it is sent again."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + SEQUENCE_MAX + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerState:
    """The state of one producer id."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp_ms: int = -1
    transaction_first_offset: int | None = None
    batches: deque[ProducerBatch] = field(default_factory=lambda: deque(maxlen=BATCHES_REMEMBERED))

    def copy(self) -> "ProducerState":
        return ProducerState(
            self.producer_id,
            self.epoch,
            self.coordinator_epoch,
            self.last_timestamp_ms,
            self.transaction_first_offset,
            deque(self.batches, maxlen=BATCHES_REMEMBERED),
        )

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def take_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def duplicate_of(self, header: BatchHeader) -> ProducerBatch | None:
        """The remembered batch that ``header`` repeats."""
        if header.producer_epoch != self.epoch:
            return None
        for batch in self.batches:
            if (
                batch.last_sequence == header.last_sequence
                and batch.first_sequence == header.base_sequence
            ):
                return batch
        return None

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        idle_ms = now_ms - self.last_timestamp_ms
        return self.transaction_first_offset is None and idle_ms >= expiration_ms


@dataclass(frozen=True, slots=True)
class CompletedTransaction:
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerAppend:
    """The changes that the batches of one append make to one producer."""

    def __init__(
        self,
        current: ProducerState,
        origin: AppendOrigin,
        verification: Verification | None = None,
    ) -> None:
        self.updated = current.copy()
        self.last_header: BatchHeader | None = None
        self._verification = verification
        self.started: list[int] = []
        self.completed: list[CompletedTransaction] = []
        self._known_epoch = current.epoch
        self._origin = origin

    def add_data(self, header: BatchHeader) -> None:
        self._check_epoch(header)
        if self._origin is AppendOrigin.CLIENT:
            self._check_verified_sequence(header)
            self._check_sequence(header)
        self.last_header = header
        updated = self.updated
        first_offset = header.base_offset
        updated.take_epoch(header.producer_epoch)
        updated.batches.append(
            ProducerBatch(
                header.last_sequence,
                header.last_offset,
                header.last_offset - first_offset,
                header.max_timestamp_ms,
            )
        )
        updated.last_timestamp_ms = header.max_timestamp_ms
        outside = updated.transaction_first_offset is not None and not header.is_transactional
        # A leader has checked it; where a replica misses the marker, damage has taken it.
        if outside and self._origin is not AppendOrigin.REPLICATION:
            raise InvalidTransactionStateError(
                f"producer {updated.producer_id} has had a transaction open since offset "
                f"{updated.transaction_first_offset} and sent a batch outside it"
            )
        if updated.transaction_first_offset is None and header.is_transactional:
            updated.transaction_first_offset = first_offset
            self.started.append(first_offset)

    def add_marker(self, header: BatchHeader, marker: ControlRecord) -> None:
        self._check_epoch(header)
        self.last_header = header
        updated = self.updated
        if (
            marker.coordinator_epoch < updated.coordinator_epoch
            and self._origin is not AppendOrigin.REPLICATION
        ):
            raise TransactionCoordinatorFencedError(
                f"a marker for producer {updated.producer_id} has coordinator epoch "
                f"{marker.coordinator_epoch}; epoch {updated.coordinator_epoch} is known"
            )
        if updated.transaction_first_offset is not None:
            self.completed.append(
                CompletedTransaction(
                    updated.producer_id,
                    updated.transaction_first_offset,
                    header.last_offset,
                    marker.type is ControlType.ABORT,
                )
            )
            updated.transaction_first_offset = None
        updated.take_epoch(header.producer_epoch)
        updated.coordinator_epoch = marker.coordinator_epoch
        updated.last_timestamp_ms = header.max_timestamp_ms

    def _check_epoch(self, header: BatchHeader) -> None:
        older = header.producer_epoch < self.updated.epoch
        if older and self._origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpochError(
                f"producer {header.producer_id} sent epoch {header.producer_epoch}; "
                f"epoch {self.updated.epoch} is known"
            )

    def _check_verified_sequence(self, header: BatchHeader) -> None:
        asked = self._verification
        if asked is None:
            return
        first = header.base_sequence
        is_new = self._known_epoch == NO_PRODUCER_EPOCH
        if first > asked.lowest_sequence or (asked.supports_epoch_bump and is_new and first != 0):
            expected = 0 if asked.supports_epoch_bump and is_new else asked.lowest_sequence
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} sent sequence {first} while {expected} waits to "
                "be verified"
            )

    def _check_sequence(self, header: BatchHeader) -> None:
        updated = self.updated
        first = header.base_sequence
        if header.producer_epoch != updated.epoch:
            if first != 0 and updated.epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceError(
                    f"producer {header.producer_id} began epoch {header.producer_epoch} with "
                    f"sequence {first} instead of 0"
                )
            return
        last = updated.last_sequence
        in_order = first == (0 if last == SEQUENCE_MAX else last + 1)
        if self._known_epoch != NO_PRODUCER_EPOCH and not in_order:
            raise OutOfOrderSequenceError(
                f"producer {header.producer_id} sent sequence {first} after {last} "
                f"(epoch {header.producer_epoch})"
            )


class ProducerStates:
    """All producers of one log. ``map_end_offset`` is where the state has been brought up to."""

    def __init__(self, *, expiration_ms: int) -> None:
        self._expiration_ms = expiration_ms
        self._producers: dict[int, ProducerState] = {}
        # By first offset. A transaction opens at the log end, so both dicts are in the order of
        # their keys and the oldest is the first, but for what the markers take out of the middle.
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, CompletedTransaction] = {}
        self.map_end_offset = 0
        self.last_snapshot_offset = 0
        self.verifications = Verifications()

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerState | None:
        return self._producers.get(producer_id)

    # --- appending ----------------------------------------------------------------------------

    def duplicate_of(self, header: BatchHeader) -> ProducerBatch | None:
        known = self._producers.get(header.producer_id)
        return None if known is None else known.duplicate_of(header)

    def prepare(self, producer_id: int, origin: AppendOrigin) -> ProducerAppend:
        known = self._producers.get(producer_id)
        asked = self.verifications.get(producer_id)
        return ProducerAppend(known or ProducerState(producer_id), origin, asked)

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        known = self._producers.get(producer_id)
        if known is None or known.transaction_first_offset is None:
            return False
        return known.epoch == epoch

    def apply(self, change: ProducerAppend) -> None:
        """Make a prepared change true. Its finished transactions are handed to ``complete``."""
        self._producers[change.updated.producer_id] = change.updated
        last = change.last_header
        if last is not None and last.is_transactional:
            self.verifications.settle(
                last.producer_id, epoch=last.producer_epoch, is_control=last.is_control
            )
        for first_offset in change.started:
            if self._ongoing and first_offset < next(reversed(self._ongoing)):
                # One append brought several producers' transactions, in the order of the ids.
                self._ongoing[first_offset] = change.updated.producer_id
                self._ongoing = dict(sorted(self._ongoing.items()))
            self._ongoing[first_offset] = change.updated.producer_id

    def complete(self, done: CompletedTransaction) -> None:
        self._ongoing.pop(done.first_offset, None)
        self._unreplicated[done.first_offset] = done

    def last_stable_offset_after(self, done: CompletedTransaction) -> int:
        """Where the last stable offset will be once ``done`` has ended."""
        return _stable_after(done, self._ongoing)

    def plan_aborted(
        self, changes: Iterable[ProducerAppend], completed: Iterable[CompletedTransaction]
    ) -> list[AbortedTransaction]:
        """What the transaction index has to hold once ``changes`` are applied."""
        ongoing = dict(self._ongoing)
        for change in changes:
            ongoing |= dict.fromkeys(change.started, change.updated.producer_id)
        aborted = []
        for done in completed:
            if done.is_aborted:
                stable = _stable_after(done, dict(sorted(ongoing.items())))
                aborted.append(
                    AbortedTransaction(
                        done.producer_id, done.first_offset, done.last_offset, stable
                    )
                )
            ongoing.pop(done.first_offset, None)
        return aborted

    # --- what readers may see -----------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is open, or closed above the high watermark."""
        ongoing = next(iter(self._ongoing), None)
        unreplicated = min(self._unreplicated, default=None)
        if ongoing is None or unreplicated is None:
            return unreplicated if ongoing is None else ongoing
        return min(ongoing, unreplicated)

    def on_high_watermark(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = {
                first: done
                for first, done in self._unreplicated.items()
                if done.last_offset >= high_watermark
            }

    def on_log_start_offset(self, log_start_offset: int) -> None:
        """Finished transactions below the log start need no reader's care any more."""
        self._unreplicated = {
            first: done
            for first, done in self._unreplicated.items()
            if done.last_offset >= log_start_offset
        }
        if self.map_end_offset < log_start_offset:
            self.map_end_offset = log_start_offset

    # --- life cycle ---------------------------------------------------------------------------

    def restore(self, states: Iterable[ProducerState], offset: int, now_ms: int) -> None:
        """Start from what a snapshot at ``offset`` holds, less the producers expired since."""
        self.clear(offset)
        for state in states:
            if not state.is_expired(now_ms, self._expiration_ms):
                self._producers[state.producer_id] = state
        opened = (
            (state.transaction_first_offset, state.producer_id)
            for state in self._producers.values()
            if state.transaction_first_offset is not None
        )
        self._ongoing = dict(sorted(opened))

    def clear(self, offset: int) -> None:
        self._producers = {}
        self._ongoing = {}
        self._unreplicated = {}
        self.map_end_offset = offset
        self.last_snapshot_offset = offset

    def remove_expired(self, now_ms: int) -> int:
        expired = [
            state.producer_id
            for state in self._producers.values()
            if state.is_expired(now_ms, self._expiration_ms)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        self.verifications.remove_expired(now_ms, self._expiration_ms)
        return len(expired)


def _stable_after(done: CompletedTransaction, ongoing: dict[int, int]) -> int:
    for first_offset, producer_id in ongoing.items():
        if producer_id != done.producer_id:
            return first_offset
    return done.last_offset + 1
