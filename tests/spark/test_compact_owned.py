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
from stratalog.handover.compacting import Compactions
from stratalog.handover.handover import open_handover
from stratalog.spark.compaction import Compaction
from stratalog.spark.jobs import compact
from stratalog.storage.cleaning.states import Phase
from stratalog.storage.commits.errors import SourceChangedError
from stratalog.storage.commits.manifest import Manifest
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


def test_a_compaction_whose_sources_changed_is_refused_and_changes_nothing(
    spark: Any, logs: Path
) -> None:
    staged = Compaction(spark, str(logs), slots=2, executor_bytes=1 << 30)
    staged.plan(["orders"], None, is_forced=True)
    planned = Compaction(spark, str(logs), slots=2, executor_bytes=1 << 30)
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

    staged = Compaction(spark, str(logs), slots=2, executor_bytes=1 << 30)
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
