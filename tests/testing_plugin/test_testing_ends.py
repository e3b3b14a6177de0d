"""However a test process ends, its brokers end, and nothing of them stays."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from ends import is_open, is_running, wait_for_end

from stratalog.testing import broker
from stratalog.testing.launching import close_launcher, launcher

PROGRAM = Path(__file__).parent / "held_broker.py"
RUN_SECONDS = 120


@contextmanager
def held_broker(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, object]]]:
    """A program with a broker, and what it says of it."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            yield program, json.loads(program.stdout.readline())
        finally:
            program.kill()


def check_nothing_is_left(started: dict[str, object]) -> None:
    wait_for_end(int(str(started["broker"])))
    wait_for_end(int(str(started["launcher"])))
    assert not is_open(int(str(started["port"])))
    assert not Path(str(started["home"])).exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_test_process_that_is_killed_leaves_nothing(number: signal.Signals) -> None:
    with held_broker() as (program, started):
        assert is_open(int(str(started["port"])))
        program.send_signal(number)
        program.wait(RUN_SECONDS)

        check_nothing_is_left(started)


def test_nor_does_one_whose_forks_go_on() -> None:
    with held_broker("fork") as (program, started):
        program.send_signal(signal.SIGKILL)
        program.wait(RUN_SECONDS)

        check_nothing_is_left(started)


def test_nor_does_one_that_ends_inside_the_block() -> None:
    with held_broker() as (program, started):
        assert program.stdin is not None
        program.stdin.close()
        program.wait(RUN_SECONDS)

        check_nothing_is_left(started)


def test_brokers_end_with_the_process_that_starts_them_and_the_next_one_has_another() -> None:
    close_launcher()
    with broker() as running:
        first, pid, home = launcher().pid, running.pid, Path(running.log_dir).parent
        os.kill(first, signal.SIGKILL)
        wait_for_end(pid)
        assert not running.is_running

    assert not home.exists()
    with broker() as running:
        assert running.is_running
        assert launcher().pid != first


def test_a_stopped_broker_ends_with_the_rest() -> None:
    with broker() as running:
        pid = running.pid
        os.kill(pid, signal.SIGSTOP)

    assert not is_running(pid)


FORKING = """
import os
from stratalog.testing import broker
from stratalog.testing.launching import launcher

with broker() as ours:
    our_launcher = launcher().pid
    child = os.fork()
    if child == 0:
        with broker() as theirs:
            assert theirs.pid != ours.pid
            assert launcher().pid != our_launcher
            os.write(1, b"forked\\n")
        raise SystemExit  # through the block of its parent, whose broker that is
    assert os.waitpid(child, 0)[1] == 0
    assert ours.is_running
    ours.create_topic("orders")
print("whole")
"""


def test_a_fork_of_the_tests_has_brokers_of_its_own_and_leaves_those_of_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("forked\nwhole\n", "")


OUTLIVED = """
import os
import signal
from stratalog.testing import broker
from stratalog.testing.launching import close_launcher, launcher

with broker():
    child = os.fork()
    if child == 0:
        signal.pause()
process = launcher()._process
close_launcher()
print(process.returncode)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


def test_a_fork_that_lives_longer_does_not_hold_up_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OUTLIVED],
        capture_output=True,
        text=True,
        timeout=2 * RUN_SECONDS,
        check=False,
    )

    # It would be killed, a minute later, if it had to be.
    assert (done.stdout, done.stderr) == ("0\n", "")


CLOSED = """
from stratalog.testing import broker

with broker() as running, open("told", "w") as file:
    file.write(running.bootstrap_servers)
"""


def test_standard_input_and_its_like_may_be_closed(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -W error -c '{CLOSED}' <&- >&- 2>&-"

    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=RUN_SECONDS, check=False)

    assert done.returncode == 0
    assert (tmp_path / "told").read_text().startswith("127.0.0.1:")


def test_threads_may_stop_and_look_at_one_broker_at_the_same_time() -> None:
    with broker() as running, ThreadPoolExecutor(4) as threads:
        stops = [threads.submit(running.stop) for _ in range(2)]
        looks = [threads.submit(lambda: running.is_running) for _ in range(50)]
        for each in (*stops, *looks):
            each.result()

        assert not running.is_running
        assert running.exit_code == 0
