"""A bound on the bytes that clients make a broker hold at one time, over all connections: parts of
requests, large requests that wait for their answers, and answers that are not read. And a bound on
the files that such answers keep open.

With nothing left, connections wait for others to give back, and the kernel makes their clients
wait. One at a time may go over the limit all the same, until its request is there: so the largest
request that is allowed always fits, and many that are half there are finished one after another
rather than never. Small buffers come back for use again: fresh memory costs a page fault for every
four kilobytes of it.
"""

from collections.abc import Callable, Hashable

from stratalog.records._kernels import uninitialized

_SMALLEST_BYTES = 16 << 10
_KEPT_EACH_BYTES = 2 << 20
_KEPT_BYTES = 16 << 20
# Where there is no limit on open files.
_FILES_MAX = 1 << 16


class RequestMemory:
    """Confined to the loop. Who takes or waits is a ``holder``, of which only identity matters."""

    def __init__(
        self,
        limit_bytes: int,
        files_max: int = _FILES_MAX,
        allocate: Callable[[int], bytearray] = uninitialized,
    ) -> None:
        self._allocate = allocate
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.files_max = files_max
        self.held_files = 0
        self._kept: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0
        # Who may go over the limit.
        self._favoured: Hashable = None
        # Those that hold something come first: they give it back when they are done.
        self._holding: dict[Hashable, Callable[[], None]] = {}
        self._waiting: dict[Hashable, Callable[[], None]] = {}

    @property
    def is_exhausted(self) -> bool:
        return self.used_bytes >= self.limit_bytes

    @property
    def is_short(self) -> bool:
        """Whether it is time to be careful: half of it is used, or all files are."""
        return 2 * self.used_bytes > self.limit_bytes or self.are_files_short

    @property
    def are_files_short(self) -> bool:
        return self.held_files > self.files_max

    @property
    def files_left(self) -> int:
        """From how many files one more answer may be sent: from one in any case."""
        return max(self.files_max - self.held_files, 1)

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least that size; what is in it means nothing."""
        capacity = _capacity(size_bytes)
        kept = self._kept.get(capacity)
        if kept:
            self._kept_bytes -= capacity
            buffer = kept.pop()
        else:
            buffer = self._allocate(capacity)
        # Only now: without memory for it, nothing was taken.
        self.used_bytes += capacity
        return buffer

    def give_back(self, buffer: bytearray) -> None:
        capacity = len(buffer)
        self.used_bytes -= capacity
        if capacity <= _KEPT_EACH_BYTES and self._kept_bytes + capacity <= _KEPT_BYTES:
            self._kept.setdefault(capacity, []).append(buffer)
            self._kept_bytes += capacity
        if self._holding or self._waiting:
            self._wake()

    def hold(self, size_bytes: int, files: int = 0) -> None:
        """Something of that size is kept elsewhere because of a client, and so many files open."""
        self.used_bytes += size_bytes
        self.held_files += files

    def release(self, size_bytes: int, files: int = 0) -> None:
        self.used_bytes -= size_bytes
        self.held_files -= files
        if self._holding or self._waiting:
            self._wake()

    # --- when there is none left --------------------------------------------------------------

    def may_take(self, holder: Hashable) -> bool:
        """Whether ``holder`` may take more: there is room, or it is its turn to go over."""
        if not self.is_exhausted:
            return True
        if self._favoured is None:
            self._favoured = holder
        return self._favoured is holder

    def is_favoured(self, holder: Hashable) -> bool:
        return self._favoured is holder

    def wait(self, holder: Hashable, resume: Callable[[], None], *, is_holding: bool) -> None:
        """Call ``resume`` when ``holder`` may take more."""
        waiting = self._holding if is_holding else self._waiting
        waiting[holder] = resume

    def settle(self, holder: Hashable) -> None:
        """``holder`` has all that it wanted, or has gone."""
        self._holding.pop(holder, None)
        self._waiting.pop(holder, None)
        if self._favoured is holder:
            self._favoured = None
            self._wake()

    def _wake(self) -> None:
        for waiting in (self._holding, self._waiting):
            while waiting and not self.is_exhausted:
                waiting.pop(next(iter(waiting)))()
        if self._favoured is None:
            waiting = self._holding or self._waiting
            if waiting:
                self._favoured = next(iter(waiting))
                waiting.pop(self._favoured)()


def answer_files_within(open_files_max: int | None) -> int:
    """How many files answers that are not read may keep open, in a process that may open so many:
    logs and connections need most of them."""
    return _FILES_MAX if open_files_max is None else max(open_files_max // 16, 8)


def _capacity(size_bytes: int) -> int:
    """The next power of two, or for large ones the next multiple of a megabyte: sizes that many
    requests share."""
    if size_bytes > _KEPT_EACH_BYTES:
        return -(-size_bytes >> 20) << 20
    return max(_SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length())
