"""Our everyday commands against Apache Kafka's own tools, both against Apache Kafka's broker.

The tools are the oracle: what one of ours says of a topic, a group or a config must be what they
say of it, and records that ours writes must be those that they would have written.
"""

import re
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution

from command_line import CommandLine

pytestmark = pytest.mark.interop

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"

# 2023-11-14T22:13:20Z, and a second more for each record.
START_MS = 1_700_000_000_000


class Tools(NamedTuple):
    """Kafka's tools and ours, for the same broker."""

    broker: KafkaBroker
    ours: CommandLine

    def kafkas(self, main_class: str, *arguments: str, stdin: bytes = b"") -> bytes:
        everything = [*arguments, "--bootstrap-server", self.broker.bootstrap_server]
        done = subprocess.run(
            self.broker.distribution.command(main_class, everything, log_level="off"),
            input=stdin,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done
        return done.stdout

    def both(self, main_class: str, kafkas: list[str], ours: list[str]) -> tuple[str, str]:
        return self.kafkas(main_class, *kafkas).decode(), self.ours.ok(*ours).text


@pytest.fixture(scope="module")
def tools(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with KafkaBroker(kafka, tmp_path_factory.mktemp("cli")) as broker:
        yield Tools(broker, CommandLine(broker.bootstrap_server))


def write(tools: Tools, topic: str, values: list[bytes], partition: int = 0) -> None:
    """Records with times of their own: a line cannot say one."""
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": tools.broker.bootstrap_server, "linger.ms": 50, "log_level": 0}
    )
    for slot, value in enumerate(values):
        producer.produce(topic, value, partition=partition, timestamp=START_MS + 1000 * slot)
    assert producer.flush(30) == 0


def test_a_topic_is_described_with_the_facts_of_kafka_topics(tools: Tools) -> None:
    configs = ["--config", "retention.ms=1000000", "--config", "cleanup.policy=compact,delete"]
    tools.ours.ok("topic", "create", "described", "--partitions", "3", *configs)
    tools.ours.ok("topic", "alter", "described", "--partitions", "4")

    said = tools.kafkas(TOPICS, "--describe", "--topic", "described").decode().splitlines()
    facts = dict(re.findall(r"(\w+): (\S*)", said[0]))
    partitions = [dict(re.findall(r"(\w+): ([^\t]*)", line)) for line in said[1:]]
    (ours,) = tools.ours.json("topic", "describe", "described")
    shown = dict(
        re.findall(r"(\w+): (\S*)", tools.ours.ok("topic", "describe", "described").lines[0])
    )

    assert {**shown, "Configs": set(pairs(shown["Configs"]))} == {
        **facts,
        "Configs": set(pairs(facts["Configs"])),
    }
    assert ours["configs"].items() <= dict(pairs(facts["Configs"])).items()
    assert [
        (
            str(each["partition"]),
            str(each["leader"]),
            numbers(each["replicas"]),
            numbers(each["isr"]),
        )
        for each in ours["partitions"]
    ] == [(each["Partition"], each["Leader"], each["Replicas"], each["Isr"]) for each in partitions]


def pairs(configs: str) -> list[tuple[str, str]]:
    """``a=1,b=2,3``: a comma is also in values."""
    return re.findall(r"([a-z.]+)=((?:[^=,]|,(?![a-z.]+=))*)", configs)


def numbers(values: list[int]) -> str:
    return ",".join(map(str, values))


def test_topics_are_listed_as_kafka_topics_lists_them(tools: Tools) -> None:
    for name in ("listed.a", "listed_b", "other"):
        tools.ours.ok("topic", "create", name)

    theirs, ours = tools.both(
        TOPICS, ["--list", "--topic", "listed.*"], ["topic", "list", "--topic", "listed.*"]
    )

    assert ours.splitlines() == sorted(theirs.splitlines()) == ["listed.a", "listed_b"]


LINES = (
    b"h1:v1,h2:NULL\tk1\tfirst\n"
    b"h1:\tk2\tsecond\ttab\n"
    b"NULL\tNULL\tthird\n"
    b"h:v,,\tk4\tNULL\n"
    b"h:v\tk1\t\r\n"
    b"h:v\tk9\tthe last line does not end"
)
READER = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
MARKED = [
    *READER,
    "--reader-property",
    "null.marker=NULL",
    "--reader-property",
    "ignore.error=true",
]


def test_lines_become_the_records_that_the_console_producer_writes(tools: Tools) -> None:
    for topic in ("lines.theirs", "lines.ours"):
        tools.ours.ok("topic", "create", topic, "--partitions", "5")
    tools.kafkas(PRODUCER, "--topic", "lines.theirs", *MARKED, stdin=LINES)
    tools.ours.ok("produce", "--topic", "lines.ours", *MARKED, stdin=LINES)

    theirs, ours = (
        sorted(
            (
                each["key"] or "",
                each["partition"] if each["key"] else -1,
                each["value"] or "-",
                str(each["headers"]),
            )
            for each in tools.ours.ok(
                "consume", topic, "--from-beginning", "-e", "-o", "json"
            ).json_lines
        )
        for topic in ("lines.theirs", "lines.ours")
    )

    assert ours == theirs
    assert len(ours) == 6


PRINTED = [
    *("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true"),
    *("--formatter-property", "print.partition=true", "--formatter-property", "print.headers=true"),
    *("--formatter-property", "print.timestamp=true", "--formatter-property", "null.literal=NIL"),
    *("--formatter-property", "key.separator=|", "--formatter-property", "headers.separator=;"),
]


def test_records_are_printed_as_the_console_consumer_prints_them(tools: Tools) -> None:
    tools.ours.ok("topic", "create", "printed")
    stdin = b"a:1,b:2\tk\tone\nN\tN\tN\nx:\xf0\x9f\xa6\x86\t\xe2\x82\xac\ttwo\n"
    tools.ours.ok("produce", "printed", *READER, "--property", "null.marker=N", stdin=stdin)
    write(tools, "printed", [b"\xff\xfe\x00 no text", b"", b"last"])

    theirs = tools.kafkas(
        CONSUMER, "--topic", "printed", "--from-beginning", "--max-messages", "6", *PRINTED
    )
    ours = tools.ours.ok("consume", "printed", "--from-beginning", "--exit", *PRINTED).stdout

    assert ours == theirs


def test_records_of_transactions_are_read_to_the_end_whatever_lies_between(tools: Tools) -> None:
    """Markers take offsets that no reader sees: before the end, and before ``e@``."""
    from confluent_kafka import Producer

    tools.ours.ok("topic", "create", "decided")
    server = tools.broker.bootstrap_server
    producer = Producer({"bootstrap.servers": server, "transactional.id": "cli", "log_level": 0})
    producer.init_transactions()
    # Markers have the time at which they were written; only the last record is to be later.
    future_ms = time.time_ns() // 1_000_000 + 3_600_000
    for word, timestamp_ms in (("kept", START_MS), ("dropped", START_MS), ("later", future_ms)):
        producer.begin_transaction()
        producer.produce("decided", word, timestamp=timestamp_ms)
        producer.flush(30)
        producer.abort_transaction() if word == "dropped" else producer.commit_transaction()
    committed = ["consume", "decided", "--isolation-level", "read_committed"]
    all_of_them = ["consume", "decided"]

    assert tools.ours.ok(*committed, "--from-beginning", "-e").lines == ["kept", "later"]
    assert tools.ours.ok(*all_of_them, "--from-beginning", "-e").lines == [
        "kept",
        "dropped",
        "later",
    ]
    until = ["--offset", f"e@{future_ms}"]
    assert tools.ours.ok(*committed, *until).lines == ["kept"]
    assert tools.ours.ok(*all_of_them, *until).lines == ["kept", "dropped"]


@pytest.fixture(scope="module")
def read_topic(tools: Tools) -> str:
    """``read``: 10 records in partition 0, 4 in partition 1; group ``readers`` has read some."""
    tools.ours.ok("topic", "create", "read", "--partitions", "2")
    write(tools, "read", [b"%d" % n for n in range(10)])
    write(tools, "read", [b"%d" % n for n in range(4)], partition=1)
    for scope, offset in (("read:0", "6"), ("read:1", "4")):
        flags = ["--group", "readers", "--topic", scope, "--to-offset", offset, "--execute"]
        tools.ours.ok("group", "reset-offsets", *flags)
    return "read"


def test_a_group_is_described_with_the_facts_of_kafka_consumer_groups(
    tools: Tools, read_topic: str
) -> None:
    said = tools.kafkas(GROUPS, "--describe", "--group", "readers").decode()
    rows = [line.split() for line in said.splitlines() if line.startswith("readers")]
    (ours,) = tools.ours.json("group", "describe", "--group", "readers")

    names = ("group", "topic", "partition", "current_offset", "log_end_offset", "lag")
    assert [[str(each[name]) for name in names] for each in ours["offsets"]] == [
        row[:6] for row in rows
    ]
    assert [row[2:6] for row in rows] == [["0", "6", "10", "4"], ["1", "4", "4", "0"]]


@pytest.mark.parametrize(
    "scenario",
    [
        ["--to-offset", "7"],
        ["--shift-by", "-5"],
        ["--to-current"],
        ["--to-datetime", "2023-11-14T22:13:23.000"],
    ],
    ids=lambda flags: flags[0],
)
def test_offsets_are_reset_to_where_kafka_consumer_groups_resets_them(
    tools: Tools, read_topic: str, scenario: list[str]
) -> None:
    flags = ["--group", "readers", "--topic", read_topic, *scenario, "--dry-run", "--export"]

    theirs, ours = tools.both(
        GROUPS, ["--reset-offsets", *flags], ["group", "reset-offsets", *flags]
    )

    assert ours.splitlines() == sorted(line for line in theirs.splitlines() if "," in line)


def test_configs_are_described_line_by_line_as_kafka_configs_does(tools: Tools) -> None:
    tools.ours.ok("topic", "create", "configured", "--config", "segment.bytes=1048576")
    added = "retention.ms=5000,cleanup.policy=[compact,delete]"
    entity = ["--entity-type", "topics", "--entity-name", "configured"]
    tools.ours.ok(
        "config", "alter", *entity, "--add-config", added, "--delete-config", "segment.bytes"
    )

    theirs, ours = tools.both(CONFIGS, ["--describe", *entity], ["config", "describe", *entity])

    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())
    assert len(ours.splitlines()) == 3


def test_all_configs_of_a_broker_and_of_all_brokers_are_those_of_kafka_configs(
    tools: Tools,
) -> None:
    brokers = ["--entity-type", "brokers"]
    cleaner = ["--add-config", "log.cleaner.io.buffer.size=600000"]
    tools.ours.ok("config", "alter", *brokers, "--entity-default", *cleaner)
    tools.ours.ok("config", "alter", *brokers, "--entity-name", "1", *cleaner)

    theirs, ours = tools.both(
        CONFIGS, ["--describe", "--all", *brokers], ["config", "describe", "--all", *brokers]
    )

    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())
    assert len(ours.splitlines()) > 100
