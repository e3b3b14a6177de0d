"""A coordinator with a log in memory and clocks that stand still until they are turned."""

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import Any

from stratalog.config import BrokerConfig
from stratalog.coordinator.committing import CommitRequest, NewOffset
from stratalog.coordinator.coordinator import GroupCoordinator
from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import record_type
from stratalog.coordinator.member import JoinResult, Protocol, SyncResult
from stratalog.coordinator.membership import JoinRequest, SyncRequest
from stratalog.coordinator.offsets import GroupOffsets
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records import read_header
from stratalog.records.columns import StoredRecord, decode_records
from stratalog.testing import ManualClock

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = (Protocol("range", b"r"),)

_offset = Struct(">q")


class MemoryLog:
    """The partitions of ``__consumer_offsets``. ``refuse`` makes appends fail; ``hold`` keeps
    their acknowledgements back until ``release``."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[bytes]] = {}
        self.refuse: ErrorCode | None = None
        self.hold = False
        self.held: list[Callable[[int], None]] = []

    def append(self, partition: int, batch: bytes, done: Callable[[int], None]) -> None:
        if self.refuse is not None:
            done(self.refuse)
            return
        batches = self.partitions.setdefault(partition, [])
        next_offset = 0
        if batches:
            last = read_header(batches[-1])
            assert last is not None
            next_offset = last.next_offset
        batches.append(_offset.pack(next_offset) + batch[_offset.size :])
        if self.hold:
            self.held.append(done)
        else:
            done(ErrorCode.NONE)

    def release(self, code: ErrorCode = ErrorCode.NONE) -> None:
        held, self.held = self.held, []
        for done in held:
            done(code)

    def read(self, partition: int) -> Iterator[bytes]:
        batches = list(self.partitions.get(partition, ()))
        for start in range(0, len(batches), 3):
            yield b"".join(batches[start : start + 3])

    def records(self, partition: int | None = None) -> list[StoredRecord]:
        numbers = sorted(self.partitions) if partition is None else [partition]
        return [
            record
            for number in numbers
            for batch in self.partitions.get(number, ())
            for record in decode_records(batch)
        ]

    def types(self) -> list[int]:
        """What kinds of records there are, tombstones as negative numbers."""
        return [
            record_type(record.key or b"") * (1 if record.value is not None else -1)
            for record in self.records()
        ]


class World:
    def __init__(self, *, partitions: int = 1, **settings: Any) -> None:
        settings.setdefault("group_initial_rebalance_delay_ms", 0)
        self.config = BrokerConfig(
            log_dirs=("unused",), offsets_topic_num_partitions=partitions, **settings
        )
        self.clock = ManualClock()
        self.steady_clock: ManualClock
        self.log = MemoryLog()
        self.partitions = partitions
        self.wakes: list[int] = []
        self.may_expire = True
        self._ids = 0
        self.coordinator: GroupCoordinator
        self.start()

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:04}"

    def start(self, *, is_loaded: bool = True, epoch: int = 0) -> None:
        """A coordinator that knows what is in the log, and nothing else."""
        self.log.held.clear()
        self.steady_clock = ManualClock(self.clock.now_ms())
        self.coordinator = GroupCoordinator(
            self.config,
            self.clock,
            append=self.log.append,
            read=self.log.read,
            steady_clock=self.steady_clock,
            wake=self.wakes.append,
            may_expire=lambda: self.may_expire,
            new_id=self._new_id,
        )
        for partition in range(self.partitions):
            self.coordinator.on_leading(partition, epoch)
        if is_loaded:
            self.settle()

    def settle(self) -> None:
        """Do all that is due now."""
        for _ in range(10_000):
            due_ms = self.coordinator.next_deadline_ms()
            if due_ms is None or due_ms > self.steady_clock.now_ms():
                return
            self.coordinator.run_due(self.steady_clock.now_ms())
        raise AssertionError("there is no end to what is due")

    def advance(self, ms: int) -> None:
        """Let time pass, and run everything when it is due."""
        end_ms = self.steady_clock.now_ms() + ms
        while True:
            self.settle()
            due_ms = self.coordinator.next_deadline_ms()
            if due_ms is None or due_ms > end_ms:
                break
            self._pass_until(due_ms)
        self._pass_until(end_ms)
        self.settle()

    def _pass_until(self, steady_ms: int) -> None:
        self.clock.set(self.clock.now_ms() + steady_ms - self.steady_clock.now_ms())
        self.steady_clock.set(steady_ms)

    def sleep(self, ms: int) -> None:
        """The machine is asleep: the day goes on, and for all that runs on it no time passes."""
        self.clock.set(self.clock.now_ms() + ms)

    def group(self, group_id: str = GROUP) -> Group:
        found = self.coordinator.find(group_id)
        assert isinstance(found, Group), found
        return found

    # --- requests -----------------------------------------------------------------------------

    def join(self, member_id: str = "", **changes: Any) -> list[JoinResult]:
        """The answers so far: none while the request waits."""
        answers: list[JoinResult] = []
        request = JoinRequest(
            group_id=GROUP,
            member_id=member_id,
            group_instance_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=RANGE,
        )
        self.coordinator.join(request._replace(**changes), answers.append)
        self.settle()
        return answers

    def join_new(self, **changes: Any) -> list[JoinResult]:
        """As a client does it: asks for an id, and joins with it."""
        (answer,) = self.join(**changes)
        assert answer.error_code is ErrorCode.MEMBER_ID_REQUIRED
        return self.join(answer.member_id, **changes)

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        /,
        **changes: Any,
    ) -> list[SyncResult]:
        answers: list[SyncResult] = []
        request = SyncRequest(
            GROUP,
            generation_id,
            member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=assignments or {},
        )
        self.coordinator.sync(request._replace(**changes), answers.append)
        self.settle()
        return answers

    def heartbeat(self, member_id: str, generation_id: int, **changes: Any) -> ErrorCode:
        return self.coordinator.heartbeat(GROUP, generation_id, member_id, **changes)

    def stable(self, count: int, **changes: Any) -> list[str]:
        """The ids of the members of a new group, the leader's first; each has got its own id."""
        joins = [self.join_new(**changes) for _ in range(count)]
        if any(not answers for answers in joins):
            members = list(self.group().members)
            joins = [self.join(member_id, **changes) for member_id in members]
        answers = [answers[-1] for answers in joins]
        leader = next(answer for answer in answers if answer.members)
        ids = [leader.member_id, *(a.member_id for a in answers if a is not leader)]
        syncs = [self.sync(each, leader.generation_id) for each in ids[1:]]
        syncs.append(self.sync(ids[0], leader.generation_id, {each: each.encode() for each in ids}))
        assert all(sync[0].error_code is ErrorCode.NONE for sync in syncs)
        return ids

    def commit(
        self, *offsets: NewOffset, group_id: str = GROUP, **changes: Any
    ) -> list[Sequence[ErrorCode]]:
        answers: list[Sequence[ErrorCode]] = []
        self.coordinator.commit(CommitRequest(group_id, offsets, **changes), answers.append)
        self.settle()
        return answers

    def fetch(
        self, group_id: str = GROUP, *, require_stable: bool = False
    ) -> list[GroupOffsets | ErrorCode]:
        answers: list[GroupOffsets | ErrorCode] = []
        self.coordinator.fetch_offsets(group_id, answers.append, require_stable=require_stable)
        return answers

    def offsets(self, group_id: str = GROUP) -> dict[tuple[str, int], int]:
        (found,) = self.fetch(group_id)
        assert isinstance(found, GroupOffsets)
        return {(topic, partition): each.offset for topic, partition, each in found}
