"""Which transactions were aborted: read off the log, also where its markers are segments away."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import START_MS, Batch, ModelLog, Segment, logs, marker, plain

from stratalog.errors import CorruptSegmentError
from stratalog.records import Codec, Record, build_batch
from stratalog.scans.fates import Fates
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.slices import ReadMode, ScanIsolation, ScanTask
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import LEASED_DIRECTORY
from stratalog.storage.ours import OwnFiles
from stratalog.storage.transactions import AbortedTransaction, TransactionIndex

COMMITTED = ScanIsolation.READ_COMMITTED


def data(offset: int, producer_id: int, *, codec: Codec = Codec.NONE) -> Batch:
    content = build_batch(
        [Record(b"key", b"value", timestamp_ms=START_MS)],
        base_offset=offset,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    return Batch(content, (), offset, offset + 1, producer_id)


def segments_of(*segments: list[Batch]) -> ModelLog:
    return ModelLog(tuple(Segment(each[0].start_offset, tuple(each)) for each in segments))


def committed(task: ScanTask, *, mode: ReadMode = ReadMode.FAIL_FAST) -> list[int]:
    options = plain(["offset"], isolation=COMMITTED, mode=mode)
    return [offset for batch in read_task(task, options) for offset in batch.column(0).to_pylist()]


def first_slice(log: ModelLog, directory: Path) -> ScanTask:
    segment = log.segments[0]
    return log.task(directory, segment.base_offset, segment.end_offset)


def aborted_far_ahead(log: ModelLog, directory: Path) -> list[tuple[int, int, int]]:
    """Of the first segment, without walking any other."""
    planned = first_slice(log, directory).slices[0]
    files = OsFileSystem()
    file = files.open(str(directory / f"{planned.base_offset:020d}.log"), writable=False)
    return Fates(files, file, planned, look_ahead_bytes=0).find([(0, planned.end_position)])


def write_indexes(log: ModelLog, directory: Path) -> None:
    """What Apache Kafka would have beside each segment."""
    opened: dict[int, int] = {}
    for segment in log.segments:
        path = directory / f"{segment.base_offset:020d}.txnindex"
        index = TransactionIndex(OsFileSystem(), str(path), segment.base_offset)
        for batch in segment.batches:
            if batch.producer_id < 0:
                continue
            first_offset = opened.setdefault(batch.producer_id, batch.start_offset)
            if batch.ends:
                del opened[batch.producer_id]
            if batch.ends == "aborted":
                entry = AbortedTransaction(
                    batch.producer_id, first_offset, batch.start_offset, batch.start_offset
                )
                index.append(entry)


@given(logs(), st.sampled_from(["there", "lost", "not built"]))
def test_the_fates_found_far_ahead_by_indexes_are_those_of_the_markers(
    log: ModelLog, indexes: str
) -> None:
    first = log.segments[0]
    with TemporaryDirectory() as root:
        directory = log.write(Path(root))
        write_indexes(log, directory)
        for path in list(directory.glob("*.txnindex")) if indexes != "there" else ():
            path.unlink()
            if indexes == "lost":
                OwnFiles(OsFileSystem(), str(directory)).note_aborts(int(path.stem))
        for path in list(directory.glob("*.log")) if indexes != "not built" else ():
            path.with_suffix(".index").touch()
        aborted = aborted_far_ahead(log, directory)

    rows = [row for row in log.rows if row.offset < first.end_offset and row.is_transactional]
    expected = {row.offset for row in rows if row.reason == "aborted"}
    found = {
        row.offset
        for row in rows
        for producer_id, start, end in aborted
        if row.producer_id == producer_id and start <= row.offset <= end
    }
    assert found == expected


def test_a_commit_in_between_counts_where_a_later_index_is_lost(tmp_path: Path) -> None:
    log = segments_of(
        [data(0, 8)],
        [marker(1, 8, commit=True)],
        [data(2, 8), marker(3, 8, commit=False)],
    )
    directory = log.write(tmp_path)
    OwnFiles(OsFileSystem(), str(directory)).note_aborts(2)

    assert aborted_far_ahead(log, directory) == []


def test_a_marker_in_a_later_segment_decides(tmp_path: Path) -> None:
    log = segments_of(
        [data(0, 7), data(1, 8)],
        [data(2, 9)],
        [marker(3, 7, commit=False), marker(4, 8, commit=True)],
    )
    assert committed(first_slice(log, log.write(tmp_path))) == [1]


def test_no_more_is_looked_at_than_decides(tmp_path: Path) -> None:
    log = segments_of(
        [data(0, 7)], [marker(1, 7, commit=True), data(2, 8)], [marker(3, 8, commit=False)]
    )
    directory = log.write(tmp_path)
    report = ScanReport()
    task = first_slice(log, directory)
    list(read_task(task, plain(["offset"], isolation=COMMITTED), report=report))

    first, second, _ = (len(segment.content) for segment in log.segments)
    assert report.bytes_read == 2 * first + second


def test_a_log_without_transactions_is_read_once(tmp_path: Path) -> None:
    content = build_batch([Record(b"key", b"value", timestamp_ms=START_MS)])
    log = segments_of([Batch(content, (), 0, 1)])
    report = ScanReport()
    task = first_slice(log, log.write(tmp_path))
    list(read_task(task, plain(["offset"], isolation=COMMITTED), report=report))

    assert report.bytes_read == len(content)


def test_a_garbled_index_far_ahead_is_made_up_for_by_the_log(tmp_path: Path) -> None:
    log = segments_of([data(0, 7), data(1, 8)], [marker(2, 7, commit=False)])
    directory = log.write(tmp_path)
    (directory / f"{2:020d}.txnindex").write_bytes(b"no entry")

    assert aborted_far_ahead(log, directory) == [(7, 0, 2)]


def test_of_a_producer_with_many_transactions_only_the_next_marker_counts(tmp_path: Path) -> None:
    log = segments_of(
        [data(0, 7), marker(1, 7, commit=False), data(2, 7), marker(3, 7, commit=True)],
        [data(4, 7), marker(5, 7, commit=False), data(6, 7), marker(7, 7, commit=False)],
    )
    directory = log.write(tmp_path)

    assert committed(log.task(directory, 0, 8)) == [2]
    assert committed(log.task(directory, 2, 3)) == [2]


def test_markers_are_found_in_files_that_were_taken_out_of_the_log(tmp_path: Path) -> None:
    log = segments_of(
        [data(0, 7), data(1, 8)], [marker(2, 7, commit=False)], [marker(3, 8, commit=False)]
    )
    directory = log.write(tmp_path)
    task = first_slice(log, directory)
    (directory / LEASED_DIRECTORY).mkdir(parents=True)
    (directory / f"{2:020d}.log").rename(directory / LEASED_DIRECTORY / f"{2:020d}-{3:020d}-0.log")
    (directory / f"{3:020d}.log").rename(directory / f"{3:020d}.log.deleted")

    assert committed(task) == []


def test_markers_are_found_in_the_file_that_compaction_made_of_several(tmp_path: Path) -> None:
    before = [data(0, 7), marker(1, 7, commit=True), data(2, 7)]
    log = segments_of(before, [marker(3, 7, commit=False)])
    directory = log.write(tmp_path)
    task = first_slice(log, directory)
    planned = directory / f"{0:020d}.log"
    planned.rename(f"{planned}.deleted")
    (directory / f"{3:020d}.log").unlink()
    # The commit of offset 1 is met again, and is not what became of the transaction behind it.
    planned.write_bytes(b"".join(batch.content for batch in [*before, marker(3, 7, commit=False)]))

    assert committed(task) == [0]


def test_damage_in_a_marker_is_an_error_and_no_guess(tmp_path: Path) -> None:
    broken = bytearray(marker(1, 7, commit=False).content)
    broken[-1] ^= 1
    bad = Batch(bytes(broken), (), 1, 2, 7, "aborted")
    log = segments_of([data(0, 7), bad, data(2, 8), marker(3, 8, commit=True)])
    directory = log.write(tmp_path)
    with pytest.raises(CorruptSegmentError) as raised:
        committed(log.task(directory, 0, 4))

    assert raised.value.offset == 1


def test_a_write_that_is_not_finished_hides_nothing(tmp_path: Path) -> None:
    log = segments_of([data(0, 7)], [data(1, 8)])
    directory = log.write(tmp_path)
    task = first_slice(log, directory)
    behind = directory / f"{1:020d}.log"
    behind.write_bytes(behind.read_bytes() + marker(2, 7, commit=False).content[:-1])

    assert committed(task) == [0]


def test_damage_that_may_hide_what_decides_is_an_error_and_no_guess(tmp_path: Path) -> None:
    log = segments_of([data(0, 7)], [data(1, 8)], [marker(2, 7, commit=False)])
    directory = log.write(tmp_path)
    task = first_slice(log, directory)
    damaged = directory / f"{1:020d}.log"
    damaged.write_bytes(b"\xff" * 200)
    with pytest.raises(CorruptSegmentError) as raised:
        committed(task)

    assert raised.value.path == str(damaged)
    assert committed(task, mode=ReadMode.PERMISSIVE) == []


def test_a_compressed_marker_is_understood(tmp_path: Path) -> None:
    record = Record((0).to_bytes(4, "big"), bytes(6), timestamp_ms=START_MS)
    content = build_batch(
        [record],
        base_offset=1,
        codec=Codec.GZIP,
        producer_id=7,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    log = segments_of([data(0, 7, codec=Codec.LZ4), Batch(content, (), 1, 2, 7, "aborted")])

    assert committed(log.task(log.write(tmp_path), 0, 2)) == []
