"""Offsets: committing them, asking for them, deleting them, and forgetting those of long ago."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import (
    NO_TIMESTAMP,
    NO_TOPIC_ID,
    CommittedOffset,
    group_key,
    offset_key,
    offset_value,
)
from stratalog.coordinator.offsets import Changes, TopicAndPartition, is_expired
from stratalog.coordinator.rebalance import Rebalances
from stratalog.coordinator.shard import LogRecord, Shard
from stratalog.coordinator.states import GroupState
from stratalog.protocol.error_codes import ErrorCode

DEFAULT_RETENTION = -1

_MINUTE_MS = 60_000
_FAR_FUTURE_MS = 2**63 - 1  # what a record can hold; a client may ask for more
_GROUPS_A_STEP = 50


class NewOffset(NamedTuple):
    """One partition of a commit. ``metadata`` is whatever the client wants to find again."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    topic_id: bytes = NO_TOPIC_ID


class CommitRequest(NamedTuple):
    """``generation_id`` is negative for those who are in no group: consumers that assign
    partitions to themselves, and administrators."""

    group_id: str
    offsets: Sequence[NewOffset]
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_ms: int = DEFAULT_RETENTION
    # Older clients do not know the code for a group that is not there.
    knows_group_not_found: bool = True


# The codes are those of the request's offsets, in its order.
RespondCommit = Callable[[Sequence[ErrorCode]], None]
RespondDelete = Callable[[Mapping[TopicAndPartition, ErrorCode] | ErrorCode], None]
RespondDeleteGroups = Callable[[Mapping[str, ErrorCode]], None]


class _NewOffsets(NamedTuple):
    """What a commit is answered if it can be written, and what is written for it."""

    codes: list[ErrorCode]
    changes: dict[TopicAndPartition, CommittedOffset | None]
    records: list[LogRecord]


class Committing:
    def __init__(self, config: BrokerConfig, clock: Clock, rebalances: Rebalances) -> None:
        self._config = config
        self._clock = clock
        self._rebalances = rebalances

    # --- committing ---------------------------------------------------------------------------

    def commit(self, shard: Shard, request: CommitRequest, respond: RespondCommit) -> None:
        group = shard.groups.get(request.group_id)
        refusal = self._refusal(group, request)
        if refusal is not ErrorCode.NONE:
            respond([refusal] * len(request.offsets))
            return
        # What cannot be written is refused here, before it has made a group.
        new = self._new_offsets(request)
        if group is None:
            # A simple group: it has offsets and never any members.
            group = Group(request.group_id, now_ms=self._clock.now_ms())
            shard.groups[request.group_id] = group
        elif group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            member = group.members.get(request.member_id)
            if member is not None:
                self._rebalances.expect_heartbeat(shard, group, member)
        self._write_commit(shard, group, new, respond)

    def _refusal(self, group: Group | None, request: CommitRequest) -> ErrorCode:
        if group is None:
            if request.generation_id < 0:
                return ErrorCode.NONE
            is_known = request.knows_group_not_found
            return ErrorCode.GROUP_ID_NOT_FOUND if is_known else ErrorCode.ILLEGAL_GENERATION
        if request.generation_id < 0 and group.state is GroupState.EMPTY:
            return ErrorCode.NONE
        is_anonymous = not request.member_id and request.group_instance_id is None
        if request.generation_id < 0 and is_anonymous:
            return ErrorCode.UNKNOWN_MEMBER_ID
        refusal = group.refusal(request.member_id, request.group_instance_id)
        if refusal is not ErrorCode.NONE:
            return refusal
        if request.generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _new_offsets(self, request: CommitRequest) -> _NewOffsets:
        now_ms = self._clock.now_ms()
        expire_ms = NO_TIMESTAMP
        if request.retention_ms != DEFAULT_RETENTION:
            expire_ms = min(now_ms + request.retention_ms, _FAR_FUTURE_MS)
        longest = self._config.offset_metadata_max_bytes
        codes: list[ErrorCode] = []
        changes: dict[TopicAndPartition, CommittedOffset | None] = {}
        records: list[LogRecord] = []
        for topic, partition, offset, leader_epoch, metadata, topic_id in request.offsets:
            if metadata and _java_length(metadata) > longest:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            committed = CommittedOffset(
                offset, leader_epoch, metadata or "", now_ms, expire_ms, topic_id
            )
            codes.append(ErrorCode.NONE)
            changes[topic, partition] = committed
            key = offset_key(request.group_id, topic, partition)
            records.append((key, offset_value(committed)))
        return _NewOffsets(codes, changes, records)

    def _write_commit(
        self, shard: Shard, group: Group, new: _NewOffsets, respond: RespondCommit
    ) -> None:
        codes, changes, records = new
        if not records:
            self._forget_if_unused(shard, group)
            respond(codes)
            return

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                self._forget_if_unused(shard, group)
                respond([error] * len(codes))
            else:
                respond(codes)

        self._write(shard, group, records, changes, done)

    def _write(
        self,
        shard: Shard,
        group: Group,
        records: Sequence[LogRecord],
        changes: Changes,
        done: Callable[[ErrorCode], None],
    ) -> None:
        number = group.offsets.begin(changes)

        def written(error: ErrorCode) -> None:
            group.offsets.finish(changes, number, is_written=error is ErrorCode.NONE)
            done(error)

        shard.write(records, self._clock.now_ms(), written)

    def _forget_if_unused(self, shard: Shard, group: Group) -> None:
        """A simple group whose first commit has failed has never been there."""
        is_unused = (
            group.protocol_type is None
            and group.generation_id == 0
            and not group.pending_join
            and not group.offsets.all_keys()
        )
        if is_unused and shard.groups.get(group.group_id) is group:
            del shard.groups[group.group_id]

    # --- deleting -----------------------------------------------------------------------------

    def delete_offsets(
        self,
        shard: Shard,
        group_id: str,
        wanted: Sequence[TopicAndPartition],
        respond: RespondDelete,
    ) -> None:
        """An answer for each, or one error for all of it."""
        group = shard.groups.get(group_id)
        if group is None:
            respond(ErrorCode.GROUP_ID_NOT_FOUND)
            return
        if group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
            respond(ErrorCode.NON_EMPTY_GROUP)
            return
        codes: dict[TopicAndPartition, ErrorCode] = {}
        gone: list[TopicAndPartition] = []
        known = group.offsets.all_keys()
        for key in wanted:
            if group.is_subscribed_to(key[0]):
                codes[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                continue
            if key in known and key not in codes:
                gone.append(key)
            codes[key] = ErrorCode.NONE
        self._write_tombstones(
            shard,
            group,
            gone,
            lambda error: respond(codes if error is ErrorCode.NONE else error),
        )

    def _write_tombstones(
        self,
        shard: Shard,
        group: Group,
        gone: Sequence[TopicAndPartition],
        done: Callable[[ErrorCode], None],
    ) -> None:
        if not gone:
            done(ErrorCode.NONE)
            return
        records = [(offset_key(group.group_id, *key), None) for key in gone]
        self._write(shard, group, records, dict.fromkeys(gone), done)

    def delete_groups(
        self, shard: Shard, group_ids: Sequence[str], respond: RespondDeleteGroups
    ) -> None:
        codes: dict[str, ErrorCode] = {}
        deleted: list[Group] = []
        for group_id in group_ids:
            group = shard.groups.get(group_id)
            if group is None:
                codes[group_id] = ErrorCode.GROUP_ID_NOT_FOUND
            elif group.state is not GroupState.EMPTY:
                codes[group_id] = ErrorCode.NON_EMPTY_GROUP
            else:
                codes[group_id] = ErrorCode.NONE
                deleted.append(group)

        def done(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                codes.update({group.group_id: error for group in deleted})
            respond(codes)

        self._delete_groups(shard, deleted, done)

    def _delete_groups(
        self, shard: Shard, groups: Sequence[Group], done: Callable[[ErrorCode], None]
    ) -> None:
        """They are gone at once, so that who joins one of them now has made a new one, and is
        behind it in the log. If it cannot be written they are back, unless there is a new one."""
        records: list[LogRecord] = []
        for group in groups:
            for key in sorted(group.offsets.all_keys()):
                records.append((offset_key(group.group_id, *key), None))
            records.append((group_key(group.group_id), None))
            del shard.groups[group.group_id]
            self._rebalances.stop_watching(group)
            group.pending_join.clear()

        def written(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                for group in groups:
                    shard.groups.setdefault(group.group_id, group)
            done(error)

        shard.write_all(records, self._clock.now_ms(), written)

    def topics_deleted(self, shard: Shard, topics: Mapping[str, bytes]) -> None:
        """Names and ids of topics that are no more: nobody will go on reading them."""
        for group in list(shard.groups.values()):
            for name, topic_id in topics.items():
                gone = [
                    (name, partition)
                    for partition in group.offsets.topics.get(name, {})
                    if group.offsets.topic_id(name, partition) in (topic_id, NO_TOPIC_ID)
                ]
                gone += [key for key in group.offsets.pending if key[0] == name and key not in gone]
                self._write_tombstones(shard, group, gone, lambda _error: None)

    # --- retention ----------------------------------------------------------------------------

    def expire(self, shard: Shard) -> Iterator[None]:
        """Forget what nobody has asked for in a long time, some groups with each step."""
        groups = list(shard.groups.values())
        for number, group in enumerate(groups, 1):
            if shard.is_active and shard.groups.get(group.group_id) is group:
                self._expire_group(shard, group)
            if number % _GROUPS_A_STEP == 0:
                yield

    def _expire_group(self, shard: Shard, group: Group) -> None:
        expired = self._expired(group)
        is_all = len(expired) == len(group.offsets) and not group.offsets.is_in_transaction
        is_unused = not group.offsets.pending and not group.pending_join
        if is_all and is_unused and group.state is GroupState.EMPTY:
            self._delete_groups(shard, [group], lambda _error: None)
        else:
            self._write_tombstones(shard, group, expired, lambda _error: None)

    def _expired(self, group: Group) -> list[TopicAndPartition]:
        now_ms = self._clock.now_ms()
        retention_ms = self._config.offsets_retention_minutes * _MINUTE_MS
        found = []
        for topic, partition, committed in group.offsets:
            base_ms = group.expiry_base_ms(committed.commit_timestamp_ms)
            if (
                base_ms is not None
                and is_expired(
                    committed,
                    now_ms=now_ms,
                    base_timestamp_ms=base_ms,
                    retention_ms=retention_ms,
                )
                and not group.is_subscribed_to(topic)
                and not group.offsets.is_pending(topic, partition)
                and not group.offsets.has_open_transaction(topic, partition)
            ):
                found.append((topic, partition))
        return found


def _java_length(text: str) -> int:
    """In UTF-16, as Kafka counts although the setting speaks of bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
