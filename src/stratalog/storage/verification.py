"""Waiting for the transaction coordinator's word that a transaction includes this partition.

Before a producer's first batch of a transaction may be written, its coordinator is asked whether
the transaction is really open. Meanwhile the transaction may be aborted and another one begun: the
guard given out when the question was asked tells whether the answer still belongs to what is
written.
"""

from dataclasses import dataclass, field


class VerificationGuard:
    """One question asked; equal to nothing but itself."""

    __slots__ = ()


@dataclass(slots=True)
class Verification:
    """A question that has not led to an append yet.

    ``lowest_sequence`` is the lowest that has asked: a higher one must not be written before it,
    or the lower one, retried, would be out of order for ever.
    """

    started_ms: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool = False
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def note(self, sequence: int, epoch: int) -> None:
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


class Verifications:
    """The open questions of one log, by producer id."""

    def __init__(self) -> None:
        self._open: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._open)

    def get(self, producer_id: int) -> Verification | None:
        return self._open.get(producer_id)

    def start(
        self,
        producer_id: int,
        *,
        sequence: int,
        epoch: int,
        now_ms: int,
        supports_epoch_bump: bool = False,
    ) -> VerificationGuard:
        known = self._open.get(producer_id)
        if known is None:
            known = Verification(now_ms, sequence, epoch, supports_epoch_bump)
            self._open[producer_id] = known
        known.note(sequence, epoch)
        return known.guard

    def settle(self, producer_id: int, *, epoch: int, is_control: bool) -> None:
        """A transactional batch was written: the question has had its answer.

        But a marker that ends one transaction leaves a question of the same epoch open where the
        producer's epoch grows with each transaction: it is about the next one.
        """
        known = self._open.get(producer_id)
        if known is None:
            return
        if not (known.supports_epoch_bump and is_control and epoch == known.epoch):
            del self._open[producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        self._open = {
            producer_id: known
            for producer_id, known in self._open.items()
            if now_ms - known.started_ms < expiration_ms
        }
