"""``stratalog retention`` on directories of our own: what it tells, what it leaves alone."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_harness import Done, stratalog

import stratalog as package
from stratalog import LogsDirectory, Record
from stratalog.cli import topic_configs
from stratalog.scans.leasing import hold_ranges
from stratalog.storage.files import OsFileSystem
from stratalog.storage.kept_cuts import KeptCut, KeptCuts
from stratalog.storage.layout import CUT_DIRECTORY, TopicPartition

DAY_MS = 86_400_000
FUTURE_MS = 1_924_992_000_000  # 2031-01-01
SMALL = {
    "internal.segment.bytes": "700",
    "message.timestamp.after.max.ms": str(2**62),
    "retention.ms": "-1",
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fill(logs: LogsDirectory, topic: str, ages_days: list[float]) -> None:
    """One record a segment."""
    log = logs.create(topic, config=SMALL)
    for days in ages_days:
        log.append([Record(b"k", b"v" * 500, timestamp_ms=now_ms() - int(days * DAY_MS))])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """``orders-0`` with segments of 20, 10 and 1 days; ``clicks-0`` with two of 30 days."""
    path = tmp_path / "data"
    with package.open_directory(path, create=True) as logs:
        fill(logs, "orders", [20, 10, 1])
        fill(logs, "clicks", [30, 30])
    return path


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """A log whose first record lies in the future, and whose second is old."""
    path = tmp_path / "pinned"
    with package.open_directory(path, create=True) as logs:
        log = logs.create("orders", config=SMALL)
        for at_ms in (FUTURE_MS, now_ms() - 30 * DAY_MS):
            log.append([Record(b"k", b"v" * 500, timestamp_ms=at_ms)])
    return path


# What has to be said of a directory of which nothing is known, beside how long records stay.
DELETE = ("--config", "cleanup.policy=delete")


def ok(*arguments: str) -> str:
    done = stratalog("retention", *arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done
    return done.stdout


def answer(*arguments: str) -> Any:
    return json.loads(ok(*arguments, "-o", "json"))


def segments_of(told: Any, topic: str) -> list[Any]:
    (found,) = [each for each in told["partitions"] if each["topic"] == topic]
    return list(found["segments"])


def snapshot_of(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in path.rglob("*") if each.is_file()}


# --- explain ---------------------------------------------------------------------------------


def test_each_segment_is_told_with_its_time_and_its_rule(data: Path) -> None:
    told = answer("explain", str(data), "--topic", "orders", "--config", "retention.ms=604800000")

    first, second, active = segments_of(told, "orders")
    assert [first["breach"], second["breach"], active["breach"]] == ["time"] * 3
    assert first["goes_at_ms"] == second["goes_at_ms"] == told["now_ms"]
    assert active["goes_at_ms"] == active["largest_timestamp_ms"] + 7 * DAY_MS + 1
    assert "active segment" in active["holds"]
    assert len(told["partitions"]) == 1


def test_without_configs_a_log_is_held_and_the_defaults_are_only_a_thought(data: Path) -> None:
    told = answer("explain", str(data))

    held = "held: configs unknown: there is neither a broker to ask nor metadata to read"
    assert [each["held"] for each in told["partitions"]] == [held] * 2
    for segment in segments_of(told, "clicks"):
        assert segment["goes_at_ms"] is None
        assert segment["would_go_at_ms"] == told["now_ms"]
        assert segment["holds"][0] == "unknown configs"
    text = ok("explain", str(data))
    assert text.count(f"{held}. Nothing goes until they are known") == 2
    assert "would go" in text


def test_the_record_from_the_future_is_named_and_warned_of(pinned: Path) -> None:
    text = ok("explain", str(pinned / "orders-0"), "--config", "cleanup.policy=delete")

    assert "2031-01-01 00:00:00Z (offset 0)" in text
    assert "segment 0 must go first, at 2031-01-08 00:00:00.001Z" in text
    assert "warning: 1 of 2 segments hold timestamps in the future" in text


def test_by_size_alone_it_is_told_after_how_many_bytes_each_goes(data: Path) -> None:
    text = ok(
        "explain",
        str(data / "clicks-0"),
        *("--config", "retention.ms=-1", "--config", "retention.bytes=1000"),
    )

    first, active = text.splitlines()[2:4]
    size_bytes = (data / "clicks-0" / f"{1:020}.log").stat().st_size
    assert f"after {1000 - size_bytes} B" in first
    assert "held" in active


def test_a_size_that_is_each_partitions_own_is_told_for_the_topic(data: Path) -> None:
    with package.open_directory(data, topics={"orders": SMALL}) as logs:
        logs.create("orders", 1)

    told = answer("explain", str(data), "--config", "retention.bytes=1073741824")

    assert told["warnings"] == [
        "retention.bytes=1073741824 is for each partition: the 2 of orders here may keep "
        "2147483648 bytes"
    ]


def test_a_retention_shorter_than_a_segment_is_warned_of(data: Path) -> None:
    text = ok("explain", str(data), "--config", "retention.ms=3600000")

    assert text.count("warning: retention.ms=3600000 is less than segment.ms=604800000") == 2


def test_the_brokers_defaults_count_where_the_topic_says_nothing(data: Path) -> None:
    properties = data.parent / "server.properties"
    properties.write_text("log.retention.hours=2\nlog.retention.minutes=60\nlog.dirs=/elsewhere\n")

    told = answer(
        "explain", str(data), "--broker-config", str(properties), "--config", "segment.ms=1000"
    )

    (active,) = [each for each in segments_of(told, "orders") if each["is_active"]]
    assert active["due_ms"] == active["largest_timestamp_ms"] + 3_600_000 + 1


def test_without_a_cleaner_a_compacted_log_is_never_checked(data: Path) -> None:
    properties = data.parent / "server.properties"
    properties.write_text("log.cleaner.enable=false\n")
    options = ("--broker-config", str(properties), "--config", "cleanup.policy=compact,delete")

    told = answer("explain", str(data), *options)

    assert all("never checked" in each["holds"] for each in segments_of(told, "clicks"))
    assert all(each["goes_at_ms"] is None for each in segments_of(told, "clicks"))


def test_explaining_changes_nothing_and_works_beside_an_owner(data: Path) -> None:
    with package.open_directory(data):
        before = snapshot_of(data)
        told = answer("explain", str(data), "--config", "retention.ms=1")
        assert snapshot_of(data) == before

    assert len(told["partitions"]) == 2


def test_a_log_without_a_high_watermark_on_disk_is_held_by_it(data: Path) -> None:
    (data / "replication-offset-checkpoint").unlink()

    told = answer("explain", str(data), "--topic", "orders", "--config", "retention.ms=1")

    assert all("high watermark" in each["holds"] for each in segments_of(told, "orders"))
    assert "replication-offset-checkpoint" in told["partitions"][0]["warnings"][0]


def test_kafkas_own_topics_are_held_unless_they_are_named(data: Path) -> None:
    with package.open_directory(data) as logs:
        fill(logs, "__consumer_offsets", [90, 90])
    config = ("--config", "cleanup.policy=delete")

    everything = answer("explain", str(data), *config)
    named = answer("explain", str(data), *config, "--topic", "__consumer_offsets")

    held = {each["topic"]: each["held"] is not None for each in everything["partitions"]}
    assert held == {"orders": False, "clicks": False, "__consumer_offsets": True}
    assert named["partitions"][0]["held"] is None
    # What the defaults would do, not what the other topics' configs would.
    would = answer("explain", str(data), "--config", "retention.ms=-1")
    assert segments_of(would, "__consumer_offsets")[0]["would_go_at_ms"] == would["now_ms"]
    text = ok("run", str(data), *config, "--config", "retention.ms=1")
    assert "__consumer_offsets: passed over, its configs are unknown" in text
    assert (data / "__consumer_offsets-0" / f"{0:020}.log").exists()


def test_a_log_that_cannot_be_looked_at_does_not_hide_the_others(data: Path) -> None:
    (data / "empty-0").mkdir()

    done = stratalog("retention", "explain", str(data), "-o", "json")

    assert done.exit_code == 1
    told = json.loads(done.stdout)["partitions"]
    assert [each.get("topic") for each in told] == ["clicks", None, "orders"]
    assert "holds no segment" in told[1]["error"]


# --- run -------------------------------------------------------------------------------------


def logs_in(data: Path, topic: str) -> list[str]:
    return sorted(path.name for path in (data / f"{topic}-0").glob("*.log*"))


def test_running_deletes_what_was_explained_and_leaves_a_sound_log(data: Path) -> None:
    text = ok("run", str(data), "--topic", "orders", *DELETE, "--config", "retention.ms=604800000")

    assert "orders-0: deleted segment 0" in text
    assert "orders-0: segment 2 stays: its largest timestamp is" in text
    assert text.splitlines()[-1].startswith("2 segments with ")
    assert "clicks" not in text
    assert logs_in(data, "orders") == [f"{2:020}.log"]
    assert len(logs_in(data, "clicks")) == 2
    assert stratalog("log", "verify", str(data)).exit_code == 0
    with package.open_directory(data) as logs:
        assert [each.offset for each in logs.log("orders").records()] == [2]


def test_running_may_empty_a_log_and_its_offsets_go_on(data: Path) -> None:
    ok("run", str(data), "--topic", "clicks", *DELETE, "--config", "retention.ms=1")

    with package.open_directory(data) as logs:
        log = logs.log("clicks")
        assert (log.start_offset, log.end_offset, log.size_bytes) == (2, 2, 0)
        assert log.append([Record(b"k", b"v")]).first_offset == 2


def test_a_dry_run_tells_the_same_and_changes_nothing(data: Path) -> None:
    before = snapshot_of(data)
    options = (str(data), *DELETE, "--config", "retention.ms=604800000")

    planned = answer("run", *options, "--dry-run")
    assert snapshot_of(data) == before
    done = answer("run", *options)

    assert planned["dry_run"]
    assert [each["deleted"] for each in planned["logs"]] != [[], []]
    for would, did in zip(planned["logs"], done["logs"], strict=True):
        assert [each["base_offset"] for each in would["deleted"]] == [
            each["base_offset"] for each in did["deleted"]
        ]
        assert would["log_start_offset"] == did["log_start_offset"]


def test_running_keeps_the_high_watermark_of_every_log(data: Path) -> None:
    ok("run", str(data), "--topic", "orders", *DELETE, "--config", "retention.ms=604800000")

    assert (data / "replication-offset-checkpoint").read_text() == "0\n2\nclicks 0 2\norders 0 3\n"


def test_after_a_crash_the_log_is_recovered_first(data: Path) -> None:
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (data / name).unlink()

    ok("run", str(data), *DELETE, "--config", "retention.ms=604800000")

    assert logs_in(data, "orders") == [f"{2:020}.log"]
    assert (data / "replication-offset-checkpoint").read_text() == "0\n2\nclicks 0 2\norders 0 3\n"


def test_nothing_above_the_checkpointed_high_watermark_is_deleted(data: Path) -> None:
    (data / "replication-offset-checkpoint").write_text("0\n1\norders 0 1\n")

    ok("run", str(data), *DELETE, "--config", "retention.ms=1")

    assert logs_in(data, "orders") == [f"{1:020}.log", f"{2:020}.log"]
    assert len(logs_in(data, "clicks")) == 2


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        (("run", "{}"), 2, "are unknown: there is neither"),
        (("run", "{}", "--dry-run"), 2, "are unknown: there is neither"),
        (("run", "{}/orders-0", "--config", "retention.ms=1"), 2, "name its log directory"),
        (("run", "{}/nowhere", "--config", "retention.ms=1"), 1, "does not exist"),
        (("run", "{}", "--topic", "gone", "--config", "retention.ms=1"), 1, "no log of gone"),
        (("run", "{}", "--config", "retention.ms"), 2, "NAME=VALUE"),
        (("run", "{}", "--config", "retention.ms=soon"), 2, "retention.ms"),
        (("run", "{}", "--config", "retention.sm=1"), 2, "did you mean retention.ms?"),
        (("explain", "{}", "--config", "a=1", "--config", "a=2"), 2, "twice"),
        (("explain", "{}", "--broker-config", "{}/nowhere"), 1, "No such file"),
        (("explain", "{}/orders-0", "--topic", "clicks"), 1, "no log of clicks"),
        (("explain", ""), 1, "empty"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    data: Path, arguments: tuple[str, ...], exit_code: int, word: str
) -> None:
    before = snapshot_of(data)

    done = stratalog("retention", *(each.format(data) for each in arguments))

    assert done.exit_code == exit_code
    assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert snapshot_of(data) == before


def test_running_is_refused_while_somebody_owns_the_directory(data: Path) -> None:
    with package.open_directory(data):
        done: Done = stratalog("retention", "run", str(data), *DELETE, "--config", "retention.ms=1")

    assert done.exit_code == 1
    assert "locked" in done.stderr
    assert len(logs_in(data, "orders")) == 3


def test_a_log_that_cannot_be_opened_is_told_and_the_others_go_on(data: Path) -> None:
    (data / "log-start-offset-checkpoint").write_text("0\n1\nclicks 0 99\n")

    done = stratalog("retention", "run", str(data), *DELETE, "--config", "retention.ms=604800000")

    assert done.exit_code == 1
    assert "clicks-0: failed: " in done.stdout
    assert logs_in(data, "orders") == [f"{2:020}.log"]
    assert len(logs_in(data, "clicks")) == 2


# --- which logs --------------------------------------------------------------------------------


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Path]:
    """A directory whose name has a comma, with logs that are moving in, set aside, or Kafka's."""
    path = tmp_path / "a,b"
    with package.open_directory(path, create=True) as logs:
        fill(logs, "orders", [1])
    for name in ("__cluster_metadata-0", "x-0.0123456789abcdef0123456789abcdef-future"):
        (path / name).mkdir()
    return path


def test_only_logs_of_the_directory_itself_are_chosen(odd: Path) -> None:
    chosen = topic_configs.choose(OsFileSystem(), str(odd), configs=["retention.ms=5"])

    assert [Path(each).name for each in chosen.replicas] == ["orders-0"]
    assert chosen.topics == {"orders"}
    assert chosen.broker.log_directories == (str(odd),)
    known = chosen.topic_config("orders")
    assert known is not None
    assert known.retention_ms == 5
    assert chosen.topic_config("other") is None


# --- what a run leaves to others ---------------------------------------------------------------


def test_a_run_ends_no_lease_and_removes_nothing_that_is_leased(data: Path) -> None:
    log = data / "clicks-0" / f"{0:020}.log"
    content = log.read_bytes()
    held = hold_ranges(str(data), {TopicPartition("clicks", 0): (0, 1)}, holder="a test")
    assert held.why_not == ""

    ok("run", str(data), "--topic", "clicks", *DELETE, "--config", "retention.ms=1")

    assert not log.exists()
    (kept,) = (data / "clicks-0" / ".stratalog" / "leased").rglob("*.log*")
    assert kept.read_bytes() == content
    assert len(list(data.glob(".stratalog-lease-*"))) == 1


def test_a_run_leaves_what_recovery_has_cut_off_where_it_is_kept(data: Path) -> None:
    log, files = data / "orders-0", OsFileSystem()
    cuts = KeptCuts(files, str(log))
    cut = cuts.begin(KeptCut(now_ms(), 3, 2, 0, 4, "for a test", ()), [])
    files.open(f"{log}/{CUT_DIRECTORY}/{cut.names[0]}", create=True).write_at(0, [b"kept"])
    cuts.finish(cut)

    ok("run", str(data), "--topic", "clicks", *DELETE, "--config", "retention.ms=1")

    assert len(cuts.read()) == 1
    assert (log / CUT_DIRECTORY / cut.names[0]).read_bytes() == b"kept"
