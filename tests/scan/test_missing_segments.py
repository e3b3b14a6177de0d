"""A scan that cannot return all rows says so: never fewer rows in silence."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from modelled import ORDERS

from stratalog import Record, open_directory, scan
from stratalog.directories.topic_facts import TopicFacts
from stratalog.scans import holes
from stratalog.scans.errors import DataLostError, ScanReadError
from stratalog.scans.planning import plan_scan
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import ReadOptions
from stratalog.scans.snapshot import take_snapshot
from stratalog.scans.where import Where
from stratalog.storage.checkpoint import write_offsets
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import CUT_DIRECTORY, TopicPartition, segment_file
from stratalog.storage.rolling import RollCause, RollReason

SUBSCRIBE = Subscribe((ORDERS.topic,))
RECORDS = 3  # of each segment
REASON = RollReason(RollCause.REQUESTED, "a test")


@pytest.fixture(params=["delete", "compact"])
def policy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return known_as(request.param, monkeypatch)


@pytest.fixture
def delete_policy(monkeypatch: pytest.MonkeyPatch) -> str:
    return known_as("delete", monkeypatch)


def known_as(policy: str, monkeypatch: pytest.MonkeyPatch) -> str:
    topics = frozenset([ORDERS.topic])
    facts = TopicFacts(topics, topics if policy == "delete" else frozenset())
    monkeypatch.setattr(holes, "find_topic_facts", lambda *_: facts)
    return policy


@pytest.fixture
def replica(tmp_path: Path) -> Path:
    """Four segments of three batches of a record each, closed."""
    with open_directory(tmp_path, create=True) as made:
        log = made.create(*ORDERS)
        for number in range(4 * RECORDS):
            if number and number % RECORDS == 0:
                log._log.roll(REASON)
            log.append([Record(b"k", b"v", timestamp_ms=number)])
    return tmp_path / str(ORDERS)


def remove(replica: Path, base_offset: int = 3, *suffixes: str) -> None:
    for suffix in suffixes or (".log", ".index", ".timeindex", ".snapshot"):
        path = Path(segment_file(str(replica), base_offset, suffix))
        path.unlink(missing_ok=True)


def offsets(replica: Path, **options: object) -> list[int]:
    found = scan(replica.parent, ORDERS.topic, columns="offset", **options).read_all()  # type: ignore[arg-type]
    return [row["offset"] for row in found.to_pylist()]


def gaps(replica: Path, **options: object) -> list[tuple[int, int, str]]:
    found = scan(replica.parent, ORDERS.topic, gaps=True, **options).read_all().to_pylist()  # type: ignore[arg-type]
    return [(each["startOffset"], each["endOffset"], each["reason"]) for each in found]


# --- in the middle ------------------------------------------------------------------------------


def test_a_missing_segment_of_a_topic_that_is_not_compacted_is_told_exactly(
    replica: Path, delete_policy: str
) -> None:
    remove(replica, 3)

    with pytest.raises(DataLostError, match="a segment is missing: 00000000000000000000") as caught:
        offsets(replica)

    assert (caught.value.start_offset, caught.value.end_offset) == (3, 6)
    assert gaps(replica) == [(3, 6, "missing")]
    report = ScanReport()
    rows = offsets(replica, mode="permissive", report=report)
    assert (rows, report.offsets_missing) == ([0, 1, 2, *range(6, 12)], 3)


@pytest.mark.parametrize(("start", "end"), [(0, 3), (6, 12), (7, None)])
def test_rows_around_a_missing_segment_can_be_asked_for(
    replica: Path, delete_policy: str, start: int, end: int | None
) -> None:
    remove(replica, 3)

    assert offsets(replica, start=start, end=end) == list(range(start, end or 12))


@pytest.mark.parametrize(("start", "end", "lost"), [(4, 9, (4, 6)), (0, 5, (3, 5)), (4, 5, (4, 5))])
def test_what_is_told_is_what_was_asked_for(
    replica: Path, delete_policy: str, start: int, end: int, lost: tuple[int, int]
) -> None:
    remove(replica, 3)

    with pytest.raises(DataLostError) as caught:
        offsets(replica, start=start, end=end)

    assert (caught.value.start_offset, caught.value.end_offset) == lost


@pytest.mark.parametrize("where", [Where(min_timestamp_ms=7), Where(max_timestamp_ms=1)])
def test_times_prune_no_missing_segment(replica: Path, delete_policy: str, where: Where) -> None:
    remove(replica, 3)

    with pytest.raises(DataLostError) as caught:
        offsets(replica, where=where)

    assert (caught.value.start_offset, caught.value.end_offset) == (3, 6)


def empty(replica: Path) -> None:
    Path(segment_file(str(replica), 3, ".log")).write_bytes(b"")


def without_a_log(replica: Path) -> None:
    remove(replica, 3, ".log")


@pytest.mark.parametrize("harm", [remove, empty, without_a_log])
@pytest.mark.parametrize(
    "limits", [{"min_tasks": 9}, {"max_records_per_task": 1}, {"max_bytes_per_task": 1}]
)
def test_however_a_plan_is_cut_the_missing_offsets_are_told_once(
    replica: Path, delete_policy: str, harm: Callable[..., None], limits: dict[str, int]
) -> None:
    harm(replica)
    plan = plan_scan(take_snapshot(str(replica.parent), SUBSCRIBE), **limits)  # type: ignore[arg-type]

    assert list(_lost(plan.tasks)) == [(3, 6)]


def _lost(tasks: tuple[object, ...]) -> Iterator[tuple[int, int]]:
    for task in tasks:
        try:
            list(read_task(task, ReadOptions(columns=("offset",))))  # type: ignore[arg-type]
        except DataLostError as lost:
            yield lost.start_offset, lost.end_offset


def test_an_index_without_its_log_tells_of_a_segment_whatever_is_known_of_the_topic(
    replica: Path, policy: str
) -> None:
    without_a_log(replica)

    with pytest.raises(DataLostError, match=r"00000000000000000003\.index is there without"):
        offsets(replica)
    assert gaps(replica) == [(3, 6, "missing")]


def cleaned(replica: Path) -> None:
    path = str(replica.parent / "cleaner-offset-checkpoint")
    write_offsets(OsFileSystem(), path, {TopicPartition(*ORDERS): 9})


def dropped(replica: Path) -> None:
    cut = replica / CUT_DIRECTORY
    cut.mkdir(parents=True)
    name = segment_file("", 3, ".log.0.20260102T030405.000001Z")
    Path(f"{cut}{name}").write_bytes(b"bytes")


def compacted_once(replica: Path) -> None:
    """Offset 0 is not there, and no checkpoint tells of a cleaner."""
    path = Path(segment_file(str(replica), 0, ".log"))
    content = path.read_bytes()
    path.write_bytes(content[len(content) // RECORDS :])


@pytest.mark.parametrize("why", [cleaned, dropped, compacted_once])
def test_what_compaction_or_a_person_took_is_not_missing(
    replica: Path, delete_policy: str, why: Callable[[Path], None]
) -> None:
    remove(replica, 3)
    why(replica)

    assert offsets(replica)[-6:] == list(range(6, 12))
    assert (3, 6, "compacted") in [(max(each[0], 3), *each[1:]) for each in gaps(replica)]


def test_a_reader_that_has_failed_ends_no_other_way(replica: Path, delete_policy: str) -> None:
    remove(replica, 3)
    reader = scan(replica.parent, ORDERS.topic)
    with pytest.raises(DataLostError):
        reader.read_all()

    for again in (reader.read_all, reader.read_next_batch):
        with pytest.raises(ScanReadError):
            again()


# --- at the end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_missing_last_segment_is_told_by_what_was_flushed_or_committed(
    replica: Path, policy: str, name: str
) -> None:
    remove(replica, 9)
    for each in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        if each != name:
            (replica.parent / each).unlink()

    with pytest.raises(DataLostError, match="the last segment, or a part of it") as caught:
        offsets(replica)

    assert (caught.value.start_offset, caught.value.end_offset) == (9, 12)
    assert gaps(replica) == [(9, 12, "missing")]
    assert offsets(replica, end=9) == list(range(9))
    assert offsets(replica, mode="permissive") == list(range(9))


def test_a_file_that_ends_below_a_live_owners_high_watermark_is_told_of(
    replica: Path, policy: str
) -> None:
    with open_directory(replica.parent) as made:
        taken = take_snapshot(str(replica.parent), SUBSCRIBE)
        assert taken.owner.is_here
        assert made.log(*ORDERS).end_offset == 12
        path = Path(segment_file(str(replica), 9, ".log"))
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // RECORDS])
        found = taken.partitions[TopicPartition(*ORDERS)].segments[3]
        plan = plan_scan(taken)
        shrunk = found._replace(size_bytes=len(content) // RECORDS)
        assert shrunk.size_bytes < found.size_bytes

        assert list(_lost(plan.tasks)) == [(10, 12)]
        path.write_bytes(content)
