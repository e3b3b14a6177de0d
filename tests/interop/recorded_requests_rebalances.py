"""Scenarios of groups between two generations: who waits, who is told what, who wins the vote."""

from typing import Any

from recorded_requests import Talk
from recorded_requests_groups import have_member, join, leave, names_of, sync
from recorded_requests_offsets import commit

from stratalog.protocol.messages.delete_groups import DeleteGroupsRequest
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.sync_group import SyncGroupRequest

REBALANCE_IN_PROGRESS = 27
NAMES = names_of(5)


def pending_members(talk: Talk) -> None:
    """Members that were given an id and have not come back with it."""
    talk.have_coordinator("pending")
    member_id = talk.have(join("pending")).member_id
    talk.ask("of a pending member", 4, HeartbeatRequest("pending", 1, member_id))
    talk.ask("of a pending member", 5, sync("pending", 1, member_id, **NAMES))
    talk.ask("with a pending member", 6, DescribeGroupsRequest(["pending"]))
    talk.ask("with a pending member", 2, DeleteGroupsRequest(["pending"]))
    talk.ask("of a pending member", 5, leave("pending", member_id))
    talk.ask("of one that has left", 9, join("pending", member_id))
    talk.ask("of a group nobody joined", 6, DescribeGroupsRequest(["pending"]))


def between_generations(talk: Talk) -> None:
    """Commits and syncs of members while the group changes."""
    talk.have_coordinator("between")
    topic_id = talk.have_topic("between")
    first, generation = have_member(talk, "between")

    def commit_of(step: str, member_id: str, at: int) -> None:
        who = {"member_id": member_id, "generation_id_or_member_epoch": at}
        talk.ask(step, 9, commit("between", "between", topic_id=topic_id, **who))

    b = talk.connect()
    second = talk.have(join("between"), on=b).member_id
    joining = b.send(9, join("between", second))
    _until_rebalance(talk, "between", generation, first)
    commit_of("while rebalancing", first, generation)
    commit_of("while rebalancing, of the one to come", second, generation)
    talk.ask("of the one to come", 4, HeartbeatRequest("between", generation, second))
    again = talk.have(join("between", first))
    joining.receive()
    generation = again.generation_id
    commit_of("before the assignment", first, generation)
    commit_of("before the assignment, follower", second, generation)
    talk.ask("before the assignment", 4, HeartbeatRequest("between", generation, second))
    waiting = b.send(5, sync("between", generation, second, **NAMES))
    talk.have(leave("between", first))
    talk.answer("the leader leaves before it assigns", waiting)
    alone = talk.ask("the follower, once more", 9, join("between", second), on=b)
    waiting = b.send(5, sync("between", alone.generation_id, second, second, **NAMES))
    talk.answer("the follower leads", waiting)
    commit_of("of the one that has left", first, generation)
    commit_of("of the old generation", second, generation)
    commit_of("of the new generation", second, alone.generation_id)


def _until_rebalance(talk: Talk, group: str, generation: int, member_id: str) -> None:
    question = HeartbeatRequest(group, generation, member_id)
    talk.have_until(question, lambda answer: answer.error_code == REBALANCE_IN_PROGRESS)


def votes(talk: Talk) -> None:
    """The protocol that most members like best among those that all of them have."""
    talk.have_coordinator("votes")
    likes = (("range", "sticky"), ("sticky", "range"), ("sticky", "range", "other"))
    first, generation = have_member(talk, "votes", *likes[0])
    connections = [talk.connect() for _ in likes]
    pending = []
    for liked, connection in list(zip(likes, connections, strict=True))[1:]:
        known = talk.have(join("votes", "", *liked), on=connection).member_id
        pending.append(connection.send(9, join("votes", known, *liked)))
    _until_rebalance(talk, "votes", generation, first)
    talk.have_until(
        DescribeGroupsRequest(["votes"]), lambda answer: len(answer.groups[0].members) == len(likes)
    )
    leader: Any = talk.have(join("votes", first, *likes[0]), on=connections[0])
    talk.record("the winner", None, -1, [leader.protocol_name, len(leader.members)])
    for index, each in enumerate(pending):
        joined = each.receive()
        winner = [joined.protocol_name, joined.leader == first, len(joined.members)]
        talk.record(f"the winner, follower {index}", None, -1, winner)
    none_left = join("votes", "", "other")
    talk.ask("only what the others do not have", 9, none_left)


def static_pair(talk: Talk) -> None:
    """A static follower comes back, and a static leader, each as another process would."""
    group = "static-pair"
    talk.have_coordinator(group)
    a, b = talk.connect(), talk.connect()

    def synced(joined: Any, instance: str, *assigned: str) -> SyncGroupRequest:
        who = {"group_instance_id": instance, **NAMES}
        return sync(group, joined.generation_id, joined.member_id, *assigned, **who)

    first = talk.have(join(group, group_instance_id="a"), on=a)
    talk.have(synced(first, "a", first.member_id), on=a)
    joining = b.send(9, join(group, group_instance_id="b"))
    _until_rebalance(talk, group, first.generation_id, first.member_id)
    leader = talk.have(join(group, first.member_id, group_instance_id="a"), on=a)
    follower = talk.answer("the second", joining)
    waiting = b.send(5, synced(follower, "b"))
    talk.have(synced(leader, "a", leader.member_id, follower.member_id), on=a)
    talk.answer("the second", waiting)
    for version in (5, 7, 9):
        talk.ask("the follower comes back", version, join(group, group_instance_id="b"))
        talk.ask("the leader comes back", version, join(group, group_instance_id="a"))
    beat = HeartbeatRequest(group, leader.generation_id, leader.member_id, "a")
    talk.ask("of the leader that was replaced", 4, beat)
    talk.ask("two static members", 6, DescribeGroupsRequest([group]))


SCENARIOS = {
    "pending": pending_members,
    "between": between_generations,
    "votes": votes,
    "static-pair": static_pair,
}
