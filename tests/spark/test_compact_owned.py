"""Compaction on Spark where a broker owns the logs, or somebody else was quicker."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from job_commands import spark_command
from pyspark.errors import PySparkException
from sink_topics import create_topics, left_behind, make_topics, rows_in
from test_compact import CONFIG, records
from topics import write_topic

from broker_fixture import running_broker
from stratalog.directories.owners import find_owner
from stratalog.errors import DiskFullError
from stratalog.handover.asking import ask_compaction
from stratalog.handover.compacting import Compactions, read_plan
from stratalog.handover.handover import open_handover
from stratalog.spark.compaction import Compaction
from stratalog.spark.jobs import compact
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.storage.cleaning.states import Phase
from stratalog.storage.commits.errors import SourceChangedError
from stratalog.storage.commits.manifest import Manifest
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

ORDERS = TopicPartition("orders", 0)
# The broker's own cleaner leaves this topic alone.
EXCLUDED = {"log_cleaner_exclude_topics": "other,ord*"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("owned") / "logs"
    make_topics(path, {"orders": 1}, CONFIG)
    write_topic(path, "orders", {0: records(30_000, 2_000, 3)}, config=CONFIG)
    return path


@pytest.fixture
def logs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "logs"))


def last_values(path: Path) -> dict[bytes, bytes | None]:
    return {row["key"]: row["value"] for row in rows_in(path, "orders")}


def test_a_broker_puts_in_place_what_spark_made_and_goes_on(spark: Any, logs: Path) -> None:
    before = last_values(logs)
    with running_broker(logs, **EXCLUDED) as broker:
        result = compact(spark, logs, "orders")
        assert result.done[0].stats.superseded > 0
        assert last_values(logs) == before
        create_topics(broker.bootstrap_server, {"later": 1})
        manager = broker.broker.services.logs
        cleaned_to = broker.call(manager.directories[0].cleaner_offset, ORDERS)
        assert cleaned_to == result.chosen[0].round.plan.upper_bound_offset
        assert broker.call(manager.cleaner.states.state, ORDERS).phase is Phase.NONE
    assert not left_behind(logs)
    assert last_values(logs) == before
    assert len(rows_in(logs, "orders")) < 30_000


def test_the_brokers_cleaner_waits_until_the_pause_is_released_or_over(logs: Path) -> None:
    with running_broker(logs, **EXCLUDED) as broker:
        manager = broker.broker.services.logs

        def phase() -> Phase:
            found: Phase = broker.call(manager.cleaner.states.state, ORDERS).phase
            return found

        asked = Compactions(str(logs), "a" * 32)
        planned = asked.plan(["orders"], None, seconds=60, is_forced=True)
        assert [each.topic_partition for each in planned.rounds] == [ORDERS]
        assert phase() is Phase.PAUSED
        other = Compactions(str(logs), "b" * 32)
        left_out = other.plan(["orders"], [0], seconds=60, is_forced=True).left_out
        assert [each.reason for each in left_out] == ["another compaction is at work there"]
        assert asked.renew(60)
        asked.release()
        assert phase() is Phase.NONE
        assert not asked.renew(60)
        other.plan(["orders"], [0], seconds=0.01, is_forced=True)
        broker.call(broker.broker.services.outside_rounds.end, 2**62)
        assert phase() is Phase.NONE


@pytest.fixture(scope="module")
def made_in_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of one broker, each with a partition of a topic."""
    path = tmp_path_factory.mktemp("two")
    make_topics(Path(f"{path}/0,{path}/1"), {"orders": 2}, CONFIG)
    for each in path.glob("*/orders-*"):
        number = int(each.name.rpartition("-")[2])
        write_topic(each.parent, "orders", {number: records(30_000, 2_000, 3)}, config=CONFIG)
    return path


@pytest.fixture
def in_two(made_in_two: Path, tmp_path: Path) -> list[Path]:
    """In the order of their partitions."""
    copied = Path(shutil.copytree(made_in_two, tmp_path / "two"))
    return [next(copied.glob(f"*/orders-{number}")).parent for number in (0, 1)]


def both(one: Path, two: Path) -> Path:
    return Path(",".join(sorted((str(one), str(two)))))


def test_a_topic_in_two_directories_is_compacted_one_directory_at_a_time(
    spark: Any, in_two: list[Path]
) -> None:
    one, two = in_two
    with running_broker(both(one, two), log_cleaner_enable="false"):
        for log_dir, other, number in ((one, two, 0), (two, one, 1)):
            result = compact(spark, log_dir, "orders")
            assert [each.chosen.round.topic_partition.partition for each in result.done] == [number]
            assert [(each.topic_partition.partition, each.reason) for each in result.left_out] == [
                (1 - number, f"it is in the log directory {other}, and one log directory is "
                 "compacted at a time")
            ]  # fmt: skip
        with pytest.raises(JobOptionError, match=f"orders-1 is not in {one}: it is in .* {two},"):
            compact(spark, one, "orders", partitions=[1])
    assert not left_behind(one)
    assert not left_behind(two)


def test_of_a_broker_that_plans_all_its_directories_only_one_is_taken(
    in_two: list[Path],
) -> None:
    one, two = in_two
    with running_broker(both(one, two), log_cleaner_enable="false"):
        _, owner = find_owner(str(one))
        assert owner is not None
        asked = {"id": "a" * 32, "topics": ["orders"], "partitions": None, "seconds": 60}
        answer = ask_compaction(owner, "", json.dumps(asked).encode())
        planned = read_plan(answer.body, str(two), OsFileSystem())
    assert len(answer.body["rounds"]) == 2
    assert [each.topic_partition.partition for each in planned.rounds] == [1]
    assert [each.is_elsewhere for each in planned.left_out] == [True]


def test_a_misspelt_topic_beside_a_right_one_leaves_no_pause(spark: Any, logs: Path) -> None:
    with running_broker(logs, **EXCLUDED) as broker:
        manager = broker.broker.services.logs
        with pytest.raises(JobOptionError, match="nowhere-0 is not in"):
            compact(spark, logs, ["orders", "nowhere"])
        assert broker.call(manager.cleaner.states.state, ORDERS).phase is Phase.NONE


def test_the_brokers_reserve_stays_free(spark: Any, logs: Path) -> None:
    reserve_bytes = shutil.disk_usage(logs).total
    with running_broker(logs, **EXCLUDED, log_dir_reserve_bytes=str(reserve_bytes)) as broker:
        manager = broker.broker.services.logs
        with pytest.raises(DiskFullError, match=f"reserve.bytes={reserve_bytes} stay free"):
            compact(spark, logs, "orders")
        assert broker.call(manager.cleaner.states.state, ORDERS).phase is Phase.NONE
    assert not left_behind(logs)


def test_a_compaction_whose_sources_changed_is_refused_and_changes_nothing(
    spark: Any, logs: Path
) -> None:
    staged = Compaction(spark, str(logs), slots=2, map_bytes=1 << 28)
    staged.plan(["orders"], None, is_forced=True)
    planned = Compaction(spark, str(logs), slots=2, map_bytes=1 << 28)
    planned.plan(["orders"], None, is_forced=True)
    work = staged.stage()
    compact(spark, logs, "orders", force=True)
    after = {file: file.read_bytes() for file in logs.glob("orders-0/*.log")}
    with pytest.raises(SourceChangedError, match="is not what it was when it was read"):
        staged.hand_over(work)
    with pytest.raises(PySparkException, match="has changed while it was read"):
        planned.run()
    assert {file: file.read_bytes() for file in logs.glob("orders-0/*.log")} == after
    assert not left_behind(logs)


def test_who_is_interrupted_while_the_owner_commits_takes_nothing_away_from_it(
    spark: Any, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def commit(self, manifest: Manifest) -> None:
            self.manifest = manifest
            raise KeyboardInterrupt

    staged = Compaction(spark, str(logs), slots=2, map_bytes=1 << 28)
    staged.plan(["orders"], None, is_forced=True)
    work = staged.stage()
    interrupted = Interrupted()
    monkeypatch.setattr(staged, "_handover", interrupted)
    with pytest.raises(KeyboardInterrupt):
        staged.hand_over(work)
    # Whoever had begun with it can still end it.
    assert open_handover(str(logs)).commit(interrupted.manifest).status == "committed"
    assert not left_behind(logs)


def test_the_command_explains_runs_and_prints_json(spark: Any, logs: Path) -> None:
    explained = spark_command("compact", "--log-dir", str(logs), "--topic", "orders", "--explain")
    assert "keys in the dirty part" in explained.stdout
    told = spark_command("compact", "--log-dir", str(logs), "--topic", "orders", "-o", "json")
    result = json.loads(told.stdout)
    assert result["bytes_after"] < result["bytes_before"]
    assert result["partitions"][0]["stats"]["superseded"] > 0
    again = spark_command("compact", "--log-dir", str(logs), "--topic", "orders")
    assert "nothing to compact" in again.stdout
