"""What a broker tells of groups: members, committed offsets, log ends; and setting offsets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratalog.cli.client import REQUEST_SECONDS, ClientError, answer_of, told
from stratalog.cli.failures import CommandError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

Place = tuple[str, int]
_NOT_FOUND = "GROUP_ID_NOT_FOUND"
_STATES = {
    "UNKNOWN": "Unknown",
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
    "STABLE": "Stable",
    "DEAD": "Dead",
    "EMPTY": "Empty",
    "ASSIGNING": "Assigning",
    "RECONCILING": "Reconciling",
}


@dataclass(frozen=True, slots=True)
class Member:
    consumer_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``state`` is Kafka's word for it; a group that nobody knows is Dead."""

    group: str
    state: str
    type: str
    assignment_strategy: str
    coordinator: str
    coordinator_id: int
    members: tuple[Member, ...]

    @property
    def is_inactive(self) -> bool:
        return self.state in ("Empty", "Dead")


@dataclass(frozen=True, slots=True)
class Committed:
    offset: int
    leader_epoch: int | None
    metadata: str | None


class Groups:
    """Asks an admin client; every answer is a value."""

    def __init__(self, admin: "AdminClient", timeout_ms: int = 30_000) -> None:
        self._admin = admin
        self._seconds = timeout_ms / 1000

    def listed(self, states: Iterable[str], types: Iterable[str]) -> list[tuple[str, str, str]]:
        """Group, type and state of all groups, in order of their ids."""
        with told("Listing groups"):
            future = self._admin.list_consumer_groups(request_timeout=self._seconds)
        answer = answer_of(future, "Listing groups")
        if answer.errors:
            error = answer.errors[0]
            with told("Listing groups"):
                raise error
        wanted_states = {each.lower() for each in states}
        wanted_types = {each.lower() for each in types}
        found = []
        for each in answer.valid:
            state, kind = state_name(each.state), type_name(each.type)
            if (not wanted_states or state.lower() in wanted_states) and (
                not wanted_types or kind.lower() in wanted_types
            ):
                found.append((each.group_id, kind, state))
        return sorted(found)

    def described(self, names: Sequence[str]) -> list[Group]:
        if not names:
            return []
        with told("Describing groups"):
            futures = self._admin.describe_consumer_groups(
                list(names), request_timeout=self._seconds
            )
        return [self._described(name, futures[name]) for name in dict.fromkeys(names)]

    def _described(self, name: str, future: Any) -> Group:
        try:
            found = answer_of(future, f"Describing group {name}")
        except ClientError as error:
            if error.name != _NOT_FOUND:
                raise
            return Group(name, "Dead", "Classic", "", "", -1, ())
        node = found.coordinator
        members = tuple(
            Member(
                each.member_id,
                each.group_instance_id or None,
                each.client_id,
                each.host,
                tuple(
                    sorted(
                        (place.topic, place.partition)
                        for place in (each.assignment.topic_partitions if each.assignment else ())
                    )
                ),
            )
            for each in found.members
        )
        return Group(
            name,
            state_name(found.state),
            type_name(found.type),
            found.partition_assignor or "",
            f"{node.host}:{node.port}" if node is not None else "",
            node.id if node is not None else -1,
            members,
        )

    def committed(self, group: str) -> dict[Place, Committed]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        what = f"Asking for offsets of group {group}"
        with told(what):
            futures = self._admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=self._seconds
            )
        try:
            answer = answer_of(futures[group], what)
        except ClientError as error:
            if error.name != _NOT_FOUND:
                raise
            return {}
        return {
            (each.topic, each.partition): Committed(
                each.offset, each.leader_epoch, each.metadata or None
            )
            for each in answer.topic_partitions or ()
            if each.offset >= 0
        }

    def commit(self, group: str, plan: dict[Place, int]) -> None:
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        if not plan:
            return
        what = f"Resetting offsets of group {group}"
        places = [TopicPartition(*place, offset) for place, offset in plan.items()]
        with told(what):
            futures = self._admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, places)], request_timeout=self._seconds
            )
        answer = answer_of(futures[group], what)
        for each in answer.topic_partitions or ():
            if each.error is not None:
                raise ClientError(
                    f"{what} for {each.topic}-{each.partition}",
                    each.error.name(),
                    each.error.str(),
                )

    # --- logs -----------------------------------------------------------------------------------

    def partitions(self) -> dict[str, list[int]]:
        """The partitions of every topic."""
        with told("Asking for topics"):
            answer = self._admin.list_topics(timeout=REQUEST_SECONDS)
        return {name: sorted(topic.partitions) for name, topic in answer.topics.items()}

    def starts(self, places: Iterable[Place]) -> dict[Place, int]:
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def at(self, places: Iterable[Place], timestamp_ms: int) -> dict[Place, int]:
        """The first offset not older; the log's end where everything is."""
        from confluent_kafka.admin import OffsetSpec

        found = self._offsets(places, OffsetSpec.for_timestamp(timestamp_ms))
        late = [place for place, offset in found.items() if offset < 0]
        return {**found, **self.ends(late)}

    def _offsets(self, places: Iterable[Place], which: Any) -> dict[Place, int]:
        from confluent_kafka import TopicPartition

        asked = {TopicPartition(*place): which for place in places}
        if not asked:
            return {}
        with told("Asking for offsets"):
            futures = self._admin.list_offsets(asked, request_timeout=self._seconds)
        return {
            (place.topic, place.partition): answer_of(
                future, f"Asking for offsets of {place.topic}-{place.partition}"
            ).offset
            for place, future in futures.items()
        }


def state_name(state: Any) -> str:
    return _STATES.get(state.name, state.name.title()) if state is not None else "Unknown"


def type_name(kind: Any) -> str:
    return str(kind.name.title()) if kind is not None else "Unknown"


def ensure_partitions(places: Iterable[Place], existing: dict[str, list[int]]) -> None:
    missing = [
        f"{topic}-{partition}"
        for topic, partition in places
        if partition not in existing.get(topic, ())
    ]
    if missing:
        raise CommandError(f"There is no partition {', '.join(missing)}.")
