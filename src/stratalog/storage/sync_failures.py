"""Which sync of a log directory has failed, known from the moment at which it has.

The system tells of bytes that it could not write once for each open file: whoever syncs by the same
one afterwards is told that all is well. And who has noticed says so later, on the owner's thread.
So whoever is about to promise something because a sync of its own went well asks here, behind that
sync, whether another's did not.
"""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stratalog.errors import SYNC_OPERATIONS, DiskError

# What was deleted or closed meanwhile needs no sync, and says nothing of the disk.
_NOT_OF_THE_DISK = (errno.ENOENT, errno.EBADF)


def is_failed_sync(error: DiskError) -> bool:
    """Whether bytes may have been dropped that could not be written: neither trying again nor
    reading them back would prove anything."""
    return error.operation in SYNC_OPERATIONS and error.errno not in _NOT_OF_THE_DISK


class SyncFailures:
    """Of one log directory. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._under_way: dict[object, str] = {}
        self._first: DiskError | None = None

    @contextmanager
    def noted(self, partition: str = "") -> Iterator[None]:
        """Around whatever syncs in the directory, or only in that of one ``partition``."""
        one = object()
        with self._changed:
            self._under_way[one] = partition
        try:
            yield
        except DiskError as error:
            if is_failed_sync(error):
                self._first = self._first or error
            raise
        finally:
            with self._changed:
                del self._under_way[one]
                self._changed.notify_all()

    def refuse_any(self, partition: str | None = None) -> None:
        """Raise what has failed first, if anything has; syncs that are under way are waited for,
        which may have been told what the caller's was not. ``partition``: the caller has synced by
        nobody's open files but those of this one."""
        with self._changed:
            begun = {one for one, where in self._under_way.items() if partition in (None, where)}
            self._changed.wait_for(lambda: begun.isdisjoint(self._under_way))
            first = self._first
        if first is not None:
            raise type(first)(first.operation, first.path, first.errno, first.reason)
