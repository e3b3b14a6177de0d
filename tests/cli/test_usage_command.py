"""``stratalog log usage``: of a directory, of a broker here, and of a broker far away."""

from pathlib import Path
from typing import Any

from cli_harness import stratalog

from broker_fixture import running_broker
from command_line import CommandLine, run_stratalog
from stratalog.cli.usage import look_at
from stratalog.cli.usage_source import usage_of
from stratalog.directories.owner_client import ask
from stratalog.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from stratalog.scans.leasing import hold_ranges
from stratalog.storage.layout import TopicPartition
from stratalog.storage.owner_file import read_owner


def test_a_directory_is_told_by_topic_and_kind_with_what_to_type(replica: Path) -> None:
    cut = replica / ".stratalog" / "cut"
    cut.mkdir(parents=True, exist_ok=True)
    (cut / "00000000000000000000.log.17").write_bytes(bytes(5_000))

    told = stratalog("log", "usage", str(replica.parent))

    assert (told.exit_code, told.stderr) == (0, "")
    lines = told.stdout.splitlines()
    assert lines[0].startswith(f"{replica.parent}: ")
    assert lines[0].endswith("; nobody owns it")
    assert lines[1].split()[:4] == ["topic", "on", "disk", "log"]
    assert lines[2].startswith("orders ")
    assert f"    stratalog retention explain {replica.parent}" in lines
    assert f"    rm -r {replica}/.stratalog/cut" in lines


def test_one_partition_and_one_topic_may_be_asked_for(replica: Path) -> None:
    whole = run_stratalog("log", "usage", str(replica.parent), "-o", "json").json
    part = run_stratalog("log", "usage", str(replica), "-o", "json").json
    other = run_stratalog("log", "usage", str(replica), "--topic", "bills", "-o", "json").json

    def rows(told: Any) -> list[Any]:
        return [row for row in told["directories"][0]["usage"] if row["topic"]]

    assert rows(part) == rows(whole) != []
    assert rows(other) == []


def test_a_broker_says_the_same_as_its_directory_and_as_its_admin_port(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        commands = CommandLine(broker.bootstrap_server)
        commands.ok("topic", "create", "orders")
        commands.ok("produce", "orders", stdin=b"one\n")
        hold_ranges(str(tmp_path), {TopicPartition("orders", 0): (0, 1)}, holder="a test")

        (asked,) = commands.json("log", "usage")["directories"]
        (looked,) = run_stratalog("log", "usage", str(tmp_path), "-o", "json").json["directories"]
        (served,) = ask(read_owner(str(tmp_path)), "/v1/usage").body["directories"]

    assert asked["owner"] == "stratalog"
    for other in (looked, served):
        assert without_free_space(other) == without_free_space(asked)


def without_free_space(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name != "free_bytes"}


def test_of_a_broker_far_away_only_the_segments_are_known_which_is_said() -> None:
    partitions = (DescribeLogDirsPartition(0, 70), DescribeLogDirsPartition(1, 30))
    told = DescribeLogDirsResult(
        0, "/", (DescribeLogDirsTopic("orders", partitions),), 10_000, 9_000
    )

    usage = usage_of(told, look_at, is_local=False)

    (row,) = usage.rows
    assert (row.topic, row.kind.value, row.amount) == ("orders", "log", (2, 100, 100))
    assert (usage.free_bytes, usage.stays) == (9_000, ())
    assert "only its segments are known" in (usage.note or "")


def test_a_directory_of_the_same_name_that_nobody_owns_is_not_taken_for_the_brokers(
    tmp_path: Path,
) -> None:
    usage = usage_of(DescribeLogDirsResult(0, str(tmp_path)), look_at, is_local=True)

    assert usage.note is not None


def test_a_directory_and_a_broker_are_not_asked_together() -> None:
    ran = run_stratalog("log", "usage", "data", "--bootstrap-server", "127.0.0.1:1")

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert ran.stderr.startswith("Give a directory, or --bootstrap-server")
