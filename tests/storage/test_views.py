"""A log as its files show it, while its owner goes on working."""

import errno

import pytest
from log_harness import DIRECTORY, SMALL, new_log, sized_batch

from stratalog.config import TopicConfig
from stratalog.errors import DiskError, LogDirectoryError
from stratalog.storage.checkpoint import write_offsets
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.views import LogView, look_at, view_log

CONFIG = TopicConfig(**SMALL)
KEY = TopicPartition("t", 0)


def written(count: int = 6) -> Log:
    log = new_log(internal_segment_bytes=200)
    for _ in range(count):
        log.append_as_leader(sized_batch(100))
    log.flush()
    log.update_high_watermark(count)
    return log


def test_a_view_has_the_owners_segments_and_the_checkpointed_offsets() -> None:
    log = written()
    write_offsets(log.context.files, "/logs/replication-offset-checkpoint", {KEY: 5})
    write_offsets(log.context.files, "/logs/log-start-offset-checkpoint", {KEY: 1})

    view = view_log(log.context.files, DIRECTORY, CONFIG)

    assert [each.base_offset for each in view.segments] == log.segments.base_offsets
    assert view.size_bytes == log.size_bytes
    assert (view.log_start_offset, view.high_watermark, view.log_end_offset) == (1, 5, 6)
    assert view.is_high_watermark_known


@pytest.mark.parametrize(("checkpointed", "expected"), [(None, 2), (0, 2), (99, 6)])
def test_a_high_watermark_lies_within_the_log(checkpointed: int | None, expected: int) -> None:
    log = written()
    log.delete_records(2)
    log.mirror_log_start()
    if checkpointed is not None:
        path = "/logs/replication-offset-checkpoint"
        write_offsets(log.context.files, path, {KEY: checkpointed})

    view = view_log(log.context.files, DIRECTORY, CONFIG)

    assert (view.log_start_offset, view.high_watermark) == (2, expected)
    assert view.is_high_watermark_known == (checkpointed is not None)


def test_a_segment_that_goes_meanwhile_is_not_in_the_next_view() -> None:
    log = written()
    seen: list[list[int]] = []

    def ask(view: LogView) -> int:
        seen.append([each.base_offset for each in view.segments])
        if len(seen) == 1:
            log.delete_segments([log.segments.first])
            log.run_deletes(2**63)
        return view.segments[0].largest_timestamp_ms()

    look_at(log.context.files, DIRECTORY, CONFIG, ask)

    assert seen == [[0, 2, 4], [2, 4]]


@pytest.mark.parametrize(("code", "attempts"), [(errno.ENOENT, 3), (errno.EIO, 1)])
def test_trouble_that_stays_is_raised(code: int, attempts: int) -> None:
    log = written()
    asked = []

    def ask(view: LogView) -> None:
        asked.append(view)
        raise DiskError("open", DIRECTORY, code, "gone")

    with pytest.raises(DiskError):
        look_at(log.context.files, DIRECTORY, CONFIG, ask)
    assert len(asked) == attempts


def test_a_directory_without_a_segment_is_no_log() -> None:
    log = written(1)
    for entry in log.context.files.list(DIRECTORY):
        if not entry.is_directory:
            log.context.files.unlink(f"{DIRECTORY}/{entry.name}")

    with pytest.raises(LogDirectoryError, match="holds no segment"):
        view_log(log.context.files, DIRECTORY, CONFIG)
