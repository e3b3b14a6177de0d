"""The broker that tests of other people's code are given: how long they wait, and what stays.

A round is 100 brokers one after the other, the first in a process that has started none, each from
the call until clients are accepted; then its process, port and directory are looked for.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import Bar, Outcome, lower, quantile
from stratalog.testing import broker
from stratalog.testing.launching import close_launcher, launcher

STARTS = scaled(100, least=5)
ROUNDS = repeats(2)
P95_SECONDS_MAX, SECONDS_MAX = Bar(value=0.3), Bar(value=1.0)
NOTHING = Bar(value=0.0)


def run(_root: Path, _effort: Effort) -> Iterator[Outcome]:
    first, p95, slowest, left = [], [], [], []
    compile_modules()
    for _ in range(ROUNDS):
        seconds, remains = start_many(STARTS)
        first.append(seconds[0])
        p95.append(quantile(seconds, 0.95))
        slowest.append(max(seconds))
        left.append(remains)
    many = f"{STARTS} brokers for tests, one after the other"
    yield lower("fixture.p95", f"{many}: ready, p95", "s", p95, bar=P95_SECONDS_MAX)
    yield lower("fixture.max", f"{many}: ready, the slowest", "s", slowest, bar=SECONDS_MAX)
    yield lower("fixture.first", "a process's first broker for tests: ready", "s", first)
    yield lower("fixture.left", f"{many}: what is left behind", "things", left, bar=NOTHING)


def compile_modules() -> None:
    """Done by pip where a package is installed."""
    start_many(1)


def start_many(count: int) -> tuple[list[float], int]:
    """Seconds of each start, and how many processes, ports and directories are still there."""
    seconds: list[float] = []
    remains = 0
    for _ in range(count):
        began = time.perf_counter()
        with broker() as running:
            seconds.append(time.perf_counter() - began)
            pid, port, home = running.pid, running.port, Path(running.log_dir).parent
        # At once: pids and ports are soon others'.
        remains += is_running(pid) + is_listened_on(port) + home.exists()
    starter = launcher().pid
    close_launcher()
    return seconds, remains + is_running(starter)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def is_listened_on(port: int) -> bool:
    """As the system says it: to connect to a free port may find oneself."""
    address = f":{port:04X} 00000000:0000 0A"
    return address in Path("/proc/net/tcp").read_text()
