"""Files that have been renamed to ``.deleted`` and wait for their time to be unlinked."""

from collections.abc import Sequence

from stratalog.storage.files import FileSystem


class PendingDeletes:
    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._waiting: list[tuple[int, Sequence[str]]] = []

    def __len__(self) -> int:
        return sum(len(paths) for _, paths in self._waiting)

    def add(self, paths: Sequence[str], due_ms: int) -> None:
        if paths:
            self._waiting.append((due_ms, paths))

    def take_due(self, now_ms: int) -> list[str]:
        """The files whose time has come; it is for the caller to unlink them."""
        if not self._waiting:
            return []
        due = [path for due_ms, paths in self._waiting if due_ms <= now_ms for path in paths]
        self._waiting = [(due_ms, paths) for due_ms, paths in self._waiting if due_ms > now_ms]
        return due

    def run(self, now_ms: int) -> int:
        """Unlink what is due; returns how many files went."""
        due = self.take_due(now_ms)
        for path in due:
            self._files.unlink(path, missing_ok=True)
        return len(due)
