"""``stratalog spark verify``: what it prints, and how it ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from job_commands import spark_command
from topics import write_topic

from stratalog.cli.app import run
from stratalog.cli.progress import tasks_bar
from stratalog.cli.spark_session import SparkChoice
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore
from stratalog.metadata.topics import NewTopic
from stratalog.spark.jobs.progress import TaskCounts
from stratalog.storage.layout import COMMIT_JOURNAL, META_PROPERTIES

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_topic(tmp_path / "log", "orders", 2, 10, batch_records=2)
    return tmp_path / "log"


def damage(log_dir: Path) -> None:
    path = next((log_dir / "orders-1").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)


def test_a_sound_directory_ends_with_0_and_a_summary(spark: Any, log_dir: Path) -> None:
    done = spark_command("verify", log_dir)

    assert done.exit_code == 0, done.stderr
    head, row, _ = done.table
    assert head[:4] == ["directory", "live", "replicas", "segments"]
    assert row[:4] == [str(log_dir), "no", "2", "2"]
    assert done.stdout.endswith("nothing wrong\n")
    assert done.stderr == ""


def test_findings_are_told_as_log_verify_tells_them_and_end_with_1(
    spark: Any, log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(log_dir)

    done = spark_command("verify", log_dir)

    assert run(["log", "verify", str(log_dir)]) == done.exit_code == 1
    local = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error")]
    assert local
    assert [line for line in done.stdout.splitlines() if line.startswith("error")] == local
    assert "1 error, 0 warnings" in done.stdout


BESIDE_REPLICAS: dict[str, Callable[[Path], Any]] = {
    "the journal of commits": lambda log_dir: (log_dir / COMMIT_JOURNAL).write_bytes(b"?" * 40),
    "whose directory it is": lambda log_dir: (log_dir / META_PROPERTIES).write_text("version=1\n"),
    "a page of the metadata": lambda log_dir: damage_store(log_dir, lambda _: 4096),
    "a segment of which nothing is left": lambda log_dir: missing_segment(log_dir),
    "a row of the metadata": lambda log_dir: damage_store(
        log_dir, lambda content: content.index(b"some-cluster")
    ),
}


def damage_store(log_dir: Path, find: Callable[[bytes], int]) -> None:
    path = log_dir / METADATA_FILE
    with SqliteMetadataStore.open(str(path)) as store:
        store.initialize("some-cluster", 1)
    content = bytearray(path.read_bytes())
    content[find(content)] ^= 1
    path.write_bytes(content)


def missing_segment(log_dir: Path, **configs: str) -> None:
    """What the metadata says of a topic decides whether offsets may be missing."""
    write_topic(log_dir, "ledger", 1, 30, batch_records=3, config={"internal.segment.bytes": "400"})
    with SqliteMetadataStore.open(str(log_dir / METADATA_FILE)) as store:
        store.initialize("some-cluster", 1)
        store.create_topic(NewTopic(name="ledger", partition_count=1, configs=configs))
    gone = sorted((log_dir / "ledger-0").glob("*.log"))[1]
    for each in gone.parent.glob(f"{gone.stem}.*"):
        each.unlink()


def test_offsets_may_be_missing_in_a_compacted_topic(log_dir: Path) -> None:
    missing_segment(log_dir, **{"cleanup.policy": "compact,delete"})

    assert run(["log", "verify", str(log_dir)]) == 0


@pytest.mark.parametrize("damage", BESIDE_REPLICAS.values(), ids=BESIDE_REPLICAS.keys())
def test_what_keeps_a_broker_from_opening_a_directory_is_told_by_both_commands(
    spark: Any, log_dir: Path, damage: Callable[[Path], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(log_dir)
    before = contents(log_dir)

    done = spark_command("verify", log_dir)

    assert run(["log", "verify", str(log_dir)]) == done.exit_code == 1
    local = [line for line in capsys.readouterr().out.splitlines() if line.startswith("error")]
    assert len(local) == 1
    assert [line for line in done.stdout.splitlines() if line.startswith("error")] == local
    assert contents(log_dir) == before


def contents(log_dir: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in log_dir.iterdir() if each.is_file()}


def test_json_holds_the_verdict_and_every_finding(spark: Any, log_dir: Path) -> None:
    damage(log_dir)

    done = spark_command("verify", log_dir, "-o", "json")

    assert done.exit_code == 1
    assert (done.json["verdict"], done.json["errors"]) == ("errors", 1)
    (finding,) = done.json["findings"]
    assert (finding["topic"], finding["partition"], finding["code"]) == ("orders", 1, "batch")
    (directory,) = done.json["directories"]
    assert (directory["live"], directory["replicas"]) == (False, 2)


def test_a_path_that_is_no_log_is_refused_before_spark_starts(tmp_path: Path) -> None:
    done = spark_command("verify", tmp_path / "nowhere")

    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr == f"{tmp_path / 'nowhere'} does not exist.\n"


def test_settings_of_a_person_win_over_ours() -> None:
    choice = SparkChoice.of(None, ["spark.log.level=WARN"], packages=["a:b:1", "c:d:2"])

    assert choice.configs["spark.log.level"] == "WARN"
    assert choice.configs["spark.jars.packages"] == "a:b:1,c:d:2"


def test_a_bar_is_drawn_on_stderr_and_only_for_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with tasks_bar("verify") as nobody:
        assert nobody is None
    monkeypatch.setattr("stratalog.cli.progress.is_watched", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with tasks_bar("verify") as progress:
        assert progress is not None
        progress(TaskCounts(3, 1, 7))

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "verify" in captured.err
    assert "3/7" in captured.err
