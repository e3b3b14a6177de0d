"""``stratalog group`` against a broker of our own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from command_line import CommandLine

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def sold(commands: CommandLine) -> str:
    """Two partitions: records 0-9 a second apart in the first, 0-3 in the second."""
    commands.ok("topic", "create", "sold", "--partitions", "2")
    producer = Producer({"bootstrap.servers": commands.bootstrap_server})
    for partition, count in ((0, 10), (1, 4)):
        for n in range(count):
            producer.produce("sold", b"v", partition=partition, timestamp=START_MS + 1000 * n)
    assert producer.flush(60) == 0
    return "sold"


def commit(commands: CommandLine, group: str, first: int, second: int | None = None) -> None:
    for partition, offset in enumerate((first, second)):
        if offset is not None:
            scope = ["--topic", f"sold:{partition}", "--to-offset", str(offset)]
            commands.ok("group", "reset-offsets", "--group", group, *scope, "--execute")


def offsets(commands: CommandLine, group: str) -> dict[int, int]:
    (told,) = commands.json("group", "describe", "--group", group)
    return {row["partition"]: row["current_offset"] for row in told["offsets"]}


@contextmanager
def member(commands: CommandLine, group: str, **settings: str) -> Iterator[Consumer]:
    """A member of the group that has been given its partitions."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = Consumer(
        {"bootstrap.servers": commands.bootstrap_server, "group.id": group, "log_level": 0, **named}
    )
    consumer.subscribe(["sold"])
    deadline = time.monotonic() + 60
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(0.1)
    assert consumer.assignment()
    try:
        yield consumer
    finally:
        consumer.close()


# --- list and describe -----------------------------------------------------------------------


def test_groups_are_listed_by_name_type_and_state(commands: CommandLine, sold: str) -> None:
    commit(commands, "listed", 1)

    assert "listed" in commands.ok("group", "list").lines
    assert ["listed", "Empty"] in [
        line.split() for line in commands.ok("group", "list", "--state").lines
    ]
    everything = commands.json("group", "list", "--state", "empty,stable", "--type", "classic")
    assert {"group": "listed", "type": "Classic", "state": "Empty"} in everything
    assert "listed" not in commands.ok("group", "list", "--state", "Stable").text


def test_a_word_that_is_no_state_is_refused(commands: CommandLine) -> None:
    assert "--state tired" in commands.refused("group", "list", "--state", "tired")


def test_lag_is_what_lies_between_the_committed_offset_and_the_end(
    commands: CommandLine, sold: str
) -> None:
    commit(commands, "lagging", 6, 4)

    (told,) = commands.json("group", "describe", "--group", "lagging")
    ran = commands.ok("group", "describe", "--group", "lagging")

    facts = [
        (row["partition"], row["current_offset"], row["log_end_offset"], row["lag"])
        for row in told["offsets"]
    ]
    assert (told["state"], facts) == ("Empty", [(0, 6, 10, 4), (1, 4, 4, 0)])
    assert ran.lines[1].split()[:6] == ["lagging", "sold", "0", "6", "10", "4"]
    assert ran.stderr == "Consumer group 'lagging' has no active members.\n"


def test_members_are_shown_with_what_they_read(commands: CommandLine, sold: str) -> None:
    with member(commands, "alive", client_id="reader", group_instance_id="first"):
        (state,) = commands.json("group", "describe", "--group", "alive", "--state")
        (told,) = commands.json("group", "describe", "--group", "alive", "--members")
        table = commands.ok("group", "describe", "--group", "alive", "--members", "--verbose")
        (rows,) = commands.json("group", "describe", "--group", "alive")

    (found,) = told["members"]
    assert (state["state"], state["members"], state["coordinator_id"]) == ("Stable", 1, 1)
    assert (found["client_id"], found["group_instance_id"]) == ("reader", "first")
    assert found["assignment"] == [{"topic": "sold", "partition": n} for n in (0, 1)]
    assert "GROUP-INSTANCE-ID" in table.lines[0]
    assert table.lines[1].split()[-1] == "sold:0,1"
    assert {row["consumer_id"] for row in rows["offsets"]} == {found["consumer_id"]}


def test_a_group_that_is_not_there_is_an_error(commands: CommandLine) -> None:
    said = commands.refused("group", "describe", "--group", "absent")

    assert said == "Consumer group 'absent' does not exist."


def test_a_group_is_deleted_with_its_offsets_unless_it_is_alive(
    commands: CommandLine, sold: str
) -> None:
    commit(commands, "doomed", 1)

    with member(commands, "doomed"):
        ran = commands.run("group", "delete", "--group", "doomed")
    commands.ok("group", "delete", "--group", "doomed")

    assert (ran.exit_code, "(NON_EMPTY_GROUP)" in ran.stderr) == (1, True), ran
    assert "doomed" not in commands.ok("group", "list").lines


# --- reset-offsets ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (["--to-earliest"], {0: 0, 1: 0}),
        (["--to-latest"], {0: 10, 1: 4}),
        (["--to-current"], {0: 6, 1: 3}),
        (["--to-offset", "7"], {0: 7, 1: 4}),
        (["--shift-by", "-5"], {0: 1, 1: 0}),
        (["--shift-by", "2"], {0: 8, 1: 4}),
        (["--to-datetime", "2023-11-14T22:13:22.500"], {0: 3, 1: 3}),
        (["--to-datetime", "2023-11-14T22:13:25.000"], {0: 5, 1: 4}),
        (["--by-duration", "P1D"], {0: 10, 1: 4}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_offsets_are_reset_to_where_the_scenario_says(
    commands: CommandLine, sold: str, scenario: list[str], expected: dict[int, int]
) -> None:
    group = "-".join(("reset", *scenario)).replace(":", ".")
    commit(commands, group, 6, 3)
    flags = ["--group", group, "--topic", "sold", *scenario]

    planned = commands.json("group", "reset-offsets", *flags)
    before = offsets(commands, group)
    done = commands.json("group", "reset-offsets", *flags, "--execute")

    assert before == {0: 6, 1: 3}
    assert planned["offsets"] == done["offsets"]
    assert (planned["executed"], done["executed"]) == (False, True)
    assert {row["partition"]: row["new_offset"] for row in done["offsets"]} == expected
    assert offsets(commands, group) == expected


def test_only_the_partitions_that_are_named_are_reset(commands: CommandLine, sold: str) -> None:
    commit(commands, "partly", 6, 3)
    flags = ["--group", "partly", "--topic", "sold:1", "--to-earliest", "--execute"]

    commands.ok("group", "reset-offsets", *flags)

    assert offsets(commands, "partly") == {0: 6, 1: 0}


def test_all_topics_are_those_the_group_has_offsets_of(commands: CommandLine, sold: str) -> None:
    commit(commands, "whole", 6)

    told = commands.json(
        "group", "reset-offsets", "--group", "whole", "--all-topics", "--to-latest"
    )

    assert [(row["partition"], row["new_offset"]) for row in told["offsets"]] == [(0, 10)]


def test_what_was_exported_can_be_taken_back(
    commands: CommandLine, sold: str, tmp_path: Path
) -> None:
    commit(commands, "exported", 6, 3)
    group = ["--group", "exported"]
    current = commands.ok(
        "group", "reset-offsets", *group, "--all-topics", "--to-current", "--export"
    )
    commit(commands, "exported", 0, 0)
    (tmp_path / "plan.csv").write_text(current.text)

    flags = [*group, "--from-file", str(tmp_path / "plan.csv"), "--execute"]
    commands.ok("group", "reset-offsets", *flags)

    assert current.lines == ["sold,0,6", "sold,1,3"]
    assert offsets(commands, "exported") == {0: 6, 1: 3}


def test_an_active_group_is_left_alone(commands: CommandLine, sold: str) -> None:
    commit(commands, "busy", 6, 3)
    with member(commands, "busy", enable_auto_commit="false"):
        ran = commands.run(
            "group",
            "reset-offsets",
            "--group",
            "busy",
            "--topic",
            "sold",
            "--to-earliest",
            "--execute",
        )

    assert (ran.exit_code, "'busy' is inactive; it is Stable" in ran.stderr) == (1, True), ran
    assert offsets(commands, "busy") == {0: 6, 1: 3}


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--to-earliest", "--topic", "sold"], "Which group?"),
        (["--group", "g", "--to-earliest"], "Offsets of what?"),
        (["--group", "g", "--topic", "sold"], "To what?"),
        (["--group", "g", "--topic", "sold", "--to-earliest", "--to-latest"], "To what?"),
        (
            ["--group", "g", "--topic", "sold", "--to-earliest", "--dry-run", "--execute"],
            "not both",
        ),
        (["--group", "g", "--topic", "absent", "--to-earliest"], "There is no topic absent."),
        (["--group", "g", "--topic", "sold:7", "--to-earliest"], "There is no partition sold-7."),
        (["--group", "g", "--topic", "sold", "--by-duration", "1h"], "not a duration"),
        (["--group", "g", "--topic", "sold", "--shift-by", "1"], "none has been committed"),
        (["--group", "g", "--from-file", "/nowhere"], "No such file"),
    ],
)
def test_what_cannot_be_reset_is_one_sentence(
    commands: CommandLine, sold: str, flags: list[str], reason: str
) -> None:
    said = commands.refused("group", "reset-offsets", *flags)

    assert reason in said
    assert "\n" not in said
