"""Files that have been renamed to ``.deleted`` and wait for their time to be unlinked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition

# When all that waits is due.
FOREVER_MS = 2**63 - 1


class DeletedFiles(NamedTuple):
    """What was renamed together. A segment's files say which offsets it owned; those of nothing
    but a producer's state own none."""

    due_ms: int
    paths: Sequence[str]
    start_offset: int
    end_offset: int


class PendingDeletes:
    """Segments of one log that wait to be unlinked. The log is noted in ``with_waste`` when the
    first begins to wait, so that a look for files that are due asks only such logs."""

    def __init__(
        self, files: FileSystem, log: TopicPartition, with_waste: set[TopicPartition]
    ) -> None:
        self._files = files
        self._log = log
        self._with_waste = with_waste
        self._waiting: list[DeletedFiles] = []

    def __len__(self) -> int:
        return sum(len(each.paths) for each in self._waiting)

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def add(
        self, paths: Sequence[str], due_ms: int, *, start_offset: int = 0, end_offset: int = 0
    ) -> None:
        if paths:
            self._waiting.append(DeletedFiles(due_ms, paths, start_offset, end_offset))
            self._with_waste.add(self._log)

    def take_due(self, now_ms: int) -> list[str]:
        """The files whose time has come; it is for the caller to unlink them."""
        if not self._waiting:
            return []
        due = [path for each in self._waiting if each.due_ms <= now_ms for path in each.paths]
        self._waiting = [each for each in self._waiting if each.due_ms > now_ms]
        return due

    def offer(
        self, start_offset: int, end_offset: int, keep: Callable[[DeletedFiles], Sequence[str]]
    ) -> None:
        """Let ``keep`` have what owned any of these offsets; what it returns waits on."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            is_wanted = each.start_offset < end_offset and start_offset < each.end_offset
            left = keep(each) if is_wanted else each.paths
            if left:
                self._waiting.append(each._replace(paths=left))

    def run(self, now_ms: int) -> int:
        """Unlink what is due; returns how many files went."""
        due = self.take_due(now_ms)
        for path in due:
            self._files.unlink(path, missing_ok=True)
        return len(due)
