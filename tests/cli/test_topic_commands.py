"""``stratalog topic`` against a broker of our own, and on a bare directory."""

import re
import uuid
from pathlib import Path

import pytest

import stratalog
from broker_fixture import running_broker
from command_line import CommandLine, run_stratalog
from left_directories import leave, make_kafkas
from metadata_records import config, log_of, partition, topic


def test_a_topic_is_created_as_asked_and_described_so(commands: CommandLine) -> None:
    flags = ["--partitions", "3", "--config", "retention.ms=1000000", "--config"]
    said = commands.ok(
        "topic", "create", "--topic", "made", *flags, "cleanup.policy=compact,delete"
    )

    (topic,) = commands.json("topic", "describe", "made")

    assert said.text == "Created topic made.\n"
    assert (topic["partition_count"], topic["replication_factor"]) == (3, 1)
    assert topic["configs"] == {"cleanup.policy": "compact,delete", "retention.ms": "1000000"}
    assert topic["partitions"][2] == {"partition": 2, "leader": 1, "replicas": [1], "isr": [1]}
    assert re.fullmatch(r"[\w-]{22}", topic["topic_id"])


def test_a_topic_is_described_by_its_id(commands: CommandLine) -> None:
    commands.ok("topic", "create", "with-id")
    (topic,) = commands.json("topic", "describe", "with-id")

    assert commands.json("topic", "describe", "--topic-id", topic["topic_id"]) == [topic]


def test_a_second_topic_of_a_name_is_refused_unless_it_may_exist(commands: CommandLine) -> None:
    commands.ok("topic", "create", "twice")

    said = commands.refused("topic", "create", "twice")

    assert said.startswith("Creating topic twice: ")
    assert said.endswith("(TOPIC_ALREADY_EXISTS).")
    assert commands.ok("topic", "create", "twice", "--if-not-exists").text == ""
    assert commands.json("topic", "create", "twice", "--if-not-exists")["created"] is False


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--config", "nope=1"], "INVALID_CONFIG"),
        (["--config", "retention.ms=soon"], "INVALID_CONFIG"),
        (["--config", "retention.ms"], "not of the form NAME=VALUE"),
        (["--replication-factor", "3"], "INVALID_REPLICATION_FACTOR"),
        (["--replica-assignment", "1:1"], "names a broker twice"),
        (["--replica-assignment", "1", "--partitions", "1"], "leave the other two out"),
    ],
)
def test_a_topic_that_cannot_be_is_refused_in_one_sentence(
    commands: CommandLine, flags: list[str], reason: str
) -> None:
    said = commands.refused("topic", "create", "impossible", *flags)

    assert reason in said
    assert "\n" not in said
    assert "impossible" not in commands.ok("topic", "list").lines


def test_partitions_are_added_never_taken_away(commands: CommandLine) -> None:
    commands.ok("topic", "create", "growing", "--replica-assignment", "1,1")
    commands.ok("topic", "alter", "growing", "--partitions", "5")

    ran = commands.run("topic", "alter", "growing", "--partitions", "2")

    assert (ran.exit_code, "INVALID_PARTITIONS" in ran.stderr) == (1, True)
    assert commands.json("topic", "describe", "growing")[0]["partition_count"] == 5


def test_an_argument_is_a_name_and_the_option_a_regular_expression(commands: CommandLine) -> None:
    for name in ("zz.a", "zz-a", "zz.b", "zz.a2", "unlike"):
        commands.ok("topic", "create", name)

    assert commands.ok("topic", "list", "--topic", "zz.a").lines == ["zz-a", "zz.a"]
    assert commands.ok("topic", "list", "--topic", "zz[.]a,zz.b").lines == ["zz.a", "zz.b"]
    commands.ok("topic", "delete", "zz.a")
    assert commands.ok("topic", "list", "--topic", "zz.*").lines == ["zz-a", "zz.a2", "zz.b"]
    commands.ok("topic", "delete", "--topic", "zz.*")
    assert commands.json("topic", "list", "--topic", "zz.*") == []


@pytest.mark.parametrize("verb", ["delete", "describe", "alter"])
def test_a_topic_that_is_not_there_is_an_error_unless_it_need_not_be(
    commands: CommandLine, verb: str
) -> None:
    flags = ["--partitions", "3"] if verb == "alter" else []

    assert commands.refused("topic", verb, "absent", *flags) == "Topic 'absent' does not exist."
    commands.ok("topic", verb, "absent", "--if-exists", *flags)


def test_internal_topics_are_listed_unless_they_are_excluded(commands: CommandLine) -> None:
    commands.ok("topic", "create", "committed-to")
    group = ["--group", "internal", "--topic", "committed-to", "--to-latest", "--execute"]
    commands.ok("group", "reset-offsets", *group)

    assert "__consumer_offsets" in commands.ok("topic", "list").lines
    assert "__consumer_offsets" not in commands.ok("topic", "list", "--exclude-internal").lines


def test_conditions_pick_partitions(commands: CommandLine) -> None:
    commands.ok("topic", "create", "picked", "--config", "min.insync.replicas=2")

    for flag, is_picked in (
        ("--under-min-isr-partitions", True),
        ("--at-min-isr-partitions", False),
        ("--under-replicated-partitions", False),
        ("--unavailable-partitions", False),
        ("--topics-with-overrides", True),
    ):
        found = commands.json("topic", "describe", "picked", flag)
        assert bool(found) is is_picked, flag


# --- bare directories ------------------------------------------------------------------------


def test_a_directory_tells_its_topics_without_a_broker(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path, create=True) as logs:
        for topic in ("clicks", "orders"):
            logs.create(topic).append([stratalog.Record(b"k", b"v")] * 3)
    before = sorted(tmp_path.rglob("*"))

    listed = run_stratalog("topic", "list", "--log-dir", str(tmp_path))
    described = run_stratalog(
        "topic", "describe", "orders", "--log-dir", str(tmp_path), "-o", "json"
    )

    assert listed.lines == ["clicks", "orders"]
    (topic,) = described.json
    (partition,) = topic["partitions"]
    assert topic["configs"] is None
    assert (partition["log_start_offset"], partition["log_end_offset"]) == (0, 3)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_directory_that_a_broker_has_served_tells_configs_and_the_same_id(tmp_path: Path) -> None:
    describe = ["topic", "describe", "served", "--log-dir", str(tmp_path), "-o", "json"]
    with running_broker(tmp_path) as broker:
        commands = CommandLine(broker.bootstrap_server)
        commands.ok("topic", "create", "served", "--config", "retention.ms=-1")
        (told,) = commands.json("topic", "describe", "served")
        during = run_stratalog(*describe).json
    before = sorted(tmp_path.rglob("*"))

    (found,) = run_stratalog(*describe).json

    assert found["topic_id"] == told["topic_id"]
    assert found["configs"] == {"retention.ms": "-1"}
    assert sorted(tmp_path.rglob("*")) == before
    assert during[0]["configs"] == {"retention.ms": "-1"}, "its owner is asked"
    with stratalog.open_directory(tmp_path):
        assert run_stratalog(*describe).json[0]["configs"] == {"retention.ms": "-1"}


def test_a_topics_own_configs_are_told_where_its_brokers_settings_are_not_known(
    tmp_path: Path,
) -> None:
    topic_id = uuid.UUID(int=7 << 100)
    leave(tmp_path, {"orders": {}})
    (tmp_path / "orders-0" / "partition.metadata").unlink()
    kept = config("orders", "retention.ms", "-1")
    make_kafkas(tmp_path, log_of([topic("orders", topic_id), partition(topic_id, 0), kept]))

    ran = run_stratalog("topic", "describe", "orders", "--log-dir", str(tmp_path))

    assert ran.lines[0].endswith("Configs: retention.ms=-1")
    assert "it leaves cleanup.policy, retention.bytes to its broker" in ran.lines[1]


# --- adopting --------------------------------------------------------------------------------


def test_a_held_topic_is_adopted_over_the_admin_port(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path, create=True) as logs:
        logs.create("found").append([stratalog.Record(b"k", b"v")])
    adopt = ["topic", "adopt", "found", "--config", "cleanup.policy=compact"]
    with running_broker(tmp_path) as broker:
        commands = CommandLine(broker.bootstrap_server)
        before = commands.json("topic", "describe", "found")[0]["configs"]
        wrong = run_stratalog(*adopt, "--log-dir", str(tmp_path), "--config", "nope=1")
        commands.ok("config", "alter", "--topic", "found", "--add-config", "retention.ms=-1")
        ran = run_stratalog(*adopt, "--log-dir", str(tmp_path))
        again = run_stratalog("topic", "adopt", "found", "--log-dir", str(tmp_path))
        after = commands.json("topic", "describe", "found")[0]["configs"]

    assert (wrong.exit_code, "nope" in wrong.stderr) == (1, True), wrong
    assert ran.exit_code == 0, ran
    assert "found is adopted with retention.ms=-1,cleanup.policy=compact" in ran.text
    assert (before, after) == ({}, {"cleanup.policy": "compact", "retention.ms": "-1"})
    # What is known is not forgotten by who says nothing of it.
    assert (again.exit_code, "'found' is not held" in again.stderr) == (1, True), again


def test_adopting_needs_a_broker_that_runs(tmp_path: Path) -> None:
    ran = run_stratalog("topic", "adopt", "found", "--log-dir", str(tmp_path))

    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1), ran


@pytest.mark.parametrize(
    "flags",
    [[], ["--log-dir", "d", "--admin-url", "u"], ["--admin-url", "http://127.0.0.1:1"]],
)
def test_adopting_asks_for_one_broker_and_its_token(flags: list[str]) -> None:
    ran = run_stratalog("topic", "adopt", "found", *flags)

    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1), ran
