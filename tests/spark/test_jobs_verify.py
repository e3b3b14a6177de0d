"""``verify`` says of a fleet what ``stratalog log verify`` says of each directory, and what only
shows when directories are put side by side."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from topics import write_topic

import stratalog
from stratalog.errors import LogDirectoryError
from stratalog.scans.errors import WrongDirectoryError
from stratalog.spark.jobs import verify, verify_plan
from stratalog.spark.jobs.fleet import DirectoryIdentity, check_fleet, distinct
from stratalog.spark.jobs.verify_plan import ReplicaToCheck, pack, plan_verify
from stratalog.spark.jobs.verify_tasks import check_replica
from stratalog.storage.check import check
from stratalog.storage.check_looks import check_segments
from stratalog.storage.files import OsFileSystem
from stratalog.storage.findings import Finding, Kind

pytestmark = pytest.mark.xdist_group("spark")

SMALL_SEGMENTS = {"internal.segment.bytes": "400", "index.interval.bytes": "100"}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "log"
    write_topic(path, "orders", 2, 30, batch_records=3, config=SMALL_SEGMENTS)
    write_topic(path, "payments", 1, 5)
    return path


@pytest.fixture
def fleet(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "log"))


@pytest.fixture
def tiny_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every segment of a replica is read by a task of its own."""
    monkeypatch.setattr(verify_plan, "TASK_BYTES_MIN", 1)
    monkeypatch.setattr(verify_plan, "TASK_BYTES_MAX", 1)


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


def logs(directory: Path, replica: str = "orders-0") -> list[Path]:
    return sorted((directory / replica).glob("*.log"))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "none": lambda _: None,
    "a record": lambda fleet: flip(logs(fleet)[1], 90),
    "a record of the last segment": lambda fleet: flip(logs(fleet)[-1], 90),
    "a cut tail": lambda fleet: cut(logs(fleet)[-1]),
    "an index": lambda fleet: flip(logs(fleet)[0].with_suffix(".index"), 3),
    "epochs": lambda fleet: (fleet / "orders-0/leader-epoch-checkpoint").write_text("0\n1\n7 0\n"),
    "a checkpoint": lambda fleet: (fleet / "recovery-point-offset-checkpoint").write_text("x"),
    "a log start behind the end": lambda fleet: (fleet / "log-start-offset-checkpoint").write_text(
        "0\n1\norders 0 999\n"
    ),
    "two segments that overlap": lambda fleet: logs(fleet)[0].write_bytes(
        logs(fleet)[0].read_bytes() + logs(fleet)[1].read_bytes()
    ),
    "a foreign directory": lambda fleet: (fleet / "not a replica").mkdir(),
    "a replica without a log": lambda fleet: (fleet / "new-0").mkdir(),
    "epochs and a topic id that cannot be read": lambda fleet: [
        (fleet / "orders-0" / name).mkdir()
        for name in ("leader-epoch-checkpoint", "partition.metadata")
        if (fleet / "orders-0" / name).unlink(missing_ok=True) is None
    ],
    "a link of another name": lambda fleet: (fleet / "linked-0").symlink_to(fleet / "payments-0"),
}
damaged = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())


def told(directory: Path, findings: list[Finding]) -> list[tuple[Any, ...]]:
    """What a check found, as a result tells it."""
    return sorted(
        (
            each.path.removeprefix(f"{directory}/"),
            None if each.position < 0 else each.position,
            None if each.offset < 0 else each.offset,
            each.severity.value,
            each.kind.value,
            each.sentence,
        )
        for each in findings
    )


def found(result: Any) -> list[tuple[Any, ...]]:
    names = ("file", "position", "offset", "severity", "code", "message")
    return sorted(tuple(each[name] for name in names) for each in result.findings)


# --- one replica, read by many -------------------------------------------------------------------


@damaged
def test_a_replica_read_by_many_is_told_as_one_read_by_one(
    damage: Callable[[Path], Any], fleet: Path
) -> None:
    damage(fleet)
    path = str(fleet / "orders-0")
    replica = ReplicaToCheck(str(fleet), path, is_live=False)
    pieces = [
        facts
        for log in logs(fleet)
        for facts in check_segments(OsFileSystem(), path, {int(log.stem)})
    ]

    assert len(pieces) > 3
    assert check_replica(replica, pieces) == check_replica(replica, ())


def test_a_segment_that_was_replaced_since_is_read_again(fleet: Path) -> None:
    path = str(fleet / "orders-0")
    replica = ReplicaToCheck(str(fleet), path, is_live=False)
    before = list(check_segments(OsFileSystem(), path, {int(each.stem) for each in logs(fleet)}))
    content = logs(fleet)[1].read_bytes()
    logs(fleet)[1].write_bytes(content + b"garbage")

    assert check_replica(replica, before)["findings"] != []


def test_trouble_in_a_replica_in_use_counts_only_if_it_is_found_again(fleet: Path) -> None:
    path = logs(fleet)[-1]
    whole = path.read_bytes()
    replica = ReplicaToCheck(str(fleet), str(fleet / "orders-0"), is_live=True)
    cut(path)

    def finish_the_write() -> None:
        path.write_bytes(whole)

    assert check_replica(replica, (), wait=finish_the_write)["findings"] == []
    cut(path)
    assert check_replica(replica, (), wait=lambda: None)["findings"] != []


def test_a_path_that_means_something_else_on_a_worker_is_never_called_sound(fleet: Path) -> None:
    path = str(fleet / "orders-0")

    with pytest.raises(WrongDirectoryError, match="on host"):
        check_replica(ReplicaToCheck(str(fleet), path, is_live=True, directory_id="AA"), ())
    with pytest.raises(WrongDirectoryError, match="on host"):
        check_replica(ReplicaToCheck("/nowhere", "/nowhere/orders-0", is_live=True), ())


# --- the plan ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 1000)), st.integers(1, 9))
def test_packing_loses_nothing_and_no_bin_is_twice_too_full(sizes: list[int], count: int) -> None:
    bins = pack([(size, (number, size)) for number, size in enumerate(sizes)], count)

    assert sorted(each for each_bin in bins for each in each_bin) == list(enumerate(sizes))
    assert len(bins) <= count
    fullest = max((sum(size for _, size in each) for each in bins), default=0)
    assert fullest <= 2 * max([-(-sum(sizes) // count), *sizes], default=0)


def test_every_segment_is_read_by_exactly_one_task(fleet: Path, tiny_tasks: None) -> None:
    replicas = [
        ReplicaToCheck(str(fleet), str(fleet / name), is_live=False)
        for name in ("orders-0", "orders-1", "payments-0")
    ]

    plan = plan_verify(OsFileSystem(), replicas, cores=2)

    read = sorted(
        (run.replica.path, base) for task in plan.parts for run in task for base in run.base_offsets
    )
    expected = [
        (str(fleet / name), int(log.stem))
        for name in ("orders-0", "orders-1")
        for log in logs(fleet, name)
    ]
    assert read == expected
    assert [each.path for task in plan.whole for each in task] == [str(fleet / "payments-0")]


# --- on Spark ------------------------------------------------------------------------------------


@damaged
def test_a_fleet_is_told_as_log_verify_tells_its_directories(
    spark: Any, damage: Callable[[Path], Any], fleet: Path, tiny_tasks: None
) -> None:
    damage(fleet)

    result = verify(spark, fleet)

    expected = told(fleet, check(str(fleet)))
    assert found(result) == expected
    assert result.is_clean == (not expected)
    assert result.errors + result.warnings == len(expected)


def test_a_path_that_is_no_log_directory_is_a_finding_and_the_others_are_read(
    spark: Any, fleet: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()

    result = verify(spark, other, fleet)

    (finding,) = result.findings
    assert (finding["directory"], finding["code"], finding["topic"]) == (
        str(other), "directory", None,
    )  # fmt: skip
    assert [row[:4] for row in result.rows()] == [
        (str(other), "no", 0, 0),
        (str(fleet), "no", 3, len(list(fleet.glob("*/*.log")))),
    ]
    with pytest.raises(LogDirectoryError, match="neither"):
        verify(spark, other)


def test_the_findings_are_a_dataframe(spark: Any, fleet: Path) -> None:
    flip(logs(fleet)[1], 90)

    result = verify(spark, fleet)

    row = result.dataframe().where("severity = 'error' AND code = 'batch'").first()
    assert (row.directory, row.topic, row.partition) == (str(fleet), "orders", 0)
    assert (row.file, row.position) == (f"orders-0/{logs(fleet)[1].name}", 0)
    assert "CRC" in row.message
    assert result.replicas_dataframe().selectExpr("sum(record_count)").first()[0] == 62


def test_a_sound_fleet_yields_its_sizes_and_an_empty_dataframe(spark: Any, fleet: Path) -> None:
    result = verify(spark, fleet, fleet / "." / "")

    assert result.verdict == "nothing wrong"
    assert result.dataframe().count() == 0
    ((directory, live, replicas, segments, size_bytes, records, errors, warnings),) = result.rows()
    assert (directory, live, errors, warnings) == (str(fleet), "no", 0, 0)
    assert (replicas, records) == (3, 65)
    every = [log for name in ("orders-0", "orders-1", "payments-0") for log in logs(fleet, name)]
    assert (segments, size_bytes) == (len(every), sum(log.stat().st_size for log in every))


@pytest.fixture
def in_use(fleet: Path) -> Iterator[Path]:
    with stratalog.open_directory(fleet):
        yield fleet


def test_a_directory_in_use_is_known_by_its_lock(spark: Any, in_use: Path) -> None:
    result = verify(spark, in_use)

    assert result.directories == {str(in_use): True}
    assert result.findings == []


def test_progress_is_told_while_tasks_run(spark: Any, fleet: Path) -> None:
    from stratalog.spark.jobs import progress

    heard: list[progress.TaskCounts] = []
    tracker = spark.sparkContext.statusTracker()
    with progress.told(spark, heard.append):
        group = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
        verify(spark, fleet)
        counts = progress.count_tasks(tracker, group)

    assert counts.done == counts.known > 0
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


# --- directories side by side --------------------------------------------------------------------


def replica_row(directory: str, replica: str, topic_id: str = "") -> dict[str, Any]:
    topic, _, partition = replica.split(".")[0].rpartition("-")
    return {
        "directory": directory,
        "replica": replica,
        "topic": topic,
        "partition": int(partition),
        "topic_id": topic_id,
    }


ONE = DirectoryIdentity("/one", "cluster", "1", "id-of-one")
TWO = DirectoryIdentity("/two", "cluster", "1", "id-of-two")
OTHER_BROKER = DirectoryIdentity("/three", "cluster", "2", "id-of-three")
NOBODYS = DirectoryIdentity("/four")


@pytest.mark.parametrize(
    ("identities", "rows", "expected"),
    [
        ([ONE, TWO], [("/one", "a-0", "x"), ("/two", "a-1", "x")], []),
        ([ONE, TWO], [("/one", "a-0", ""), ("/two", "a-0", "")], [(Kind.DUPLICATE, "/two/a-0")]),
        ([ONE, OTHER_BROKER], [("/one", "a-0", "x"), ("/three", "a-0", "x")], []),
        ([ONE, NOBODYS], [("/one", "a-0", "x"), ("/four", "a-0", "y")], []),
        (
            [ONE, OTHER_BROKER],
            [("/one", "a-0", "x"), ("/three", "a-1", "y")],
            [(Kind.METADATA, "/three/a-1/partition.metadata")],
        ),
        (
            [ONE],
            [("/one", "a-0", "x"), ("/one", "a-1", "y")],
            [(Kind.METADATA, "/one/a-1/partition.metadata")],
        ),
        ([ONE, TWO], [("/one", "a-0", ""), ("/two", f"a-0.{'0' * 32}-future", "")], []),
        (
            [ONE, DirectoryIdentity("/copy", "cluster", "3", "id-of-one")],
            [],
            [(Kind.DUPLICATE, "/copy/meta.properties")],
        ),
        (
            [NOBODYS, DirectoryIdentity("/five")],
            [("/four", "a-0", "x"), ("/five", "a-0", "y")],
            [],
        ),
    ],
)
def test_what_directories_may_and_may_not_share(
    identities: list[DirectoryIdentity],
    rows: list[tuple[str, str, str]],
    expected: list[tuple[Kind, str]],
) -> None:
    findings = check_fleet(identities, [replica_row(*row) for row in rows])

    assert [(finding.kind, finding.path) for _, finding in findings] == expected


def test_a_copied_directory_is_found_out(spark: Any, fleet: Path, tmp_path: Path) -> None:
    said = f"version=1\ncluster.id=c\nnode.id=1\ndirectory.id={'A' * 22}\n"
    (fleet / "meta.properties").write_text(said)
    shutil.copytree(fleet, tmp_path / "copy")

    result = verify(spark, fleet, tmp_path / "copy")

    codes = [each["code"] for each in result.findings]
    assert codes.count("duplicate") == 1 + 3, result.findings
    assert {each["directory"] for each in result.findings} == {str(tmp_path / "copy")}


def test_a_directory_is_looked_at_once_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "log")

    assert distinct([tmp_path / "log", str(tmp_path / "link")]) == [str(tmp_path / "log")]
