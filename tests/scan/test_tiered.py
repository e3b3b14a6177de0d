"""Topics of Apache Kafka whose first segments are in remote storage: told, never read short."""

from pathlib import Path

import pytest
from modelled import ORDERS
from test_snapshot import batch, somebody_else, write_log

from stratalog import scan
from stratalog.directories.topic_facts import RecentTopicFacts, TopicFacts
from stratalog.scans import snapshot as snapshots
from stratalog.scans.errors import DataLostError, TieredError
from stratalog.scans.explain import explain_plan
from stratalog.scans.planning import plan_scan
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import take_snapshot
from stratalog.scans.times import offset_for_timestamp
from stratalog.spark.losses import Span, find_losses
from stratalog.spark.offsets import Earliest, Latest, clamp_ranges, lost_ranges, resolve_ranges
from stratalog.spark.snapshot_text import read_snapshot, write_snapshot
from stratalog.storage.check import CheckRun
from stratalog.storage.checkpoint import EpochEntry, write_epochs, write_offsets
from stratalog.storage.files import OsFileSystem
from stratalog.storage.findings import Kind, Severity
from stratalog.storage.layout import TopicPartition

FILES = OsFileSystem()
KEY = TopicPartition(*ORDERS)
TOPICS = frozenset([ORDERS.topic])
UNCOMMITTED = ScanIsolation.READ_UNCOMMITTED


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Offsets 6 to 11 of a log that starts at 0."""
    directory = write_log(tmp_path, batch(0) + batch(3), batch(6), batch(9))
    (directory / f"{0:020d}.log").unlink()
    start_at(tmp_path, 0)
    return tmp_path


def start_at(root: Path, offset: int) -> None:
    write_offsets(FILES, str(root / "log-start-offset-checkpoint"), {KEY: offset})


def epochs_from(root: Path, offset: int) -> None:
    path = str(root / str(ORDERS) / "leader-epoch-checkpoint")
    write_epochs(FILES, path, [EpochEntry(3, offset)])


def offsets(root: Path, **options: object) -> list[int]:
    found = scan(root, ORDERS.topic, columns="offset", **options).read_all()  # type: ignore[arg-type]
    return [row["offset"] for row in found.to_pylist()]


def gaps(root: Path) -> list[tuple[int, int, str]]:
    found = scan(root, ORDERS.topic, gaps=True).read_all().to_pylist()
    return [(each["startOffset"], each["endOffset"], each["reason"]) for each in found]


def test_a_scan_from_the_start_tells_what_is_in_remote_storage(root: Path) -> None:
    with pytest.raises(TieredError, match=r"offsets 0 to 5 \(6 of them\) in remote") as caught:
        offsets(root)

    assert (caught.value.start_offset, caught.value.end_offset) == (0, 6)
    assert gaps(root) == [(0, 6, "tiered")]
    for options in ({"mode": "permissive"}, {"start": 5}, {"start": "earliest"}, {"end": 7}):
        with pytest.raises(TieredError):
            offsets(root, **options)


@pytest.mark.parametrize("options", [{"start": 6}, {"start": {3: 6}}, {"where": "offset >= 6"}])
def test_a_scan_from_the_first_local_segment_on_reads_it(
    root: Path, options: dict[str, object]
) -> None:
    assert offsets(root, **options) == list(range(6, 12))


def test_a_live_directory_is_told_of_as_well(root: Path) -> None:
    write_offsets(FILES, str(root / "replication-offset-checkpoint"), {KEY: 12})
    with somebody_else(root):
        with pytest.raises(TieredError):
            offsets(root)
        assert offsets(root, start=6) == list(range(6, 12))


def test_explain_tells_of_it(root: Path) -> None:
    lines = explain_plan(plan_scan(take_snapshot(str(root), Subscribe((ORDERS.topic,))))).lines()

    assert "orders-3 has the offsets 0 to 5 (6 of them) in remote storage" in lines[-1]


@pytest.mark.parametrize(
    ("start", "epochs_start", "facts", "expected"),
    [
        (2, 2, TopicFacts(), (2, 6)),
        (2, 6, TopicFacts(), None),
        (2, 6, TopicFacts(TOPICS, TOPICS, TOPICS), (2, 6)),
        (2, 2, TopicFacts(TOPICS, TOPICS), None),
        (6, 6, TopicFacts(TOPICS, TOPICS, TOPICS), None),
    ],
    ids=["epochs", "retention went on", "tiered", "not tiered", "all is here"],
)
def test_a_checkpointed_start_below_the_first_segment_is_tiered_where_something_else_says_so(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    start: int,
    epochs_start: int,
    facts: TopicFacts,
    expected: tuple[int, int] | None,
) -> None:
    start_at(root, start)
    epochs_from(root, epochs_start)
    monkeypatch.setattr(snapshots, "_facts", RecentTopicFacts(lambda *_: facts))

    found = take_snapshot(str(root), Subscribe((ORDERS.topic,))).partitions[KEY].absences

    assert [each[:2] for each in found] == ([expected] if expected else [])


def test_first_segments_that_are_missing_after_a_clean_stop_are_told(root: Path) -> None:
    (root / "log-start-offset-checkpoint").unlink()
    epochs_from(root, 0)
    assert offsets(root) == list(range(6, 12)), "after a crash the epochs may be old"

    (root / ".kafka_cleanshutdown").write_bytes(b"")

    with pytest.raises(DataLostError, match="the first segments are missing"):
        offsets(root)
    assert gaps(root) == [(0, 6, "missing")]
    write_offsets(FILES, str(root / "cleaner-offset-checkpoint"), {KEY: 9})
    assert offsets(root) == list(range(6, 12)), "a cleaner may have"
    (root / "cleaner-offset-checkpoint").unlink()
    epochs_from(root, 6)
    assert offsets(root) == list(range(6, 12))


def test_a_batch_query_loses_the_tiered_offsets_or_reads_the_rest(root: Path) -> None:
    taken = take_snapshot(str(root), Subscribe((ORDERS.topic,)))
    taken = read_snapshot(write_snapshot(taken))
    ranges = resolve_ranges(Earliest(), Latest(), taken, UNCOMMITTED)

    assert ranges == {KEY: (0, 12)}
    (lost,) = lost_ranges(ranges, taken, UNCOMMITTED)
    assert isinstance(lost, TieredError)
    assert clamp_ranges(ranges, taken, UNCOMMITTED) == {KEY: (6, 12)}
    assert lost_ranges(ranges, taken, UNCOMMITTED, only_behind=True) == []


@pytest.mark.parametrize(
    ("position", "lost"), [({KEY: 0}, (0, 6)), ({KEY: 4}, (4, 6)), ({}, (0, 6))]
)
def test_a_stream_below_the_first_segment_is_told_what_is_in_remote_storage(
    root: Path, position: dict[TopicPartition, int], lost: tuple[int, int]
) -> None:
    found = take_snapshot(str(root), Subscribe((ORDERS.topic,))).partitions[KEY]
    span = Span(found.start_offset, found.high_watermark, absences=found.absences)

    (error,) = find_losses(position, {KEY: span}, {})

    assert isinstance(error, TieredError)
    assert (error.start_offset, error.end_offset) == lost
    assert "set failOnDataLoss" in str(error)
    assert list(find_losses({KEY: 6}, {KEY: span}, {})) == []


def test_a_time_that_the_first_local_record_answers_may_be_answered_by_a_tiered_one(
    root: Path,
) -> None:
    def first(timestamp_ms: int) -> int | None:
        return offset_for_timestamp(partition, timestamp_ms)

    partition = take_snapshot(str(root), Subscribe((ORDERS.topic,))).partitions[KEY]
    assert (first(3), first(6), first(7), first(99)) == (0, 0, 7, None)


def test_verify_tells_what_is_tiered_and_finds_nothing_wrong(root: Path) -> None:
    (found,) = CheckRun(FILES, is_live=False).check(str(root)).replicas

    assert found.tiered is not None
    assert found.tiered[:3] == (0, 6, "tiered")
    assert not [each for each in found.findings if each.severity is Severity.ERROR]


def test_verify_finds_first_segments_that_are_missing_after_a_clean_stop(root: Path) -> None:
    (root / "log-start-offset-checkpoint").unlink()
    (root / ".kafka_cleanshutdown").write_bytes(b"")
    epochs_from(root, 0)

    found = CheckRun(FILES, is_live=False).check(str(root)).findings

    assert [(each.kind, each.offset) for each in found if each.kind is Kind.GAP] == [(Kind.GAP, 0)]
