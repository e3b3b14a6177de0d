"""Requests about groups, in every version there is: each goes through its codec, and so does each
answer. What groups do is told in tests/coordinator."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from broker_parts import broker_parts, create_topic

from stratalog.broker.handlers.groups import GroupHandlers, deleted_topics, make_coordinator
from stratalog.broker.requests import Request
from stratalog.broker.services import Services
from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import CommittedOffset
from stratalog.coordinator.offsets import TransactionalOffset
from stratalog.metadata.image import MetadataChange, Update
from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.codec import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.delete_groups import DeleteGroupsRequest
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.find_coordinator import FindCoordinatorRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from stratalog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from stratalog.protocol.messages.list_groups import ListGroupsRequest
from stratalog.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from stratalog.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from stratalog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from stratalog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from stratalog.storage.layout import TopicPartition
from stratalog.topic_names import OFFSETS_TOPIC

QUICK = {"offsets_topic_num_partitions": 4, "group_initial_rebalance_delay_ms": 0}
NOWHERE = bytes(range(16))
SUBSCRIPTION = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\xff\xff\xff\xff"


class Groups:
    """A client of the group handlers that takes answers whenever they come."""

    host = "/127.0.0.1"

    def __init__(self, services: Services, name: str = "g") -> None:
        self.services = services
        self.name = name
        self._handlers = GroupHandlers(services).table()
        self._answers: dict[int, Any] = {}
        self._requests = 0

    def answer(self, request: Request, response: Any) -> None:
        assert request.correlation_id not in self._answers, "it is answered twice"
        self._answers[request.correlation_id] = response

    def answer_nothing(self, request: Request) -> None:
        raise AssertionError("there is an answer")

    def close_for(self, request: Request, reason: str) -> None:
        raise AssertionError(f"the connection was closed: {reason}")

    def settle(self) -> None:
        groups, clock = self.services.groups, self.services.clock
        while (due_ms := groups.next_deadline_ms()) is not None and due_ms <= clock.now_ms():
            groups.run_due(clock.now_ms())

    def ask(self, key: ApiKey, body: Any, version: int | None = None) -> Any:
        """The answer, or None while there is none."""
        if version is None:
            version = SUPPORTED[key].highest
        self._requests = number = self._requests + 1
        frame = b"".join(encode_request(key, version, number, "me", body))[4:]  # type: ignore[arg-type]
        header, position = decode_request_header(frame)
        seen = decode_request(key, version, frame, position)
        request = Request(key, version, header.correlation_id, "me", seen, self)
        answer = self._handlers[key](request)
        if answer is not None:
            self.answer(request, answer)
        self.settle()
        answer = self._answers.get(number)
        if answer is None:
            return None
        sent = b"".join(encode_response(key, version, number, answer))[4:]  # type: ignore[arg-type]
        return decode_response(key, version, sent)[1]

    # --- requests -----------------------------------------------------------------------------

    def topic_id(self, name: str = "t") -> bytes:
        return self.services.store.image.topics[name].topic_id.bytes

    def commit(self, offset: int, version: int = 9, partition: int = 0, **changes: Any) -> Any:
        topic = OffsetCommitRequestTopic(
            "t", self.topic_id(), [OffsetCommitRequestPartition(partition, offset, 3, "meta")]
        )
        return self.ask(
            ApiKey.OFFSET_COMMIT,
            OffsetCommitRequest(group_id=self.name, topics=[topic])._replace(**changes),
            version,
        )

    def join(self, version: int = 9, **changes: Any) -> Any:
        """As a client joins: if it is told to come back with an id, it does."""
        request = JoinGroupRequest(
            group_id=self.name,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
            reason="why not",
        )._replace(**changes)
        answer = self.ask(ApiKey.JOIN_GROUP, request, version)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            assert version >= 4
            again = request._replace(member_id=answer.member_id)
            answer = self.ask(ApiKey.JOIN_GROUP, again, version)
        return answer

    def sync(self, member_id: str, version: int = 5, generation_id: int = 1) -> Any:
        request = SyncGroupRequest(
            group_id=self.name,
            generation_id=generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id, b"all of it")],
        )
        return self.ask(ApiKey.SYNC_GROUP, request, version)

    @property
    def group(self) -> Group:
        found = self.services.groups.find(self.name)
        assert isinstance(found, Group)
        return found

    @property
    def group_of_nobody(self) -> Group:
        self.commit(5)
        self.group.offsets.remove("t", 0)
        return self.group

    def stable_member(self) -> str:
        member_id: str = self.join().member_id
        assert self.sync(member_id).error_code == 0
        return member_id


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """One broker for all tests that need nothing but a group of their own."""

    async def prepare() -> tuple[Any, Services]:
        parts = broker_parts(tmp_path_factory.mktemp("groups"), **QUICK)
        services = await parts.__aenter__()
        services.groups = make_coordinator(services, lambda _deadline_ms: None)
        await create_topic(services, OFFSETS_TOPIC, 4)
        await create_topic(services, "t", 2)
        return parts, services

    with asyncio.Runner() as runner:
        parts, services = runner.run(prepare())
        yield services
        runner.run(parts.__aexit__(None, None, None))


@pytest.fixture
def groups(services: Services, request: pytest.FixtureRequest) -> Groups:
    found = Groups(services, request.node.name)
    found.settle()
    return found


Scenario = Callable[[Groups], Awaitable[None] | None]


def run(path: Path, scenario: Scenario, *, has_topic: bool = True) -> None:
    async def inside() -> None:
        async with broker_parts(path, **QUICK) as services:
            services.groups = make_coordinator(services, lambda _deadline_ms: None)
            groups = Groups(services)
            if has_topic:
                await create_topic(services, OFFSETS_TOPIC, 4)
                await create_topic(services, "t", 2)
                groups.settle()
            result = scenario(groups)
            if result is not None:
                await result

    asyncio.run(inside())


def versions(key: ApiKey) -> list[Any]:
    return [
        pytest.param(version, id=f"v{version}")
        for version in range(SUPPORTED[key].lowest, SUPPORTED[key].highest + 1)
    ]


# --- FindCoordinator ----------------------------------------------------------------------------


def test_the_offsets_topic_is_made_when_a_coordinator_is_first_asked_for(tmp_path: Path) -> None:
    async def scenario(groups: Groups) -> None:
        request = FindCoordinatorRequest(key="g")
        for _ in range(3):
            answer = groups.ask(ApiKey.FIND_COORDINATOR, request, 1)
            assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)
        await asyncio.sleep(0)
        await groups.services.topics.finish()
        groups.settle()

        answer = groups.ask(ApiKey.FIND_COORDINATOR, request, 1)

        assert answer.error_code == 0
        assert answer.error_message == "NONE"
        assert (answer.node_id, answer.host, answer.port) == (
            groups.services.node_id,
            "127.0.0.1",
            9092,
        )
        topic = groups.services.store.image.topics[OFFSETS_TOPIC]
        assert len(topic.partitions) == 4
        assert topic.configs["cleanup.policy"] == "compact"

    run(tmp_path, scenario, has_topic=False)


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_a_coordinator_is_found_in_every_version(groups: Groups, version: int) -> None:
    request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"])

    answer = groups.ask(ApiKey.FIND_COORDINATOR, request, version)

    if version < 4:
        assert (answer.error_code, answer.port) == (0, 9092)
    else:
        assert [(each.key, each.port) for each in answer.coordinators] == [
            ("g", 9092),
            ("h", 9092),
        ]


@pytest.mark.parametrize(
    ("key_type", "code"),
    [
        (2, ErrorCode.INVALID_REQUEST),
        (9, ErrorCode.INVALID_REQUEST),
    ],
)
def test_there_are_coordinators_of_groups_alone(
    groups: Groups, key_type: int, code: ErrorCode
) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"])

    (found,) = groups.ask(ApiKey.FIND_COORDINATOR, request).coordinators

    assert (found.key, found.error_code, found.node_id) == ("x", code, -1)
    assert found.error_message == ("There is no coordinator of type 9." if key_type == 9 else "")


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_who_wants_transactions_is_told_why_there_are_none_by_an_error_that_ends_the_search(
    groups: Groups, version: int
) -> None:
    request = FindCoordinatorRequest(key="t", key_type=1, coordinator_keys=["t"])

    answer = groups.ask(ApiKey.FIND_COORDINATOR, request, max(version, 1))

    found = answer if version < 4 else answer.coordinators[0]
    old, new = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION
    assert found.error_code == (old if version < 4 else new)
    assert "stratalog has no transactions" in found.error_message


def test_a_partition_of_the_offsets_topic_that_is_not_led_here_has_no_coordinator(
    tmp_path: Path,
) -> None:
    def scenario(groups: Groups) -> None:
        partition = groups.services.groups.partition_for("g")
        groups.services.replicas.drop(TopicPartition(OFFSETS_TOPIC, partition))

        (found,) = groups.ask(
            ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["g"])
        ).coordinators

        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(tmp_path, scenario)


def test_groups_end_with_the_offsets_topic(tmp_path: Path) -> None:
    async def scenario(groups: Groups) -> None:
        member_id = groups.stable_member()
        topic = groups.services.store.image.topics[OFFSETS_TOPIC]

        await groups.services.topics.delete([topic.topic_id])

        answer = groups.ask(ApiKey.HEARTBEAT, HeartbeatRequest("g", 1, member_id))
        assert answer.error_code == ErrorCode.NOT_COORDINATOR

    run(tmp_path, scenario)


# --- members ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_joins_in_every_version(groups: Groups, version: int) -> None:
    answer = groups.join(version)

    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert answer.protocol_name == "range"
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("me-")
    assert [member.metadata for member in answer.members] == [SUBSCRIPTION]
    member = groups.group.members[answer.member_id]
    # The first version knows no rebalance timeout, and means the session's.
    assert member.rebalance_timeout_ms == (60_000 if version else 10_000)
    assert member.client_host == "/127.0.0.1"


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_refused_join_can_be_read_in_every_version(groups: Groups, version: int) -> None:
    answer = groups.join(version, session_timeout_ms=1)

    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert answer.generation_id == -1
    assert answer.protocol_name == ("" if version < 7 else None)


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
def test_a_member_syncs_in_every_version(groups: Groups, version: int) -> None:
    member_id = groups.join().member_id

    answer = groups.sync(member_id, version)

    assert (answer.error_code, answer.assignment) == (0, b"all of it")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


def test_a_sync_that_has_to_name_its_protocol_and_does_not_is_refused(groups: Groups) -> None:
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m")

    answer = groups.ask(ApiKey.SYNC_GROUP, request, 5)

    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
def test_heartbeats_are_answered_in_every_version(groups: Groups, version: int) -> None:
    member_id = groups.stable_member()
    request = HeartbeatRequest(groups.name, 1, member_id)

    assert groups.ask(ApiKey.HEARTBEAT, request, version).error_code == 0
    wrong = request._replace(generation_id=5)
    answer = groups.ask(ApiKey.HEARTBEAT, wrong, version)
    assert answer.error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_members_leave_in_every_version(groups: Groups, version: int) -> None:
    member_id = groups.stable_member()
    members = [MemberIdentity(member_id, None, "done"), MemberIdentity("stranger", None, None)]
    request = LeaveGroupRequest(groups.name, member_id, members)

    answer = groups.ask(ApiKey.LEAVE_GROUP, request, version)

    assert answer.error_code == 0
    if version >= 3:
        assert [(each.member_id, each.error_code) for each in answer.members] == [
            (member_id, 0),
            ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        ]
    again = groups.ask(ApiKey.LEAVE_GROUP, request, version)
    if version < 3:
        assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


# --- offsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_offsets_are_committed_in_every_version(groups: Groups, version: int) -> None:
    answer = groups.commit(5, version)

    (topic,) = answer.topics
    assert [tuple(each) for each in topic.partitions] == [(0, 0)]
    if version >= 10:
        assert topic.topic_id == groups.topic_id()
    else:
        assert topic.name == "t"
    group = groups.group
    committed = group.offsets.get("t", 0)
    assert committed is not None
    assert (committed.offset, committed.metadata) == (5, "meta")
    assert committed.leader_epoch == (3 if version >= 6 else -1)
    assert committed.topic_id == groups.topic_id()


@pytest.mark.parametrize("version", [9, 10])
def test_offsets_of_partitions_that_there_are_not_are_refused_each_by_itself(
    groups: Groups, version: int
) -> None:
    partitions = [OffsetCommitRequestPartition(number, 1) for number in (0, 7, -1)]
    topics = [
        OffsetCommitRequestTopic("t", groups.topic_id(), partitions),
        OffsetCommitRequestTopic("none", NOWHERE, partitions[:1]),
    ]

    answer = groups.commit(0, version, topics=topics)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = {
        (each.topic_id if version >= 10 else each.name): sorted(map(tuple, each.partitions))
        for each in answer.topics
    }
    none = NOWHERE if version >= 10 else "none"
    there = groups.topic_id() if version >= 10 else "t"
    assert codes == {
        there: [(-1, unknown), (0, 0), (7, unknown)],
        none: [(0, ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else unknown)],
    }


def test_a_commit_of_nothing_is_answered(groups: Groups) -> None:
    assert groups.commit(0, topics=[]).topics in ((), [])


def fetch_request(
    version: int, topic_id: bytes, name: str = "g", *, everything: bool = False
) -> OffsetFetchRequest:
    if version < 8:
        topics = None if everything else [OffsetFetchRequestTopic("t", [0, 1])]
        return OffsetFetchRequest(group_id=name, topics=topics)
    asked = None if everything else [OffsetFetchRequestTopics("t", topic_id, [0, 1])]
    groups = [
        OffsetFetchRequestGroup(name, topics=asked),
        OffsetFetchRequestGroup("h", topics=asked),
    ]
    return OffsetFetchRequest(groups=groups, require_stable=True)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_offsets_are_fetched_in_every_version(groups: Groups, version: int) -> None:
    groups.commit(5)

    answer = groups.ask(
        ApiKey.OFFSET_FETCH, fetch_request(version, groups.topic_id(), groups.name), version
    )

    group = answer
    if version >= 8:
        group, other = answer.groups
        assert (group.group_id, other.group_id) == (groups.name, "h")
        assert [each.committed_offset for each in other.topics[0].partitions] == [-1, -1]
    (topic,) = group.topics
    found = [(each.partition_index, each.committed_offset) for each in topic.partitions]
    assert found == [(0, 5), (1, -1)]
    assert [each.metadata for each in topic.partitions] == ["meta", ""]
    assert [each.error_code for each in topic.partitions] == [0, 0]


@pytest.mark.parametrize("version", [2, 7, 8, 10])
def test_all_offsets_of_a_group_can_be_asked_for(groups: Groups, version: int) -> None:
    groups.commit(5)
    groups.commit(6, partition=1)

    request = fetch_request(version, b"", groups.name, everything=True)
    answer = groups.ask(ApiKey.OFFSET_FETCH, request, version)

    (topic,) = answer.topics if version < 8 else answer.groups[0].topics
    found = [(each.partition_index, each.committed_offset) for each in topic.partitions]
    assert found == [(0, 5), (1, 6)]
    if version >= 10:
        assert topic.topic_id == groups.topic_id()


def test_offsets_of_a_topic_id_that_there_is_not_are_an_error_of_their_own(groups: Groups) -> None:
    answer = groups.ask(ApiKey.OFFSET_FETCH, fetch_request(10, NOWHERE), 10)

    (topic,) = answer.groups[0].topics
    assert topic.topic_id == NOWHERE
    codes = [each.error_code for each in topic.partitions]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_ID] * 2


def test_a_fetch_for_no_group_is_answered(groups: Groups) -> None:
    assert not groups.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(), 8).groups


def test_offsets_of_an_open_transaction_are_not_stable(groups: Groups) -> None:
    groups.commit(5)
    pending = {("t", 0): TransactionalOffset(1, CommittedOffset(9))}
    groups.group.offsets.transactional[1] = pending
    request = fetch_request(9, b"", groups.name)

    stable = groups.ask(ApiKey.OFFSET_FETCH, request, 9).groups[0].topics[0].partitions[0]
    request = request._replace(require_stable=False)
    last = groups.ask(ApiKey.OFFSET_FETCH, request, 9).groups[0].topics[0].partitions[0]

    assert (stable.committed_offset, stable.error_code) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert (last.committed_offset, last.error_code) == (5, 0)


def test_offsets_of_a_topic_that_is_gone_cannot_be_named_by_id(groups: Groups) -> None:
    groups.group_of_nobody.offsets.put("gone", 0, CommittedOffset(1))
    request = fetch_request(10, b"", groups.name, everything=True)

    assert not groups.ask(ApiKey.OFFSET_FETCH, request, 10).groups[0].topics
    assert groups.ask(ApiKey.OFFSET_FETCH, request, 9).groups[0].topics[0].name == "gone"


def test_a_fetch_from_the_wrong_coordinator_is_told_so_in_every_version(tmp_path: Path) -> None:
    def codes(answer: Any, version: int) -> set[int]:
        if version < 2:
            return {each.error_code for topic in answer.topics for each in topic.partitions}
        if version < 8:
            return {answer.error_code}
        return {group.error_code for group in answer.groups}

    def scenario(groups: Groups) -> None:
        known = SUPPORTED[ApiKey.OFFSET_FETCH]
        for version in range(known.lowest, known.highest + 1):
            request = fetch_request(version, NOWHERE)
            answer = groups.ask(ApiKey.OFFSET_FETCH, request, version)
            assert codes(answer, version) == {ErrorCode.NOT_COORDINATOR}

    run(tmp_path, scenario, has_topic=False)


def test_offsets_are_deleted(groups: Groups) -> None:
    groups.commit(5)
    partitions = [OffsetDeleteRequestPartition(number) for number in (0, 9)]
    topics = [
        OffsetDeleteRequestTopic("t", partitions),
        OffsetDeleteRequestTopic("none", partitions[:1]),
    ]
    request = OffsetDeleteRequest(groups.name, topics)

    answer = groups.ask(ApiKey.OFFSET_DELETE, request)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code == 0
    assert {each.name: sorted(map(tuple, each.partitions)) for each in answer.topics} == {
        "t": [(0, 0), (9, unknown)],
        "none": [(0, unknown)],
    }
    nobody = groups.ask(ApiKey.OFFSET_DELETE, request._replace(group_id="nobody"))
    assert nobody.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_offsets_of_a_topic_go_with_it(tmp_path: Path) -> None:
    async def scenario(groups: Groups) -> None:
        groups.commit(5)
        topic = groups.services.store.image.topics["t"]

        await groups.services.topics.delete([topic.topic_id])
        await asyncio.sleep(0)

        (group,) = groups.services.groups.all()
        assert not group.offsets

    run(tmp_path, scenario)


def test_offsets_do_not_expire_while_their_topic_is_held(tmp_path: Path) -> None:
    """How long the broker kept them that wrote an adopted directory is not known either."""

    async def scenario(groups: Groups) -> None:
        services = groups.services
        groups.commit(5)
        offsets_topic = services.store.image.topic(OFFSETS_TOPIC)
        held = replace(offsets_topic, is_held=True)
        services.store._commit(services.store.image, Update(topics=(held,)))
        for _ in range(3):
            services.clock.advance(30 * 86_400_000)  # type: ignore[attr-defined]
            groups.settle()
        assert groups.group.offsets.get("t", 0) is not None

        await services.topics.adopt(OFFSETS_TOPIC, {})
        services.clock.advance(600_000)  # type: ignore[attr-defined]
        groups.settle()
        assert services.groups.find(groups.name) is None

    run(tmp_path, scenario)


def test_a_topic_that_was_made_anew_under_its_old_name_is_a_deleted_one(tmp_path: Path) -> None:
    async def scenario(groups: Groups) -> None:
        services = groups.services
        before = services.store.image
        await services.topics.delete([before.topics["t"].topic_id])
        await create_topic(services, "t", 1)

        change = MetadataChange(before, services.store.image, Update())

        assert deleted_topics(change) == {"t": before.topics["t"].topic_id.bytes}

    run(tmp_path, scenario)


# --- administration -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_groups_are_listed_in_every_version(groups: Groups, version: int) -> None:
    groups.stable_member()
    groups.commit(5, group_id=f"simple {groups.name}")

    answer = groups.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), version)

    found = {each.group_id: each for each in answer.groups}
    assert found[groups.name].protocol_type == "consumer"
    assert found[f"simple {groups.name}"].protocol_type == ""
    if version >= 4:
        assert (found[groups.name].group_state, found[f"simple {groups.name}"].group_state) == (
            "Stable",
            "Empty",
        )
    if version >= 5:
        assert found[groups.name].group_type == "classic"


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        ([], [], {"members", "simple"}),
        (["stable "], [], {"members"}),
        (["EMPTY", "dead"], ["CLASSIC", "share"], {"simple"}),
        ([], ["consumer"], set()),
        (["nonsense"], [], set()),
    ],
)
def test_groups_are_listed_by_state_and_type(
    groups: Groups, states: list[str], types: list[str], expected: set[str]
) -> None:
    groups.stable_member()
    groups.commit(5, group_id=f"simple {groups.name}")

    answer = groups.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(states, types))

    found = {each.group_id for each in answer.groups}
    here = {groups.name: "members", f"simple {groups.name}": "simple"}
    assert {here[name] for name in found if name in here} == expected


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_groups_are_described_in_every_version(groups: Groups, version: int) -> None:
    member_id = groups.stable_member()
    request = DescribeGroupsRequest([groups.name, "none"], include_authorized_operations=True)

    stable, missing = groups.ask(ApiKey.DESCRIBE_GROUPS, request, version).groups

    assert (stable.group_state, stable.protocol_type) == ("Stable", "consumer")
    assert stable.protocol_data == "range"
    (member,) = stable.members
    assert (member.member_id, member.client_id) == (member_id, "me")
    assert (member.member_metadata, member.member_assignment) == (SUBSCRIPTION, b"all of it")
    assert missing.group_state == "Dead"
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert missing.error_code == expected
    if version >= 3:
        assert stable.authorized_operations == 0b110101001000


def test_a_group_that_is_not_stable_is_described_without_what_its_members_say(
    groups: Groups,
) -> None:
    groups.join()

    request = DescribeGroupsRequest([groups.name])
    (group,) = groups.ask(ApiKey.DESCRIBE_GROUPS, request).groups

    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert group.members[0].member_metadata == b""


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_groups_are_deleted_in_every_version(groups: Groups, version: int) -> None:
    groups.stable_member()
    groups.commit(5, group_id=f"simple {groups.name}")
    simple = f"simple {groups.name}"
    request = DeleteGroupsRequest([groups.name, simple, "none", simple])

    answer = groups.ask(ApiKey.DELETE_GROUPS, request, version)

    assert {each.group_id: each.error_code for each in answer.results} == {
        groups.name: ErrorCode.NON_EMPTY_GROUP,
        simple: 0,
        "none": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(answer.results) == 3


def test_groups_are_not_listed_before_all_are_known(tmp_path: Path) -> None:
    def scenario(groups: Groups) -> None:
        groups.services.groups.on_leading(0, 9)
        listed = groups._handlers[ApiKey.LIST_GROUPS](
            Request(ApiKey.LIST_GROUPS, 5, 1, "me", ListGroupsRequest(), groups)
        )

        assert listed.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # type: ignore[union-attr]

    run(tmp_path, scenario)


def test_every_group_api_answers_where_nothing_is_coordinated(tmp_path: Path) -> None:
    def scenario(groups: Groups) -> None:
        elsewhere = ErrorCode.NOT_COORDINATOR
        assert groups.join().error_code == elsewhere
        assert groups.sync("m").error_code == elsewhere
        heartbeat = groups.ask(ApiKey.HEARTBEAT, HeartbeatRequest("g", 1, "m"))
        assert heartbeat.error_code == elsewhere
        leave = LeaveGroupRequest("g", "m", [MemberIdentity("m", None, None)])
        assert groups.ask(ApiKey.LEAVE_GROUP, leave).error_code == elsewhere
        delete = groups.ask(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(["g"]))
        assert delete.results[0].error_code == elsewhere
        (described,) = groups.ask(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest(["g"])).groups
        assert described.error_code == elsewhere
        assert groups.ask(ApiKey.LIST_GROUPS, ListGroupsRequest()).error_code == 0
        offsets = groups.ask(ApiKey.OFFSET_DELETE, OffsetDeleteRequest("g", ()))
        assert offsets.error_code == elsewhere

    run(tmp_path, scenario, has_topic=False)
