"""Kafka's own shell tools against our broker and against Apache Kafka's.

What the tools print of either broker is the same, but for what a broker names itself by. They run
in one process, by the classes that the scripts run (kafka/KafkaTools.java).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import KafkaDistribution
from tools_brokers import BROKERS, serving
from tools_java import JavaClient, JavaDriver, Printed, eventually

pytestmark = pytest.mark.interop

CLASSES = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-groups": "org.apache.kafka.tools.GroupsCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
}


class Tools:
    """The tools, for one broker."""

    def __init__(self, driver: JavaDriver, bootstrap_server: str) -> None:
        self.driver = driver
        self.bootstrap_server = bootstrap_server

    def run(self, name: str, *arguments: str, stdin: str = "") -> Printed:
        everything = ["--bootstrap-server", self.bootstrap_server, *arguments]
        return self.driver.tool(CLASSES[name], *everything, stdin=stdin)

    def ok(self, name: str, *arguments: str, stdin: str = "") -> list[str]:
        """The lines it printed, if it says that all went well."""
        printed = self.run(name, *arguments, stdin=stdin)
        assert printed.exit_code == 0, printed
        return printed.lines

    def write(self, topic: str, *lines: str, **properties: str) -> None:
        options = [f"--{name}={value}" for name, value in properties.items()]
        stdin = "".join(f"{line}\n" for line in lines)
        self.ok("kafka-console-producer", "--topic", topic, *options, stdin=stdin)

    def read(self, topic: str, count: int, *options: str) -> list[str]:
        limit = ["--max-messages", str(count), "--timeout-ms", "60000"]
        return self.ok("kafka-console-consumer", "--topic", topic, *limit, *options)

    def offsets(self, topic: str, time: str = "latest") -> list[str]:
        return self.ok("kafka-get-offsets", "--topic", topic, "--time", time)


@pytest.fixture(scope="module", params=BROKERS)
def tools(
    request: pytest.FixtureRequest,
    kafka: KafkaDistribution,
    driver: JavaDriver,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tools]:
    with serving(request.param, kafka, tmp_path_factory.mktemp("tools")) as address:
        yield Tools(driver, address)


def test_kafka_topics_creates_lists_describes_alters_and_deletes(tools: Tools) -> None:
    options = ["--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=5000"]
    created = tools.ok("kafka-topics", "--create", "--topic", "orders", *options)
    again = tools.run("kafka-topics", "--create", "--topic", "orders")
    quiet = tools.ok("kafka-topics", "--create", "--topic", "orders", "--if-not-exists")
    tools.ok("kafka-topics", "--alter", "--topic", "orders", "--partitions", "3")
    fewer = tools.run("kafka-topics", "--alter", "--topic", "orders", "--partitions", "1")
    listed = tools.ok("kafka-topics", "--list", "--exclude-internal")
    head, *partitions = tools.ok("kafka-topics", "--describe", "--topic", "orders")
    under = tools.ok("kafka-topics", "--describe", "--under-replicated-partitions")
    changed = tools.ok("kafka-topics", "--describe", "--topics-with-overrides")
    tools.ok("kafka-topics", "--delete", "--topic", "orders")
    gone = tools.run("kafka-topics", "--describe", "--topic", "orders")

    assert created == ["Created topic orders."]
    assert (again.exit_code, quiet) == (1, [])
    assert "opic 'orders'" in again.stdout
    assert fewer.exit_code == 1
    assert "orders" in listed
    facts = dict(re.findall(r"(\w+): (\S*)", head))
    assert (facts["PartitionCount"], facts["ReplicationFactor"]) == ("3", "1")
    assert "retention.ms=5000" in facts["Configs"].split(",")
    for number, line in enumerate(partitions):
        partition, *nodes = re.findall(r"(?:Partition|Leader|Replicas|Isr): (\d+)", line)
        assert int(partition) == number
        assert len(nodes) == 3
        assert len(set(nodes)) == 1
    assert len(partitions) == 3
    assert under == []
    assert any("Topic: orders" in line for line in changed)
    assert gone.exit_code == 1


def test_lines_of_the_console_producer_are_read_by_the_console_consumer(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "console")
    reader = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    stdin = "k1:first\nk2:second\nk1:Grüße\n"
    tools.ok("kafka-console-producer", "--topic", "console", *reader, stdin=stdin)
    tools.write("console", "squeezed")
    shown = [
        "--formatter-property=print.key=true",
        "--formatter-property=print.offset=true",
        "--formatter-property=print.partition=true",
        "--formatter-property=print.timestamp=true",
    ]
    read = tools.read("console", 4, "--from-beginning", *shown)
    tail = tools.read("console", 2, "--partition", "0", "--offset", "2")
    assert [line.split("\t")[1:] for line in read] == [
        ["Partition:0", "Offset:0", "k1", "first"],
        ["Partition:0", "Offset:1", "k2", "second"],
        ["Partition:0", "Offset:2", "k1", "Grüße"],
        ["Partition:0", "Offset:3", "null", "squeezed"],
    ]
    assert all(line.startswith("CreateTime:") for line in read)
    assert tail == ["Grüße", "squeezed"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_the_console_tools_pass_every_codec(tools: Tools, codec: str) -> None:
    topic = f"console-{codec}"
    tools.ok("kafka-topics", "--create", "--topic", topic)
    lines = [f"{codec} {number} {'x' * 100}" for number in range(200)]
    tools.write(topic, *lines, **{"compression-codec": codec})
    assert tools.read(topic, 200, "--from-beginning") == lines
    committed = ["--isolation-level", "read_committed", "--partition", "0", "--offset", "150"]
    assert tools.read(topic, 50, *committed) == lines[150:]


def test_kafka_get_offsets_tells_beginnings_ends_and_times(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "places", "--partitions", "2")
    tools.write("places", "a", "b", "c")
    latest = [line.split(":") for line in tools.offsets("places")]
    assert [line[:2] for line in latest] == [["places", "0"], ["places", "1"]]
    assert sum(int(line[2]) for line in latest) == 3
    assert tools.offsets("places", "earliest") == ["places:0:0", "places:1:0"]
    assert tools.offsets("places", "-2") == ["places:0:0", "places:1:0"]
    filled = [partition for _, partition, end in latest if end != "0"]
    assert tools.offsets("places", "0") == [f"places:{partition}:0" for partition in filled]
    newest = tools.offsets("places", "max-timestamp")
    assert [line.split(":")[1] for line in newest] == filled


def test_kafka_consumer_groups_lists_describes_resets_and_deletes(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "grouped")
    tools.write("grouped", *[f"line {number}" for number in range(10)])
    tools.read("grouped", 10, "--from-beginning", "--group", "readers")
    of_group = ["--group", "readers"]
    listed = tools.ok("kafka-consumer-groups", "--list")
    states = tools.ok("kafka-consumer-groups", "--list", "--state")
    described = tools.ok("kafka-consumer-groups", "--describe", *of_group)
    state = tools.ok("kafka-consumer-groups", "--describe", *of_group, "--state")
    members = tools.ok("kafka-consumer-groups", "--describe", *of_group, "--members")
    reset = ["--reset-offsets", *of_group, "--topic", "grouped", "--to-offset", "4"]
    planned = tools.ok("kafka-consumer-groups", *reset, "--dry-run")
    tools.ok("kafka-consumer-groups", *reset, "--execute")
    moved = tools.ok("kafka-consumer-groups", "--describe", *of_group)
    rest = tools.read("grouped", 6, *of_group)
    forgot = tools.ok("kafka-consumer-groups", "--delete-offsets", *of_group, "--topic", "grouped")
    deleted = tools.ok("kafka-consumer-groups", "--delete", *of_group)
    nobody = tools.run("kafka-consumer-groups", "--describe", "--group", "nobody")

    def row(lines: list[str]) -> list[str]:
        return next(line.split() for line in lines if line.startswith("readers"))

    assert "readers" in listed
    assert row(states)[1] == "Empty"
    assert row(described)[1:6] == ["grouped", "0", "10", "10", "0"]
    assert row(state)[-2:] == ["Empty", "0"]
    assert not any(line.startswith("readers") for line in members)
    assert row(planned)[1:] == ["grouped", "0", "4"]
    assert row(moved)[1:6] == ["grouped", "0", "4", "10", "6"]
    assert rest == [f"line {number}" for number in range(4, 10)]
    assert any("Successful" in line for line in forgot), forgot
    assert any("was successful" in line for line in deleted), deleted
    assert "GroupIdNotFoundException" in nobody.stdout + nobody.stderr


def test_kafka_consumer_groups_shows_who_is_in_a_group(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "watched", "--partitions", "2")
    java = JavaClient(tools.driver, tools.bootstrap_server)
    configs = {"group.id": "watchers", "client.id": "watcher", "auto.offset.reset": "earliest"}
    java.client("join", configs, name="only", topics=["watched"])
    java.client("await", partitions=2)
    asked = ["kafka-consumer-groups", "--describe", "--group", "watchers"]
    members = tools.ok(*asked, "--members", "--verbose")
    state = tools.ok(*asked, "--state")
    groups = tools.ok("kafka-groups", "--list")
    refused = tools.run("kafka-consumer-groups", "--delete", "--group", "watchers")
    java.client("leave", name="only")

    (member,) = [line.split() for line in members if line.startswith("watchers")]
    assert member[1].startswith("watcher-")
    assert re.fullmatch(r"/127\.0\.0\.1", member[2])
    assert member[3:5] == ["watcher", "2"]
    assert "watched:0,1" in member, member
    (facts,) = [line.split() for line in state if line.startswith("watchers")]
    assert facts[-3:] == ["range", "Stable", "1"]
    (listed,) = [line.split() for line in groups if line.startswith("watchers")]
    assert listed[1:] == ["Classic", "consumer"]
    assert "GroupNotEmptyException" in refused.stdout


def test_kafka_configs_changes_topics_and_brokers(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "tuned")
    of_topic = ["--entity-type", "topics", "--entity-name", "tuned"]
    alter = ["--alter", "--add-config", "retention.ms=77000,cleanup.policy=[compact,delete]"]
    changed = tools.ok("kafka-configs", *of_topic, *alter)
    described = tools.ok("kafka-configs", *of_topic, "--describe")
    everything = tools.ok("kafka-configs", *of_topic, "--describe", "--all")
    tools.ok("kafka-configs", *of_topic, "--alter", "--delete-config", "retention.ms")
    after = tools.ok("kafka-configs", *of_topic, "--describe")
    refused = tools.run("kafka-configs", *of_topic, "--alter", "--add-config", "retention.ms=x")
    unknown = tools.run("kafka-configs", *of_topic, "--alter", "--add-config", "no.such=1")

    assert changed == ["Completed updating config for topic tuned."]
    text = "\n".join(described)
    assert "retention.ms=77000 sensitive=false" in text
    assert "cleanup.policy=compact,delete sensitive=false" in text
    assert len(everything) > 25
    assert not any("retention.ms=" in line for line in after)
    assert (refused.exit_code, unknown.exit_code) == (1, 1)

    of_brokers = ["--entity-type", "brokers", "--entity-default"]
    tools.ok(
        "kafka-configs", *of_brokers, "--alter", "--add-config", "log.cleaner.backoff.ms=20000"
    )
    # Kafka's broker hears of it a little later than the tool hears that it is done.
    told = eventually(
        lambda: "\n".join(tools.ok("kafka-configs", *of_brokers, "--describe")),
        lambda text: "log.cleaner.backoff.ms=20000" in text,
    )
    assert "log.cleaner.backoff.ms=20000" in told


def test_kafka_delete_records_moves_the_beginning(tools: Tools, tmp_path: Path) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "deleted")
    tools.write("deleted", *"abcdefgh")
    plan = {"partitions": [{"topic": "deleted", "partition": 0, "offset": 3}], "version": 1}
    file = tmp_path / "records.json"
    file.write_text(json.dumps(plan))
    said = tools.ok("kafka-delete-records", "--offset-json-file", str(file))
    assert any("low_watermark: 3" in line for line in said), said
    assert tools.offsets("deleted", "earliest") == ["deleted:0:3"]
    assert tools.read("deleted", 5, "--from-beginning") == list("defgh")


def test_the_perf_tests_produce_and_consume_all_they_were_asked_for(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "perf", "--partitions", "2")
    server = f"bootstrap.servers={tools.bootstrap_server}"
    load = ["--topic", "perf", "--num-records", "20000", "--record-size", "200"]
    options = ["--throughput", "-1", "--command-property", server, "compression.type=lz4"]
    produced = tools.driver.tool(CLASSES["kafka-producer-perf-test"], *load, *options)
    count = ["--topic", "perf", "--num-records", "20000", "--timeout", "20000"]
    consumed = tools.ok("kafka-consumer-perf-test", *count)
    assert produced.exit_code == 0, produced
    assert "20000 records sent" in produced.lines[-1]
    names = [name.strip() for name in consumed[0].split(",")]
    facts = dict(zip(names, (value.strip() for value in consumed[-1].split(",")), strict=False))
    assert facts["data.consumed.in.nMsg"] == "20000", consumed


def test_kafka_log_dirs_and_kafka_cluster_know_the_broker(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "sized")
    tools.write("sized", "x" * 500)
    said = tools.ok("kafka-log-dirs", "--describe", "--topic-list", "sized")
    (broker,) = json.loads(said[-1])["brokers"]
    (partition,) = broker["logDirs"][0]["partitions"]
    assert partition["partition"] == "sized-0"
    assert 500 < partition["size"] < 700
    cluster = tools.driver.tool(
        CLASSES["kafka-cluster"], "cluster-id", "--bootstrap-server", tools.bootstrap_server
    )
    assert re.fullmatch(r"Cluster ID: \S{22}", cluster.lines[-1]), cluster


def test_a_partition_is_reassigned_with_a_throttle_to_where_it_is(
    tools: Tools, tmp_path: Path
) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "placed", "--partitions", "2")
    wanted = {"topic": "placed", "partition": 0, "replicas": [1]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    options = ("--reassignment-json-file", str(plan))
    begun = tools.ok("kafka-reassign-partitions", *options, "--execute", "--throttle", "1000")
    assert begun[-1] == "Successfully started partition reassignment for placed-0"
    done = tools.ok("kafka-reassign-partitions", *options, "--verify")
    assert "Reassignment of partition placed-0 is completed." in done
    assert "Clearing broker-level throttles on broker 1" in done
    found = tools.ok("kafka-reassign-partitions", "--list")
    assert found[-1] == "No partition reassignments found."


def test_what_one_node_without_an_authorizer_tells_administrators(tools: Tools) -> None:
    tools.ok("kafka-topics", "--create", "--topic", "asked", "--partitions", "1")
    election = ("--election-type", "preferred", "--all-topic-partitions")
    assert tools.ok("kafka-leader-election", *election) == []
    quorum = tools.ok("kafka-metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId: +1\b", "\n".join(quorum))
    (heading,) = tools.ok("kafka-transactions", "list")
    assert heading.split()[0] == "TransactionalId"
    of_partition = ("describe-producers", "--topic", "asked", "--partition", "0")
    (heading,) = tools.ok("kafka-transactions", *of_partition)
    assert heading.split()[0] == "ProducerId"
    refused = tools.run("kafka-acls", "--list")
    assert refused.exit_code != 0
    group = ("--entity-type", "groups", "--entity-name", "g", "--describe", "--all")
    told = tools.ok("kafka-configs", *group)
    assert any("consumer.session.timeout.ms=45000" in line for line in told)


def test_kafka_broker_api_versions_finds_nothing_that_it_cannot_use(tools: Tools) -> None:
    said = "\n".join(tools.ok("kafka-broker-api-versions"))
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "ApiVersions(18)", "JoinGroup(11)"):
        (line,) = [line for line in said.splitlines() if f"{api}:" in line]
        assert "usable" in line, line
