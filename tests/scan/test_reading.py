"""Reading tasks: the rows of a scan are those of a plain list, whatever the batches."""

import os
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import START_MS, Batch, ModelLog, Row, Segment, logs, plain, ranges, slice_of

from stratalog.errors import CorruptSegmentError
from stratalog.records import Codec, Record, build_batch
from stratalog.scans.columns import KAFKA_COLUMNS, SCAN_COLUMNS, scan_schema
from stratalog.scans.errors import DataLostError, ScanOptionError
from stratalog.scans.reading import TARGET_ROWS, ScanReport, read_task
from stratalog.scans.slices import ReadOptions, RowFilter, ScanIsolation, ScanTask

UNCOMMITTED = ScanIsolation.READ_UNCOMMITTED

times = st.integers(START_MS - 6, START_MS + 6)
row_filters = st.one_of(
    st.builds(RowFilter, keys=st.frozensets(st.sampled_from((b"", b"a", b"bb", b"zz")))),
    st.builds(RowFilter, min_timestamp_ms=times),
    st.builds(RowFilter, max_timestamp_ms=times),
    st.builds(
        RowFilter,
        min_timestamp_ms=st.none() | times,
        max_timestamp_ms=st.none() | times,
        keys=st.none() | st.frozensets(st.sampled_from((b"", b"a", b"bb", b"zz"))),
    ),
)


def rows_of(task: ScanTask, options: ReadOptions) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for batch in read_task(task, options):
        batch.validate(full=True)
        assert batch.schema == scan_schema(options.columns)
        rows += batch.to_pylist()
    return rows


def is_seen(row: Row, isolation: ScanIsolation) -> bool:
    return row.reason == "" or (row.reason == "aborted" and isolation is UNCOMMITTED)


def is_kept(row: Row, wanted: RowFilter | None) -> bool:
    if wanted is None:
        return True
    oldest, newest = wanted.min_timestamp_ms, wanted.max_timestamp_ms
    return (
        (oldest is None or row.timestamp_ms >= oldest)
        and (newest is None or row.timestamp_ms <= newest)
        and (wanted.keys is None or row.key in wanted.keys)
    )


@given(
    logs(),
    st.data(),
    st.lists(st.sampled_from(SCAN_COLUMNS), min_size=1, unique=True),
    st.sampled_from(ScanIsolation),
    st.none() | row_filters,
    st.sampled_from((1, 200, 8 << 20)),
)
def test_a_scan_returns_the_rows_of_the_list_in_any_columns_and_any_range(
    log: ModelLog,
    data: st.DataObject,
    columns: list[str],
    isolation: ScanIsolation,
    row_filter: RowFilter | None,
    target_bytes: int,
) -> None:
    start, end = data.draw(ranges(log))
    with TemporaryDirectory() as root:
        task = log.task(log.write(Path(root)), start, end, wider=data.draw(st.integers(0, 1)))
        options = plain(
            columns, isolation=isolation, row_filter=row_filter, target_bytes=target_bytes
        )
        rows = rows_of(task, options)

    expected = [
        row.columns()
        for row in log.rows
        if start <= row.offset < end and is_seen(row, isolation) and is_kept(row, row_filter)
    ]
    assert rows == [{name: row[name] for name in columns} for row in expected]


@given(logs(), row_filters)
def test_a_filter_keeps_exactly_the_rows_that_filtering_afterwards_would_keep(
    log: ModelLog, row_filter: RowFilter
) -> None:
    with TemporaryDirectory() as root:
        task = log.task(log.write(Path(root)), log.segments[0].base_offset, log.end_offset)
        found = rows_of(task, plain(["offset"], row_filter=row_filter))

    seen = [row for row in log.rows if is_seen(row, UNCOMMITTED)]
    assert [row["offset"] for row in found] == [
        row.offset for row in seen if is_kept(row, row_filter)
    ]


# --- single cases -------------------------------------------------------------------------------


def log_of(*batches: bytes, base_offset: int = 0, end_offset: int) -> ModelLog:
    whole = Batch(b"".join(batches), (), base_offset, end_offset)
    return ModelLog((Segment(base_offset, (whole,)),))


def records(count: int, *, size: int = 10) -> list[Record]:
    return [Record(b"key", os.urandom(size), timestamp_ms=START_MS + n) for n in range(count)]


def offsets_of(task: ScanTask, **options: object) -> list[object]:
    return [row["offset"] for row in rows_of(task, plain(["offset"], **options))]


def take_offsets(task: ScanTask, found: list[object]) -> None:
    """Also what comes before an error."""
    for batch in read_task(task, plain(["offset"])):
        found += batch.column(0).to_pylist()


def test_a_batch_larger_than_the_buffer_is_read_whole(tmp_path: Path) -> None:
    small, large = records(3), records(3, size=2 << 20)
    batches = [
        build_batch(small),
        build_batch(large, base_offset=3),
        build_batch(small, base_offset=6, codec=Codec.ZSTD),
    ]
    log = log_of(*batches, end_offset=9)
    rows = rows_of(log.task(log.write(tmp_path), 0, 9), plain(["offset", "value"]))

    assert [row["offset"] for row in rows] == list(range(9))
    assert [row["value"] for row in rows[3:6]] == [record.value for record in large]


def test_record_batches_have_about_the_bytes_that_are_aimed_at(tmp_path: Path) -> None:
    batches = [build_batch(records(100, size=100), base_offset=100 * n) for n in range(100)]
    log = log_of(*batches, end_offset=10_000)
    task = log.task(log.write(tmp_path), 0, 10_000)
    found = list(read_task(task, plain(["offset", "value"], target_bytes=600 << 10)))

    assert all(batch.nbytes <= 700 << 10 for batch in found)
    assert len(found) == 2


def test_record_batches_of_tiny_records_have_no_more_rows_than_are_aimed_at(
    tmp_path: Path,
) -> None:
    tiny = [Record(None, None)] * 5_000
    log = log_of(*[build_batch(tiny, base_offset=5_000 * n) for n in range(20)], end_offset=100_000)
    found = list(read_task(log.task(log.write(tmp_path), 0, 100_000), plain(["offset"])))

    assert sum(batch.num_rows for batch in found) == 100_000
    assert max(batch.num_rows for batch in found) < TARGET_ROWS + 5_000


def test_columns_that_files_do_not_hold_need_no_decoding(tmp_path: Path) -> None:
    log = log_of(build_batch(records(5)), end_offset=5)
    batches = list(read_task(log.task(log.write(tmp_path), 1, 5), plain(["partition", "topic"])))

    assert pa.Table.from_batches(batches).to_pylist() == [{"partition": 3, "topic": "orders"}] * 4


def test_a_report_counts_what_was_read(tmp_path: Path) -> None:
    batches = [build_batch(records(10), base_offset=10 * n) for n in range(4)]
    log = log_of(*batches, end_offset=40)
    report = ScanReport()
    task = log.task(log.write(tmp_path), 5, 35)
    list(read_task(task, plain(["offset"]), report=report))

    assert report == ScanReport(bytes_read=task.size_bytes, batches=4, rows=30)


def test_many_small_slices_come_in_few_record_batches(tmp_path: Path) -> None:
    segments = [
        Segment(n, (Batch(build_batch(records(1), base_offset=n), (), n, n + 1),))
        for n in range(50)
    ]
    log = ModelLog(tuple(segments))
    batches = list(read_task(log.task(log.write(tmp_path), 0, 50), plain(KAFKA_COLUMNS)))

    assert [batch.num_rows for batch in batches] == [50]


def test_a_timestamp_beyond_what_microseconds_can_say_is_as_far_as_they_go(tmp_path: Path) -> None:
    far = [Record(None, None, timestamp_ms=2**62), Record(None, None, timestamp_ms=0)]
    log = log_of(build_batch(far), end_offset=2)
    (batch,) = read_task(log.task(log.write(tmp_path), 0, 2), plain(["timestamp"]))

    assert batch.column(0).cast(pa.int64()).to_pylist() == [2**63 - 1, 0]


def test_an_unknown_or_repeated_column_is_refused() -> None:
    with pytest.raises(ScanOptionError, match="no such column"):
        scan_schema(["offset", "nonsense"])
    with pytest.raises(ScanOptionError, match="twice"):
        scan_schema(["offset", "offset"])
    with pytest.raises(ScanOptionError, match="at least one"):
        scan_schema([])


def test_what_a_filter_keeps_of_a_batch_does_not_depend_on_when_others_end(tmp_path: Path) -> None:
    batches = [build_batch(records(100), base_offset=100 * n) for n in range(50)]
    log = log_of(*batches, end_offset=5000)
    task = log.task(log.write(tmp_path), 0, 5000)
    wanted = RowFilter(min_timestamp_ms=START_MS + 99)
    found = list(read_task(task, plain(["offset"], row_filter=wanted, target_bytes=20 << 10)))

    assert [offset for batch in found for offset in batch.column(0).to_pylist()] == list(
        range(99, 5000, 100)
    )
    assert len(found) == 1


# --- files that are not as planned ---------------------------------------------------------------


def test_damage_is_named_by_file_position_and_offset(tmp_path: Path) -> None:
    first, second = build_batch(records(5)), build_batch(records(5), base_offset=5)
    broken = bytearray(second)
    broken[-1] ^= 1
    log = log_of(first, bytes(broken), end_offset=10)
    directory = log.write(tmp_path)
    found: list[object] = []
    with pytest.raises(CorruptSegmentError) as raised:
        take_offsets(log.task(directory, 0, 10), found)

    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.path, error.position, error.offset) == (
        str(directory / f"{0:020d}.log"),
        len(first),
        5,
    )
    assert "CRC" in error.reason
    assert found == [0, 1, 2, 3, 4]


def test_a_batch_that_claims_offsets_far_ahead_does_not_end_the_scan_unnoticed(
    tmp_path: Path,
) -> None:
    odd = build_batch(records(2), base_offset=2_000_000)
    batches = [build_batch(records(2)), odd, build_batch(records(2), base_offset=4)]
    log = log_of(*batches, end_offset=6)
    with pytest.raises(CorruptSegmentError, match="do not follow"):
        offsets_of(log.task(log.write(tmp_path), 0, 6))


def test_a_batch_further_than_a_segment_reaches_is_damage(tmp_path: Path) -> None:
    far = build_batch(records(2), base_offset=2**31 - 1)
    log = log_of(build_batch(records(2)), far, end_offset=2**31 + 1)
    with pytest.raises(CorruptSegmentError, match="too far"):
        offsets_of(log.task(log.write(tmp_path), 0, 10))


def test_a_file_that_was_cut_has_lost_exactly_what_is_missing(tmp_path: Path) -> None:
    batches = [build_batch(records(10), base_offset=10 * n) for n in range(4)]
    log = log_of(*batches, end_offset=40)
    directory = log.write(tmp_path)
    task = log.task(directory, 5, 40)
    os.truncate(directory / f"{0:020d}.log", sum(map(len, batches[:2])) + 30)
    found: list[object] = []
    with pytest.raises(DataLostError) as raised:
        take_offsets(task, found)

    assert found == list(range(5, 20))
    assert (raised.value.start_offset, raised.value.end_offset) == (20, 40)


def test_a_file_cut_between_batches_has_lost_the_rest_too(tmp_path: Path) -> None:
    batches = [build_batch(records(10), base_offset=10 * n) for n in range(4)]
    log = log_of(*batches, end_offset=40)
    directory = log.write(tmp_path)
    task = log.task(directory, 0, 40)
    os.truncate(directory / f"{0:020d}.log", len(batches[0]))
    with pytest.raises(DataLostError) as raised:
        offsets_of(task)

    assert (raised.value.start_offset, raised.value.end_offset) == (10, 40)


@pytest.mark.parametrize("cut_bytes", [1, 161])
def test_a_cut_behind_what_was_asked_for_loses_nothing(tmp_path: Path, cut_bytes: int) -> None:
    batches = [
        Batch(build_batch(records(5), base_offset=5 * n), (), 5 * n, 5 * n + 5) for n in range(3)
    ]
    log = ModelLog((Segment(0, tuple(batches)),))
    directory = log.write(tmp_path)
    task = log.task(directory, 0, 10, wider=1)
    assert task.size_bytes == len(log.segments[0].content)
    os.truncate(directory / f"{0:020d}.log", task.size_bytes - cut_bytes)

    assert offsets_of(task) == list(range(10))


def test_a_file_that_grows_meanwhile_is_read_to_the_planned_end(tmp_path: Path) -> None:
    log = log_of(build_batch(records(5)), end_offset=5)
    directory = log.write(tmp_path)
    task = log.task(directory, 0, 5)
    with (directory / f"{0:020d}.log").open("ab") as file:
        file.write(build_batch(records(5), base_offset=5))

    assert offsets_of(task) == [0, 1, 2, 3, 4]


def test_a_plan_that_ends_inside_a_batch_is_not_obeyed_silently(tmp_path: Path) -> None:
    log = log_of(build_batch(records(5)), end_offset=5)
    directory = log.write(tmp_path)
    planned = slice_of(directory, log.segments[0], 0, 5)
    cut = ScanTask((planned._replace(end_position=planned.end_position - 1),), str(tmp_path))
    with pytest.raises(CorruptSegmentError, match="cut short"):
        offsets_of(cut)


def test_a_huge_size_in_a_damaged_header_takes_no_memory(tmp_path: Path) -> None:
    broken = bytearray(build_batch(records(5)))
    broken[8:12] = (100 << 20).to_bytes(4, "big")
    log = log_of(bytes(broken), end_offset=5)
    directory = log.write(tmp_path)
    path = directory / f"{0:020d}.log"
    os.truncate(path, 200 << 20)
    planned = slice_of(directory, log.segments[0], 0, 5)
    wide = ScanTask((planned._replace(end_position=150 << 20),), str(tmp_path))
    with pytest.raises(CorruptSegmentError, match="does not match the 104857612 bytes"):
        offsets_of(wide)
