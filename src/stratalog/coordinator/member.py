"""One member of a group: who it is, what it can do, what it has got, and the answer it waits for.

A member is *dynamic*, known by an id that the coordinator made up, or *static*: it has an instance
id of its own, and may come back under a new member id without anybody noticing.
"""

from collections.abc import Callable, Collection, Sequence
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from stratalog.coordinator.log_records import StoredMember
from stratalog.protocol.error_codes import ErrorCode

UNKNOWN_MEMBER_ID = ""
UNKNOWN_GENERATION_ID = -1
NO_LEADER = ""

_version_and_count = Struct(">hi")
_string_size = Struct(">h")


class Protocol(NamedTuple):
    """A way to share out partitions that a member knows, with what it has to say for it."""

    name: str
    metadata: bytes


class JoinedMember(NamedTuple):
    """A member as the leader of the group is told of it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinResult(NamedTuple):
    """What became of a JoinGroup. Only the leader is given the members."""

    error_code: ErrorCode = ErrorCode.NONE
    member_id: str = UNKNOWN_MEMBER_ID
    generation_id: int = UNKNOWN_GENERATION_ID
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = NO_LEADER
    skip_assignment: bool = False
    members: Sequence[JoinedMember] = ()


class SyncResult(NamedTuple):
    """What became of a SyncGroup: what the leader has given this member."""

    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


RespondJoin = Callable[[JoinResult], None]
RespondSync = Callable[[SyncResult], None]


class Member:
    """``protocols`` has each name once, in the order of preference."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "respond_join",
        "respond_sync",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: tuple[Protocol, ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.assignment = assignment
        # It has never been told its id, so it cannot send heartbeats yet.
        self.is_new = False
        self.respond_join: RespondJoin | None = None
        self.respond_sync: RespondSync | None = None

    def __repr__(self) -> str:
        waits = "join" if self.is_awaiting_join else "sync" if self.is_awaiting_sync else "nothing"
        return f"Member({self.member_id!r}, {self.group_instance_id!r}, waits for {waits})"

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        return self.respond_join is not None

    @property
    def is_awaiting_sync(self) -> bool:
        return self.respond_sync is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whoever waits for us cannot be expected to send heartbeats, unless it is new: then it
        may be gone, and nothing else would ever tell."""
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    def metadata(self, protocol_name: str | None) -> bytes:
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not know the protocol {protocol_name}")

    def vote(self, candidates: Collection[str]) -> str:
        """The candidate it likes best."""
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise AssertionError(f"{self.member_id} knows none of {candidates}")

    def stored(self, protocol_name: str | None, assignment: bytes) -> StoredMember:
        return StoredMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
            assignment,
        )


def distinct_protocols(protocols: Sequence[tuple[str, bytes]]) -> tuple[Protocol, ...]:
    """The first of each name: a member that repeats one has not said anything more."""
    found: dict[str, Protocol] = {}
    for name, metadata in protocols:
        found.setdefault(name, Protocol(name, metadata))
    return tuple(found.values())


def read_subscription(metadata: bytes) -> list[str] | None:
    """The topics that a consumer names in its metadata: i16 version, then an array of strings in
    every version there is or will be. None if it cannot be read."""
    topics = []
    try:
        _, count = _version_and_count.unpack_from(metadata)
        at = _version_and_count.size
        for _ in range(count):
            (size,) = _string_size.unpack_from(metadata, at)
            at += _string_size.size
            if size < 0 or at + size > len(metadata):
                return None
            topics.append(metadata[at : at + size].decode())
            at += size
    except (StructError, UnicodeDecodeError):
        return None
    return topics
