"""What a scan leaves out: rows and gaps together are every offset of the range once."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from modelled import ORDERS, ModelLog, Row, logs, plain, ranges

from stratalog.scans.columns import GAP_COLUMNS, gap_schema
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.slices import FileIdentity, RowFilter, ScanIsolation, ScanSlice, ScanTask

UNCOMMITTED = ScanIsolation.READ_UNCOMMITTED


def gaps_of(task: ScanTask, **options: object) -> list[tuple[int, int, str]]:
    found = []
    for batch in read_task(task, plain(["offset"], gaps=True, **options)):
        batch.validate(full=True)
        assert batch.schema == gap_schema()
        found += [tuple(row[name] for name in GAP_COLUMNS) for row in batch.to_pylist()]
    assert all(gap[:2] == tuple(ORDERS) for gap in found)
    return [gap[2:] for gap in found]


def reason_of(row: Row | None, isolation: ScanIsolation) -> str:
    if row is None:
        return "compacted"
    return "" if row.reason == "aborted" and isolation is UNCOMMITTED else row.reason


def expanded(gaps: Iterable[tuple[int, int, str]]) -> list[tuple[int, str]]:
    return [(offset, reason) for start, end, reason in gaps for offset in range(start, end)]


@given(logs(), st.data(), st.sampled_from(ScanIsolation))
def test_rows_and_gaps_tile_the_range_with_the_right_reasons(
    log: ModelLog, data: st.DataObject, isolation: ScanIsolation
) -> None:
    start, end = data.draw(ranges(log))
    with TemporaryDirectory() as root:
        task = log.task(log.write(Path(root)), start, end)
        gaps = gaps_of(task, isolation=isolation, row_filter=RowFilter(min_timestamp_ms=2**60))

    rows = {row.offset: row for row in log.rows}
    asked = range(start, min(end, log.end_offset))
    reasons = [(offset, reason_of(rows.get(offset), isolation)) for offset in asked]
    assert expanded(gaps) == [each for each in reasons if each[1]]
    assert not any(first[1:] == (second[0], second[2]) for first, second in pairwise(gaps)), (
        "gaps of one reason that touch are one"
    )


def test_offsets_below_the_start_of_the_log_have_expired(tmp_path: Path) -> None:
    nowhere = FileIdentity(0, 0, 0)
    expired = ScanSlice(ORDERS, str(tmp_path), "", -1, nowhere, 0, 40, 0, 0, gap="expired")
    task = ScanTask((expired,), str(tmp_path))
    report = ScanReport()

    assert gaps_of(task) == [(0, 40, "expired")]
    assert list(read_task(task, plain(["offset"]), report=report)) == []


def test_gaps_that_touch_across_segments_are_one(tmp_path: Path) -> None:
    (tmp_path / str(ORDERS)).mkdir()
    slices = []
    for base_offset in (0, 10):
        path = tmp_path / str(ORDERS) / f"{base_offset:020d}.log"
        path.write_bytes(b"")
        found = path.stat()
        identity = FileIdentity(found.st_ino, 0, found.st_mtime_ns // 1_000_000)
        slices.append(
            ScanSlice(
                ORDERS,
                str(path.parent),
                "",
                base_offset,
                identity,
                base_offset,
                base_offset + 10,
                0,
                0,
            )
        )
    report = ScanReport()
    task = ScanTask(tuple(slices), str(tmp_path))

    assert gaps_of(task) == [(0, 20, "compacted")]
    list(read_task(task, plain(["offset"], gaps=True), report=report))
    assert (report.gaps, report.rows) == (1, 0)
