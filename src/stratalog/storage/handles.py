"""A bound on open descriptors and maps, however many segments there are."""

import resource
from collections import deque
from typing import Protocol

# A segment's log, its three indexes, and the two that maps have of their own.
DESCRIPTORS_EACH = 6


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
        broker has connections too."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return cls(min(max((soft // 2 - 64) // DESCRIPTORS_EACH, 16), 4_096))

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
