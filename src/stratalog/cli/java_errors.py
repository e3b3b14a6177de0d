"""What the JVM of Spark writes to standard error: heard, and told only when the JVM is gone.

Before Spark reads any setting its JVM and its logging have greeted with a dozen lines, and Python
workers that a query has no use for any more complain of it there. None of that is about what was
asked: failures come as exceptions. So a command that succeeds says nothing but its result.
"""

import os
import threading
from collections import deque

_LINES_KEPT = 20
_READ_BYTES = 1 << 16
# The JVM's own greeting, and the logging's.
_GREETINGS = ("WARNING: Using incubator modules", "Using Spark's default log4j profile")


class JavaErrors:
    """The last lines of it. ``descriptor`` is for the JVM; ``close`` it when the JVM has it."""

    def __init__(self) -> None:
        read, self.descriptor = os.pipe()
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._thread = threading.Thread(target=self._hear, args=(read,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.close(self.descriptor)

    def last_lines(self, *, wait_seconds: float = 0) -> list[str]:
        """What was said last; of a JVM that is gone, all is heard within ``wait_seconds``."""
        self._thread.join(wait_seconds)
        return [line for line in list(self._lines) if line and not line.startswith(_GREETINGS)]

    def _hear(self, read: int) -> None:
        with os.fdopen(read, "rb", _READ_BYTES) as pipe:
            for line in pipe:
                self._lines.append(line.decode(errors="replace").rstrip())
