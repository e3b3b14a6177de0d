"""``retention`` and ``cleaner`` on what a broker has left: topics' configs are known, and nothing
that they keep is removed."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from broker_fixture import running_broker
from command_line import Ran, run_stratalog
from left_directories import copy_of, leave, make_kafkas, opened, segments_of
from metadata_records import config, log_of, partition, topic
from stratalog.cli.failures import CommandError
from stratalog.cli.topic_configs import choose
from stratalog.metadata import ConfigChange, ConfigOperation
from stratalog.storage.files import OsFileSystem

SET = ConfigOperation.SET
FOREVER = {"retention.ms": "-1"}
TOPIC_ID = uuid.UUID(int=7 << 100)
ALL = [0, 1, 2]  # a segment a record
WEEK = ("--config", "retention.ms=604800000")


def retention(*arguments: object) -> Ran:
    return run_stratalog("retention", *map(str, arguments))


def cleaner(*arguments: object) -> Ran:
    return run_stratalog("cleaner", *map(str, arguments))


def told(ran: Ran) -> dict[str, Any]:
    """What ``explain`` says, by topic."""
    assert ran.exit_code == 0, ran
    return {each["topic"]: each for each in ran.json["partitions"]}


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """``orders`` is kept for ever, ``clicks`` by its broker's default of a week."""
    return leave(tmp_path / "kept", {"orders": FOREVER, "clicks": {}})


# --- retention -------------------------------------------------------------------------------


def test_running_deletes_by_the_topics_own_configs_without_being_given_any(kept: Path) -> None:
    ran = retention("run", kept)

    assert ran.exit_code == 0
    assert segments_of(kept, "orders") == ALL
    assert segments_of(kept, "clicks") == [2]


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--topic", "orders")])
def test_what_is_given_may_not_remove_more_than_the_known_configs_allow(
    kept: Path, more: tuple[str, ...]
) -> None:
    ran = retention("run", kept, *WEEK, *more)

    assert (ran.exit_code, ran.stdout) == (1, b"")
    assert ran.stderr.startswith("Topic orders has retention.ms=-1 (.stratalog-metadata.db was")
    assert "with retention.ms=604800000 more would be removed" in ran.stderr
    assert segments_of(kept, "orders") == segments_of(kept, "clicks") == ALL


def test_told_in_so_many_words_it_removes_more(kept: Path) -> None:
    assert retention("run", kept, *WEEK, "--beyond-known-configs").exit_code == 0
    assert segments_of(kept, "orders") == [2]


def test_what_is_given_may_keep_more(kept: Path) -> None:
    assert retention("run", kept, "--config", "retention.ms=-1").exit_code == 0
    assert segments_of(kept, "clicks") == ALL


def test_a_default_that_the_broker_was_started_with_is_known(tmp_path: Path) -> None:
    leave(tmp_path, {"orders": {}}, server={"log.retention.hours": "-1"})

    assert retention("run", tmp_path).exit_code == 0
    assert segments_of(tmp_path, "orders") == ALL
    ran = retention("run", tmp_path, *WEEK)
    assert "Topic orders has retention.ms=-1" in ran.stderr
    properties = tmp_path / "server.properties"
    properties.write_text("log.retention.hours=1\n")
    assert (
        "retention.ms=3600000" in retention("run", tmp_path, "--broker-config", properties).stderr
    )
    assert segments_of(tmp_path, "orders") == ALL


def test_explaining_what_a_broker_left_is_by_its_configs_and_with_others_laid_over(
    kept: Path,
) -> None:
    by_its_own = told(retention("explain", kept, "-o", "json"))
    by_others = told(retention("explain", kept, *WEEK, "-o", "json"))

    assert by_its_own["orders"]["held"] is None
    assert [each["goes_at_ms"] for each in by_its_own["orders"]["segments"]] == [None] * 3
    assert [each["breach"] for each in by_its_own["clicks"]["segments"]] == ["time"] * 3
    assert [each["breach"] for each in by_others["orders"]["segments"]] == ["time"] * 3


@pytest.mark.parametrize("name", ["orders", None])
def test_configs_that_changed_while_nobody_looked_stop_a_run(kept: Path, name: str | None) -> None:
    chosen = choose(OsFileSystem(), str(kept))
    chosen.check_unchanged(OsFileSystem())
    broker = opened(kept)
    if name is None:
        broker.store.alter_broker_configs(None, [ConfigChange("log.retention.bytes", SET, "-1")])
    else:
        broker.store.alter_topic_configs(name, [ConfigChange("retention.ms", SET, "5")])
    broker.close()

    with pytest.raises(CommandError, match="changed just now"):
        chosen.check_unchanged(OsFileSystem())


def test_files_of_another_topic_of_the_same_name_are_held(kept: Path) -> None:
    (kept / "clicks-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAABAg"
    )

    ran = retention("run", kept)

    assert "clicks: passed over, its configs are unknown: its files are of another" in ran.text
    assert segments_of(kept, "clicks") == ALL


# --- Apache Kafka's directories --------------------------------------------------------------


def kafkas(path: Path, *configs: tuple[str, str]) -> Path:
    values = [topic("orders", TOPIC_ID), partition(TOPIC_ID, 0)]
    leave(path, {"orders": {}, "clicks": {}})
    (path / "orders-0" / "partition.metadata").unlink()
    log = log_of([*values, *(config("orders", *each) for each in configs)])
    return make_kafkas(path, log)


def test_what_a_controllers_log_says_is_kept_is_not_deleted(tmp_path: Path) -> None:
    kafkas(tmp_path, ("retention.ms", "-1"))

    refused = retention(
        "run", tmp_path, *WEEK, "--config", "cleanup.policy=delete", "--topic", "orders"
    )
    alone = retention("run", tmp_path)

    assert "Topic orders has retention.ms=-1 (the controller's log was read)" in refused.stderr
    assert alone.exit_code == 2
    properties = tmp_path / "server.properties"
    properties.write_text("log.retention.hours=1\n")
    assert (
        retention("run", tmp_path, "--broker-config", properties, "--topic", "orders").exit_code
        == 0
    )
    assert segments_of(tmp_path, "orders") == segments_of(tmp_path, "clicks") == ALL


def test_what_a_topic_leaves_to_a_broker_of_unknown_settings_is_asked_for(tmp_path: Path) -> None:
    kafkas(tmp_path, ("retention.ms", "1000"))

    ran = retention("run", tmp_path, "--topic", "orders")

    assert ran.exit_code == 2
    assert "it leaves cleanup.policy, retention.bytes to its broker" in ran.stderr
    assert "cleanup.policy=delete would count by default" in ran.stderr
    given = ("--topic", "orders", "--config", "cleanup.policy=delete")
    assert retention("run", tmp_path, *given).exit_code == 0
    assert segments_of(tmp_path, "orders") == [3]


# --- the cleaner -----------------------------------------------------------------------------


def test_the_cleaner_does_not_compact_what_is_not_to_be_compacted(kept: Path) -> None:
    compact = ("--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0")

    refused = cleaner("run", kept, "--topic", "orders", *compact)

    assert refused.exit_code == 1
    assert "Topic orders has cleanup.policy=delete" in refused.stderr
    assert cleaner("run", kept).exit_code == 0
    assert segments_of(kept, "orders") == ALL
    beyond = cleaner("run", kept, "--topic", "orders", *compact, "--beyond-known-configs")
    assert beyond.exit_code == 0
    assert b"1 log of 2 cleaned" in beyond.stdout or b"1 log of 1 cleaned" in beyond.stdout


def test_the_cleaner_compacts_by_the_configs_that_are_known(tmp_path: Path) -> None:
    later = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000000"}
    now = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    leave(tmp_path, {"later": later, "now": now})

    ran = cleaner("run", tmp_path)

    assert ran.exit_code == 0
    assert "now-0: cleaned up to offset 2" in ran.text
    assert "later-0: cleaned" not in ran.text
    refused = cleaner("run", tmp_path, "--topic", "later", "--config", "min.compaction.lag.ms=0")
    assert "Topic later has min.compaction.lag.ms=86400000000" in refused.stderr


# --- beside a broker -------------------------------------------------------------------------


def test_beside_a_running_broker_what_it_says_is_explained(kept: Path) -> None:
    alone = told(retention("explain", kept, "-o", "json"))
    with running_broker(kept):
        beside = retention("explain", kept, "-o", "json")
        dirty = told(cleaner("explain", kept, "-o", "json"))

    assert beside.json["configs_from"] == "its broker was asked"
    for name, row in told(beside).items():
        assert row["held"] is None
        assert row["high_watermark"] == row["log_end_offset"] == 3
        assert [each["breach"] for each in row["segments"]] == [
            each["breach"] for each in alone[name]["segments"]
        ]
    assert {name: (row["held"], row["cleanup_policy"]) for name, row in dirty.items()} == {
        "orders": (None, "delete"),
        "clicks": (None, "delete"),
    }


# --- a partition without its checkpoints -----------------------------------------------------


def test_a_partition_that_was_copied_by_itself_can_be_explained_and_run(
    kept: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    copy_of(kept / "clicks-0", alone / "clicks-0")
    limits = (*WEEK, "--config", "cleanup.policy=delete")
    at_end = (*limits, "--high-watermark-is-end")

    (plain,) = told(retention("explain", alone, *limits, "-o", "json")).values()
    (asked,) = told(retention("explain", alone, *at_end, "-o", "json")).values()

    assert all("high watermark" in each["holds"] for each in plain["segments"])
    assert "--high-watermark-is-end" in plain["warnings"][0]
    assert [each["breach"] for each in asked["segments"]] == ["time"] * 3
    assert retention("run", alone, *limits).exit_code == 0
    assert segments_of(alone, "clicks") == ALL
    shutil.rmtree(alone)
    alone.mkdir()
    copy_of(kept / "clicks-0", alone / "clicks-0")
    assert retention("run", alone, *at_end).exit_code == 0
    assert segments_of(alone, "clicks") == [2]


def test_a_high_watermark_that_is_on_disk_is_no_other_for_being_told_so(kept: Path) -> None:
    (kept / "replication-offset-checkpoint").write_text("0\n1\nclicks 0 1\n")

    assert retention("run", kept, "--high-watermark-is-end").exit_code == 0
    assert segments_of(kept, "clicks") == [1, 2]
