"""How much the system has yet to write, by what it says of itself in ``/proc/meminfo``.

One sync of a whole file system makes several logs durable in the time of one, but it also waits for
what others have written there: a load that stages files, a copy. So it is worth it while little is
waiting to be written, on all file systems together.
"""

from stratalog.errors import DiskError
from stratalog.storage.files import FileSystem

MEMINFO = "/proc/meminfo"
# A disk takes as much in a few hundredths of a second at worst.
LITTLE_BYTES = 16 << 20
_UNWRITTEN = (b"Dirty:", b"Writeback:")
_READ_BYTES = 8192


def is_little_unwritten(files: FileSystem) -> bool:
    """Whether a sync of everything has little to wait for; False where that is not known."""
    try:
        file = files.open(MEMINFO, writable=False)
    except DiskError:
        return False
    try:
        return unwritten_bytes(file.read_at(0, _READ_BYTES)) <= LITTLE_BYTES
    except (DiskError, ValueError):
        return False
    finally:
        file.close()


def unwritten_bytes(meminfo: bytes) -> int:
    """``ValueError`` if it does not say."""
    found = [line.split() for line in meminfo.splitlines() if line.startswith(_UNWRITTEN)]
    if len(found) != len(_UNWRITTEN):
        raise ValueError("what is dirty or being written is not told")
    return sum(int(words[1]) for words in found) * 1024
