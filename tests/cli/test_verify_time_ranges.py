"""``stratalog log verify --write-time-ranges``: what a scan prunes by, for directories that have
come without it."""

import json
import os
from pathlib import Path

import pytest
from cli_harness import START_MS, stratalog

from stratalog import Record, open_directory
from stratalog.storage.files import OsFileSystem
from stratalog.testing.time_ranges import believed_ranges, false_ranges


@pytest.fixture
def cold(tmp_path: Path) -> Path:
    """A log directory without ranges: one segment that is long enough to have some."""
    with open_directory(tmp_path / "logs", create=True) as logs:
        log = logs.create("orders")
        for number in range(60):
            log.append([Record(b"k", os.urandom(900), (), START_MS - number)])
        logs.create("tiny").append([Record(b"k", b"v", (), START_MS)])
    for path in (tmp_path / "logs").rglob("*.timeranges"):
        path.unlink()
    return tmp_path / "logs"


def ranges_in(directory: Path) -> int:
    assert not false_ranges(OsFileSystem(), str(directory))
    return len(believed_ranges(OsFileSystem(), str(directory)))


def test_missing_ranges_are_written_once(cold: Path) -> None:
    assert ranges_in(cold / "orders-0") == 0
    done = stratalog("log", "verify", str(cold), "--write-time-ranges")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1] == "time ranges: 1 segment written, 0 had them"
    assert ranges_in(cold / "orders-0") == 1
    done = stratalog("log", "verify", str(cold / "orders-0"), "--write-time-ranges", "-o", "json")
    assert json.loads(done.stdout)["time_ranges"] == [{"written": 0, "present": 1, "failures": []}]


def test_ranges_that_no_longer_hold_are_written_again(cold: Path) -> None:
    stratalog("log", "verify", str(cold), "--write-time-ranges")
    os.utime(cold / "orders-0" / "00000000000000000000.log")
    assert ranges_in(cold / "orders-0") == 0
    stratalog("log", "verify", str(cold), "--write-time-ranges")
    assert ranges_in(cold / "orders-0") == 1


def test_without_the_option_nothing_is_written(cold: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in cold.rglob("*")}
    assert stratalog("log", "verify", str(cold)).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in cold.rglob("*")} == before


def test_a_directory_that_somebody_owns_is_left_alone(cold: Path) -> None:
    lock = OsFileSystem().lock(str(cold / ".lock"))
    try:
        done = stratalog("log", "verify", str(cold), "--write-time-ranges")
    finally:
        lock.release()
    assert done.exit_code != 0
    assert f"owned by process {os.getpid()}" in done.stderr
    assert ranges_in(cold / "orders-0") == 0


def test_a_partition_that_lies_by_itself_needs_no_lock(cold: Path, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    (cold / "orders-0").rename(tmp_path / "copies" / "orders-0")
    stratalog("log", "verify", str(tmp_path / "copies" / "orders-0"), "--write-time-ranges")
    assert ranges_in(tmp_path / "copies" / "orders-0") == 1
    assert not (tmp_path / "copies" / ".lock").exists()
