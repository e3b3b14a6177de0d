"""A bound on open descriptors and maps, however many segments there are."""

import resource
from collections import deque
from typing import Protocol

# A segment's log, its three indexes, and the two that maps have of their own.
DESCRIPTORS_EACH = 6
_CAPACITY_MAX = 4_096


class Holder(Protocol):
    """Something that holds descriptors, can let go of them, and opens them again when needed."""

    recently_used: bool

    def release(self) -> None: ...


class HandleCache:
    """Keeps at most ``capacity`` holders open; the others are told to let go.

    Not for several threads.

    Second chance: a holder used since it was last looked at goes to the end of the queue, so that
    marking a use costs one attribute store on the hot path and no list is kept in order.
    """

    def __init__(self, capacity: int = 96) -> None:
        self.capacity = capacity
        self._open: deque[Holder] = deque()

    @classmethod
    def within_limits(cls) -> "HandleCache":
        """As large as the limit on open files of this process allows, half of them left over: a
        broker has connections too. Where few files may be open, few are kept so."""
        limit = open_files_max()
        return cls(_CAPACITY_MAX if limit is None else capacity_within(limit))

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, holder: Holder) -> None:
        """``holder`` has just opened its files."""
        self._open.append(holder)
        while len(self._open) > self.capacity:
            oldest = self._open.popleft()
            if oldest.recently_used and oldest is not holder:
                oldest.recently_used = False
                self._open.append(oldest)
            elif oldest is holder:
                self._open.append(holder)  # everybody else has had a second chance by now
            else:
                oldest.release()

    def closed(self, holder: Holder) -> None:
        """``holder`` has closed its files itself."""
        try:
            self._open.remove(holder)
        except ValueError:
            return


def open_files_max() -> int | None:
    """How many files this process may open; None where nobody has set a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def capacity_within(open_files_max: int) -> int:
    """How many holders a process keeps open that may open so many files."""
    few = min(max(open_files_max // (4 * DESCRIPTORS_EACH), 2), 16)
    return min(max((open_files_max // 2 - 64) // DESCRIPTORS_EACH, few), _CAPACITY_MAX)
