"""Which leader epoch wrote which offsets, kept in ``leader-epoch-checkpoint``.

Entries grow in epoch and in start offset. An epoch's offsets end where the next one's start, or
at the log end for the latest. A follower that was led by another leader uses this to find where
the two histories part.
"""

from bisect import bisect_right
from dataclasses import dataclass

from stratalog.storage.checkpoint import EpochEntry, read_epochs, write_epochs
from stratalog.storage.files import FileSystem

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


@dataclass(frozen=True, slots=True)
class EpochEnd:
    epoch: int
    end_offset: int


class LeaderEpochs:
    """The cache, and the file behind it.

    ``assign`` and ``clear`` are durable when they return, before any byte of the new epoch is
    written; who assigns many at once syncs the file system instead, or leaves the file to the
    first append with ``assign_later``. Truncations only mark it: ``flush`` writes them, since a
    stale entry beyond the log end is dropped again at the next start.
    """

    def __init__(self, files: FileSystem, path: str, entries: list[EpochEntry]) -> None:
        self._files = files
        self._path = path
        self._entries = entries
        self._in_file = entries
        self._dirty = False
        self._is_behind_end = False

    @classmethod
    def load(cls, files: FileSystem, path: str) -> "LeaderEpochs":
        loaded = cls(files, path, [])
        found = read_epochs(files, path)
        for entry in found:
            loaded._entries = loaded._with(entry) or loaded._entries
        loaded._in_file = found
        return loaded

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int:
        return self._entries[-1].epoch if self._entries else UNDEFINED_EPOCH

    @property
    def is_dirty(self) -> bool:
        return self._dirty

    @property
    def is_behind_end(self) -> bool:
        """Whether file and memory may differ in what they say of the offsets behind the log's end:
        the file has to be written before anything is appended there."""
        return self._is_behind_end

    def assign(self, epoch: int, start_offset: int, *, is_synced: bool = True) -> None:
        assert epoch >= 0, f"leader epoch {epoch} is negative"
        assert start_offset >= 0, f"start offset {start_offset} is negative"
        assigned = self._with(EpochEntry(epoch, start_offset))
        if assigned is not None:
            self._write(assigned, is_synced=is_synced)
            self._entries = assigned
        elif self._is_behind_end:
            self._write(self._entries, is_synced=is_synced)

    def assign_later(self, epoch: int, log_end_offset: int) -> None:
        """An epoch that begins at the log's end, in memory: ``flush_before_append`` makes it
        durable. An epoch without batches is nothing that a crash may not take."""
        assigned = self._with(EpochEntry(epoch, log_end_offset))
        if assigned is not None:
            self._entries = assigned
            self._is_behind_end = True
        if self._entries == self._in_file:
            self._dirty = self._is_behind_end = False

    def _with(self, entry: EpochEntry) -> list[EpochEntry] | None:
        """The entries with another one; None if they say so already."""
        entries = self._entries
        latest = entries[-1] if entries else None
        if latest and entry.epoch == latest.epoch and entry.start_offset >= latest.start_offset:
            return None
        # A lower epoch than the latest is not refused: it takes the place of what it contradicts.
        kept = len(entries)
        while kept and (
            entries[kept - 1].epoch >= entry.epoch
            or entries[kept - 1].start_offset >= entry.start_offset
        ):
            kept -= 1
        return [*entries[:kept], entry]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where ``epoch`` ended, as far as this log knows; undefined is (-1, -1)."""
        if epoch == UNDEFINED_EPOCH or not self._entries:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, log_end_offset)
        higher = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if higher == len(self._entries):
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        end_offset = self._entries[higher].start_offset
        if higher == 0:
            return EpochEnd(epoch, end_offset)
        return EpochEnd(self._entries[higher - 1].epoch, end_offset)

    def epoch_for_offset(self, offset: int) -> int:
        slot = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[slot - 1].epoch if slot else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after ``end_offset``."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        if len(kept) < len(self._entries):
            self._is_behind_end = True
        self.replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget what lies below ``start_offset``; the epoch that spans it starts there now."""
        kept = [entry for entry in self._entries if entry.start_offset > start_offset]
        dropped = len(self._entries) - len(kept)
        if dropped:
            spanning = EpochEntry(self._entries[dropped - 1].epoch, start_offset)
            self.replace([spanning, *kept])

    def replace(self, entries: list[EpochEntry]) -> None:
        """Take other entries, in memory; ``flush`` writes them."""
        if entries != self._entries:
            self._entries = entries
            self._dirty = True

    def clear(self) -> None:
        if self._entries:
            self._write([])
            self._entries = []

    def flush(self) -> None:
        if self._dirty:
            self._write(self._entries)

    def flush_before_append(self) -> None:
        """Make durable what the file says of the offsets that the next batch gets."""
        if self._is_behind_end:
            self._write(self._entries)

    def _write(self, entries: list[EpochEntry], *, is_synced: bool = True) -> None:
        write_epochs(self._files, self._path, entries, is_synced=is_synced)
        self._in_file = entries
        self._dirty = self._is_behind_end = False
