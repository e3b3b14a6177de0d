"""Replaying producers for a check: what a log's batches say about them, in constant memory.

Segments are read at the same time by several threads, so each yields a ``Piece``: what its batches
change, whatever the state before them was. Pieces are merged in the order of offsets, and between
two of them the state is that of the log at that offset, to be compared with a snapshot.

Nothing is known of batches below the log's first segment: retention has removed them. Where the
answer depends on them, it is ``UNKNOWN`` and nothing is compared.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from stratalog.records import BatchHeader, ControlRecord, ControlType
from stratalog.storage.producers import ProducerState


class _Unknown(Enum):
    UNKNOWN = "unknown"


UNKNOWN: Final = _Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The newest batch of a producer: what a snapshot keeps of it."""

    last_sequence: int
    last_offset: int
    offset_delta: int


@dataclass(slots=True)
class ProducerChange:
    """What a run of batches does to one producer."""

    first_epoch: int
    epoch: int
    # Whether the batch below was set or cleared here; if not, the one before stands.
    is_batch_set: bool = False
    batch: LastBatch | None = None
    # The first offset of a transaction begun here and still open.
    opened: int | None = None
    # Whether a marker has closed whatever was open before.
    is_ended: bool = False


@dataclass(frozen=True, slots=True)
class AbortMarker:
    """``first_offset`` is that of the first batch here, if there is one; ``is_first`` if it is the
    producer's first marker here, so that its transaction may have begun before."""

    producer_id: int
    first_offset: int | None
    offset: int
    is_first: bool


@dataclass(slots=True)
class Piece:
    """The changes of the batches up to ``end_offset``, and the aborts among them."""

    end_offset: int
    changes: dict[int, ProducerChange] = field(default_factory=dict)
    aborts: list[AbortMarker] = field(default_factory=list)

    def add_data(self, header: BatchHeader) -> None:
        change = self._change(header)
        change.is_batch_set = True
        change.batch = LastBatch(
            header.last_sequence, header.last_offset, header.last_offset - header.base_offset
        )
        if header.is_transactional and change.opened is None:
            change.opened = header.base_offset

    def add_marker(self, header: BatchHeader, control: ControlRecord | None) -> None:
        if control is None or not control.type.ends_transaction:
            return
        change = self._change(header)
        if control.type is ControlType.ABORT:
            self.aborts.append(
                AbortMarker(
                    header.producer_id, change.opened, header.last_offset, not change.is_ended
                )
            )
        change.opened = None
        change.is_ended = True

    def _change(self, header: BatchHeader) -> ProducerChange:
        epoch = header.producer_epoch
        change = self.changes.get(header.producer_id)
        if change is None:
            change = self.changes[header.producer_id] = ProducerChange(epoch, epoch)
        elif change.epoch != epoch:
            # A new epoch starts counting anew: the batches of the old one are forgotten.
            change.epoch = epoch
            change.batch = None
            change.is_batch_set = True
        return change


@dataclass(frozen=True, slots=True)
class Replayed:
    """One producer as the batches tell it."""

    epoch: int
    batch: "LastBatch | _Unknown | None"
    transaction_first_offset: "int | _Unknown | None"


@dataclass(frozen=True, slots=True)
class Abort:
    """An aborted transaction; ``first_offset`` is None if its batches are gone or unknown, and
    not ``is_exact`` if it may have begun before the first segment."""

    producer_id: int
    first_offset: int | None
    offset: int
    is_exact: bool


class Replay:
    """The state of all producers, brought forward piece by piece."""

    def __init__(self, *, is_complete: bool) -> None:
        """``is_complete`` if the log begins at offset 0: then what is not seen never was."""
        self._is_complete = is_complete
        self.producers: dict[int, Replayed] = {}

    def merge(self, piece: Piece) -> list[Abort]:
        """Apply ``piece``; the aborts in it, with the beginnings that earlier pieces know."""
        aborts = []
        # An abort may be followed by more of the same producer: ask before the state changes.
        for marker in piece.aborts:
            first_offset = marker.first_offset
            is_exact = True
            if marker.is_first:
                opened = self._opened(marker.producer_id)
                is_exact = opened is not UNKNOWN
                if opened is not None and opened is not UNKNOWN:
                    first_offset = opened
            aborts.append(Abort(marker.producer_id, first_offset, marker.offset, is_exact))
        for producer_id, change in piece.changes.items():
            self.producers[producer_id] = self._after(self.producers.get(producer_id), change)
        return aborts

    def _opened(self, producer_id: int) -> "int | _Unknown | None":
        known = self.producers.get(producer_id)
        if known is None:
            return None if self._is_complete else UNKNOWN
        return known.transaction_first_offset

    def _after(self, before: Replayed | None, change: ProducerChange) -> Replayed:
        if before is None and self._is_complete:
            before = Replayed(change.first_epoch, None, None)
        batch: LastBatch | _Unknown | None
        if change.is_batch_set:
            batch = change.batch
        elif before is None:
            batch = UNKNOWN
        else:
            batch = before.batch if before.epoch == change.first_epoch else None
        opened: int | _Unknown | None = change.opened
        if not change.is_ended:
            if before is None:
                opened = UNKNOWN
            elif before.transaction_first_offset is not None:
                opened = before.transaction_first_offset
        return Replayed(change.epoch, batch, opened)


def disagreements(
    states: Iterable[ProducerState],
    replay: Replay,
    offset: int,
    *,
    is_dense: bool,
    log_start_offset: int = 0,
) -> Iterator[tuple[int, str]]:
    """(producer id, sentence) for what a snapshot at ``offset`` says against the batches.

    Producers that the snapshot lacks may have expired. In a log with gaps compaction may have
    removed the batch that the snapshot remembers, so only what it has missed counts there.
    """
    for state in states:
        known = replay.producers.get(state.producer_id)
        if state.last_data_offset >= offset:
            yield (
                state.producer_id,
                f"remembers offset {state.last_data_offset}, which is not below its own {offset}",
            )
        elif known is not None and not _is_below(known, log_start_offset):
            sentence = _disagreement(state, known, is_dense=is_dense)
            if sentence:
                yield state.producer_id, sentence


def _is_below(known: Replayed, log_start_offset: int) -> bool:
    """Whether all that is known of a producer lies before the log's start."""
    return isinstance(known.batch, LastBatch) and known.batch.last_offset < log_start_offset


def _disagreement(state: ProducerState, known: Replayed, *, is_dense: bool) -> str:
    if not is_dense and state.epoch > known.epoch:
        return ""  # compaction has emptied the marker that raised it
    if state.epoch != known.epoch:
        return f"has epoch {state.epoch}; the batches say {known.epoch}"
    if isinstance(known.batch, LastBatch):
        if not is_dense and state.last_data_offset > known.batch.last_offset:
            return ""
        batch = state.batches[-1] if state.batches else None
        found = (
            None
            if batch is None
            else LastBatch(batch.last_sequence, batch.last_offset, batch.offset_delta)
        )
        if found != known.batch:
            told = "no batch" if found is None else f"{_batch_text(found)}"
            return f"has {told}; the newest batch has {_batch_text(known.batch)}"
    opened = known.transaction_first_offset
    if opened is not UNKNOWN and is_dense and state.transaction_first_offset != opened:
        return (
            f"has a transaction open since {state.transaction_first_offset}; "
            f"the batches say {opened}"
        )
    return ""


def _batch_text(batch: LastBatch) -> str:
    return (
        f"last sequence {batch.last_sequence}, last offset {batch.last_offset}, "
        f"{batch.offset_delta + 1} offsets"
    )
