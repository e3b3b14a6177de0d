"""What a log knows besides its batches, brought in line with them when it is opened.

Leader epochs and producer state are written beside the batches and may be older, newer or garbled;
the batches are the truth. So is the index of aborted transactions of each segment that was read
again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stratalog.errors import CorruptIndexError, CorruptSegmentError
from stratalog.records import BatchHeader
from stratalog.storage.checkpoint import EpochEntry
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.producers import CompletedTransaction, ProducerStates
from stratalog.storage.replay import replay, restore_newest
from stratalog.storage.segment import Segment
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import Snapshots
from stratalog.storage.transactions import AbortedTransaction

# A log has a few epochs as a rule; of very many, the latest are the ones that matter.
_EPOCHS_ASKED = 32


# --- leader epochs ----------------------------------------------------------------------------


def epochs_agree(
    epochs: LeaderEpochs,
    segments: Segments,
    last: BatchHeader | None,
    log_start_offset: int,
    *,
    clean: bool,
) -> bool:
    """Whether the batches have the epochs that the file gives them: it is a hint, they are the
    truth. The last batch is asked, the first if the file does not reach back to it, and after an
    unclean stop those where an epoch begins."""
    entries = epochs.entries
    offsets = []
    if not entries or entries[0].start_offset > log_start_offset:
        offsets.append(log_start_offset)
    for entry in () if clean else entries[-_EPOCHS_ASKED:]:
        offsets += [entry.start_offset - 1, entry.start_offset]
    batches = [_batch_at(segments, offset) for offset in offsets if offset >= log_start_offset]
    for batch in (last, *batches):
        if batch is None or batch.magic < 2 or batch.partition_leader_epoch < 0:
            continue
        offset = max(batch.base_offset, log_start_offset)
        if epochs.epoch_for_offset(offset) != batch.partition_leader_epoch:
            return False
    return True


def _batch_at(segments: Segments, offset: int) -> BatchHeader | None:
    segment = segments.floor(offset)
    try:
        return None if segment is None else segment.find(offset)
    except CorruptSegmentError:
        return None


def epochs_of(segments: Segments) -> list[EpochEntry]:
    """The epochs that the batches themselves tell of."""
    found: list[EpochEntry] = []
    for segment in segments:
        for header in segment.headers():
            epoch = header.partition_leader_epoch
            if header.magic >= 2 and epoch >= 0 and (not found or epoch > found[-1].epoch):
                found.append(EpochEntry(epoch, header.base_offset))
    return found


# --- producers --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProducerRecovery:
    """One log's producers: from the newest snapshot that can be trusted, and from the batches
    behind it. ``scanned`` are the segments that were read again, whose hints are not believed."""

    segments: Segments
    snapshots: Snapshots
    producers: ProducerStates
    scanned: Sequence[Segment]
    now_ms: int

    def run(self, log_start_offset: int, log_end_offset: int) -> list[str]:
        """Bring the producers up to the log's end; the indexes that had to be built again."""
        self.snapshots.remove_strays(self.segments.base_offsets)
        # Behind the first segment that was read again, a snapshot may tell of batches that were
        # never flushed and are gone.
        trusted = min((s.base_offset for s in self.scanned), default=log_end_offset)
        self.snapshots.remove_outside(log_start_offset, trusted)
        restore_newest(
            self.producers,
            self.snapshots,
            at_most=trusted,
            default=log_start_offset,
            now_ms=self.now_ms,
        )
        aborted = self._replay(log_end_offset)
        there = set(self.segments)
        rebuilt = []
        for segment in self.scanned:
            wanted = aborted.get(segment.base_offset, [])
            if segment in there and not _holds(segment, wanted):
                segment.transaction_index.rebuild(wanted)
                rebuilt.append(segment.transaction_index.path)
        return rebuilt

    def _replay(self, log_end_offset: int) -> dict[int, list[AbortedTransaction]]:
        """The transactions that were aborted in each segment that was replayed."""
        producers, segments = self.producers, self.segments
        aborted: dict[int, list[AbortedTransaction]] = {}

        def on_completed(segment: Segment, done: CompletedTransaction) -> None:
            if done.is_aborted:
                aborted.setdefault(segment.base_offset, []).append(
                    AbortedTransaction(
                        done.producer_id,
                        done.first_offset,
                        done.last_offset,
                        producers.last_stable_offset_after(done),
                    )
                )

        scanned = {segment.base_offset for segment in self.scanned}
        ends = [*segments.base_offsets[1:], log_end_offset]
        for base_offset, end_offset in zip(segments.base_offsets, ends, strict=True):
            if end_offset <= producers.map_end_offset:
                continue
            if base_offset in scanned:
                producers.remove_expired(self.now_ms)
            replay(producers, segments, end_offset=end_offset, on_completed=on_completed)
            if base_offset in scanned and end_offset > producers.last_snapshot_offset:
                # A hint, synced by the next flush: a torn one is passed over.
                self.snapshots.write(end_offset, producers, durable=False)
                producers.last_snapshot_offset = end_offset
        return aborted


def _holds(segment: Segment, wanted: list[AbortedTransaction]) -> bool:
    try:
        return list(segment.transaction_index) == wanted
    except CorruptIndexError:
        return False


def has_sane_aborts(segment: Segment) -> bool:
    """Whether the segment's index of aborted transactions is one, and tells of what is there."""
    if not segment.transaction_index.exists:
        return True
    try:
        segment.transaction_index.sanity_check()
        return segment.confirms_aborted()
    except (CorruptIndexError, CorruptSegmentError):
        return False
