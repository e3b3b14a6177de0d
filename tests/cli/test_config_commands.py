"""``stratalog config`` against a broker of our own."""

from typing import Any

import pytest

from command_line import CommandLine


def configs(commands: CommandLine, *flags: str) -> dict[str, Any]:
    (entity,) = commands.json("config", "describe", *flags)
    return {each["name"]: each for each in entity["configs"]}


def test_configs_of_a_topic_are_set_and_taken_away(commands: CommandLine) -> None:
    commands.ok("topic", "create", "set", "--config", "segment.bytes=2000000")
    entity = ["--entity-type", "topics", "--entity-name", "set"]
    changes = ["--add-config", "cleanup.policy=[compact,delete],retention.ms=5000"]

    ran = commands.ok("config", "alter", *entity, *changes, "--delete-config", "segment.bytes")

    found = configs(commands, *entity)
    assert ran.text == "Completed updating config for topic set.\n"
    assert {name: each["value"] for name, each in found.items()} == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "5000",
    }
    assert found["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"


def test_all_configs_are_those_of_the_topic_and_what_it_inherits(commands: CommandLine) -> None:
    commands.ok("topic", "create", "inherits", "--config", "retention.ms=5000")

    own = configs(commands, "--topic", "inherits")
    every = configs(commands, "--topic", "inherits", "--all")

    assert list(own) == ["retention.ms"]
    assert own.items() <= every.items()
    assert every["segment.bytes"]["source"] == "DEFAULT_CONFIG"


def test_text_has_kafkas_form(commands: CommandLine) -> None:
    commands.ok("topic", "create", "shown", "--config", "cleanup.policy=compact")

    lines = commands.ok("config", "describe", "--topic", "shown").lines

    assert lines == [
        "Dynamic configs for topic shown are:",
        "  cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "cleanup.policy=compact, DEFAULT_CONFIG:log.cleanup.policy=delete}",
    ]


def test_a_broker_and_all_brokers_have_configs_of_their_own(commands: CommandLine) -> None:
    setting = "log.cleaner.io.buffer.size"
    commands.ok("config", "alter", "--broker-defaults", "--add-config", f"{setting}=600000")
    commands.ok("config", "alter", "--broker", "1", "--add-config", f"{setting}=700000")

    defaults = configs(commands, "--entity-type", "brokers", "--entity-default")
    own = configs(commands, "--entity-type", "brokers", "--entity-name", "1")
    both = commands.json("config", "describe", "--entity-type", "brokers")

    assert defaults[setting]["value"] == "600000"
    assert own[setting]["value"] == "700000"
    assert [each["source"] for each in own[setting]["synonyms"]] == [
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "DEFAULT_CONFIG",
    ]
    assert [each["entity_name"] for each in both] == ["1", None]
    for flags in (["--broker-defaults"], ["--broker", "1"]):
        commands.ok("config", "alter", *flags, "--delete-config", setting)
    assert setting not in configs(commands, "--broker", "1")


def test_all_topics_are_described_if_none_is_named(commands: CommandLine) -> None:
    for name in ("one-of-all", "two-of-all"):
        commands.ok("topic", "create", name)

    told = commands.json("config", "describe", "--entity-type", "topics")

    names = [each["entity_name"] for each in told]
    assert names == sorted(names)
    assert {"one-of-all", "two-of-all"} <= set(names)


def test_a_file_of_configs_is_added(commands: CommandLine, tmp_path: Any) -> None:
    commands.ok("topic", "create", "filed")
    (tmp_path / "some.properties").write_text("retention.ms = 7000\n# note\nflush.ms=9\n")

    file = ["--add-config-file", str(tmp_path / "some.properties")]
    commands.ok("config", "alter", "--topic", "filed", *file)

    found = configs(commands, "--topic", "filed")
    assert {name: each["value"] for name, each in found.items()} == {
        "retention.ms": "7000",
        "flush.ms": "9",
    }


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([], "Configs of what?"),
        (["--topic", "t", "--broker", "1"], "Configs of what?"),
        (["--entity-type", "users", "--entity-name", "u"], "users is not served"),
        (["--entity-type", "planets"], "either topics or brokers"),
        (["--entity-type", "topics", "--entity-default"], "Topics have no defaults"),
        (["--broker", "one"], "named by its id"),
        (["--topic", "absent"], "There is no topic absent."),
        (["--broker", "77"], "There is no broker 77."),
    ],
)
def test_what_cannot_be_described_is_one_sentence(
    commands: CommandLine, flags: list[str], reason: str
) -> None:
    said = commands.refused("config", "describe", *flags)

    assert reason in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--topic", "altered"], "Nothing to alter"),
        (["--topic", "altered", "--add-config", "retention.ms=soon"], "(INVALID_CONFIG)"),
        (["--topic", "altered", "--add-config", "nope=1"], "(INVALID_CONFIG)"),
        (["--topic", "altered", "--add-config", "nope"], "NAME=VALUE"),
        (["--topic", "absent", "--add-config", "flush.ms=1"], "(UNKNOWN_TOPIC_OR_PARTITION)"),
        (["--entity-type", "topics", "--add-config", "flush.ms=1"], "Which one?"),
        (["--topic", "altered", "--add-config-file", "/nowhere"], "No such file"),
    ],
)
def test_what_cannot_be_altered_is_one_sentence_and_changes_nothing(
    commands: CommandLine, flags: list[str], reason: str
) -> None:
    commands.ok("topic", "create", "altered", "--if-not-exists")

    said = commands.refused("config", "alter", *flags)

    assert reason in said
    assert "\n" not in said
    assert configs(commands, "--topic", "altered") == {}
