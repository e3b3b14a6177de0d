"""A directory is named in one way everywhere, and may be the argument where nothing else is."""

from pathlib import Path

import pytest
from cli_harness import stratalog

from stratalog.cli.directories import directories_of, directory_of, partition_of
from stratalog.cli.failures import UsageError

OF_ONE_PARTITION = ["log segments {}", "log find {} --offset 3", "log repair {} --dry-run"]
OF_A_DIRECTORY = [
    "log verify {}",
    "log usage {}",
    "retention explain {} --config retention.ms=-1",
    "cleaner explain {} --config cleanup.policy=compact",
    "scan explain {}",
    "lease list {}",
]


@pytest.mark.parametrize("line", OF_ONE_PARTITION)
def test_a_partition_is_named_by_its_directory_or_by_topic_and_number(
    replica: Path, line: str
) -> None:
    ways = (
        str(replica),
        f"--log-dir {replica}",
        f"--log-dir {replica.parent} --topic orders --partition 0",
    )

    told = [stratalog(*line.format(way).split()) for way in ways]

    assert told[0].exit_code == 0, told[0].stderr
    assert told[1:] == [told[0]] * 2


@pytest.mark.parametrize("line", OF_A_DIRECTORY)
def test_a_log_directory_is_the_argument_or_an_option(replica: Path, line: str) -> None:
    told = [
        stratalog(*line.format(way).split(), "-o", "json").exit_code
        for way in (str(replica.parent), f"--log-dir {replica.parent}")
    ]

    assert told == [0, 0]


def test_a_directory_is_named_once() -> None:
    assert directory_of("a", None) == directory_of(None, "a") == "a"
    assert directories_of(["a"], ["b"]) == ["a", "b"]
    with pytest.raises(UsageError, match="once"):
        directory_of("a", "b")
    for nothing in (lambda: directory_of(None, None), lambda: directories_of(None, None)):
        with pytest.raises(UsageError, match="Which director"):
            nothing()


@pytest.mark.parametrize(
    "words",
    [
        (None, None, None, None),
        ("a", "b", None, None),
        ("a", None, "orders", 0),
        (None, "a", "orders", None),
        (None, "a", None, 0),
        (None, None, "orders", 0),
    ],
)
def test_a_partition_that_is_half_named_is_asked_for(
    words: tuple[str | None, str | None, str | None, int | None],
) -> None:
    with pytest.raises(UsageError, match="Which partition"):
        partition_of(*words)
