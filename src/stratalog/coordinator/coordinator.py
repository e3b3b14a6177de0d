"""The group coordinator: every request about a group finds the partition that it lives in here.

A group lives in the partition of ``__consumer_offsets`` that the hash of its id points to, and is
coordinated by that partition's leader. Before the partition has been loaded, requests are told to
come back; where it is led elsewhere, to look for the coordinator again.

No I/O and no clock of its own. ``append`` and ``read`` are the log; ``wake(deadline_ms)`` asks for
``run_due`` to be called at that time or soon after; answers go through callbacks. All of it is
confined to one thread.

What is written and looked at again after a restart is the time of day, as Kafka's is; deadlines go
by a clock that nobody sets. A machine that sleeps would otherwise leave commits that look as old as
it has slept, and offsets of that age are forgotten.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.coordinator.committing import (
    CommitRequest,
    Committing,
    RespondCommit,
    RespondDelete,
    RespondDeleteGroups,
)
from stratalog.coordinator.group import Group
from stratalog.coordinator.loading import load_groups
from stratalog.coordinator.member import JoinResult, RespondJoin, RespondSync, SyncResult
from stratalog.coordinator.membership import JoinRequest, LeavingMember, Membership, SyncRequest
from stratalog.coordinator.offsets import GroupOffsets, TopicAndPartition
from stratalog.coordinator.rebalance import Rebalances
from stratalog.coordinator.shard import Append, Shard
from stratalog.coordinator.timers import Timers
from stratalog.errors import StratalogError
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records import Codec

# Short enough together that nobody notices the loop was busy.
_STEPS_A_TURN = 4

_logger = logging.getLogger("stratalog")
# Of all members of all groups together, and of one member below which nobody counts.
_PROTOCOLS_MAX_BYTES = 64 << 20
_SMALL_PROTOCOLS_BYTES = 4 << 10
_SHORT_NAME = 256

Read = Callable[[int], Iterable[bytes]]
RespondOffsets = Callable[[GroupOffsets | ErrorCode], None]


class GroupCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        *,
        append: Append,
        read: Read,
        steady_clock: Clock | None = None,
        create_offsets_topic: Callable[[], None] = lambda: None,
        wake: Callable[[int], None] = lambda _deadline_ms: None,
        partition_count: Callable[[], int] | None = None,
        may_expire: Callable[[], bool] = lambda: True,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        """``read(partition)`` gives the whole batches of a partition, some at a time;
        ``partition_count`` those of the topic, if it is there. ``clock`` tells the time of day,
        ``steady_clock`` what has passed; one does for both where nobody sets it. Unless
        ``may_expire``, nothing is forgotten because it is old."""
        self.create_offsets_topic = create_offsets_topic
        self._config = config
        self._clock = clock
        self._steady_clock = steady = steady_clock or clock
        self._append = append
        self._read = read
        self._wake = wake
        self._may_expire = may_expire
        self._partition_count = partition_count or (lambda: config.offsets_topic_num_partitions)
        self._timers = Timers(wake)
        self._rebalances = Rebalances(config, clock, steady, self._timers)
        makers = {} if new_id is None else {"new_id": new_id}
        self._membership = Membership(config, clock, self._rebalances, **makers)
        self._committing = Committing(config, clock, self._rebalances)
        self._shards: dict[int, Shard] = {}
        self._jobs: deque[Iterator[None]] = deque()

    # --- partitions of the topic --------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        return abs_java_hash(group_id) % self._partition_count()

    def on_leading(self, partition: int, leader_epoch: int) -> None:
        """This node leads a partition from now on: what is in it is loaded, then served."""
        known = self._shards.get(partition)
        if known is not None:
            if leader_epoch <= known.leader_epoch:
                return
            self.on_dropped(partition)
        codec = Codec(self._config.offsets_topic_compression_codec)
        shard = Shard(partition, leader_epoch, append=self._append, codec=codec)
        self._shards[partition] = shard
        self._start(self._load(shard))

    def on_dropped(self, partition: int) -> None:
        """This node does not lead a partition any more; who waits is told to look elsewhere."""
        shard = self._shards.pop(partition, None)
        if shard is None:
            return
        shard.is_active = False
        self._timers.cancel(("expire", partition))
        for group in list(shard.groups.values()):
            self._rebalances.close(group, ErrorCode.NOT_COORDINATOR)

    def _load(self, shard: Shard) -> Iterator[None]:
        groups: dict[str, Group] = {}
        try:
            yield from load_groups(self._batches(shard.partition), groups, self._clock.now_ms())
        except StratalogError as error:
            fields = {"partition": shard.partition, "error": str(error)}
            _logger.error("groups_not_loaded", extra={"fields": fields})  # noqa: TRY400
            self._shards.pop(shard.partition, None)
            return
        if self._shards.get(shard.partition) is not shard:
            return
        shard.groups = groups
        shard.is_active = True
        for number, group in enumerate(groups.values(), 1):
            self._rebalances.loaded(shard, group)
            if number % 100 == 0:
                yield
        self._expire_later(shard)

    def _batches(self, partition: int) -> Iterator[bytes]:
        yield from self._read(partition)

    def _expire_later(self, shard: Shard) -> None:
        self._timers.schedule(
            ("expire", shard.partition),
            self._steady_clock.now_ms() + self._config.offsets_retention_check_interval_ms,
            lambda: self._start(self._expire(shard)),
        )

    def _expire(self, shard: Shard) -> Iterator[None]:
        if self._may_expire():
            yield from self._committing.expire(shard)
        if shard.is_active:
            self._expire_later(shard)

    def topics_deleted(self, topics: Mapping[str, bytes]) -> None:
        """By name, with their ids: what was committed for them is forgotten."""
        for shard in self._active():
            self._committing.topics_deleted(shard, topics)

    # --- time ---------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do; now, if there is work that was left."""
        return self._steady_clock.now_ms() if self._jobs else self._timers.next_deadline_ms()

    def run_due(self, now_ms: int) -> None:
        try:
            self._timers.run_due(now_ms)
        finally:
            self._run_jobs(now_ms)

    def _run_jobs(self, now_ms: int) -> None:
        for _ in range(_STEPS_A_TURN):
            if not self._jobs:
                return
            job = self._jobs[0]
            if next(job, self) is self:
                self._jobs.remove(job)
        if self._jobs:
            self._wake(now_ms)

    def _start(self, job: Iterator[None]) -> None:
        self._jobs.append(job)
        self._wake(self._steady_clock.now_ms())

    # --- members ------------------------------------------------------------------------------

    def join(self, request: JoinRequest, respond: RespondJoin) -> None:
        shard = self._shard_of(request.group_id)
        if isinstance(shard, ErrorCode):
            respond(JoinResult(shard, request.member_id))
            return
        shortest = self._config.group_min_session_timeout_ms
        if not (
            shortest <= request.session_timeout_ms <= self._config.group_max_session_timeout_ms
        ):
            respond(JoinResult(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
            return
        if self._is_too_much(request):
            respond(JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED, request.member_id))
            return
        self._membership.join(shard, request, respond)

    def _is_too_much(self, request: JoinRequest) -> bool:
        """Whether what members say of themselves would take more memory than there is for it. The
        little that most of them say is not looked at."""
        size_bytes = sum(len(protocol.metadata) for protocol in request.protocols)
        if size_bytes <= _SMALL_PROTOCOLS_BYTES:
            return False
        kept_bytes = sum(group.protocol_bytes for group in self.all())
        return kept_bytes + size_bytes > _PROTOCOLS_MAX_BYTES

    def sync(self, request: SyncRequest, respond: RespondSync) -> None:
        shard = self._shard_of(request.group_id)
        if isinstance(shard, ErrorCode):
            respond(SyncResult(shard))
            return
        self._membership.sync(shard, request, respond)

    def heartbeat(
        self,
        group_id: str,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None = None,
    ) -> ErrorCode:
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            # While groups are being loaded members have no reason to think that they are out.
            is_loading = shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return ErrorCode.NONE if is_loading else shard
        return self._membership.heartbeat(
            shard, group_id, generation_id, member_id, group_instance_id
        )

    def leave(
        self, group_id: str, leaving: Sequence[LeavingMember]
    ) -> Sequence[ErrorCode] | ErrorCode:
        """What became of each, or one error for all."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        return self._membership.leave(shard, group_id, leaving)

    # --- offsets ------------------------------------------------------------------------------

    def commit(self, request: CommitRequest, respond: RespondCommit) -> None:
        shard = self._shard_of(request.group_id, may_be_empty=True)
        if isinstance(shard, ErrorCode):
            respond([shard] * len(request.offsets))
            return
        self._committing.commit(shard, request, respond)

    def fetch_offsets(
        self, group_id: str, respond: RespondOffsets, *, require_stable: bool = False
    ) -> None:
        """All offsets of a group, none if there is no such group. With ``require_stable`` those
        that are on their way into the log are waited for."""
        shard = self._shard_of(group_id, may_be_empty=True)
        if isinstance(shard, ErrorCode):
            respond(shard)
            return

        def answer() -> None:
            if not shard.is_active:
                respond(ErrorCode.NOT_COORDINATOR)
                return
            group = shard.groups.get(group_id)
            respond(GroupOffsets() if group is None else group.offsets)

        if require_stable:
            shard.when_written(answer)
        else:
            answer()

    def delete_offsets(
        self, group_id: str, wanted: Sequence[TopicAndPartition], respond: RespondDelete
    ) -> None:
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            respond(shard)
            return
        self._committing.delete_offsets(shard, group_id, wanted, respond)

    # --- groups -------------------------------------------------------------------------------

    def all(self) -> Iterator[Group]:
        """Every group that is loaded."""
        for shard in self._active():
            yield from list(shard.groups.values())

    @property
    def is_loading(self) -> bool:
        return any(not shard.is_active for shard in self._shards.values())

    def find(self, group_id: str) -> Group | ErrorCode | None:
        """A group, None if there is none, or why that cannot be told."""
        shard = self._shard_of(group_id, may_be_empty=True)
        return shard if isinstance(shard, ErrorCode) else shard.groups.get(group_id)

    def delete_groups(self, group_ids: Sequence[str], respond: RespondDeleteGroups) -> None:
        codes: dict[str, ErrorCode] = {}
        by_shard: dict[Shard, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            shard = self._shard_of(group_id, may_be_empty=True)
            if isinstance(shard, ErrorCode):
                codes[group_id] = shard
            else:
                by_shard.setdefault(shard, []).append(group_id)
        left = len(by_shard)
        if not left:
            respond(codes)

        def one_done(found: Mapping[str, ErrorCode]) -> None:
            nonlocal left
            left -= 1
            codes.update(found)
            if not left:
                respond(codes)

        for shard, members in by_shard.items():
            self._committing.delete_groups(shard, members, one_done)

    # --- finding ------------------------------------------------------------------------------

    def _active(self) -> list[Shard]:
        return [shard for shard in self._shards.values() if shard.is_active]

    def _shard_of(self, group_id: str, *, may_be_empty: bool = False) -> Shard | ErrorCode:
        """Offsets may belong to a group without a name, as they always could; members not."""
        if not group_id and not may_be_empty:
            return ErrorCode.INVALID_GROUP_ID
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        return shard if shard.is_active else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def abs_java_hash(text: str) -> int:
    """Java's hash of a string, without its sign; 0 for the one number that has no opposite."""
    # What is kept must not depend on how long a name a client may think of.
    return _hash_of_short(text) if len(text) <= _SHORT_NAME else _hash_of(text)


def _hash_of(text: str) -> int:
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    value = 0
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    if value >= 1 << 31:
        value = (1 << 32) - value
    return 0 if value == 1 << 31 else value


_hash_of_short = lru_cache(maxsize=4096)(_hash_of)
