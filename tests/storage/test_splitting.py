"""A segment whose offsets no index can hold is split when it is met."""

from stratalog.config import TopicConfig
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.context import LogContext
from stratalog.storage.reading import Isolation
from stratalog.storage.recovery import open_log

FAR = 2**31
COMPACTED = TopicConfig(cleanup_policy=("compact",))


def overflowed(tmp_path) -> str:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    offsets = [0, 1, FAR, FAR + 1, 2 * FAR + 7]
    batches = [build_batch([Record(b"k", b"%d" % o)], base_offset=o) for o in offsets]
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))
    following = build_batch([Record(b"k", b"v")], base_offset=3 * FAR)
    (directory / f"{3 * FAR:020d}.log").write_bytes(following)
    return str(directory)


def read_offsets(log) -> list[int]:
    found, offset = [], 0
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes=10_000, isolation=Isolation.LOG_END).records
        headers = read_headers(data.read())
        found += [header.base_offset for header in headers]
        offset = headers[-1].next_offset
    return found


def test_a_segment_that_reaches_too_far_is_split_where_an_index_would_overflow(tmp_path) -> None:
    log = open_log(overflowed(tmp_path), COMPACTED, LogContext.default())

    assert log.segments.base_offsets == [0, FAR, 2 * FAR + 7, 3 * FAR]
    assert read_offsets(log) == [0, 1, FAR, FAR + 1, 2 * FAR + 7, 3 * FAR]
    assert log.recovery_report.split == {0: [0, FAR, 2 * FAR + 7]}
    log.close()


def test_what_was_split_stays_split(tmp_path) -> None:
    directory = overflowed(tmp_path)
    open_log(directory, COMPACTED, LogContext.default()).close()

    log = open_log(directory, COMPACTED, LogContext.default(), clean=True)

    assert read_offsets(log) == [0, 1, FAR, FAR + 1, 2 * FAR + 7, 3 * FAR]
    assert log.recovery_report.split == {}
    log.close()


def test_an_offset_that_fits_nowhere_is_damage_and_no_reason_to_split(tmp_path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    batches = [build_batch([Record(b"k", b"v")], base_offset=o) for o in (0, 2**40, 2, 3)]
    (directory / f"{0:020d}.log").write_bytes(b"".join(batches))

    log = open_log(str(directory), COMPACTED, LogContext.default())

    assert log.is_damaged
    assert log.segments.base_offsets == [0]
    assert log.log_end_offset == 4
