"""Cold reads: whether a slice of a file can be sent without waiting for a disk, and, where it
cannot, the reading that a worker does beforehand."""

import os

from stratalog.storage.batch_file import FileSlice

WARM_BYTES = 1 << 20
_WARM_STEP_BYTES = 128 << 10
_PROBE = bytearray(1)


def warm(part: FileSlice, size_bytes: int) -> int:
    """Read the first bytes of a slice into the system's cache; returns where they end."""
    end = part.position + size_bytes
    for position in range(part.position, end, _WARM_STEP_BYTES):
        part.file.read_at(position, min(_WARM_STEP_BYTES, end - position))
    return end


def is_cached(descriptor: int, position: int, size_bytes: int) -> bool:
    """Whether reading would not wait for a disk, judged by the last byte: the first ones have just
    been read, to find out that a batch starts there."""
    try:
        os.preadv(descriptor, (_PROBE,), position + size_bytes - 1, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system cannot tell
    return True
