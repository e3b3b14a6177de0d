"""The commands of the demo's page, each as it is shown but for the place: begun, and stopped.

That the demo comes to its end, and that what it tells then is true, is what tests/demo is for.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from doc_pages import block_of
from doc_shell import SECONDS, is_target
from hearing import interrupts_heard
from stratalog.demo.play import SCENES
from stratalog.spark.session import SparkUnavailableError, check_available

pytestmark = pytest.mark.xdist_group("spark")

LINES = block_of("docs/demo.md", "stratalog demo ").code.splitlines()
# By then the broker runs, and the client produces.
SECOND_SCENE = f"\n2/{len(SCENES)} "


@pytest.fixture(autouse=True)
def _java() -> None:
    try:
        check_available()
    except SparkUnavailableError as unavailable:
        pytest.skip(str(unavailable))


@pytest.mark.parametrize("line", [each for each in LINES if each.startswith("stratalog ")])
def test_the_demo_begins_where_it_is_told_to_and_stops_when_it_is_told_to(
    line: str, tmp_path: Path
) -> None:
    place = tmp_path / "demo" if "--dir " in line else tmp_path / "stratalog-demo"
    command = shlex.split(line.replace("/tmp/demo", str(place)), comments=True)

    assert begun_and_stopped(command, tmp_path) == 128 + signal.SIGINT
    assert (place / "broker.log").exists()


def begun_and_stopped(command: list[str], home: Path) -> int:
    """The exit code, after a Ctrl-C in the second scene."""
    told = home / "told.txt"
    program = Path(sys.executable).parent / command[0]
    with told.open("w") as output, interrupts_heard():
        demo = subprocess.Popen(
            [str(program), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=home,
            start_new_session=True,
        )
    deadline = time.monotonic() + SECONDS
    try:
        while SECOND_SCENE not in told.read_text():
            assert demo.poll() is None, told.read_text()
            assert time.monotonic() < deadline, told.read_text()
            time.sleep(0.05)  # another program's output: there is nothing else to wait for
        os.killpg(demo.pid, signal.SIGINT)
        return demo.wait(SECONDS)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            demo.wait()


def test_the_others_are_targets_of_make() -> None:
    others = [each for each in LINES if not each.startswith("stratalog ")]

    assert others
    assert all(is_target(each) == 0 for each in others)


def test_without_spark_the_demo_says_what_to_install(tmp_path: Path) -> None:
    """As in an environment that has the package alone, and so has no NumPy either."""
    program = (
        "import sys; sys.modules.update(dict.fromkeys(['numpy', 'pandas', 'pyspark']));"
        "from stratalog.cli.app import run; sys.exit(run(['demo']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "PySpark is not installed" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
