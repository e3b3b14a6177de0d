"""Leases of the logs of one owner: asking its logs, its directories and its janitor.

``LeaseBook`` knows what is held; here is where it is told of, when, and who removes what. On the
owner's thread.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.errors import DiskError
from stratalog.storage.deletion import DeletedFiles
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem
from stratalog.storage.held_files import HeldFiles
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import LEASE_FILE_PREFIX, TopicPartition
from stratalog.storage.lease_book import FoundLeases, LeaseBook
from stratalog.storage.leases import Lease, Ranges, remove_lease
from stratalog.storage.log import Log

LOOK_MS = 30_000
_UNFINISHED_MS = 3_600_000

LeaseWrite = tuple[str, Callable[[], None]]


class LogLeases:
    """``book`` may be asked; what changes anything goes through here."""

    def __init__(
        self,
        config: BrokerConfig,
        files: FileSystem,
        clock: Clock,
        *,
        directories: Sequence[LogDirectory],
        janitor: Janitor,
    ) -> None:
        self.book = LeaseBook(
            files,
            clock,
            max_bytes=config.log_lease_max_bytes,
            max_ms=config.log_lease_max_ms,
            do=lambda action: janitor.write(action, _ignore),
        )
        self._files = files
        self._clock = clock
        self._directories = directories
        self._janitor = janitor
        self._found: deque[FoundLeases] = deque()

    # --- starting -----------------------------------------------------------------------------

    def load(self, directory: LogDirectory, replicas: Mapping[str, TopicPartition]) -> None:
        """Take up what was left in a directory, before its logs are opened; ``replicas`` are the
        partitions by their paths."""
        with suppress(DiskError):
            for path in self._unfinished(directory.path):
                self._files.unlink(path, missing_ok=True)
        with suppress(DiskError):
            self.take_found(self.book.plan_look(directory.path)())
        for path, key in replicas.items():
            with suppress(DiskError):
                self.book.find_held(key, path)

    def _unfinished(self, log_dir: str) -> list[str]:
        oldest_ms = self._clock.now_ms() - _UNFINISHED_MS
        return [
            f"{log_dir}/{entry.name}"
            for entry in self._files.list(log_dir)
            if entry.name.startswith(LEASE_FILE_PREFIX) and entry.name.endswith(".tmp")
            # Somebody may be writing it just now.
            if entry.modified_ms < oldest_ms and not entry.is_directory
        ]

    # --- granting -----------------------------------------------------------------------------

    def grant(
        self, holder: str, duration_ms: int, ranges: Ranges
    ) -> tuple[Lease, list[LeaseWrite]]:
        """A lease that holds from now on, and what any thread is to run before it is spoken of;
        then ``note_written``. What is waiting to be unlinked is rescued."""
        lease = self.book.grant(holder, duration_ms, ranges)
        log_dirs = self._rescue(lease)
        online = [each.path for each in self._directories if each.is_online]
        places = [path for path in online if path in log_dirs] or online
        return lease, [(path, self.book.plan_write(lease, path)) for path in places]

    def note_written(self, lease: Lease, log_dirs: Sequence[str]) -> None:
        for log_dir in log_dirs:
            self.book.note_written(lease, log_dir)

    def _rescue(self, lease: Lease) -> set[str]:
        """Keep what a new lease covers and is waiting to be unlinked; returns where its logs
        are."""
        log_dirs = set()
        for key, (from_offset, end_offset) in lease.ranges.items():
            for directory in self._directories:
                log = directory.logs.get(key)
                if log is not None:
                    log_dirs.add(directory.path)
                    if len(log.pending_deletes):
                        keep = partial(self._keep, log)
                        log.pending_deletes.offer(from_offset, end_offset, keep)
        return log_dirs

    def _keep(self, log: Log, files: DeletedFiles) -> list[str]:
        self.book.keep_files(
            log.topic_partition,
            log.directory,
            files.start_offset,
            files.end_offset,
            files.paths,
        )
        return [path for path in files.paths if self._files.exists(path)]

    # --- periodic work ------------------------------------------------------------------------

    def run(self, now_ms: int) -> None:
        """End what is over, and remove what nobody holds any more."""
        while self._found:
            self.take_found(self._found.popleft())
        self.book.end_expired(now_ms)
        for directory in self._directories:
            self.book.enforce_limit(directory.path)
        self._remove(self.book.take_unleased())
        for log_dir, lease_id in self.book.take_ended():
            self._janitor.write(partial(remove_lease, self._files, log_dir, lease_id), _ignore)

    def _remove(self, free: Sequence[HeldFiles]) -> None:
        for held in free:
            if held.is_tree:
                self._janitor.remove_tree(held.paths[0], _ignore)
            else:
                self._janitor.unlink(held.paths, _ignore)

    def plan_looks(self) -> list[Callable[[], FoundLeases]]:
        """What sees what others have done to files of leases, on any thread; ``take_found`` takes
        note of it."""
        return [self.book.plan_look(each.path) for each in self._directories if each.is_online]

    def take_found(self, found: FoundLeases) -> None:
        for lease in self.book.take_found(found):
            self._rescue(lease)

    def look_later(self, _now_ms: int = 0) -> None:
        """Let the janitor look; ``run`` takes note."""
        for look in self.plan_looks():
            self._janitor.write(partial(self._look, look), _ignore)

    def _look(self, look: Callable[[], FoundLeases]) -> None:
        self._found.append(look())

    def look_now(self) -> None:
        """The same at once, for an owner that may wait."""
        for look in self.plan_looks():
            with suppress(DiskError):
                self.take_found(look())

    def make_room(self, directory: LogDirectory, reserve_bytes: int) -> int:
        """Where space is short, leases end before appends are refused: how much will be free soon
        that is not yet."""
        if not self.book.held_bytes(directory.path):
            return 0
        try:
            needed_bytes = reserve_bytes - self._files.free_bytes(directory.path)
        except DiskError:
            return 0  # whoever looks next will meet it too, and say so
        if needed_bytes <= 0:
            return 0
        freed_bytes = self.book.make_room(directory.path, needed_bytes)
        self.run(self._clock.now_ms())
        return freed_bytes


def _ignore(_error: DiskError) -> None:
    """A lease is best effort. Whatever the disk has, who writes a log will meet it, and say so;
    what could not be removed is found by the next start."""
