"""``stratalog cleaner``: what it says of a directory, what it does to it, what it refuses."""

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_harness import Done, stratalog

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Record, build_batch
from stratalog.records.columns import decode_records
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager

COMPACT = ("--config", "cleanup.policy=compact")
# What has to be said of a directory of which nothing is known, before anything is removed.
ALL = (*COMPACT, "--config", "min.compaction.lag.ms=0", "--config", "delete.retention.ms=86400000")
KEYS = 7
BATCHES = 40


def ok(*arguments: str) -> str:
    done = stratalog("cleaner", *arguments)
    assert done.exit_code == 0, done
    assert done.stderr == ""
    return done.stdout


def answer(*arguments: str) -> Any:
    return json.loads(ok(*arguments, "-o", "json"))


def explained(path: Path, *arguments: str) -> Any:
    (partition,) = answer("explain", str(path), *COMPACT, *arguments)["partitions"]
    return partition


@contextmanager
def owned(root: Path) -> Iterator[LogManager]:
    config = TopicConfig(internal_segment_bytes=1000, index_interval_bytes=100)
    manager = LogManager(
        BrokerConfig(log_dirs=(str(root),), log_cleaner_enable=False, log_dir_reserve_bytes=0),
        topic_config=lambda _topic: config,
    )
    manager.start()
    try:
        yield manager
    finally:
        manager.shutdown()


def fill(manager: LogManager, topic: str) -> None:
    """Seven keys over and over, every fifth record a tombstone, stamped a minute ago."""
    log = manager.create(TopicPartition(topic, 0))
    at_ms = time.time_ns() // 1_000_000 - 60_000
    for number in range(BATCHES):
        rows = [
            Record(
                b"key-%d" % (place % KEYS),
                None if place % 5 == 4 else b"value %d" % place,
                (),
                at_ms + place,
            )
            for place in range(3 * number, 3 * number + 3)
        ]
        log.append_as_leader(build_batch(rows))
    log.flush()
    log.update_high_watermark(log.log_end_offset)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written") / "data"
    with owned(root) as manager:
        fill(manager, "orders")
        fill(manager, "payments")
    return root


@pytest.fixture
def log_dir(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "data")


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def records(root: Path, topic: str) -> list[tuple[int, bytes, bytes | None]]:
    found = []
    for path in sorted((root / f"{topic}-0").glob("*.log")):
        found += [(each.offset, each.key, each.value) for each in decode_records(path.read_bytes())]
    return found


def last_values(root: Path, topic: str) -> dict[bytes, bytes | None]:
    return {key: value for _, key, value in records(root, topic)}


def damage(root: Path, topic: str) -> None:
    """Flip a byte in the records of the first batch."""
    path = min((root / f"{topic}-0").glob("*.log"))
    data = bytearray(path.read_bytes())
    data[65] ^= 1
    path.write_bytes(data)


# --- explain ---------------------------------------------------------------------------------


def test_explain_shows_the_ratio_with_its_arithmetic(log_dir: Path) -> None:
    found = explained(log_dir / "orders-0")

    sizes = {int(path.stem): path.stat().st_size for path in (log_dir / "orders-0").glob("*.log")}
    active = max(sizes)
    closed_bytes = sum(sizes.values()) - sizes[active]
    assert found["cleanable_bytes"] == closed_bytes
    assert found["first_uncleanable_offset"] == active
    assert found["cleanable_ratio"] == 1.0
    told = f"{closed_bytes} cleanable bytes / (0 clean + {closed_bytes} cleanable) = 1.0000"
    assert told in " ".join(found["sentences"])
    assert told in ok("explain", str(log_dir / "orders-0"), *COMPACT)


def test_explain_counts_keys_and_tombstones(log_dir: Path) -> None:
    counts = explained(log_dir / "orders-0")["counts"]
    assert counts["records"] == 3 * BATCHES
    assert counts["tombstones"] == 3 * BATCHES // 5
    assert counts["estimated_dirty_keys"] == KEYS
    assert counts["map_capacity"] == 5_033_164
    assert explained(log_dir / "orders-0", "--no-count")["counts"] is None


def test_explain_says_what_is_not_cleanable_yet_and_until_when(log_dir: Path) -> None:
    lag = ("--config", "min.compaction.lag.ms=3600000")
    found = explained(log_dir / "orders-0", *lag)
    assert found["cleanable_bytes"] == 0
    assert not found["is_eligible"]
    bound = found["bounds"][0]
    assert (bound["kind"], bound["offset"]) == ("min.compaction.lag.ms", 0)
    assert found["eligible_at_ms"] == bound["until_ms"]
    assert "younger than min.compaction.lag.ms until" in ok(
        "explain", str(log_dir / "orders-0"), *COMPACT, *lag
    )


def test_explain_without_configs_says_that_the_topic_is_held(log_dir: Path) -> None:
    found = answer("explain", str(log_dir))["partitions"]
    assert [each["topic"] for each in found] == ["orders", "payments"]
    assert all(each["held"].startswith("held: configs unknown: there is") for each in found)
    assert not any(each["is_eligible"] for each in found)
    assert "Nothing is cleaned until they are known" in ok("explain", str(log_dir))


def test_explain_of_a_topic_that_is_not_compacted_says_so(log_dir: Path) -> None:
    found = ok("explain", str(log_dir / "orders-0"), "--config", "cleanup.policy=delete")
    assert "not compacted: cleanup.policy is delete" in found


def test_explain_changes_nothing_and_works_under_a_live_owner(log_dir: Path) -> None:
    with owned(log_dir) as manager:
        before = contents(log_dir)
        found = explained(log_dir / "orders-0")
        assert found["log_end_offset"] == manager.get(TopicPartition("orders", 0)).log_end_offset
        assert contents(log_dir) == before


def test_explain_goes_on_after_a_partition_that_cannot_be_read(log_dir: Path) -> None:
    for path in (log_dir / "orders-0").iterdir():
        if path.is_file():
            path.unlink()
    (log_dir / "orders-0" / "partition.metadata").write_text("version: 0")
    done = stratalog("cleaner", "explain", str(log_dir), *COMPACT)
    assert done.exit_code == 1
    assert "orders-0" in done.stderr
    assert "payments-0: offsets" in done.stdout


# --- run -------------------------------------------------------------------------------------


def refused(*arguments: str, exit_code: int = 2) -> str:
    done: Done = stratalog("cleaner", "run", *arguments)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    return done.stderr


def test_run_without_configs_is_refused_and_changes_nothing(log_dir: Path) -> None:
    before = contents(log_dir)
    assert "configs of topic orders are unknown" in refused(str(log_dir))
    assert contents(log_dir) == before


def test_run_on_a_directory_that_somebody_owns_is_refused(log_dir: Path) -> None:
    with owned(log_dir):
        before = contents(log_dir)
        refused(str(log_dir), *ALL, exit_code=1)
        assert contents(log_dir) == before


def test_run_on_one_log_is_refused(log_dir: Path) -> None:
    assert "name its log directory" in refused(str(log_dir / "orders-0"), *COMPACT)


def test_a_dry_run_shows_the_plan_and_changes_nothing(log_dir: Path) -> None:
    before = contents(log_dir)
    found = answer("run", str(log_dir), *ALL, "--dry-run")
    assert found["dry_run"]
    assert [(each["log"], each["is_eligible"]) for each in found["logs"]] == [
        ("orders-0", True),
        ("payments-0", True),
    ]
    assert "2 logs of 2 would be cleaned" in ok("run", str(log_dir), *ALL, "--dry-run")
    assert contents(log_dir) == before


def test_run_keeps_the_last_value_of_each_key_and_the_log_whole(log_dir: Path) -> None:
    values = last_values(log_dir, "orders")
    before = len(records(log_dir, "orders"))

    found = answer("run", str(log_dir), *ALL)["logs"]

    assert [each["log"] for each in found] == ["orders-0", "payments-0"]
    assert all(each["bytes_after"] < each["bytes_before"] for each in found)
    assert last_values(log_dir, "orders") == values
    assert len(records(log_dir, "orders")) < before
    assert stratalog("log", "verify", str(log_dir)).exit_code == 0
    assert not list(log_dir.rglob("*.deleted"))
    assert not list(log_dir.rglob("*.cleaned"))


def test_run_cleans_only_the_topics_that_are_named(log_dir: Path) -> None:
    before = contents(log_dir / "payments-0")
    found = answer("run", str(log_dir), *ALL, "--topic", "orders")["logs"]
    assert [each["log"] for each in found] == ["orders-0"]
    after = contents(log_dir / "payments-0")
    assert {name: after[name] for name in before if name.endswith(".log")} == {
        name: before[name] for name in before if name.endswith(".log")
    }


def test_run_does_not_touch_what_is_not_compacted_or_not_dirty_enough(log_dir: Path) -> None:
    before = records(log_dir, "orders")
    found = ok("run", str(log_dir), "--config", "cleanup.policy=delete")
    assert "0 logs of 2 cleaned" in found
    assert records(log_dir, "orders") == before

    ok("run", str(log_dir), *ALL)
    assert "0 logs of 2 cleaned" in ok("run", str(log_dir), *ALL)


def test_explain_after_a_run_tells_its_statistics_and_the_tombstones_horizon(log_dir: Path) -> None:
    ok("run", str(log_dir), *ALL[:-1], "delete.retention.ms=60000")
    found = explained(log_dir / "orders-0")
    assert found["checkpoint"] == found["last_run"]["end_offset"] == found["first_dirty_offset"]
    assert found["last_run"]["messages_kept"] == KEYS
    assert found["counts"]["tombstones_with_horizon"] > 0
    assert found["counts"]["earliest_horizon_ms"] > time.time_ns() // 1_000_000
    told = " ".join(found["sentences"])
    assert "last cleaned at" in told
    assert "wait for their delete horizon" in told


def test_a_corrupt_batch_fails_one_log_with_the_reason_and_the_others_are_cleaned(
    log_dir: Path,
) -> None:
    damage(log_dir, "orders")
    assert "cleaning fails here" in " ".join(explained(log_dir / "orders-0")["warnings"])

    done = stratalog("cleaner", "run", str(log_dir), *ALL)

    assert done.exit_code == 1
    assert "orders-0" in done.stderr
    assert "payments-0: cleaned" in done.stdout
    found = explained(log_dir / "orders-0")
    assert found["uncleanable"]["attempts"] == 1
    assert any(told.startswith("uncleanable since") for told in found["warnings"])
