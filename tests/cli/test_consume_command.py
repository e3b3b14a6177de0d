"""``stratalog consume`` against a broker of our own."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer, TopicPartition

from command_line import CommandLine
from stratalog.cli.client import Connection
from stratalog.cli.consume_offsets import Range, Start
from stratalog.cli.consume_reading import Reading, Wanted

START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def stock(commands: CommandLine) -> str:
    """Two partitions: records 0-9 a second apart in the first, 0-2 in the second."""
    commands.ok("topic", "create", "stock", "--partitions", "2")
    producer = Producer({"bootstrap.servers": commands.bootstrap_server})
    for partition, count in ((0, 10), (1, 3)):
        for n in range(count):
            producer.produce(
                "stock", b"%d" % n, b"k", partition=partition, timestamp=START_MS + 1000 * n
            )
    assert producer.flush(30) == 0
    return "stock"


def read(commands: CommandLine, *flags: str) -> list[tuple[int, int]]:
    """Partition and offset of what was printed."""
    ran = commands.ok("consume", "stock", *flags, "-o", "json")
    return sorted((each["partition"], each["offset"]) for each in ran.json_lines)


def both(first: range, second: range) -> list[tuple[int, int]]:
    return [(0, n) for n in first] + [(1, n) for n in second]


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        (["beginning"], range(10), range(3)),
        (["end"], range(0), range(0)),
        (["7"], range(7, 10), range(0)),
        (["-2"], range(8, 10), range(1, 3)),
        (["-100"], range(10), range(3)),
        ([f"s@{START_MS + 1500}"], range(2, 10), range(2, 3)),
        ([f"e@{START_MS + 4000}"], range(4), range(3)),
        ([f"s@{START_MS + 2000}", f"e@{START_MS + 5000}"], range(2, 5), range(2, 3)),
        (["s@2031-01-01"], range(0), range(0)),
        (["s@2023-11-14T22:13:28Z"], range(8, 10), range(0)),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else "",
)
def test_kcats_words_say_where_to_begin_and_to_end(
    commands: CommandLine, stock: str, words: list[str], first: range, second: range
) -> None:
    flags = [flag for word in words for flag in ("--offset", word)]

    assert read(commands, *flags, "-e") == both(first, second)


def test_one_partition_is_read_from_where_it_is_told(commands: CommandLine, stock: str) -> None:
    flags = ["--partition", "1", "--offset", "1", "--exit"]

    assert read(commands, *flags) == both(range(0), range(1, 3))


def test_an_offset_outside_of_the_partition_is_told_with_what_it_holds(
    commands: CommandLine, stock: str
) -> None:
    said = commands.refused("consume", "stock", "--partition", "1", "--offset", "4", "-e")

    assert said == "Offset 4 is outside of partition 1 of stock, which holds [0, 3)."


def test_reading_ends_after_so_many_messages(commands: CommandLine, stock: str) -> None:
    flags = ["--from-beginning", "--partition", "0", "--max-messages", "4"]

    ran = commands.ok("consume", "--topic", "stock", *flags)

    assert ran.lines == ["0", "1", "2", "3"]
    assert ran.stderr == "Processed a total of 4 messages\n"


def test_reading_ends_when_nothing_comes(commands: CommandLine, stock: str) -> None:
    assert read(commands, "--timeout-ms", "200") == []


def test_what_is_written_meanwhile_is_read(commands: CommandLine) -> None:
    commands.ok("topic", "create", "live")
    producer = Producer({"bootstrap.servers": commands.bootstrap_server, "linger.ms": 0})
    stop = threading.Event()

    def write() -> None:
        # Until the reader, which begins at the end, has seen one.
        while not stop.wait(0.05):
            producer.produce("live", b"news")
            producer.poll(0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        ran = commands.ok("consume", "live", "--max-messages", "2", "--timeout-ms", "20000")
    finally:
        stop.set()
        writer.join()
        producer.flush(30)

    assert ran.lines == ["news", "news"]


def test_a_group_goes_on_after_what_was_printed_not_what_was_fetched(
    commands: CommandLine, stock: str
) -> None:
    flags = ["--group", "buyers", "--from-beginning"]

    first = read(commands, *flags, "--max-messages", "5")
    second = read(commands, *flags, "-e")

    assert len(first) == 5
    assert sorted(first + second) == both(range(10), range(3))


def test_stored_offsets_are_where_a_group_is(commands: CommandLine, stock: str) -> None:
    for scope, offset in (("stock:0", "6"), ("stock:1", "2")):
        flags = ["--group", "storers", "--topic", scope, "--to-offset", offset, "--execute"]
        commands.ok("group", "reset-offsets", *flags)

    found = read(commands, "--group", "storers", "--offset", "stored", "-e")

    assert found == both(range(6, 10), range(2, 3))


@pytest.mark.parametrize(
    ("flags", "offset"),
    [
        (["--partition", "0", "--offset", "-2"], 6),
        (["--offset", "beginning"], 6),
        (["--partition", "0", "--offset", "stored"], 10),
    ],
)
def test_who_looks_at_some_place_does_not_move_a_group(
    commands: CommandLine, stock: str, flags: list[str], offset: int
) -> None:
    reset = ["--group", "lookers", "--topic", "stock:0", "--to-offset", "6", "--execute"]
    commands.ok("group", "reset-offsets", *reset)

    read(commands, "--group", "lookers", *flags, "-e")

    (group,) = commands.json("group", "describe", "--group", "lookers")
    found = {each["partition"]: each["current_offset"] for each in group["offsets"]}
    assert found == {0: offset}


def test_topics_can_be_a_regular_expression(commands: CommandLine) -> None:
    for name in ("several-a", "several-b"):
        commands.ok("topic", "create", name)
        commands.ok("produce", name, "--acks", "1", stdin=name.encode())

    alone = commands.ok("consume", "--include", "several-.", "--from-beginning", "-e")
    member = ["--group", "several", "--max-messages", "2"]
    together = commands.ok("consume", "--include", "several-.*", "--from-beginning", *member)

    assert sorted(alone.lines) == sorted(together.lines) == ["several-a", "several-b"]


PRINTED = {
    "print.timestamp": "CreateTime:",
    "print.partition": "Partition:0",
    "print.offset": "Offset:0",
    "print.epoch": "Epoch:",
    "print.headers": "NO_HEADERS",
    "print.key": "null",
}


@pytest.mark.parametrize(("name", "expected"), PRINTED.items())
def test_parts_of_a_record_are_printed_before_its_value(
    commands: CommandLine, name: str, expected: str
) -> None:
    commands.ok("topic", "create", f"part-{name}")
    commands.ok("produce", f"part-{name}", "--acks", "1", stdin=b"value\n")

    flags = ["--from-beginning", "-e", "--property", f"{name}=true", "--property"]
    (line,) = commands.ok("consume", f"part-{name}", *flags, "key.separator= | ").lines

    part, value = line.split(" | ")
    assert (part.startswith(expected), value) == (True, "value")


def test_numbers_are_deserialized_and_what_is_none_is_told(commands: CommandLine) -> None:
    commands.ok("topic", "create", "numbers")
    lines = (-5).to_bytes(8, signed=True) + b"\nnone\n"
    commands.ok("produce", "numbers", "--acks", "1", stdin=lines)
    flags = ["--from-beginning", "-e", "--value-deserializer"]
    flags.append("org.apache.kafka.common.serialization.LongDeserializer")

    said = commands.run("consume", "numbers", *flags)
    skipped = commands.ok("consume", "numbers", *flags, "--skip-message-on-error")

    assert (said.exit_code, "LongDeserializer is not 8 bytes" in said.stderr) == (1, True)
    assert skipped.lines == ["-5"]


def test_reading_committed_records_reads_them(commands: CommandLine, stock: str) -> None:
    flags = ["--isolation-level", "read_committed", "--offset", "-1", "-e"]

    assert read(commands, *flags) == both(range(9, 10), range(2, 3))


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([], "Which topic?"),
        (["stock", "--include", "s.*"], "Which topic?"),
        (["absent"], "There is no topic absent."),
        (["--include", "absent.*"], "There is no topic that matches absent.*."),
        (["stock", "--partition", "9"], "has no partition 9"),
        (["stock", "--offset", "soon"], "beginning, end, stored"),
        (["stock", "--offset", "stored"], "say which with --group"),
        (["stock", "--from-beginning", "--offset", "3"], "not both"),
        (["stock", "--group", "a", "--command-property", "group.id=b"], "--group says a, and"),
        (["stock", "--isolation-level", "serializable"], "--isolation-level is one of"),
        (["stock", "--property", "print.everything=true"], "no property print.everything"),
        (["stock", "--value-deserializer", "com.example.Mine"], "without a JVM"),
    ],
)
def test_options_that_cannot_be_meant_are_one_sentence(
    commands: CommandLine, stock: str, flags: list[str], reason: str
) -> None:
    said = commands.refused("consume", *flags, "-e")

    assert reason in said
    assert "\n" not in said


def test_a_rebalance_is_not_the_end_of_what_was_there() -> None:
    """While others are slow to join, a member has nothing, and has not read everything."""
    wanted = Wanted(
        topic="stock",
        pattern=None,
        partition=None,
        offsets=Range(Start.BEGINNING),
        is_placed=False,
        group="slow",
        isolation_level="read_committed",
        exits_at_end=True,
        max_messages=None,
        timeout_ms=None,
        skips_bad=False,
    )
    reading = Reading(Connection("127.0.0.1:1"), wanted, lambda _message: b"")
    told: list[bool] = []
    for step, partitions in (
        (reading._assigned, [0, 1]),
        (reading._revoked, [0, 1]),
        (reading._assigned, [1]),
        (reading._revoked, [1]),
        (reading._assigned, []),
    ):
        step(None, [TopicPartition("stock", each) for each in partitions])  # type: ignore[arg-type]
        told.append(reading._is_done())

    assert told == [False, False, False, False, True]


# --- as a process ----------------------------------------------------------------------------


# Whoever runs the tests in the background may have had interrupts ignored, which is inherited.
HEARING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from stratalog.cli.main import main
main()
"""


@contextmanager
def start(commands: CommandLine, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    server = ["--bootstrap-server", commands.bootstrap_server]
    with subprocess.Popen(
        [sys.executable, "-c", HEARING, "consume", *arguments, *server],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_an_interrupt_ends_it_cleanly_and_commits_what_was_printed(
    commands: CommandLine, stock: str
) -> None:
    flags = ["stock", "--group", "interrupted", "--from-beginning"]
    with start(commands, *flags) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(13)]
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=120)

    assert (process.returncode, rest) == (0, b"")
    assert said == b"Processed a total of 13 messages\n"
    assert len(printed) == 13
    (group,) = commands.json("group", "describe", "--group", "interrupted")
    assert {row["partition"]: row["lag"] for row in group["offsets"]} == {0: 0, 1: 0}


def test_it_ends_when_nobody_reads_its_output_any_more(commands: CommandLine) -> None:
    commands.ok("topic", "create", "wide")
    # More than any pipe holds.
    commands.ok("produce", "wide", "--acks", "1", stdin=(b"x" * 500_000 + b"\n") * 20)
    with start(commands, "wide", "--from-beginning", "-e") as process:
        assert process.stdout is not None
        assert process.stdout.read(10) == b"x" * 10
        process.stdout.close()
        process.stdout = None
        _, said = process.communicate(timeout=120)

    assert (process.returncode, said) == (1, b"")
