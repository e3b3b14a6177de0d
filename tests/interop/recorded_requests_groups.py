"""Scenarios of group membership: joining, syncing, heartbeats, leaving, rebalances."""

from typing import Any

from recorded_requests import Connection, Talk, api_of, every

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.consumer_protocol import encode_subscription
from stratalog.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from stratalog.protocol.messages.delete_groups import DeleteGroupsRequest
from stratalog.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.find_coordinator import FindCoordinatorRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from stratalog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from stratalog.protocol.messages.list_groups import ListGroupsRequest
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.offset_commit import OffsetCommitRequest
from stratalog.protocol.messages.offset_delete import OffsetDeleteRequest
from stratalog.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from stratalog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MEMBER_ID_REQUIRED_SINCE = 4
STATIC_SINCE = 5
BATCHED_SINCE = 4
GROUP, TRANSACTION, SHARE = 0, 1, 2


def no_coordinator(talk: Talk) -> None:
    """What is said of groups before the first of them: the topic of offsets is not there yet."""
    talk.ask("at first", 4, HeartbeatRequest("no-coordinator", 1, "nobody"))
    talk.ask("at first", 9, join("no-coordinator"))
    talk.ask("at first", 5, sync("no-coordinator", 1, "nobody"))
    talk.ask("at first", 5, leave("no-coordinator", "nobody"))
    talk.ask_ends("at first", DescribeGroupsRequest(["no-coordinator"]))
    talk.ask("at first", 5, ListGroupsRequest())
    talk.ask("at first", 2, DeleteGroupsRequest(["no-coordinator"]))
    talk.ask("at first", 0, OffsetDeleteRequest("no-coordinator", []))
    group = OffsetFetchRequestGroup("no-coordinator", topics=None)
    talk.ask("at first", 9, OffsetFetchRequest(groups=[group]))
    talk.ask("at first", 9, OffsetCommitRequest("no-coordinator"))
    talk.ask("at first", 6, FindCoordinatorRequest("", GROUP, ["no-coordinator"]))
    talk.ask_until(
        "in the end",
        6,
        FindCoordinatorRequest("", GROUP, ["no-coordinator"]),
        lambda answer: not answer.coordinators[0].error_code,
    )
    offsets = MetadataRequest([MetadataRequestTopic(name="__consumer_offsets")], False)
    talk.have_led("__consumer_offsets", 1)
    talk.ask_ends("the topic of offsets", offsets)
    resource = DescribeConfigsResource(2, "__consumer_offsets", None)
    talk.ask("the topic of offsets", 4, DescribeConfigsRequest([resource]))


def find_coordinator(talk: Talk) -> None:
    talk.have_coordinator("find-coordinator")

    def ask(step: str, key_type: int, *keys: str) -> None:
        asked = FindCoordinatorRequest(keys[0] if keys else "", key_type, keys)
        talk.ask_every(step, asked, since=0 if key_type == GROUP else 1)

    ask("of a group", GROUP, "find-coordinator")
    ask("of a group without a name", GROUP, "")
    transaction = FindCoordinatorRequest("", TRANSACTION, ["find-coordinator"])
    talk.have_until(transaction, lambda answer: answer.coordinators[0].error_code not in (14, 15))
    ask("of a transaction", TRANSACTION, "find-coordinator")
    ask("of a share", SHARE, "find-coordinator")
    ask("of what is not", 7, "find-coordinator")
    two = FindCoordinatorRequest("", GROUP, ["find-coordinator", "find-coordinator-b"])
    talk.ask_every("of two groups", two, since=BATCHED_SINCE)
    same = FindCoordinatorRequest("", GROUP, ["find-coordinator", "find-coordinator"])
    talk.ask_every("of one group twice", same, since=BATCHED_SINCE)
    talk.ask_every("of none", FindCoordinatorRequest("", GROUP, []), since=BATCHED_SINCE)


def join(group: str, member_id: str = "", *protocols: str, **asked: Any) -> JoinGroupRequest:
    offered = [JoinGroupRequestProtocol(name, _wishes(name)) for name in protocols or ("range",)]
    asked = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": offered,
        **asked,
    }
    return JoinGroupRequest(group_id=group, member_id=member_id, **asked)


def _wishes(protocol: str) -> bytes:
    return encode_subscription(
        0, ConsumerProtocolSubscription(["wished-for"], user_data=protocol.encode())
    )


def sync(
    group: str, generation: int, member_id: str, /, *assigned: str, **asked: Any
) -> SyncGroupRequest:
    """The leader gives every member a text of its own."""
    given = [
        SyncGroupRequestAssignment(name, f"part {i}".encode()) for i, name in enumerate(assigned)
    ]
    return SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member_id, assignments=given, **asked
    )


def leave(group: str, *members: str | MemberIdentity) -> LeaveGroupRequest:
    leaving = [MemberIdentity(m) if isinstance(m, str) else m for m in members]
    return LeaveGroupRequest(group, leaving[0].member_id if leaving else "", leaving)


def have_member(talk: Talk, group: str, *protocols: str, **asked: Any) -> tuple[str, int]:
    """The only member of a new group, stable: its id and the generation."""
    version = SUPPORTED[ApiKey.JOIN_GROUP].highest
    on = talk.connect()
    first = talk.have(join(group, "", *protocols, **asked), version, on=on)
    joined = first
    if first.error_code:
        joined = talk.have(join(group, first.member_id, *protocols, **asked), version, on=on)
    member_id, generation = joined.member_id, joined.generation_id
    talk.have(sync(group, generation, member_id, member_id), version=4, on=on)
    return member_id, generation


class Version:
    """A scenario of joining in one version, with the nearest version of all else that it needs.

    An API with fewer versions than JoinGroup is recorded once in each of its own.
    """

    def __init__(self, talk: Talk, version: int) -> None:
        talk.count_anew()
        self._talk = talk
        self._version = version

    def ask(self, step: str, request: Any, on: Connection | None = None) -> Any:
        highest = SUPPORTED[api_of(request)].highest
        if self._version > highest:
            return self._talk.have(request, highest, on=on)
        return self._talk.ask(step, self._version, request, on=on)

    def have(self, request: Any, on: Connection | None = None) -> Any:
        version = min(self._version, SUPPORTED[api_of(request)].highest)
        return self._talk.have(request, version, on=on)

    def end(self, group: str) -> None:
        """Forget the group, so that the next version finds nothing of it."""
        results = self._talk.have(DeleteGroupsRequest([group])).results
        assert results[0].error_code == 0, results


def names_of(version: int) -> dict[str, str]:
    """What a sync repeats of the protocol, from the version on that can."""
    return {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}


def membership(talk: Talk) -> None:
    """One member comes, works and leaves, in every version."""
    talk.have_coordinator("membership")
    for version in every(ApiKey.JOIN_GROUP):
        _one_member(Version(talk, version), version)


def _one_member(at: Version, version: int) -> None:
    group = "membership"
    ask, names = at.ask, names_of(version)
    member_id = ask("first", join(group, "", "range", "roundrobin")).member_id
    joined = ask("with its id", join(group, member_id, "range", "roundrobin"))
    generation = joined.generation_id
    ask("before sync", HeartbeatRequest(group, generation, member_id))
    ask("leader", sync(group, generation, member_id, member_id, **names))
    ask("again", sync(group, generation, member_id, **names))
    ask("good", HeartbeatRequest(group, generation, member_id))
    ask("wrong generation", HeartbeatRequest(group, generation + 1, member_id))
    ask("unknown member", HeartbeatRequest(group, generation, "nobody"))
    ask("empty member", HeartbeatRequest(group, generation, ""))
    ask("unknown group", HeartbeatRequest(f"{group}-no", 1, "nobody"))
    ask("empty group", HeartbeatRequest("", 1, "nobody"))
    ask("wrong generation", sync(group, generation + 1, member_id, **names))
    ask("unknown member", sync(group, generation, "nobody", **names))
    ask("unknown group", sync(f"{group}-no", generation, "nobody", **names))
    ask("empty group", sync("", generation, "nobody", **names))
    ask("stable", DescribeGroupsRequest([group]))
    again = ask("again", join(group, member_id, "range", "roundrobin"))
    ask("rejoined", DescribeGroupsRequest([group]))
    generation = again.generation_id
    ask("in the next generation", sync(group, generation, member_id, member_id, **names))
    ask("unknown member", leave(group, "nobody"))
    ask("unknown group", leave(f"{group}-no", "nobody"))
    ask("empty group", leave("", "nobody"))
    ask("good", leave(group, member_id))
    ask("again", leave(group, member_id))
    ask("after leaving", HeartbeatRequest(group, generation, member_id))
    ask("empty", DescribeGroupsRequest([group]))
    at.end(group)


def joining_refused(talk: Talk) -> None:
    """What a join may not ask for, in every version."""
    talk.have_coordinator("refused")
    have_member(talk, "refused-taken", "range", "roundrobin")

    def ask(step: str, request: JoinGroupRequest) -> None:
        talk.ask_every(step, request)

    ask("an empty group", join(""))
    ask("a member that is unknown", join("refused-new", "nobody"))
    ask("a member that is unknown to a group", join("refused-taken", "nobody"))
    ask("too short a session", join("refused-a", session_timeout_ms=99))
    ask("too long a session", join("refused-a", session_timeout_ms=1_800_001))
    ask("a negative session", join("refused-a", session_timeout_ms=-1))
    ask("no protocols", join("refused-a", protocols=[]))
    ask("no protocol type", join("refused-a", protocol_type=""))
    ask("other protocols", join("refused-taken", "", "sticky"))
    ask("another protocol type", join("refused-taken", "", "range", protocol_type="connect"))
    ask("no protocols of a group that has", join("refused-taken", protocols=[]))


def rebalance(talk: Talk) -> None:
    """Two members, then one; and what they hear meanwhile."""
    talk.have_coordinator("rebalance")
    for version in every(ApiKey.JOIN_GROUP):
        _two_members(talk, Version(talk, version), version)


def _two_members(talk: Talk, at: Version, version: int) -> None:
    group = "rebalance"
    a, b = talk.connect(), talk.connect()
    ask, names = at.ask, names_of(version)
    first, generation = _admitted(at, group, a)
    at.have(sync(group, generation, first, first, **names), on=a)
    pending = b.send(version, join(group, _known(at, group, version, b), "roundrobin", "range"))
    talk.have_until(
        HeartbeatRequest(group, generation, first), lambda answer: answer.error_code == 27
    )
    ask("while rebalancing", HeartbeatRequest(group, generation, first), a)
    ask("while rebalancing", sync(group, generation, first, first, **names), a)
    ask("rebalancing", DescribeGroupsRequest([group]), a)
    leader = ask("leader, once more", join(group, first, "range", "roundrobin"), a)
    second = talk.answer("follower", pending).member_id
    generation = leader.generation_id
    sync_version = min(version, SUPPORTED[ApiKey.SYNC_GROUP].highest)
    waiting = b.send(sync_version, sync(group, generation, second, **names))
    ask("of all", sync(group, generation, first, first, second, **names), a)
    if sync_version == version:
        talk.answer("follower", waiting)
    else:
        waiting.receive()
    ask("of the follower", HeartbeatRequest(group, generation, second), b)
    ask("follower, again", join(group, second, "roundrobin", "range"), b)
    ask("of the old generation", sync(group, generation - 1, second, **names), b)
    ask("of two members", DescribeGroupsRequest([group]), a)
    ask("of the leader", leave(group, first), a)
    ask("of one that has left", HeartbeatRequest(group, generation, first), a)
    ask("while the other leaves", HeartbeatRequest(group, generation, second), b)
    alone = ask("alone", join(group, second, "roundrobin", "range"), b)
    other = {**names, "protocol_name": "roundrobin"} if names else {}
    ask("alone", sync(group, alone.generation_id, second, second, **other), b)
    ask("alone", DescribeGroupsRequest([group]), b)
    ask("alone", leave(group, second), b)
    at.end(group)


def _known(at: Version, group: str, version: int, on: Connection) -> str:
    """The id of a member to be, if one is needed to join."""
    if version < MEMBER_ID_REQUIRED_SINCE:
        return ""
    return str(at.have(join(group, "", "range", "roundrobin"), on=on).member_id)


def _admitted(at: Version, group: str, on: Connection) -> tuple[str, int]:
    first = at.have(join(group, "", "range", "roundrobin"), on=on)
    joined = at.have(join(group, first.member_id, "range", "roundrobin"), on=on)
    return joined.member_id, joined.generation_id


def static_members(talk: Talk) -> None:
    """Members that keep their place under a name of their own."""
    talk.have_coordinator("static")
    for version in every(ApiKey.JOIN_GROUP, STATIC_SINCE):
        _static_member(Version(talk, version), talk)
    talk.count_anew()
    for version in (3, 4):
        _static_heartbeats(talk, version)


def _static_member(at: Version, talk: Talk) -> None:
    group, names = "static", names_of(5)
    joined = at.ask("first", join(group, group_instance_id="i"))
    old, generation = joined.member_id, joined.generation_id
    at.ask("first", sync(group, generation, old, old, group_instance_id="i", **names))
    back = at.ask("back again", join(group, group_instance_id="i"))
    new, generation = back.member_id, back.generation_id
    at.ask("by its old id", sync(group, generation, old, group_instance_id="i", **names))
    at.ask("by its new id", sync(group, generation, new, group_instance_id="i", **names))
    at.ask("by its old id", join(group, old, group_instance_id="i"))
    at.ask("an unknown instance with an id", join(group, new, group_instance_id="j"))
    at.ask("stable", DescribeGroupsRequest([group]))
    other = join(group, "", "range", "sticky", group_instance_id="i")
    changed = at.ask("back with other protocols", other)
    if not changed.error_code:
        new, generation = changed.member_id, changed.generation_id
        at.ask("changed", sync(group, generation, new, new, group_instance_id="i", **names))
    at.ask("an old id", leave(group, MemberIdentity(old, "i")))
    at.ask("an unknown instance", leave(group, MemberIdentity("", "j")))
    at.ask("several", leave(group, MemberIdentity("nobody"), MemberIdentity("", "j")))
    at.ask("by name", leave(group, MemberIdentity("", "i", "because")))
    at.ask("by name, again", leave(group, MemberIdentity("", "i")))
    at.ask("nobody", leave(group))
    at.ask("empty", DescribeGroupsRequest([group]))
    at.end(group)


def _static_heartbeats(talk: Talk, version: int) -> None:
    group = f"static-hb{version}"
    old = talk.have(join(group, group_instance_id="i"))
    talk.have(sync(group, old.generation_id, old.member_id, old.member_id, **names_of(5)))
    new = talk.have(join(group, group_instance_id="i"))
    generation = new.generation_id
    for step, member_id, instance in (
        ("by its old id", old.member_id, "i"),
        ("by its new id", new.member_id, "i"),
        ("by another instance", new.member_id, "j"),
        ("without instance", new.member_id, None),
        ("by its old id, without instance", old.member_id, None),
    ):
        talk.ask(step, version, HeartbeatRequest(group, generation, member_id, instance))
    talk.ask(
        "of an instance by an old id", version, leave(group, MemberIdentity(old.member_id, "i"))
    )
    talk.ask("of an instance", version, leave(group, MemberIdentity("", "i")))


def generations(talk: Talk) -> None:
    """Assignments, and names that a sync repeats."""
    talk.have_coordinator("generations")
    member_id, generation = have_member(talk, "generations", "range")
    names = {"protocol_type": "consumer", "protocol_name": "range"}
    for version in every(ApiKey.SYNC_GROUP, 5):
        good = sync("generations", generation, member_id, **names)
        talk.ask("names repeated", version, good)
        other = {**names, "protocol_name": "roundrobin"}
        talk.ask("another protocol", version, sync("generations", generation, member_id, **other))
        other = {**names, "protocol_type": "connect"}
        talk.ask("another type", version, sync("generations", generation, member_id, **other))
        talk.ask("no names", version, sync("generations", generation, member_id))
    joined = talk.have(join("generations", member_id), version=9)
    generation = joined.generation_id
    unknown = sync("generations", generation, member_id, "nobody", member_id)
    talk.ask("a part for nobody", 3, unknown)
    joined = talk.have(join("generations", member_id), version=9)
    talk.ask("a part for no one", 3, sync("generations", joined.generation_id, member_id))


def expiry(talk: Talk) -> None:
    """A member that says nothing is given up, and a sync that never comes."""
    talk.have_coordinator("expiry")
    have_member(talk, "expiry-silent", session_timeout_ms=150)
    talk.ask_until(
        "a silent member",
        5,
        DescribeGroupsRequest(["expiry-silent"]),
        lambda answer: answer.groups[0].group_state == "Empty",
    )
    first, generation = have_member(talk, "expiry-rejoin", rebalance_timeout_ms=200)
    other = talk.connect()
    known = talk.have(join("expiry-rejoin"), version=9, on=other).member_id
    pending = other.send(9, join("expiry-rejoin", known, rebalance_timeout_ms=200))
    talk.answer("the first does not rejoin in time", pending)
    talk.ask("of one that was given up", 4, HeartbeatRequest("expiry-rejoin", generation, first))
    talk.ask("without the first", 5, DescribeGroupsRequest(["expiry-rejoin"]))


SCENARIOS = {
    "no-coordinator": no_coordinator,
    "find-coordinator": find_coordinator,
    "membership": membership,
    "refused": joining_refused,
    "rebalance": rebalance,
    "static": static_members,
    "generations": generations,
    "expiry": expiry,
}
