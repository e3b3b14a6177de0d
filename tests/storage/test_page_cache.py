"""What the system says of bytes that it has yet to write."""

import pytest

from stratalog.storage.files import OsFileSystem
from stratalog.storage.page_cache import (
    LITTLE_BYTES,
    MEMINFO,
    is_little_unwritten,
    unwritten_bytes,
)
from stratalog.testing import SimulatedFileSystem


def test_what_is_dirty_and_what_is_being_written_count() -> None:
    said = b"MemTotal: 9 kB\nDirty:    12 kB\nWriteback:   3 kB\nWritebackTmp: 7 kB\n"
    assert unwritten_bytes(said) == 15 * 1024


def test_this_system_says_it() -> None:
    file = OsFileSystem().open(MEMINFO, writable=False)
    assert unwritten_bytes(file.read_at(0, 8192)) >= 0


@pytest.mark.parametrize("said", [b"", b"Dirty: 5 kB\n", b"Dirty: x kB\nWriteback: 0 kB\n"])
def test_where_it_is_not_told_it_is_not_taken_for_little(said: bytes) -> None:
    files = SimulatedFileSystem()
    assert not is_little_unwritten(files)
    files.make_directory("/proc")
    files.open(MEMINFO, create=True).write_at(0, [said])
    assert not is_little_unwritten(files)


@pytest.mark.parametrize(("kb", "is_little"), [(0, True), (1, False)])
def test_up_to_the_bound_it_is_little(kb: int, is_little: bool) -> None:
    files = SimulatedFileSystem()
    files.make_directory("/proc")
    said = b"Dirty: %d kB\nWriteback: 0 kB\n" % (LITTLE_BYTES // 1024 + kb)
    files.open(MEMINFO, create=True).write_at(0, [said])
    assert is_little_unwritten(files) is is_little
