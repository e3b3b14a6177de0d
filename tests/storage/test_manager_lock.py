"""One owner per log directory, on real files and between real processes."""

import subprocess
import sys
from pathlib import Path

import pytest
from managers import ORDERS, PAYMENTS, fill

from stratalog.config import BrokerConfig
from stratalog.errors import LogDirectoryError
from stratalog.storage.manager import LogManager

LOCKED_ELSEWHERE = """
import fcntl, sys
lock = open(sys.argv[1], "a")
try:
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused", flush=True)
else:
    print("locked", flush=True)
    sys.stdin.read()
"""


def logs_in(*directories: Path) -> LogManager:
    config = BrokerConfig(
        log_dirs=tuple(map(str, directories)), log_flush_on_ack=False, log_dir_reserve_bytes=0
    )
    return LogManager(config)


def other_process(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LOCKED_ELSEWHERE, str(directory / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_directory_owned_by_another_process_is_refused_with_its_pid(tmp_path: Path) -> None:
    with other_process(tmp_path) as owner:
        assert answer(owner) == "locked"
        with pytest.raises(LogDirectoryError, match=rf"process {owner.pid}\b"):
            logs_in(tmp_path).start()
        owner.communicate()
    logs = logs_in(tmp_path)
    logs.start()
    logs.shutdown()


def test_the_lock_outlives_all_that_an_owner_does(tmp_path: Path) -> None:
    logs = logs_in(tmp_path / "a", tmp_path / "b")
    logs.start()
    fill(logs.create(ORDERS))
    fill(logs.create(PAYMENTS))
    logs.delete(PAYMENTS)
    logs.flush_appended()
    logs.checkpoint_recovery_points()
    logs.checkpoint_high_watermarks()
    with pytest.raises(LogDirectoryError):
        logs_in(tmp_path / "a").start()
    for directory in ("a", "b"):
        with other_process(tmp_path / directory) as process:
            assert answer(process) == "refused"
    logs.shutdown()
    with other_process(tmp_path / "a") as process:
        assert answer(process) == "locked"
        process.communicate()


def test_logs_on_real_files_are_there_again_after_a_clean_stop_and_after_a_crash(
    tmp_path: Path,
) -> None:
    logs = logs_in(tmp_path / "a", tmp_path / "b")
    logs.start()
    fill(logs.create(ORDERS), 30)
    fill(logs.create(PAYMENTS), 20)
    logs.shutdown()
    again = logs_in(tmp_path / "a", tmp_path / "b")
    again.start()
    assert (again.get(ORDERS).log_end_offset, again.get(PAYMENTS).log_end_offset) == (60, 40)
    fill(again.get(ORDERS), 5)
    for log in again:
        log.abandon()  # nothing was flushed, nothing marked
    for directory in again.directories:
        directory.release()
    last = logs_in(tmp_path / "a", tmp_path / "b")
    last.start()
    assert (last.get(ORDERS).log_end_offset, last.get(PAYMENTS).log_end_offset) == (70, 40)
    last.shutdown()
