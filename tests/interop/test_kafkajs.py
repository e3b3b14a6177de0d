"""KafkaJS, which asks for the oldest versions of any client here, through our broker."""

import json
import subprocess
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any

import pytest
from tools_brokers import ours
from tools_fetched import KAFKAJS, Command, ToolUnavailableError, kafkajs

pytestmark = pytest.mark.interop

START_MS = 1_700_000_000_000


class KafkaJs:
    """The process: one question at a time, one line each way."""

    def __init__(self, command: Command, bootstrap_server: str) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115  lives as long as the process
        self._process = subprocess.Popen(
            [*command.words, bootstrap_server],
            env=dict(command.environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()
        self._errors.close()

    def told(self, op: str, **question: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **question}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise AssertionError(self._errors.read()[-3000:])
        return json.loads(line)

    def admin(self, call: str, argument: object = None) -> Any:
        return self.told("admin", call=call, argument=argument)

    def create(self, topic: str, partitions: int = 1) -> None:
        wanted = {"topic": topic, "numPartitions": partitions}
        assert self.admin("createTopics", {"topics": [wanted]}) is True


@pytest.fixture(scope="module")
def command() -> Command:
    try:
        return kafkajs(KAFKAJS / "clients.js")
    except ToolUnavailableError as error:
        pytest.skip(f"KafkaJS cannot be had here: {error}")


@pytest.fixture(scope="module")
def client(command: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaJs]:
    with ours(tmp_path_factory.mktemp("kafkajs")) as address:
        process = KafkaJs(command, address)
        yield process
        process.close()


@pytest.mark.parametrize("codec", ["None", "GZIP"])  # the others need codecs it does not bring
@pytest.mark.parametrize("is_idempotent", [False, True])
def test_messages_come_back_as_they_were_sent(
    client: KafkaJs, codec: str, is_idempotent: bool
) -> None:
    topic = f"messages-{codec}-{is_idempotent}"
    client.create(topic)
    messages = [
        {"key": "k", "value": "Grüße", "timestamp": str(START_MS), "headers": {"h": "1"}},
        {"key": None, "value": "no key", "timestamp": str(START_MS + 1)},
        {"key": "deleted", "value": None, "timestamp": str(START_MS + 2)},
    ]
    (placed,) = client.told(
        "produce", topic=topic, messages=messages, codec=codec, idempotent=is_idempotent
    )
    client.told("join", name="only", groupId=f"g-{topic}", topic=topic)
    read = client.told("settled", partitions=1, records=3)["only"]["records"]
    client.told("leave", name="only")

    assert (placed["errorCode"], placed["baseOffset"]) == (0, "0")
    for offset, (sent, found) in enumerate(zip(messages, read, strict=True)):
        wanted = {"headers": {}, **sent, "timestamp": START_MS + offset}
        assert found == {**wanted, "partition": 0, "offset": offset}


@pytest.mark.parametrize("acks", [0, 1])
def test_a_producer_that_waits_for_less_is_served_too(client: KafkaJs, acks: int) -> None:
    topic = f"acks-{acks}"
    client.create(topic)
    client.told("produce", topic=topic, messages=[{"value": "v"}], acks=acks)
    client.told("join", name="only", groupId=f"g-{topic}", topic=topic)
    read = client.told("settled", partitions=1, records=1)["only"]["records"]
    client.told("leave", name="only")
    assert [each["value"] for each in read] == ["v"]


def test_three_members_share_a_topic_and_hand_over(client: KafkaJs) -> None:
    client.create("shared", partitions=6)
    messages = [{"partition": n % 6, "value": str(n)} for n in range(120)]
    for name in ("a", "b", "c"):
        client.told("join", name=name, groupId="sharers", topic="shared")
    together = client.told("settled", partitions=6, records=0)
    client.told("produce", topic="shared", messages=messages)
    client.told("settled", partitions=6, records=120)
    (group,) = client.admin("describeGroups", ["sharers"])["groups"]
    left = client.told("leave", name="b")
    client.told("produce", topic="shared", messages=messages)
    rest = client.told("settled", partitions=6, records=240 - len(left["records"]))
    ends = [left, *(client.told("leave", name=name) for name in ("a", "c"))]

    assert [len(member["held"]) for member in together.values()] == [2, 2, 2]
    assert (group["state"], group["protocol"], len(group["members"])) == (
        "Stable",
        "RoundRobinAssigner",
        3,
    )
    assert [len(member["held"]) for member in rest.values()] == [3, 3]
    read = sorted((each["partition"], each["offset"]) for end in ends for each in end["records"])
    assert read == [(partition, offset) for partition in range(6) for offset in range(40)]


def test_the_admin_client_works_on_topics(client: KafkaJs) -> None:
    client.create("administered", partitions=2)
    again = client.admin(
        "createTopics", {"topics": [{"topic": "administered", "numPartitions": 1}]}
    )
    grown = {"topicPartitions": [{"topic": "administered", "count": 3}]}
    client.admin("createPartitions", grown)
    metadata = client.admin("fetchTopicMetadata", {"topics": ["administered"]})
    client.told("produce", topic="administered", messages=[{"partition": 1, "value": "v"}] * 4)
    offsets = client.admin("fetchTopicOffsets", "administered")
    cut = {"topic": "administered", "partitions": [{"partition": 1, "offset": "3"}]}
    client.admin("deleteTopicRecords", cut)
    after = client.admin("fetchTopicOffsets", "administered")
    cluster = client.admin("describeCluster")
    deleted = client.admin("deleteTopics", {"topics": ["administered"]})
    listed = client.admin("listTopics")

    assert again is False
    assert len(metadata["topics"][0]["partitions"]) == 3
    ends = {each["partition"]: (each["low"], each["high"]) for each in offsets}
    assert ends == {0: ("0", "0"), 1: ("0", "4"), 2: ("0", "0")}
    assert {each["low"] for each in after if each["partition"] == 1} == {"3"}
    assert cluster["controller"] == cluster["brokers"][0]["nodeId"]
    assert "error" not in (deleted or {})
    assert "administered" not in listed


def test_the_admin_client_works_on_configs(client: KafkaJs) -> None:
    client.create("configured")
    topic = {"type": 2, "name": "configured"}
    entries = [{"name": "retention.ms", "value": "123456"}]
    changed = client.admin(
        "alterConfigs", {"validateOnly": False, "resources": [{**topic, "configEntries": entries}]}
    )
    wanted = {**topic, "configNames": ["retention.ms"]}
    told = client.admin("describeConfigs", {"resources": [wanted], "includeSynonyms": False})
    (entry,) = told["resources"][0]["configEntries"]
    assert changed["resources"][0]["errorCode"] == 0
    assert (entry["configName"], entry["configValue"]) == ("retention.ms", "123456")


def test_the_admin_client_works_on_groups(client: KafkaJs) -> None:
    client.create("offsets")
    client.told("produce", topic="offsets", messages=[{"value": str(n)} for n in range(5)])
    moved = {"groupId": "moved", "topic": "offsets"}
    client.admin("setOffsets", {**moved, "partitions": [{"partition": 0, "offset": "3"}]})
    (fetched,) = client.admin("fetchOffsets", {"groupId": "moved", "topics": ["offsets"]})
    client.told("join", name="only", groupId="moved", topic="offsets")
    read = client.told("settled", partitions=1, records=2)["only"]["records"]
    client.told("leave", name="only")
    groups = client.admin("listGroups")["groups"]
    deleted = client.admin("deleteGroups", ["moved"])

    assert [each["offset"] for each in fetched["partitions"]] == ["3"]
    assert [each["value"] for each in read] == ["3", "4"]
    assert {"groupId": "moved", "protocolType": "consumer"} in groups
    assert deleted == [{"groupId": "moved", "errorCode": 0}]


def test_a_topic_that_is_not_there_is_told_as_an_error(client: KafkaJs) -> None:
    failed = client.admin("fetchTopicMetadata", {"topics": ["absent"]})
    assert failed["type"] == "UNKNOWN_TOPIC_OR_PARTITION"
