"""Files that are removed on a thread of their own."""

import errno
import threading

import pytest

from stratalog.errors import DiskError
from stratalog.storage.files import FileSystem
from stratalog.storage.janitor import Janitor
from stratalog.testing import SimulatedFileSystem


def disk(*paths: str) -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    for directory in sorted({path.rsplit("/", 1)[0] for path in paths}):
        if not files.exists(directory):
            files.make_directory(directory)
    for path in paths:
        files.open(path, create=True).close()
    return files


def done(janitor: Janitor) -> None:
    """Everything asked for so far has been seen to."""
    janitor.stop()
    janitor.report()


def refuse(error: DiskError) -> None:
    raise AssertionError(error)


@pytest.mark.parametrize("is_threaded", [False, True])
def test_what_is_named_goes_and_what_has_gone_already_is_no_trouble(is_threaded: bool) -> None:
    files = disk("/t/a.deleted", "/t/b.deleted", "/t/c", "/t-delete/d")
    janitor = Janitor(files, is_threaded=is_threaded)
    janitor.unlink(["/t/a.deleted", "/t/gone.deleted", "/t/b.deleted"], refuse)
    janitor.remove_tree("/t-delete", refuse)
    janitor.finish()
    assert [entry.name for entry in files.list("/t")] == ["c"]
    assert not files.exists("/t-delete")
    done(janitor)


@pytest.mark.parametrize("is_threaded", [False, True])
def test_trouble_is_told_on_the_owners_thread_and_the_rest_goes_on(is_threaded: bool) -> None:
    files = disk("/t/a.deleted", "/t/b.deleted")
    files.fail(lambda each: each.path == "/t/a.deleted", errno.EIO)
    told: list[DiskError] = []
    janitor = Janitor(files, is_threaded=is_threaded)
    janitor.unlink(["/t/a.deleted", "/t/b.deleted"], told.append)
    janitor.finish()
    assert is_threaded == (not told)
    janitor.report()
    assert [error.path for error in told] == ["/t/a.deleted"]
    assert [entry.name for entry in files.list("/t")] == ["a.deleted"]
    done(janitor)


def test_a_stop_leaves_the_rest_to_the_next_start() -> None:
    files: FileSystem = disk("/t/a.deleted")
    janitor = Janitor(files, is_threaded=True)
    janitor.stop()
    janitor.unlink(["/t/a.deleted"], refuse)
    done(janitor)
    assert files.exists("/t/a.deleted")


@pytest.mark.parametrize("again", ["unlink", "report", "finish"])
def test_what_no_thread_was_there_for_is_removed_later(
    again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = disk("/t/a.deleted", "/t/b.deleted", "/t/c")
    janitor = Janitor(files, is_threaded=True)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        janitor.unlink(["/t/a.deleted"], refuse)
    if again == "report":
        janitor.report()
    elif again == "unlink":
        janitor.unlink(["/t/b.deleted"], refuse)
    janitor.finish()
    assert not files.exists("/t/a.deleted")
    done(janitor)


def no_thread(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
