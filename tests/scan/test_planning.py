"""Plans: what is asked for is in exactly one slice, whatever the hints say, and little else is."""

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hinted import garble, garblings, is_wanted, lateness_ms, wheres, write_with_hints
from hypothesis import given
from hypothesis import strategies as st
from modelled import ORDERS, ModelLog, logs

from stratalog import Record, open_directory
from stratalog.directories.owners import Ownership
from stratalog.records import build_batch
from stratalog.scans.keys import murmur2, partition_of
from stratalog.scans.planning import ScanPlan, plan_scan
from stratalog.scans.pruning import Skip
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import ReadOptions, ScanIsolation, ScanTask
from stratalog.scans.snapshot import DirectorySnapshot, take_snapshot
from stratalog.scans.where import Where
from stratalog.storage.layout import TopicPartition
from stratalog.testing.listing import ListedLogs

WHOLE = ReadOptions(columns=("partition", "offset", "timestamp", "key"))


@contextmanager
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def offsets_read(
    tasks: Iterable[ScanTask], options: ReadOptions = WHOLE, report: ScanReport | None = None
) -> list[int]:
    found: list[int] = []
    for task in tasks:
        for batch in read_task(task, options, report=report):
            found += batch.column("offset").to_pylist()
    return found


def snapshot_of(root: Path, topic: str = ORDERS.topic) -> DirectorySnapshot:
    return take_snapshot(str(root), Subscribe((topic,)))


# --- right rows, always -------------------------------------------------------------------------


@given(st.data())
def test_any_where_gives_the_rows_of_a_full_scan_that_meet_it(data: st.DataObject) -> None:
    log = data.draw(logs())
    rows = [row for row in log.rows if row.reason != "control"]
    where = data.draw(wheres(rows))
    isolation = data.draw(st.sampled_from(ScanIsolation))
    late = data.draw(st.none() | st.integers(0, 3))
    with directory() as root:
        garble(write_with_hints(log, root), data.draw(garblings(log)))
        plan = plan_scan(
            snapshot_of(root),
            where=where,
            isolation=isolation,
            max_bytes_per_task=data.draw(st.sampled_from((1, 200, 1 << 20))),
            max_records_per_task=data.draw(st.none() | st.integers(1, 5)),
            max_lateness_ms=None if late is None else lateness_ms(rows) + late,
        )
        options = replace(WHOLE, isolation=isolation, row_filter=where.row_filter())
        found = offsets_read(plan.tasks, options)
    hidden = ("aborted",) if isolation is ScanIsolation.READ_COMMITTED else ()
    wanted = [row for row in rows if row.reason not in hidden and is_wanted(where, row)]
    assert found == [row.offset for row in wanted]


@given(st.data())
def test_slices_leave_no_offset_out_and_hold_none_twice(data: st.DataObject) -> None:
    log = data.draw(logs())
    first = log.segments[0].base_offset
    start = data.draw(st.integers(first, log.end_offset))
    end = data.draw(st.integers(start, log.end_offset + 2))
    with directory() as root:
        write_with_hints(log, root, interval_bytes=data.draw(st.sampled_from((0, 100))))
        plan = plan_scan(
            snapshot_of(root),
            ranges={ORDERS: (start, end)},
            max_bytes_per_task=data.draw(st.sampled_from((1, 300))),
            gaps=True,
        )
        slices = [each for task in plan.tasks for each in task.slices]
    edges = [start, *(each.end_offset for each in slices)]
    assert [each.start_offset for each in slices] == edges[:-1]
    assert edges[-1] == max(start, min(end, log.end_offset))


@given(logs(), st.integers(1, 12))
def test_a_task_spans_no_more_offsets_than_it_may(log: ModelLog, most: int) -> None:
    with directory() as root:
        write_with_hints(log, root)
        plan = plan_scan(snapshot_of(root), max_records_per_task=most)
        spans = [sum(each.end_offset - each.start_offset for each in t.slices) for t in plan.tasks]
        found = offsets_read(plan.tasks)
    assert max(spans, default=0) <= most
    assert found == [row.offset for row in log.rows if row.reason != "control"]


@given(logs(), st.integers(1, 30))
def test_there_are_as_many_tasks_as_asked_for_if_there_are_as_many_records(
    log: ModelLog, least: int
) -> None:
    with directory() as root:
        write_with_hints(log, root)
        tasks = plan_scan(snapshot_of(root), min_tasks=least).tasks
        found = offsets_read(tasks)
    first, end = log.segments[0].base_offset, log.end_offset
    is_dense = len({row.offset for row in log.rows}) == end - first
    assert len(tasks) >= min(least, end - first) or not is_dense
    assert found == [row.offset for row in log.rows if row.reason != "control"]


# --- little else --------------------------------------------------------------------------------

BATCH_RECORDS = 10
SEGMENT_BYTES = 1 << 20


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions of five segments of 20 batches of 50 kB, ten records each: a record a
    millisecond, and keys where the default partitioner puts them."""
    root = tmp_path_factory.mktemp("ordered")
    with open_directory(
        root, create=True, config={"log.segment.bytes": str(SEGMENT_BYTES)}
    ) as made:
        for number in range(3):
            keys = [k for n in range(99) if partition_of(k := b"%02d" % n, 3) == number]
            log = made.create("orders", number)
            for place in range(100):
                records = [
                    Record(keys[n % len(keys)], bytes(5_000), timestamp_ms=1_000 + n)
                    for n in range(BATCH_RECORDS * place, BATCH_RECORDS * (place + 1))
                ]
                log.append_batch(build_batch(records), flush=False)
            log.flush()
    return root


def test_an_offset_range_reads_the_batches_that_hold_it(ordered: Path) -> None:
    plan = plan_scan(snapshot_of(ordered), where=Where(min_offset=253, max_offset=267))
    batch_bytes = plan.bytes_total // 300
    assert plan.bytes_kept == 3 * 2 * batch_bytes
    assert all(each.segments_kept == 1 for each in plan.partitions)


def test_a_span_of_time_reads_the_ranges_that_meet_it(ordered: Path) -> None:
    plan = plan_scan(
        snapshot_of(ordered), where=Where(min_timestamp_ms=1_503, max_timestamp_ms=1_506)
    )
    assert plan.bytes_kept == plan.bytes_total // 100
    assert {each.tally.without_ranges for each in plan.partitions} == {0}


def test_without_time_ranges_only_the_lower_bound_prunes(ordered: Path) -> None:
    with without_ranges(ordered):
        snapshot = snapshot_of(ordered)
        where = Where(min_timestamp_ms=1_503, max_timestamp_ms=1_506)
        plan = plan_scan(snapshot, where=where)
        vouched = plan_scan(snapshot, where=where, max_lateness_ms=0)
    assert plan.bytes_kept == plan.bytes_total // 2
    assert {each.tally.with_ranges for each in plan.partitions} == {0}
    # The index has an entry for the batch, or for the one behind it.
    assert vouched.bytes_kept <= 2 * vouched.bytes_total // 100
    assert Skip.LATENESS in vouched.partitions[0].tally.skipped_bytes


def test_what_is_as_late_as_is_vouched_for_is_read_and_so_is_the_batch_that_ends_it(
    tmp_path: Path,
) -> None:
    batches = [[100], [210], [140], [120, 400], [500], [600]]
    with open_directory(tmp_path, create=True) as made:
        log = made.create(ORDERS.topic, ORDERS.partition)
        for times in batches:
            records = [Record(None, bytes(8_000), timestamp_ms=each) for each in times]
            log.append_batch(build_batch(records), flush=False)
    with without_ranges(tmp_path):
        where = Where(max_timestamp_ms=150)
        plan = plan_scan(snapshot_of(tmp_path), where=where, max_lateness_ms=100)
        options = replace(WHOLE, row_filter=where.row_filter())
        assert offsets_read(plan.tasks, options) == [0, 2, 3]
    assert Skip.LATENESS in plan.partitions[0].tally.skipped_bytes


def test_a_span_of_time_that_is_met_in_two_places_reads_both(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        log = made.create("orders")
        for place in range(50):
            timestamp_ms = 7 if place in (10, 40) else 1_000 + place
            log.append([Record(None, bytes(40_000), timestamp_ms=timestamp_ms)])
    where = Where(min_timestamp_ms=5, max_timestamp_ms=9)
    plan = plan_scan(snapshot_of(tmp_path), where=where)
    options = replace(WHOLE, row_filter=where.row_filter())
    assert offsets_read(plan.tasks, options) == [10, 40]
    assert plan.bytes_kept <= plan.bytes_total // 50 * 2 + 1


@pytest.mark.parametrize(("kind", "found"), [("none", [50]), ("kafka", [50]), ("stratalog", [])])
def test_ranges_of_the_segment_that_is_appended_to_count_only_where_its_owner_is_ours(
    tmp_path: Path, kind: str, found: list[int]
) -> None:
    """Nobody else keeps them true: those that a killed process left may tell of other records."""
    left, where = tmp_path / "left", Where(max_timestamp_ms=9)
    config = {"log.index.interval.bytes": "128"}
    with open_directory(tmp_path / "live", create=True, config=config) as made:
        log = made.create(*ORDERS)
        for place in range(200):
            log.append_batch(timed(1_000 + place), flush=False)
        snapshot = snapshot_of(tmp_path / "live")
        assert snapshot.owner.kind == "stratalog"
        assert plan_scan(snapshot, where=where).partitions[0].tally.with_ranges == 1
        shutil.copytree(tmp_path / "live", left)
    # As somebody else may leave it, who has cut it and appended to it again.
    path = left / str(ORDERS) / f"{0:020d}.log"
    late = timed(7, base_offset=50)
    with path.open("r+b") as file:
        file.seek(50 * len(late))
        file.write(late)
    snapshot = replace(snapshot_of(left), owner=Ownership(kind, 1))
    plan = plan_scan(snapshot, where=where)
    options = replace(WHOLE, row_filter=where.row_filter())
    assert offsets_read(plan.tasks, options) == found, "our own owner's word is not doubted"


def timed(timestamp_ms: int, base_offset: int = 0) -> bytes:
    record = Record(None, bytes(1_000), timestamp_ms=timestamp_ms)
    return build_batch([record], base_offset=base_offset)


@contextmanager
def without_ranges(root: Path) -> Iterator[None]:
    moved = [(path, path.with_suffix(".away")) for path in root.glob("*/.stratalog/*.timeranges")]
    assert moved
    for path, away in moved:
        path.rename(away)
    try:
        yield
    finally:
        for path, away in moved:
            away.rename(path)


def test_a_key_is_read_in_its_own_partition_where_the_reader_vouches(ordered: Path) -> None:
    key = next(k for n in range(99) if partition_of(k := b"%02d" % n, 3) == 1)
    where = Where(keys=frozenset((key,)))
    snapshot = snapshot_of(ordered)
    vouched = plan_scan(snapshot, where=replace(where, is_partitioned_by_key=True))
    assert [each.bytes_kept > 0 for each in vouched.partitions] == [False, True, False]
    assert plan_scan(snapshot, where=where).bytes_kept == vouched.bytes_total


def test_a_key_in_the_wrong_place_forbids_to_go_by_keys(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as logs:
        for number in range(2):
            logs.create("orders", number).append([Record(b"same", b"v")])
    where = Where(keys=frozenset((b"same",)), is_partitioned_by_key=True)
    plan = plan_scan(snapshot_of(tmp_path), where=where)
    assert [each.segments_kept for each in plan.partitions] == [1, 1]
    assert "the default partitioner would have put" in plan.notes[0]


@pytest.mark.parametrize("keys_per_segment", [5, 40])
def test_keys_prune_where_compaction_has_left_the_first_segments_empty(
    tmp_path: Path, keys_per_segment: int
) -> None:
    for number in range(2):
        keys = [k for n in range(999) if partition_of(k := b"%d" % n, 2) == number]
        directory = tmp_path / f"orders-{number}"
        directory.mkdir()
        for place in range(12):
            part = keys[place * keys_per_segment : (place + 1) * keys_per_segment]
            content = build_batch([Record(key, b"v") for key in part], base_offset=100 * place)
            is_empty = place < 3 or place == 11  # as the active one is, after it was rolled
            path = directory / f"{100 * place:020d}.log"
            path.write_bytes(b"" if is_empty else content)
    where = Where(keys=frozenset((b"900",)), is_partitioned_by_key=True)

    plan = plan_scan(snapshot_of(tmp_path), where=where)

    kept = [each.bytes_kept > 0 for each in plan.partitions]
    assert kept == [number == partition_of(b"900", 2) for number in range(2)]


def test_murmur2_is_the_java_clients() -> None:
    # From the tests of org.apache.kafka.common.utils.Utils.
    known = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert {key: (murmur2(key) ^ 2**31) - 2**31 for key in known} == known


# --- tasks --------------------------------------------------------------------------------------


def test_large_segments_are_split_and_small_ones_packed(ordered: Path) -> None:
    snapshot = snapshot_of(ordered)
    size = snapshot.partitions[TopicPartition("orders", 0)].segments.size_bytes
    assert len(plan_scan(snapshot).tasks) == 1
    split = plan_scan(snapshot, max_bytes_per_task=size // 10)
    assert 30 <= len(split.tasks) <= 45
    assert max(task.size_bytes for task in split.tasks) <= size // 10
    assert split.bytes_kept == 3 * size
    assert len(plan_scan(snapshot, min_tasks=60).tasks) >= 60


def test_every_task_is_about_whole_batches(ordered: Path) -> None:
    for task in plan_scan(snapshot_of(ordered), max_bytes_per_task=200_000).tasks:
        report = ScanReport()
        rows = len(offsets_read([task], report=report))
        assert report.bytes_read == task.size_bytes
        assert rows == BATCH_RECORDS * report.batches


def test_planning_very_many_segments_is_quick_and_small() -> None:
    """A twentieth of what a plan must manage in 15 s (``python -m benchmarks planning``)."""
    files = ListedLogs(500, 100)
    began = time.process_time()
    snapshot = take_snapshot(
        files.path, Subscribe(("t",)), isolation=ScanIsolation.READ_UNCOMMITTED, files=files
    )
    plan = plan_scan(snapshot, files=files)
    spent = time.process_time() - began
    assert sum(len(task.slices) for task in plan.tasks) == 500 * 100
    assert len(plan.tasks) < 500
    # Ten times that, for machines that are slow or busy: what grows faster than segments do shows.
    assert spent < 10 * 15 / 20


# --- what plans say -----------------------------------------------------------------------------


def skipped(plan: ScanPlan) -> int:
    return sum(sum(each.tally.skipped_bytes.values()) for each in plan.partitions)


@given(st.data())
def test_what_is_kept_and_what_is_skipped_is_all_there_is(data: st.DataObject) -> None:
    log = data.draw(logs())
    with directory() as root:
        write_with_hints(log, root)
        where = data.draw(wheres(log.rows))
        plan = plan_scan(snapshot_of(root), where=where)
        total = sum(path.stat().st_size for path in root.glob("*/*.log"))
    assert plan.bytes_total == total
    assert plan.bytes_kept == sum(task.size_bytes for task in plan.tasks)
    assert plan.bytes_kept + skipped(plan) == total
