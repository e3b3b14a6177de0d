"""The real file system behind the seam, and the lock of a log directory."""

import errno
import os
import pickle
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from open_files import open_files_in
from stratalog.errors import (
    DiskError,
    DiskFullError,
    LogDirectoryError,
    TooManyOpenFilesError,
)
from stratalog.storage.directory_lock import OsDirectoryLock
from stratalog.storage.files import (
    OsFileSystem,
    disk_error,
    read_file,
    remove_tree,
    replace_file,
)
from stratalog.testing import SimulatedFileSystem

FILES = OsFileSystem()


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Writes beyond this size end short, then fail: as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- bytes ----------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5), st.integers(0, 40))
def test_buffers_are_written_one_after_the_other_and_read_back(
    buffers: list[bytes], position: int
) -> None:
    content = b"".join(buffers)
    into = bytearray(len(content) + 10)
    with tempfile.NamedTemporaryFile() as named:
        file = FILES.open(named.name)
        file.write_at(position, buffers)
        assert file.read_at(position, len(content) + 10) == content
        assert file.read_into(position, into) == len(content)
    assert bytes(into[: len(content)]) == content


def test_a_read_returns_fewer_bytes_only_at_the_end_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(10)))
    file = FILES.open(str(tmp_path / "f"), writable=False)
    assert file.read_at(0, 4) == bytes(range(4))
    assert file.read_at(8, 4) == b"\x08\x09"
    assert file.read_at(10, 4) == b""
    assert file.read_into(8, bytearray(4)) == 2


def test_a_write_that_fails_half_way_is_cut_back_to_where_it_began(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.write_at(0, [b"whole"])
    with file_size_limit(9), pytest.raises(DiskError, match="write"):
        file.write_at(5, [b"half", b"a batch"])
    assert file.size_bytes() == 5
    assert file.read_at(0, 100) == b"whole"
    file.write_at(5, [b" again"])
    assert file.read_at(0, 100) == b"whole again"


@pytest.mark.parametrize("position", [0, 40, 92])
def test_a_failed_write_inside_a_file_leaves_its_size_alone(tmp_path: Path, position: int) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.truncate(100)
    with file_size_limit(0), pytest.raises(DiskError):
        file.write_at(position, [b"an entry"])
    assert file.size_bytes() == 100


def test_truncate_cuts_and_grows_with_zeros(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.write_at(0, [b"abcdef"])
    file.truncate(3)
    file.truncate(5)
    assert file.read_at(0, 10) == b"abc\0\0"


def test_a_map_is_read_only_and_shows_later_writes(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.truncate(8)
    view = memoryview(file.map(8))
    assert view.readonly
    file.write_at(2, [b"xy"])
    assert bytes(view[:4]) == b"\0\0xy"


def test_a_file_is_closed_with_its_last_reference(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    descriptor = file.fileno()
    assert not os.get_inheritable(descriptor)
    os.fstat(descriptor)
    del file
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_a_file_can_be_closed_twice(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.close()
    file.close()
    with pytest.raises(DiskError):
        file.read_at(0, 1)


def test_a_file_opened_for_reading_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(DiskError):
        FILES.open(str(tmp_path / "f"), writable=False).write_at(0, [b"x"])


def test_every_sync_succeeds_on_a_healthy_disk(tmp_path: Path) -> None:
    file = FILES.open(str(tmp_path / "f"), create=True)
    file.sync()
    FILES.sync_directory(str(tmp_path))
    FILES.sync_file_system(str(tmp_path))
    assert FILES.free_bytes(str(tmp_path)) > 0


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_and_no_quota_mean_a_full_disk(code: int) -> None:
    error = disk_error("write", "/f", OSError(code, os.strerror(code)))
    assert isinstance(error, DiskFullError)
    assert error.errno == code


def test_any_other_refusal_is_a_disk_error_that_says_what_and_where() -> None:
    error = disk_error("fsync", "/f", OSError(errno.EIO, "Input/output error"))
    assert type(error) is DiskError
    assert str(error) == "fsync /f: Input/output error"
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.errno) == (str(error), errno.EIO)


def test_a_full_device_is_a_full_disk() -> None:
    with pytest.raises(DiskFullError):
        FILES.open("/dev/full").write_at(0, [b"x"])


def test_each_refusal_of_the_system_is_a_disk_error(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    refused = [
        lambda: FILES.open(missing),
        lambda: FILES.list(missing),
        lambda: FILES.unlink(missing),
        lambda: FILES.rename(missing, missing + "2"),
        lambda: FILES.set_modified(missing, 0),
        lambda: FILES.sync_directory(missing),
        lambda: FILES.sync_file_system(missing),
        lambda: FILES.free_bytes(missing),
        lambda: FILES.remove_directory(missing),
        lambda: FILES.make_directory(missing + "/deeper"),
    ]
    for call in refused:
        with pytest.raises(DiskError) as raised:
            call()
        assert raised.value.errno == errno.ENOENT
        assert "missing" in raised.value.path


# --- names ----------------------------------------------------------------------------------------


def test_names_are_listed_with_kind_size_and_age(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"12345")
    FILES.set_modified(str(tmp_path / "f"), 1_700_000_000_123)
    entries = {entry.name: entry for entry in FILES.list(str(tmp_path))}
    assert entries["d"].is_directory
    assert not entries["f"].is_directory
    assert (entries["f"].size_bytes, entries["f"].modified_ms) == (5, 1_700_000_000_123)
    assert FILES.stat(str(tmp_path / "f")) == entries["f"]
    assert FILES.stat(str(tmp_path / "none")) is None
    assert FILES.exists(str(tmp_path / "f"))
    assert not FILES.exists(str(tmp_path / "none"))


def test_rename_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"new")
    FILES.rename(str(tmp_path / "new"), str(tmp_path / "old"))
    assert (tmp_path / "old").read_bytes() == b"new"
    assert not (tmp_path / "new").exists()


def test_unlinking_what_is_gone_is_forgiven_when_asked(tmp_path: Path) -> None:
    FILES.unlink(str(tmp_path / "gone"), missing_ok=True)
    (tmp_path / "there").write_bytes(b"")
    FILES.unlink(str(tmp_path / "there"), missing_ok=True)
    assert not (tmp_path / "there").exists()


def test_a_tree_is_removed_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "t-0" / ".stratalog" / "deep").mkdir(parents=True)
    (tmp_path / "t-0" / "0.log").write_bytes(b"x")
    (tmp_path / "t-0" / ".stratalog" / "deep" / "f").write_bytes(b"x")
    remove_tree(FILES, str(tmp_path / "t-0"))
    assert list(tmp_path.iterdir()) == []


def test_a_tree_is_removed_without_following_links_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").write_bytes(b"x")
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "link").symlink_to(tmp_path / "precious")
    with suppress(DiskError):
        remove_tree(FILES, str(tmp_path / "t-0"))
    assert (tmp_path / "precious" / "f").exists()


def test_replace_file_leaves_only_the_new_content(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    (tmp_path / "f").write_bytes(b"old and long")
    (tmp_path / "f.tmp").write_bytes(b"left over, and longer still")
    replace_file(FILES, path, b"new")
    assert read_file(FILES, path) == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def test_a_replacement_that_fails_leaves_the_old_content() -> None:
    files = SimulatedFileSystem()
    files.put("/f", b"old")
    for kind in ("create", "write", "sync", "rename"):
        files.fail(lambda operation, kind=kind: operation.kind == kind, errno.EIO)
        with pytest.raises(DiskError):
            replace_file(files, "/f", b"new")
        files.heal()
        assert files.contents("/f") == b"old"


# --- the lock -------------------------------------------------------------------------------------

OTHER_PROCESS = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
try:
    fcntl.lockf(descriptor, getattr(fcntl, sys.argv[2]) | fcntl.LOCK_NB)
except OSError:
    print("refused", flush=True)
else:
    print("locked", flush=True)
    sys.stdin.read()
"""


def other_process(path: Path, mode: str = "LOCK_EX") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(path), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def first_word(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_lock_keeps_every_other_process_out_until_it_is_released(tmp_path: Path) -> None:
    lock = OsDirectoryLock(str(tmp_path / ".lock"))
    for mode in ("LOCK_EX", "LOCK_SH"):
        with other_process(tmp_path / ".lock", mode) as process:
            assert first_word(process) == "refused"
    lock.release()
    with other_process(tmp_path / ".lock") as process:
        assert first_word(process) == "locked"
        process.communicate()


def test_a_lock_held_by_another_process_is_refused_with_its_pid(tmp_path: Path) -> None:
    with other_process(tmp_path / ".lock") as process:
        assert first_word(process) == "locked"
        with pytest.raises(LogDirectoryError, match=rf"locked by process {process.pid}\b"):
            OsDirectoryLock(str(tmp_path / ".lock"))
        process.communicate()
    OsDirectoryLock(str(tmp_path / ".lock")).release()


def test_a_refused_lock_leaves_no_descriptor_open(tmp_path: Path) -> None:
    with other_process(tmp_path / ".lock") as process:
        assert first_word(process) == "locked"
        with pytest.raises(LogDirectoryError):
            OsDirectoryLock(str(tmp_path / ".lock"))
        assert open_files_in(tmp_path) == 0
        process.communicate()


def test_the_same_process_cannot_take_a_lock_twice_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    lock = OsDirectoryLock(str(tmp_path / "data" / ".lock"))
    for path in ("data/.lock", "link/.lock", "data/../data/.lock"):
        with pytest.raises(LogDirectoryError, match=str(os.getpid())):
            OsDirectoryLock(str(tmp_path / path))
    with other_process(tmp_path / "data" / ".lock") as process:
        assert first_word(process) == "refused", "the second try must not drop the first's lock"
    lock.release()


def test_a_lock_is_released_once_and_may_be_taken_again(tmp_path: Path) -> None:
    first = OsDirectoryLock(str(tmp_path / ".lock"))
    first.release()
    second = OsDirectoryLock(str(tmp_path / ".lock"))
    first.release()
    with other_process(tmp_path / ".lock") as process:
        assert first_word(process) == "refused", "a released lock has no say any more"
    second.release()


def test_a_lock_file_that_cannot_be_made_is_a_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        OsDirectoryLock(str(tmp_path / "missing" / ".lock"))
    OsDirectoryLock(str(tmp_path / ".lock")).release()


# --- descriptors that run out ---------------------------------------------------------------------


@contextmanager
def no_descriptors() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limits[0], 512), limits[1]))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_who_has_a_directorys_lock_can_sync_it_whatever_descriptors_are_left(
    tmp_path: Path,
) -> None:
    files, path = OsFileSystem(), str(tmp_path)
    lock = files.lock(f"{path}/.lock")
    with no_descriptors():
        files.sync_directory(path)
        files.sync_file_system(path)
    lock.release()
    with no_descriptors(), pytest.raises(TooManyOpenFilesError) as raised:
        files.sync_directory(path)
    assert (raised.value.operation, raised.value.is_passing) == ("open", True)


def test_a_map_that_finds_no_descriptor_is_made_later(tmp_path: Path) -> None:
    path = tmp_path / "index"
    path.write_bytes(b"entries")
    file = OsFileSystem().open(str(path))
    with no_descriptors(), pytest.raises(TooManyOpenFilesError):
        file.map(7)
    assert bytes(memoryview(file.map(7))) == b"entries"


@pytest.mark.parametrize(
    ("number", "failures", "is_renamed"),
    [(errno.ENOMEM, 5, True), (errno.ENOMEM, 1_000, False), (errno.EIO, 1, False)],
)
def test_a_rename_that_the_system_has_no_memory_for_is_tried_again(
    number: int,
    failures: int,
    is_renamed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.touch()
    rename, left = os.rename, [OSError(number, os.strerror(number))] * failures

    def starved(one: str, other: str) -> None:
        if left:
            raise left.pop()
        rename(one, other)

    monkeypatch.setattr(os, "rename", starved)
    if is_renamed:
        OsFileSystem().rename(str(source), str(target))
    else:
        with pytest.raises(DiskError):
            OsFileSystem().rename(str(source), str(target))
    assert (source.exists(), target.exists()) == (not is_renamed, is_renamed)
