"""``stratalog demo`` as people run it: a process of its own, with what it prints and leaves."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hearing import interrupts_heard

# Enough for a machine that does ten other things.
END_SECONDS = 600
GONE_SECONDS = 60
SCALE = "0.02"


# Of a Spark that is not here any more.
OTHER_SPARK = {"PYSPARK_PYTHON": "/nowhere/python", "SPARK_HOME": "/nowhere/spark"}


def clean_environment() -> dict[str, str]:
    """A shell in which no environment is activated."""
    names = ("HOME", "JAVA_HOME", "LANG", "PATH")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    beside = str(Path(sys.executable).parent)
    path = [each for each in kept["PATH"].split(":") if each != beside]
    return {**kept, "PATH": ":".join(path), "PYTHONIOENCODING": "utf-8"}


class DemoProcess:
    def __init__(self, process: "subprocess.Popen[str]", output: Path, place: Path) -> None:
        self.process = process
        self._output = output
        self._place = place

    @property
    def printed(self) -> str:
        return self._output.read_text()

    def wait_for(self, text: str) -> None:
        self._until(lambda: text in self.printed, f"no {text!r} in it")

    def interrupt(self) -> None:
        """As a terminal does on Ctrl-C: everybody in the foreground hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> int:
        return self.process.wait(END_SECONDS)

    def _until(self, is_so: Callable[[], bool], why: str) -> None:
        deadline = time.monotonic() + END_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"{why}: {self.printed}"
            assert self.process.poll() is None, f"it has ended, and {why}: {self.printed}"
            time.sleep(0.02)

    def assert_nothing_runs(self) -> None:
        """Brokers and JVMs of this demo name its folder on their command lines."""
        deadline = time.monotonic() + GONE_SECONDS
        while left := processes_of(self._place):
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def processes_of(place: Path) -> dict[int, str]:
    found = {}
    for each in Path("/proc").iterdir():
        if not each.name.isdigit() or int(each.name) == os.getpid():
            continue
        try:
            words = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended
        if f"{place}/" in words:
            found[int(each.name)] = words
    return found


@contextmanager
def running_demo(
    place: Path, *arguments: str, start: Sequence[str] = ("-m", "stratalog")
) -> Iterator[DemoProcess]:
    """Started in ``place``'s parent; both outputs go to one file beside it."""
    output = place.with_name(f"{place.name}.out")
    with output.open("w") as file, interrupts_heard():
        process = subprocess.Popen(
            [sys.executable, *start, "demo", "--dir", str(place), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=place.parent,
            env=clean_environment() | OTHER_SPARK,
            start_new_session=True,
        )
    try:
        yield DemoProcess(process, output, place)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pid in processes_of(place):
                os.kill(pid, signal.SIGKILL)


def figures(printed: str) -> dict[str, tuple[int, int]]:
    """The table of checks: what must be and what is."""
    rows = re.findall(r"^ {4}(\S.*?) {2,}([\d,]+) +([\d,]+) +(?:✓|WRONG)$", printed, re.M)
    return {what: (_number(one), _number(other)) for what, one, other in rows}


def next_commands(printed: str) -> list[str]:
    *_, last = printed.partition("Three commands to try next:\n")
    return [line.strip() for line in last.splitlines() if line.strip()]


def _number(text: str) -> int:
    return int(text.replace(",", ""))
