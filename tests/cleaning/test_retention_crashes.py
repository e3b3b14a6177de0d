"""Power is cut, or the disk fails, at every file operation of a deletion by retention: the log that
the next start finds lacks nothing but whole segments from its start, and none that was to stay."""

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
from cleaning_reading import read_batches, stored_batches
from cleaning_world import DIRECTORY, HOUR_MS, START_MS

from stratalog.config import TopicConfig
from stratalog.errors import DiskError
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.check import check
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.findings import Severity
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.storage.retention import delete_old_segments
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem

BATCHES = 40
SEGMENT_BYTES = 500

BY_TIME = TopicConfig(
    internal_segment_bytes=SEGMENT_BYTES,
    segment_index_bytes=120,
    index_interval_bytes=100,
    file_delete_delay_ms=0,
    retention_ms=HOUR_MS,
)
BY_SIZE = BY_TIME.altered(retention_ms=-1, retention_bytes=1700)
CONFIGS = {"by time": BY_TIME, "by size": BY_SIZE}


def opened(files: SimulatedFileSystem, config: TopicConfig, recovery_point: int = 0) -> Log:
    context = LogContext(
        files, ManualClock(START_MS), HandleCache(), DirectoryState(), flush_on_ack=False
    )
    log = open_log(DIRECTORY, config, context, clean=False, recovery_point=recovery_point)
    log.update_high_watermark(log.log_end_offset)
    return log


def written(config: TopicConfig) -> Log:
    """A batch a minute, with a producer and its transactions, so that all kinds of file occur."""
    files = SimulatedFileSystem()
    for path in ("/data", DIRECTORY):
        files.make_directory(path)
        files.sync_directory(path.rpartition("/")[0] or "/")
    log = opened(files, config)
    for number in range(BATCHES):
        made = build_batch(
            [Record(b"k", b"value %d" % number, (), START_MS + 60_000 * number)],
            producer_id=7,
            producer_epoch=0,
            base_sequence=number,
        )
        log.append_as_leader(made, leader_epoch=number // 9)
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


@dataclass
class Deletion:
    """A deletion, and the disk before each of its operations."""

    config: TopicConfig
    now_ms: int
    moments: list[tuple[str, SimulatedFileSystem]]
    before: list[bytes]
    kept: list[bytes]
    bases: list[int]
    recovery_point: int


def observed(config: TopicConfig, now_ms: int) -> Deletion:
    log = written(config)
    files = log.context.files
    assert isinstance(files, SimulatedFileSystem)
    before = [content for _, content in stored_batches(log)]
    bases = log.segments.base_offsets
    recovery_point = log.recovery_point
    moments: list[tuple[str, SimulatedFileSystem]] = []
    files.observer = lambda each: moments.append((f"{each.kind} {each.path}", files.clone()))
    delete_old_segments(log, now_ms)
    log.run_deletes(now_ms + 1)
    moments.append(("end", files.clone()))
    kept = [content for _, content in stored_batches(log)]
    assert len(kept) < len(before)
    return Deletion(config, now_ms, moments, before, kept, bases, recovery_point)


def check_after(deletion: Deletion, files: SimulatedFileSystem) -> None:
    log = opened(files, deletion.config, deletion.recovery_point)
    found = [content for _, content in stored_batches(log)]
    assert found == deletion.before[len(deletion.before) - len(found) :], "a run from some batch on"
    assert len(found) >= len(deletion.kept), "what was to stay has stayed"
    assert log.log_end_offset == BATCHES
    first = read_headers(found[0])[0].base_offset if found else BATCHES
    assert log.segments.first.base_offset == log.log_start_offset == first
    assert first in (*deletion.bases, BATCHES), "segments go whole"
    assert b"".join(c for c, _ in read_batches(log, first)) == b"".join(found)
    errors = [str(each) for each in check(log) if each.severity is Severity.ERROR]
    assert not errors
    assert not [n for n in files.tree(DIRECTORY) if n.endswith(".deleted")]
    delete_old_segments(log, deletion.now_ms)
    assert [content for _, content in stored_batches(log)] == deletion.kept
    made = build_batch([Record(b"k", b"after", (), START_MS)])
    assert log.append_as_leader(made, leader_epoch=9).first_offset == BATCHES


# Some segments go by the first, all by the second, where a new one is rolled first.
NOWS_MS = {"some": START_MS + HOUR_MS + 25 * 60_000, "all": START_MS + 10 * HOUR_MS}


@pytest.mark.parametrize(
    ("rule", "part"), [("by time", "some"), ("by time", "all"), ("by size", "some")]
)
def test_a_crash_at_any_operation_of_a_deletion_takes_only_what_was_to_go(
    rule: str, part: str
) -> None:
    deletion = observed(CONFIGS[rule], NOWS_MS[part])
    for name, files in deletion.moments:
        for mode in CrashMode:
            try:
                check_after(deletion, files.after_crash(mode, 3))
            except Exception as error:
                error.add_note(f"at {name}, {mode}")
                raise


def check_failures(act: Callable[[Log, int], object], error: int, part: str) -> None:
    deletion = observed(BY_TIME, NOWS_MS[part])
    for number in range(1, len(deletion.moments)):
        log = written(BY_TIME)
        files = log.context.files
        assert isinstance(files, SimulatedFileSystem)
        files.fail(files.operations + number, error)
        with suppress(DiskError):
            act(log, deletion.now_ms)
        files.heal()
        log.abandon()
        check_after(deletion, files.after_crash(CrashMode.KEEP_ALL))


def delete_and_unlink(log: Log, now_ms: int) -> None:
    delete_old_segments(log, now_ms)
    log.run_deletes(now_ms + 1)


@pytest.mark.parametrize("part", ["some", "all"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_in_a_deletion_takes_only_what_was_to_go(error: int, part: str) -> None:
    check_failures(delete_and_unlink, error, part)
