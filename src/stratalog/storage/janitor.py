"""Removes files and writes checkpoints on a thread of its own: both can take longer than an append
may.

What is removed has a name that nobody looks at any more, so nobody waits for it. A stop leaves the
rest to the next start, which sweeps such names away. What a checkpoint says was true when it was
planned, and stays good enough until the next.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from stratalog.errors import DiskError
from stratalog.storage.files import FileSystem, remove_tree

Failed = Callable[[DiskError], None]


class Janitor:
    """``failed`` is called by ``report``, on the owner's thread."""

    def __init__(self, files: FileSystem, *, is_threaded: bool) -> None:
        self._files = files
        self._is_threaded = is_threaded
        self._waiting: queue.SimpleQueue[tuple[Callable[[], None], Failed] | None] = (
            queue.SimpleQueue()
        )
        self._failures: deque[tuple[DiskError, Failed]] = deque()
        self._thread: threading.Thread | None = None
        self._is_stopping = False

    def unlink(self, paths: Sequence[str], failed: Failed) -> None:
        for path in paths:
            self._do(partial(self._files.unlink, path, missing_ok=True), failed)

    def remove_tree(self, path: str, failed: Failed) -> None:
        self._do(partial(remove_tree, self._files, path), failed)

    def write(self, write: Callable[[], None], failed: Failed) -> None:
        self._do(write, failed)

    def report(self) -> None:
        """On the owner's thread: tell of what went wrong; begin what had no thread."""
        self._begin()
        while self._failures:
            error, failed = self._failures.popleft()
            failed(error)

    def finish(self) -> None:
        """Wait until everything asked for so far has been seen to."""
        self._waiting.put(None)
        if self._thread is None:
            self._run()
        else:
            self._thread.join()
            self._thread = None

    def stop(self) -> None:
        """Drop what waits, and let nothing more be removed."""
        self._is_stopping = True
        self.finish()

    def _do(self, action: Callable[[], None], failed: Failed) -> None:
        if not self._is_threaded:
            self._attempt(action, failed)
            self.report()
            return
        self._waiting.put((action, failed))
        self._begin()

    def _begin(self) -> None:
        if self._thread is not None or self._waiting.empty():
            return
        thread = threading.Thread(target=self._run, name="kafka-delete-logs", daemon=True)
        # The system may have no thread left: what waits is begun by the next that comes, or by
        # ``report``.
        with suppress(RuntimeError, MemoryError):
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while (found := self._waiting.get()) is not None:
            if not self._is_stopping:
                self._attempt(*found)

    def _attempt(self, action: Callable[[], None], failed: Failed) -> None:
        try:
            action()
        except DiskError as error:
            self._failures.append((error, failed))
