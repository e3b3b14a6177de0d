"""A bound on the bytes of requests that are held at one time, over all connections.

Buffers are handed out even if they take more than is left, once, so that the largest request that
is allowed always fits: with nothing left, connections wait for others to give back, and the kernel
makes their clients wait. Small buffers come back for use again: fresh memory costs a page fault
for every four kilobytes of it.
"""

from collections import deque
from collections.abc import Callable

from stratalog.records._kernels import uninitialized

_SMALLEST_BYTES = 16 << 10
_KEPT_EACH_BYTES = 2 << 20
_KEPT_BYTES = 16 << 20


class RequestMemory:
    """Confined to the loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._kept: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_exhausted(self) -> bool:
        return self.used_bytes >= self.limit_bytes

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least that size; what is in it means nothing."""
        capacity = _capacity(size_bytes)
        self.used_bytes += capacity
        kept = self._kept.get(capacity)
        if kept:
            self._kept_bytes -= capacity
            return kept.pop()
        return uninitialized(capacity)

    def give_back(self, buffer: bytearray) -> None:
        capacity = len(buffer)
        self.used_bytes -= capacity
        if capacity <= _KEPT_EACH_BYTES and self._kept_bytes + capacity <= _KEPT_BYTES:
            self._kept.setdefault(capacity, []).append(buffer)
            self._kept_bytes += capacity
        self._wake()

    def _wake(self) -> None:
        while self._waiting and not self.is_exhausted:
            self._waiting.popleft()()

    def hold(self, size_bytes: int) -> None:
        """Count bytes that somebody else holds."""
        self.used_bytes += size_bytes

    def let_go(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        self._wake()

    def wait(self, resume: Callable[[], None]) -> None:
        """Call ``resume`` when there is memory again."""
        self._waiting.append(resume)


def _capacity(size_bytes: int) -> int:
    """The next power of two, or for large ones the next multiple of a megabyte: sizes that many
    requests share."""
    if size_bytes > _KEPT_EACH_BYTES:
        return -(-size_bytes >> 20) << 20
    return max(_SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
