"""Requests that are well formed and aim at what comes later: at the answers that others are given,
at what the broker keeps, at the size of their own answer."""

from collections.abc import Iterator
from typing import Any

import pytest
from hostile import Client, Healthy, ServedBroker, served_broker

from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import encode_request
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest
from stratalog.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from stratalog.protocol.messages.find_coordinator import FindCoordinatorRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from stratalog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from stratalog.protocol.messages.list_groups import ListGroupsRequest
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MIB = 1 << 20
PEAK_BYTES_MAX = 256 * MIB
# In requests that still have plain lengths, so that one text can stand for another of its length.
PLAIN_JOIN = 5
TEXT, NOT_UTF_8 = "G" * 20_000, b"\xff" * 20_000
LONG_NAME = "n" * 32_760


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBroker]:
    with served_broker(tmp_path_factory.mktemp("requests") / "broker") as found:
        with found.client() as client:
            wanted = FindCoordinatorRequest(coordinator_keys=["victim"])
            while client.ask(ApiKey.FIND_COORDINATOR, wanted).coordinators[0].error_code:
                pass  # the topic that groups live in is being made
        yield found


def join_request(group_id: str, **changes: Any) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=600_000,
        rebalance_timeout_ms=3_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"r")],
    )._replace(**changes)


def listed(broker: ServedBroker) -> list[str]:
    with broker.client() as client:
        answer = client.ask(ApiKey.LIST_GROUPS, ListGroupsRequest())
        assert answer.error_code == 0
        return [group.group_id for group in answer.groups]


def described(broker: ServedBroker, group_id: str) -> DescribedGroup:
    with broker.client() as client:
        request = DescribeGroupsRequest([group_id])
        found: DescribedGroup = client.ask(ApiKey.DESCRIBE_GROUPS, request).groups[0]
        return found


class Consumer:
    """The only member of its group, with what it has assigned to itself."""

    def __init__(self, client: Client, group_id: str, **changes: Any) -> None:
        self._client, self._group_id = client, group_id
        request = join_request(group_id, **changes)
        joined = client.ask(ApiKey.JOIN_GROUP, request)
        assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.member_id = joined.member_id
        joined = client.ask(ApiKey.JOIN_GROUP, request._replace(member_id=self.member_id))
        assert (joined.error_code, joined.leader) == (0, self.member_id)
        self._generation_id = joined.generation_id
        synced = client.ask(
            ApiKey.SYNC_GROUP,
            SyncGroupRequest(
                group_id,
                joined.generation_id,
                self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequestAssignment(self.member_id, b"mine")],
            ),
        )
        assert (synced.error_code, synced.assignment) == (0, b"mine")

    def heartbeat(self) -> int:
        request = HeartbeatRequest(self._group_id, self._generation_id, self.member_id)
        code: int = self._client.ask(ApiKey.HEARTBEAT, request).error_code
        return code


HOSTILE_JOINS: dict[str, tuple[str, JoinGroupRequest]] = {
    "client id": (TEXT, join_request("victim", group_instance_id="i")),
    "group id": ("me", join_request(TEXT)),
    "group id of a static member": ("me", join_request(TEXT, group_instance_id="i")),
    "group instance id": ("me", join_request("victim", group_instance_id=TEXT)),
    "protocol name": (
        "me",
        join_request(
            "victim",
            group_instance_id="i",
            protocols=[JoinGroupRequestProtocol(name, b"r") for name in (TEXT, "range")],
        ),
    ),
    "protocol type": ("me", join_request("new", group_instance_id="i", protocol_type=TEXT)),
}


def test_a_healthy_group_goes_on_whatever_others_call_themselves(broker: ServedBroker) -> None:
    with broker.client() as client:
        consumer = Consumer(client, "victim")
        before = described(broker, "victim")
        for which, (client_id, request) in HOSTILE_JOINS.items():
            parts = encode_request(ApiKey.JOIN_GROUP, PLAIN_JOIN, 7, client_id, request)
            frame = b"".join(parts).replace(TEXT.encode(), NOT_UTF_8)  # type: ignore[arg-type]
            assert frame.count(NOT_UTF_8) == 1
            with broker.client() as hostile:
                hostile.send(frame)
                assert hostile.is_closed_by_broker(), which
            assert listed(broker) == ["victim"], which
            assert described(broker, "victim") == before, which
            assert consumer.heartbeat() == 0, which
        assert before.group_state == "Stable"
        assert [member.member_id for member in before.members] == [consumer.member_id]


@pytest.mark.parametrize("text", ["x" * 32_767, "\U0001f980" * 8_191], ids=["narrow", "wide"])
def test_a_client_id_as_long_as_they_may_be_does_no_harm(broker: ServedBroker, text: str) -> None:
    group_id = f"of {text[0]}"
    with broker.client() as client:
        frame = encode_request(ApiKey.JOIN_GROUP, PLAIN_JOIN, 7, text, join_request(group_id))
        client.send(b"".join(frame))  # type: ignore[arg-type]
        member_id = client.answer(ApiKey.JOIN_GROUP, PLAIN_JOIN).member_id
        request = join_request(group_id, member_id=member_id)
        frame = encode_request(ApiKey.JOIN_GROUP, PLAIN_JOIN, 7, text, request)
        client.send(b"".join(frame))  # type: ignore[arg-type]
        joined = client.answer(ApiKey.JOIN_GROUP, PLAIN_JOIN)
        assert (joined.error_code, joined.leader) == (0, member_id)

        (member,) = described(broker, group_id).members
        assert (member.client_id, member.member_id) == (text, member_id)
        assert group_id in listed(broker)


# --- answers that repeat what was asked -----------------------------------------------------------


def test_each_partition_is_told_its_error_though_the_topics_name_is_as_long_as_they_may_be(
    broker: ServedBroker,
) -> None:
    data = [PartitionProduceData(index, b"records" * 10) for index in range(3)]
    request = ProduceRequest(
        acks=1, timeout_ms=1_000, topic_data=[TopicProduceData(LONG_NAME, partition_data=data)]
    )
    with broker.client() as client:
        (topic,) = client.ask(ApiKey.PRODUCE, request, 8).responses

    assert topic.name == LONG_NAME
    answers = topic.partition_responses
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(each.index, each.error_code) for each in answers] == [(n, unknown) for n in range(3)]
    assert all(each.error_message.endswith(f"partition {each.index}") for each in answers)


def test_a_config_value_as_long_as_they_may_be_is_refused_with_its_rule(
    broker: ServedBroker,
) -> None:
    config = AlterableConfig("retention.ms", 0, LONG_NAME)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(2, "orders", [config])])
    with broker.client() as client:
        (answer,) = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, 1).responses

    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert answer.error_message.startswith("retention.ms=nnn")
    assert "…" in answer.error_message
    assert not answer.error_message.endswith("n"), "which rule it breaks is told at the end"


def test_a_group_that_is_not_there_is_told_to_be_whatever_its_name(broker: ServedBroker) -> None:
    found = described(broker, LONG_NAME)

    assert (found.group_id, found.error_code) == (LONG_NAME, ErrorCode.GROUP_ID_NOT_FOUND)
    assert found.error_message.endswith("not found.")


def test_a_topic_that_cannot_be_deleted_is_told_whatever_its_name(broker: ServedBroker) -> None:
    with broker.client() as client:
        request = DeleteTopicsRequest(topic_names=[LONG_NAME], timeout_ms=1_000)
        (answer,) = client.ask(ApiKey.DELETE_TOPICS, request, 5).responses

    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- what a request costs before a handler has seen it --------------------------------------------


def test_millions_of_empty_topics_are_refused_before_they_take_memory(broker: ServedBroker) -> None:
    empty_topics = [TopicProduceData(partition_data=())] * (12 * MIB // 3)
    request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=empty_topics)
    frame = b"".join(encode_request(ApiKey.PRODUCE, 9, 7, "me", request))  # type: ignore[arg-type]
    healthy = Healthy(broker)

    with broker.client() as client:
        client.send(frame)
        assert client.is_closed_by_broker()

    healthy.is_served()
    healthy.close()
    assert broker.peak_rss_bytes() < PEAK_BYTES_MAX
    assert any("names 4194304 things" in line for line in broker.log_lines())
