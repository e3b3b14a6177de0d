"""Walks: requests chosen by a seed, put to two brokers that have to answer alike.

Nothing of them is kept; both are asked in the same run. What a walk chooses depends on the seed
and, for ids only, on earlier answers, so that both brokers hear the same.
"""

import random
from collections.abc import Callable
from typing import Any

from recorded_requests import Connection, Pending, Scenario, Talk, api_of, every
from recorded_requests_data import START_MS, to
from recorded_requests_groups import join
from recorded_requests_offsets import commit

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from stratalog.protocol.messages.describe_groups import DescribeGroupsRequest
from stratalog.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from stratalog.protocol.messages.heartbeat import HeartbeatRequest
from stratalog.protocol.messages.init_producer_id import InitProducerIdRequest
from stratalog.protocol.messages.join_group import JoinGroupResponse
from stratalog.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from stratalog.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from stratalog.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from stratalog.records.builder import Record, build_batch
from stratalog.records.compression import Codec

PARTITIONS = 2
PRODUCERS = 2
NO_SESSION = 0
HELD_SECONDS = 0.5
# A leader's sync is answered as soon as it is on disk, which a busy one takes its time for; only
# one that is no leader any more may be held.
ON_DISK_SECONDS = 5.0
HELD_IN = {ApiKey.JOIN_GROUP: "PreparingRebalance", ApiKey.SYNC_GROUP: "CompletingRebalance"}


class DataWalk:
    """Appends, reads, searches and deletions on one topic."""

    def __init__(self, talk: Talk, seed: int, configs: dict[str, str]) -> None:
        self._talk = talk
        self._random = random.Random(seed)
        self._topic = f"walk-{seed}"
        self._topic_id = talk.have_topic(self._topic, PARTITIONS, **configs)
        talk.have_until(InitProducerIdRequest(None, 1000), lambda answer: not answer.error_code)
        self._producers = [
            talk.have(InitProducerIdRequest(None, 1000)).producer_id for _ in range(PRODUCERS)
        ]
        self._sequences: dict[tuple[int, int], int] = {}
        self._end = 0
        self._session = (NO_SESSION, 0)
        self._session_version = self._random.choice(every(ApiKey.FETCH, 7))
        self._step = 0

    def step(self) -> None:
        """One request of any kind."""
        kinds: list[Callable[[], Any]] = [
            self._produce,
            self._produce_counted,
            self._fetch,
            self._fetch_in_session,
            self._list_offsets,
            self._delete_records,
            self._leader_epoch,
        ]
        weights = [4, 3, 5, 4, 4, 1, 1]
        request = self._random.choices(kinds, weights)[0]()
        self._ask(request)

    def _ask(self, request: Any) -> None:
        self._step += 1
        version = self._random.choice(every(api_of(request)))
        if self._is_of_a_session(request):
            # A client has one version for all its fetches; Kafka relies on that.
            version = self._session_version
        answer = self._talk.ask(f"{self._step:03}", version, request)
        if self._is_of_a_session(request):
            self._session = (answer.session_id, self._session[1] + 1)
            if answer.session_id == NO_SESSION:
                self._session = (NO_SESSION, 0)

    def _is_of_a_session(self, request: Any) -> bool:
        return isinstance(request, FetchRequest) and request.session_epoch != -1

    def _partition(self) -> int:
        return self._random.choices([0, 1, 2], [10, 10, 1])[0]

    def _records(self, **kind: Any) -> bytes:
        choose = self._random
        count = choose.randint(1, 6)
        self._end += count
        rows = [
            Record(
                choose.choice([b"k", b"other", None]),
                choose.choice([b"", b"v", b"x" * choose.randint(1, 3000), None]),
                choose.choice([(), (("h", b"1"),)]),
                START_MS + choose.randint(0, 50),
            )
            for _ in range(count)
        ]
        return build_batch(rows, codec=choose.choice(list(Codec)), **kind)

    def _produce(self) -> Any:
        place = {"partition": self._partition(), "topic_id": self._topic_id}
        return to(self._topic, self._records(), **place)

    def _produce_counted(self) -> Any:
        choose = self._random
        producer, partition = choose.randrange(PRODUCERS), choose.randrange(PARTITIONS)
        sequence = self._sequences.get((producer, partition), 0)
        off = choose.choices([0, -1, 1, -2], [8, 1, 1, 1])[0]
        records = self._records(
            producer_id=self._producers[producer],
            producer_epoch=choose.choices([0, 1], [20, 1])[0],
            base_sequence=max(0, sequence + off),
        )
        if off == 0:
            count = int.from_bytes(records[57:61], "big")
            self._sequences[producer, partition] = sequence + count
        return to(self._topic, records, partition=partition, topic_id=self._topic_id)

    def _offset(self) -> int:
        return self._random.randint(-1, self._end // PARTITIONS + 3)

    def _part(self, partition: int) -> FetchPartition:
        choose = self._random
        return FetchPartition(
            partition=partition,
            current_leader_epoch=choose.choices([-1, 0, 1], [8, 4, 1])[0],
            fetch_offset=self._offset(),
            last_fetched_epoch=choose.choices([-1, 0, 3], [8, 2, 1])[0],
            partition_max_bytes=choose.choice([0, 1, 100, 1000, 10_000, 1 << 20]),
        )

    def _fetch(self, **session: int) -> FetchRequest:
        choose = self._random
        some = choose.sample([0, 1, 2], choose.randint(0 if session.get("session_id") else 1, 3))
        topics = [FetchTopic(self._topic, self._topic_id, [self._part(index) for index in some])]
        return FetchRequest(
            min_bytes=choose.choice([0, 1]),
            max_wait_ms=0,
            max_bytes=choose.choice([0, 1, 500, 5000, 1 << 20]),
            isolation_level=choose.choice([0, 1]),
            topics=topics if some else [],
            **session,
        )

    def _fetch_in_session(self) -> FetchRequest:
        choose = self._random
        session_id, epoch = self._session
        request = self._fetch(session_id=session_id, session_epoch=epoch)
        forgotten = choose.sample([0, 1, 2], choose.choice([0, 0, 1]))
        if session_id and forgotten:
            gone = [ForgottenTopic(self._topic, self._topic_id, forgotten)]
            request = request._replace(forgotten_topics_data=gone)
        return request

    def _list_offsets(self) -> ListOffsetsRequest:
        choose = self._random
        timestamp = choose.choice([-1, -2, START_MS + choose.randint(-1, 52)])
        part = ListOffsetsPartition(self._partition(), choose.choice([-1, 0]), timestamp)
        asked = [ListOffsetsTopic(self._topic, [part])]
        return ListOffsetsRequest(-1, choose.choice([0, 1]), asked, 10_000)

    def _delete_records(self) -> DeleteRecordsRequest:
        offset = self._random.choices([-1, self._offset() // 2], [1, 10])[0]
        part = DeleteRecordsPartition(self._partition(), offset)
        return DeleteRecordsRequest([DeleteRecordsTopic(self._topic, [part])], 10_000)

    def _leader_epoch(self) -> OffsetForLeaderEpochRequest:
        choose = self._random
        part = OffsetForLeaderPartition(
            self._partition(), choose.choice([-1, 0, 1]), choose.choice([-1, 0, 1, 5])
        )
        return OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(self._topic, [part])])


def data_walk(seed: int, steps: int) -> Scenario:
    """A scenario of that many requests."""
    configs = random.Random(seed).choice(
        [{}, {"cleanup_policy": "compact"}, {"message_timestamp_type": "LogAppendTime"}]
    )

    def walk(talk: Talk) -> None:
        walking = DataWalk(talk, seed, configs)
        for _ in range(steps):
            walking.step()

    return walk


class Member:
    """One client of a group, which may be waiting for an answer."""

    def __init__(self, talk: Talk, name: str, instance_id: str | None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.is_leader = False
        self.others: list[str] = []
        self.connection = talk.connect()
        self.waiting: tuple[str, Pending] | None = None


class GroupWalk:
    """Members that join, sync, beat, commit and leave as they like, also when they should not.

    There are two of them, who like the same protocol best: among more, or between protocols with as
    many votes, Kafka's choice is that of a hash table.
    """

    def __init__(self, talk: Talk, seed: int) -> None:
        self._talk = talk
        self._random = random.Random(seed)
        self._group = f"group-walk-{seed}"
        talk.have_coordinator(self._group)
        self._topic_id = talk.have_topic(self._group)
        static = self._random.random() < 0.5
        self._members = [
            Member(talk, name, f"static-{name}" if static and name == "a" else None)
            for name in "ab"
        ]
        self._step = 0

    def step(self) -> None:
        """One request of a member that is not waiting, then whatever has been answered."""
        self._step += 1
        free = [member for member in self._members if member.waiting is None]
        if free:
            member = self._random.choice(free)
            kinds = [self._join, self._sync, self._heartbeat, self._commit, self._leave]
            self._random.choices(kinds, [6, 8, 3, 2, 2])[0](member)
        self._collect()
        described = DescribeGroupsRequest([self._group])
        if any(member.member_id for member in self._members):
            # Kafka tells of a new group once its first record is committed, which may be a moment
            # after the answer to the join that made it.
            self._talk.have_until(described, lambda told: told.groups[0].group_state != "Dead")
        self._talk.ask(f"{self._step:03} then", 6, described)

    def _send(self, member: Member, name: str, request: Any) -> None:
        version = SUPPORTED[api_of(request)].highest
        step = f"{self._step:03} {name} of {member.name}"
        member.waiting = (step, member.connection.send(version, request))

    def _collect(self) -> None:
        """Take the answers that have come; what has not come within a moment is being held.

        A leader's sync comes first: it is what the others' wait for.
        """
        for member in sorted(self._members, key=lambda each: not _is_leaders_sync(each)):
            if member.waiting is None:
                continue
            step, pending = member.waiting
            patience = ON_DISK_SECONDS if _is_leaders_sync(member) else HELD_SECONDS
            if self._is_held(member.connection, pending.api_key, patience):
                self._talk.record(f"{self._step:03} {member.name} waits for {step}", None, -1, True)
                continue
            member.waiting = None
            answer = self._talk.answer(f"{step} (in {self._step:03})", pending)
            if isinstance(answer, JoinGroupResponse):
                self._joined(member, answer)

    def _is_held(self, connection: Connection, api_key: ApiKey, patience: float) -> bool:
        """Whether a request is held back: nothing has come, and the group has reason to."""
        if api_key not in HELD_IN or not connection.is_silent(patience):
            return False
        described = self._talk.have(DescribeGroupsRequest([self._group]))
        return bool(described.groups[0].group_state == HELD_IN[api_key])

    def _joined(self, member: Member, answer: JoinGroupResponse) -> None:
        if answer.member_id:
            member.member_id = answer.member_id
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            member.member_id = ""
        if answer.error_code == ErrorCode.NONE:
            member.generation = answer.generation_id
            member.is_leader = answer.leader == answer.member_id
            member.others = sorted(
                (each.member_id for each in answer.members), key=self._talk.order_of
            )

    def _join(self, member: Member) -> None:
        member_id = self._random.choices([member.member_id, "", "nobody"], [12, 2, 1])[0]
        liked = self._random.choice([("range", "sticky"), ("range",)])
        request = join(
            self._group,
            member_id,
            *liked,
            group_instance_id=member.instance_id,
            # Nobody is given up during a walk, however long it takes to see who is held.
            session_timeout_ms=600_000,
            rebalance_timeout_ms=600_000,
        )
        self._send(member, "join", request)

    def _generation(self, member: Member) -> int:
        return member.generation + self._random.choices([0, 1, -1], [12, 1, 1])[0]

    def _sync(self, member: Member) -> None:
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation(member),
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            assignments=[
                SyncGroupRequestAssignment(each, f"part {index}".encode())
                for index, each in enumerate(member.others if member.is_leader else [])
            ],
        )
        step = f"{self._step:03} sync of {member.name}"
        member.waiting = (step, member.connection.send(4, request))

    def _heartbeat(self, member: Member) -> None:
        generation = self._generation(member)
        instance_id = member.instance_id
        request = HeartbeatRequest(self._group, generation, member.member_id, instance_id)
        self._send(member, "heartbeat", request)

    def _commit(self, member: Member) -> None:
        request = commit(
            self._group,
            self._group,
            self._step,
            topic_id=self._topic_id,
            generation_id_or_member_epoch=self._generation(member),
            member_id=member.member_id,
            group_instance_id=member.instance_id,
        )
        self._send(member, "commit", request)

    def _leave(self, member: Member) -> None:
        identity = MemberIdentity(member.member_id, member.instance_id)
        self._send(member, "leave", LeaveGroupRequest(self._group, members=[identity]))


def group_walk(seed: int, steps: int) -> Scenario:
    """A scenario of that many requests of the members of one group."""

    def walk(talk: Talk) -> None:
        walking = GroupWalk(talk, seed)
        for _ in range(steps):
            walking.step()

    return walk


WALKS: dict[str, Scenario] = {
    **{f"data-walk-{seed}": data_walk(seed, 80) for seed in range(12)},
    **{f"group-walk-{seed}": group_walk(seed, 30) for seed in range(8)},
}


def _is_leaders_sync(member: Member) -> bool:
    if member.waiting is None or not member.is_leader:
        return False
    return bool(member.waiting[1].api_key == ApiKey.SYNC_GROUP)
