"""``stratalog spark compact``: what Spark hands over is what the local cleaner would have left."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from job_commands import spark_command
from sink_topics import left_behind, make_topics
from topics import START_MS, write_topic

from stratalog.errors import DiskFullError
from stratalog.handover.owning import owned, owner_config
from stratalog.records import OffsetMap, Record
from stratalog.spark.compaction import Compaction
from stratalog.spark.compaction_plan import Strategy
from stratalog.spark.jobs import compact
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.storage.cleaning.rounds import clean_now, plan_log
from stratalog.storage.layout import TopicPartition

pytestmark = pytest.mark.xdist_group("spark")

CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
}
HASH_KEY = bytes(16)


def records(count: int, keys: int, seed: int) -> list[Record]:
    dice = random.Random(seed)
    return [
        Record(
            b"key %08d" % dice.randrange(keys),
            None if dice.random() < 0.05 else dice.randbytes(60),
            timestamp_ms=START_MS + number,
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions of several segments each, which nobody has cleaned."""
    path = tmp_path_factory.mktemp("compact") / "logs"
    make_topics(path, {"orders": 2}, CONFIG)
    write_topic(
        path,
        "orders",
        {each: records(40_000, 5_000, each) for each in range(2)},
        config=CONFIG,
        codec="lz4",
    )
    return path


@pytest.fixture
def logs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "logs"))


def tree(path: Path) -> dict[str, bytes]:
    return {
        f"{file.parent.name}/{file.name}": file.read_bytes()
        for file in sorted(path.glob("orders-*/*"))
        if file.is_file() and file.suffix in (".log", ".index", ".timeindex", ".txnindex")
    }


def ages(path: Path) -> dict[str, int]:
    files = path.glob("orders-*/*.log")
    return {f"{file.parent.name}/{file.name}": file.stat().st_mtime_ns // 10**6 for file in files}


def cleaned_locally(source: Path, target: Path, now_ms: int) -> Path:
    shutil.copytree(source, target)
    with owned(owner_config(str(target), {})) as opened:
        for log in opened.logs:
            if log.topic_partition.topic == "orders":
                clean_now(log, now_ms=now_ms, offset_map=OffsetMap(1 << 24, key=HASH_KEY))
                log.run_deletes(2**62)
    return target


@pytest.mark.parametrize("strategy", list(Strategy))
def test_each_way_leaves_the_bytes_of_the_local_cleaner(
    spark: Any, logs: Path, tmp_path: Path, strategy: Strategy
) -> None:
    compaction = Compaction(
        spark, str(logs), slots=2, map_bytes=1 << 20, strategy=strategy, hash_key=HASH_KEY
    )
    compaction.plan(["orders"], None, is_forced=False)
    now_ms = compaction.chosen[0].round.plan.now_ms
    expected = cleaned_locally(logs, tmp_path / "local", now_ms)
    done = compaction.run()
    assert tree(logs) == tree(expected)
    cleaned = {name for name, age in ages(expected).items()}
    assert {name: ages(logs)[name] for name in cleaned} == ages(expected)
    assert [each.stats.messages_read for each in done] == [
        each.round.plan.upper_bound_offset for each in compaction.chosen
    ]
    assert not left_behind(logs)


def of(files: dict[str, bytes], partition: str) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name.startswith(f"{partition}/")}


def damage(logs: Path) -> Path:
    path = min((logs / "orders-1").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[500_000] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("strategy", [*Strategy, None])
def test_a_damaged_partition_is_left_out_and_the_others_are_done(
    spark: Any, logs: Path, tmp_path: Path, strategy: Strategy | None
) -> None:
    sound = shutil.copytree(logs, tmp_path / "sound")
    damaged = damage(logs)
    before = tree(logs)
    compaction = Compaction(
        spark, str(logs), slots=2, map_bytes=1 << 20, strategy=strategy, hash_key=HASH_KEY
    )
    compaction.plan(["orders"], None, is_forced=False)
    now_ms = compaction.chosen[0].round.plan.now_ms
    done = compaction.run()

    assert [str(each.chosen.round.topic_partition) for each in done] == ["orders-0"]
    (left_out,) = compaction.left_out
    assert str(left_out.topic_partition) == "orders-1"
    assert left_out.is_damaged
    assert f"{damaged} is damaged at position" in left_out.reason
    expected = tree(cleaned_locally(sound, tmp_path / "local", now_ms))
    assert of(tree(logs), "orders-0") == of(expected, "orders-0")
    assert of(tree(logs), "orders-1") == of(before, "orders-1")
    assert not left_behind(logs)


def test_the_command_names_what_is_damaged_and_ends_with_1(spark: Any, logs: Path) -> None:
    damaged = damage(logs)
    arguments = ("compact", "--log-dir", logs, "--topic", "orders")

    first = spark_command(*arguments, "-o", "json")

    assert first.exit_code == 1
    assert [each["partition"] for each in first.json["left_out"] if each["is_damaged"]] == [1]
    assert [each["partition"] for each in first.json["partitions"]] == [0]
    before = tree(logs)
    # Nothing but the damaged one is left to be done.
    again = spark_command(*arguments)
    assert again.exit_code == 1
    assert f"orders-1 was left out: {damaged} is damaged at position" in again.stderr
    assert "nothing to compact" in again.stdout
    assert tree(logs) == before
    assert not left_behind(logs)


def test_marks_of_a_shuffle_do_not_grow_with_the_parts_that_are_sorted(
    spark: Any, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stratalog.spark.compaction._SORTED_ROWS", 4_000)
    compaction = Compaction(spark, str(logs), slots=2, map_bytes=1 << 28, strategy=Strategy.SHUFFLE)
    compaction.plan(["orders"], [0], is_forced=True)
    [done] = compaction.stage()
    compaction.close()
    [plan] = (each.round.plan for each in compaction.chosen)
    spans = [Path(each).name.split(".")[1] for each in done.marks]
    # One of what each segment's scan found, and one of its block for all offsets.
    assert len(spans) == len(plan.sources) + 1
    assert spans.count(f"0-{plan.upper_bound_offset}") == 1


def test_a_second_run_finds_nothing_to_do(spark: Any, logs: Path) -> None:
    first = compact(spark, logs, "orders")
    assert first.bytes_after < first.bytes_before
    assert all(row[3] > row[4] for row in first.rows())  # type: ignore[operator]
    second = compact(spark, logs, "orders")
    assert not second.chosen
    assert {each.reason for each in second.left_out} == {"nothing is dirty in its closed segments"}
    json.dumps(first.to_json())


def test_a_dry_run_explains_and_changes_nothing(spark: Any, logs: Path) -> None:
    before = tree(logs)
    result = compact(spark, logs, "orders", dry_run=True, partitions=[1])
    assert [each.round.topic_partition for each in result.chosen] == [TopicPartition("orders", 1)]
    assert "keys in the dirty part" in result.chosen[0].reasons[0]
    assert result.rows()
    assert tree(logs) == before
    with owned(owner_config(str(logs), {})) as opened:
        log = opened.logs.get(TopicPartition("orders", 1))
        assert plan_log(log, None, START_MS).is_eligible


def test_an_executors_memory_is_shared_by_the_tasks_that_it_runs(
    spark: Any, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A cluster of very many executors like this one.
    monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", 200)
    result = compact(spark, logs, "orders", dry_run=True, memory="10m")
    assert "a map of 3 MB holds 117,964" in result.chosen[0].reasons[0]


def test_what_is_not_compacted_is_left_out_with_the_reason(spark: Any, logs: Path) -> None:
    make_topics(logs, {"plain": 1})
    result = compact(spark, logs, "plain")
    assert [(str(each.topic_partition), each.reason) for each in result.left_out] == [
        ("plain-0", "it is not compacted: its cleanup.policy is delete"),
    ]


def test_what_would_not_leave_the_reserve_free_is_refused_before_anything_is_staged(
    spark: Any, logs: Path
) -> None:
    before = tree(logs)
    reserve_bytes = shutil.disk_usage(logs).total
    with pytest.raises(DiskFullError, match=f"bytes are to be staged.*={reserve_bytes} stay free"):
        compact(spark, logs, "orders", config={"log.dir.reserve.bytes": str(reserve_bytes)})
    assert tree(logs) == before
    assert not left_behind(logs)


def test_a_topic_that_is_not_there_is_an_error(spark: Any, logs: Path) -> None:
    make_topics(logs, {"plain": 1})
    with pytest.raises(JobOptionError, match="nowhere-0 is not in"):
        compact(spark, logs, ["plain", "nowhere"])
