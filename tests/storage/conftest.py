"""Logs that are looked over when their test has ended.

``make_log(**config)`` opens a new log on a simulated disk, with a clock that stands still. Every
log that a test opens this way has to be in order at the end, in memory and on disk; a test that
garbles its files takes ``new_log`` instead.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from log_harness import new_context, new_log

from stratalog.storage.check import check
from stratalog.storage.context import LogContext
from stratalog.storage.findings import Kind
from stratalog.storage.log import Log
from stratalog.testing import SimulatedFileSystem


@pytest.fixture
def files() -> SimulatedFileSystem:
    return SimulatedFileSystem()


@pytest.fixture
def context(files: SimulatedFileSystem) -> LogContext:
    return new_context(files)


@pytest.fixture
def make_log(files: SimulatedFileSystem) -> Iterator[Callable[..., Log]]:
    opened: list[Log] = []

    def make(*, flush_on_ack: bool = False, **config: Any) -> Log:
        context = new_context(files, flush_on_ack=flush_on_ack)
        log = new_log(context=context, directory=f"/logs/t-{len(opened)}", **config)
        opened.append(log)
        return log

    yield make
    for log in opened:
        check_log(log)


def check_log(log: Log) -> None:
    """Everything on disk and in memory, by the check that ``log verify`` makes."""
    # Old messages, and a cut below the log start, leave batches without an epoch.
    found = [finding for finding in check(log) if finding.kind is not Kind.LEADER_EPOCHS]
    assert [str(finding) for finding in found] == []
    # What a closed log, or one whose disk has failed, goes on saying of itself.
    assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
    assert log.high_watermark <= log.log_end_offset
    assert log.log_start_offset <= log.recovery_point <= log.log_end_offset
