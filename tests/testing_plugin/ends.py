"""What is left of a broker, and waiting for the end of a process that is somebody else's child."""

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

WAIT_SECONDS = 60


def wait_for_end(pid: int) -> None:
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            assert select.select([descriptor], [], [], WAIT_SECONDS)[0], f"{pid} has not ended"
        finally:
            os.close(descriptor)


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < give_up, "it has not come to that"
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_open(port: int) -> bool:
    """Whether somebody listens there, as the system says it: to connect may find oneself."""
    return f":{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()
