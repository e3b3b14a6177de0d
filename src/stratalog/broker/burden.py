"""What one client makes this side keep, outside the buffer that its requests arrive in: a large
request that waits for its answer, an answer that is not read, with the files that it is in. And
whether that client moves."""

from stratalog.broker.memory import RequestMemory

# Who keeps memory and moves less than this has to go when memory is short.
WINDOW_MS = 10_000
_SLOWEST_BYTES_A_MS = 16


class Burden:
    """Confined to the loop."""

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self.held_bytes = 0
        self.held_files = 0
        self.moved_bytes = 0
        self._since_ms = -1

    def hold(self, size_bytes: int, files: int = 0) -> None:
        """From now on it is this much, in place of what it was."""
        self._memory.hold(size_bytes - self.held_bytes, files - self.held_files)
        self.held_bytes, self.held_files = size_bytes, files

    def release(self) -> None:
        held_bytes, held_files = self.held_bytes, self.held_files
        self.held_bytes = self.held_files = 0
        if held_bytes or held_files:
            self._memory.release(held_bytes, held_files)

    def is_stalled(self, now_ms: int, *, could_move: bool) -> bool:
        """Whether the client has hardly moved since this was first asked, although it could."""
        if not could_move:
            self._since_ms = -1
        elif self._since_ms < 0:
            self._since_ms = now_ms
            self.moved_bytes = 0
        elif now_ms - self._since_ms >= WINDOW_MS:
            wanted_bytes = _SLOWEST_BYTES_A_MS * (now_ms - self._since_ms)
            self._since_ms = -1
            return self.moved_bytes < wanted_bytes
        return False
