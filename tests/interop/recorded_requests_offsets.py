"""Scenarios of committed offsets and of looking after groups."""

from typing import Any

from recorded_requests import Talk, ends, every
from recorded_requests_data import NO_ID, UNKNOWN_ID
from recorded_requests_groups import have_member, join, sync

from stratalog.protocol.api import ApiKey
from stratalog.protocol.consumer_protocol import encode_subscription
from stratalog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from stratalog.protocol.messages.delete_groups import DeleteGroupsRequest
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.join_group import JoinGroupRequestProtocol
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

GROUPED_SINCE = 8
BY_ID = 10


def commit(
    group: str,
    topic: str,
    offset: int = 5,
    *,
    topic_id: bytes = NO_ID,
    partition: int = 0,
    epoch: int = -1,
    metadata: str | None = "",
    **who: Any,
) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition, offset, epoch, metadata)
    topics = [OffsetCommitRequestTopic(topic, topic_id, [part])]
    return OffsetCommitRequest(group_id=group, topics=topics, **who)


def commits(talk: Talk) -> None:
    """Commits of nobody, of a member, and of those who should not."""
    talk.have_coordinator("commits")
    topic_id = talk.have_topic("commits", 2)
    place = {"topic": "commits", "topic_id": topic_id}
    for version in every(ApiKey.OFFSET_COMMIT):
        _commits(talk, version, place)
    talk.ask_ends("kept for an hour", commit("commits-kept", **place, retention_time_ms=3_600_000))


def _commits(talk: Talk, version: int, place: dict[str, Any]) -> None:

    def ask(step: str, request: OffsetCommitRequest) -> None:
        talk.ask(step, version, request)

    group = f"commits-v{version}"
    ask("of nobody", commit(group, **place))
    ask("with an epoch", commit(group, **place, partition=1, epoch=0))
    ask("with a note", commit(group, **place, metadata="note"))
    ask("with a null note", commit(group, **place, metadata=None))
    ask("with too long a note", commit(group, **place, metadata="x" * 4097))
    ask("a negative offset", commit(group, **place, offset=-1))
    ask("a very negative offset", commit(group, **place, offset=-5))
    ask("an unknown topic", commit(group, "commits-unknown", topic_id=UNKNOWN_ID))
    ask("an unknown partition", commit(group, **place, partition=8))
    ask("a negative partition", commit(group, **place, partition=-1))
    ask("an empty group", commit("", **place))
    ask("a generation of nobody", commit(group, **place, generation_id_or_member_epoch=3))
    ask("an unknown member", commit(group, **place, member_id="nobody"))
    both = {"generation_id_or_member_epoch": 1, "member_id": "nobody"}
    ask("an unknown member and generation", commit(f"{group}-new", **place, **both))
    ask("nothing", OffsetCommitRequest(group_id=group))
    empty = [OffsetCommitRequestTopic("commits", place["topic_id"], [])]
    ask("no partitions", OffsetCommitRequest(group_id=group, topics=empty))
    mixed = [
        OffsetCommitRequestPartition(0, 9, -1, ""),
        OffsetCommitRequestPartition(7, 9, -1, ""),
        OffsetCommitRequestPartition(1, 9, -1, "x" * 5000),
    ]
    some = [OffsetCommitRequestTopic("commits", place["topic_id"], mixed)]
    ask("some fail", OffsetCommitRequest(group_id=group, topics=some))
    _member_commits(talk, version, place)


def _member_commits(talk: Talk, version: int, place: dict[str, Any]) -> None:
    group = f"commits-v{version}-m"
    member_id, generation = have_member(talk, group)

    def ask(step: str, member: str, epoch: int) -> None:
        who = {"member_id": member, "generation_id_or_member_epoch": epoch}
        talk.ask(step, version, commit(group, **place, **who))

    ask("of a member", member_id, generation)
    ask("of a member, wrong generation", member_id, generation + 1)
    ask("of a member, no generation", member_id, -1)
    ask("of a stranger", "nobody", generation)
    ask("of nobody, group in use", "", -1)


def fetching_offsets(talk: Talk) -> None:
    talk.have_coordinator("offsets")
    topic_id = talk.have_topic("offsets", 3)
    place = {"topic": "offsets", "topic_id": topic_id}
    talk.have(commit("offsets-a", **place, metadata="note", epoch=0), version=9)
    talk.have(commit("offsets-a", **place, partition=1, offset=0), version=9)
    talk.have(commit("offsets-b", **place, partition=2, offset=77), version=9)

    def ask(step: str, group: str, parts: dict[str, list[int]] | None, **asked: Any) -> None:
        since = 2 if parts is None else 0
        for version in every(ApiKey.OFFSET_FETCH, since):
            talk.ask(step, version, _offsets_of(version, group, parts, topic_id, **asked))

    ask("committed", "offsets-a", {"offsets": [0, 1]})
    ask("not committed", "offsets-a", {"offsets": [2]})
    ask("an unknown partition", "offsets-a", {"offsets": [0, 9]})
    ask("an unknown topic", "offsets-a", {"offsets-unknown": [0]})
    ask("a negative partition", "offsets-a", {"offsets": [-1]})
    ask("an unknown group", "offsets-none", {"offsets": [0]})
    ask("an empty group", "", {"offsets": [0]})
    ask("no topics", "offsets-a", {})
    ask("no partitions", "offsets-a", {"offsets": []})
    ask("all", "offsets-a", None)
    ask("all of an unknown group", "offsets-none", None)
    for version in every(ApiKey.OFFSET_FETCH, 7):
        stable = _offsets_of(version, "offsets-a", {"offsets": [0]}, topic_id)
        talk.ask("stable ones", version, stable._replace(require_stable=True))
    for version in every(ApiKey.OFFSET_FETCH, GROUPED_SINCE):
        groups = [
            _group_offsets("offsets-a", {"offsets": [0]}, topic_id),
            _group_offsets("offsets-b", None, topic_id),
            _group_offsets("offsets-none", {"offsets": [0]}, topic_id),
        ]
        talk.ask("several groups", version, OffsetFetchRequest(groups=groups))
        talk.ask("no groups", version, OffsetFetchRequest(groups=[]))
        talk.ask("one group twice", version, OffsetFetchRequest(groups=groups[:1] * 2))
    member_id, generation = have_member(talk, "offsets-m")
    for version in every(ApiKey.OFFSET_FETCH, 9):
        for step, who in (
            ("a member", (member_id, generation)),
            ("a member, wrong generation", (member_id, generation + 7)),
            ("a stranger", ("nobody", generation)),
        ):
            group = _group_offsets("offsets-m", {"offsets": [0]}, topic_id)
            group = group._replace(member_id=who[0], member_epoch=who[1])
            talk.ask(step, version, OffsetFetchRequest(groups=[group]))
    unknown = [_group_offsets("offsets-a", {"offsets": [0]}, UNKNOWN_ID)]
    talk.ask("an unknown topic id", BY_ID, OffsetFetchRequest(groups=unknown))
    unknown = [_group_offsets("offsets-a", {"offsets": [0]}, NO_ID)]
    talk.ask("no topic id", BY_ID, OffsetFetchRequest(groups=unknown))


def _group_offsets(
    group: str, parts: dict[str, list[int]] | None, topic_id: bytes
) -> OffsetFetchRequestGroup:
    topics = None
    if parts is not None:
        topics = [
            OffsetFetchRequestTopics(name, topic_id if name == "offsets" else UNKNOWN_ID, indexes)
            for name, indexes in parts.items()
        ]
    return OffsetFetchRequestGroup(group, topics=topics)


def _offsets_of(
    version: int, group: str, parts: dict[str, list[int]] | None, topic_id: bytes
) -> OffsetFetchRequest:
    if version >= GROUPED_SINCE:
        return OffsetFetchRequest(groups=[_group_offsets(group, parts, topic_id)])
    topics = None
    if parts is not None:
        topics = [OffsetFetchRequestTopic(name, indexes) for name, indexes in parts.items()]
    return OffsetFetchRequest(group, topics)


def deleting_offsets(talk: Talk) -> None:
    talk.have_coordinator("offset-delete")
    topic_id = talk.have_topic("offset-delete", 2)
    for partition in (0, 1):
        talk.have(
            commit("offset-delete-a", "offset-delete", topic_id=topic_id, partition=partition)
        )

    def ask(step: str, group: str, parts: dict[str, list[int]]) -> None:
        topics = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(i) for i in indexes])
            for name, indexes in parts.items()
        ]
        talk.ask_every(step, OffsetDeleteRequest(group, topics))

    ask("one", "offset-delete-a", {"offset-delete": [0]})
    ask("again", "offset-delete-a", {"offset-delete": [0]})
    ask("an unknown partition", "offset-delete-a", {"offset-delete": [1, 9]})
    ask("an unknown topic", "offset-delete-a", {"offset-delete-unknown": [0]})
    ask("an unknown group", "offset-delete-none", {"offset-delete": [0]})
    ask("an empty group", "", {"offset-delete": [0]})
    ask("nothing", "offset-delete-a", {})
    talk.ask("then", 7, _offsets_of(7, "offset-delete-a", None, topic_id))
    wanted = ConsumerProtocolSubscription(topics=["offset-delete"])
    protocols = [JoinGroupRequestProtocol("range", encode_subscription(0, wanted))]
    who = {"session_timeout_ms": 10_000, "protocols": protocols}
    member_id, generation = have_member(talk, "offset-delete-m", **who)
    mine = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    talk.have(commit("offset-delete-m", "offset-delete", topic_id=topic_id, **mine))
    ask("of a topic in use", "offset-delete-m", {"offset-delete": [0]})
    ask("of a topic not in use", "offset-delete-m", {"offset-delete-unknown": [0]})


def looking_at_groups(talk: Talk) -> None:
    """Describe, list, delete."""
    talk.have_coordinator("groups")
    topic_id = talk.have_topic("groups")
    talk.have(commit("groups-committed", "groups", topic_id=topic_id))
    have_member(talk, "groups-stable", "range", "roundrobin")
    have_member(talk, "groups-static", "range", group_instance_id="i")
    have_member(talk, "groups-connect", "default", protocol_type="connect")
    on = talk.connect()
    known = talk.have(join("groups-syncing"), version=9, on=on).member_id
    joined = talk.have(join("groups-syncing", known), version=9, on=on)
    some = ["groups-stable", "groups-static", "groups-connect", "groups-syncing"]
    talk.ask_every("in use", DescribeGroupsRequest(some))
    talk.ask_every("with commits only", DescribeGroupsRequest(["groups-committed"]))
    talk.ask_every("unknown", DescribeGroupsRequest(["groups-none"]))
    talk.ask_every("without a name", DescribeGroupsRequest([""]))
    talk.ask_every("none", DescribeGroupsRequest([]))
    talk.ask_every("twice", DescribeGroupsRequest(["groups-stable", "groups-stable"]))
    allowed = DescribeGroupsRequest(["groups-committed", "groups-none"], True)
    talk.ask_every("with what is allowed", allowed, since=3)
    versions = every(ApiKey.LIST_GROUPS)
    talk.ask_about_all("all", versions, ListGroupsRequest())
    for states in (["Stable"], ["stable", "Empty"], ["CompletingRebalance"], ["Nonsense"], [""]):
        step = f"in state {' or '.join(states)}"
        talk.ask_about_all(step, every(ApiKey.LIST_GROUPS, 4), ListGroupsRequest(states))
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"], [""]):
        step = f"of type {' or '.join(types)}"
        talk.ask_about_all(step, every(ApiKey.LIST_GROUPS, 5), ListGroupsRequest([], types))
    talk.have(sync("groups-syncing", joined.generation_id, known, known), on=on, version=3)
    _deleting_groups(talk, topic_id)


def _deleting_groups(talk: Talk, topic_id: bytes) -> None:
    for version in every(ApiKey.DELETE_GROUPS):
        name = f"groups-deleted-{version}"
        talk.have(commit(name, "groups", topic_id=topic_id))
        several = [name, "groups-stable", "groups-none", ""]
        talk.ask("several", version, DeleteGroupsRequest(several))
        talk.ask("again", version, DeleteGroupsRequest([name]))
        talk.ask("none", version, DeleteGroupsRequest([]))
        talk.ask("one twice", version, DeleteGroupsRequest(["groups-stable", "groups-stable"]))
        question = DescribeGroupsRequest([name])
        talk.ask_versions(f"after delete v{version}", ends(ApiKey.DESCRIBE_GROUPS), question)
        talk.ask(f"after delete v{version}", 7, _offsets_of(7, name, None, topic_id))


SCENARIOS = {
    "commits": commits,
    "offsets": fetching_offsets,
    "offset-delete": deleting_offsets,
    "groups": looking_at_groups,
}
