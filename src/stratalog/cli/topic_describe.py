"""What ``topic describe`` tells: facts of a topic, which of them were asked for, and how they look.

The facts come from a broker or from a log directory; what is not known there is None and not shown.
"""

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stratalog.cli.client import REQUEST_SECONDS, answer_of, told
from stratalog.cli.output import OutputFormat, write_json, write_line, write_table
from stratalog.cli.table import Cells, Column, Mood, Told

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_UINT64_MAX = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """``leader`` is None where there is none."""

    partition: int
    leader: int | None = None
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    # Known of a directory only.
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    size_bytes: int | None = None
    directory: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """``configs`` are those of the topic itself; None where nobody knows them."""

    name: str
    topic_id: str | None
    partition_count: int
    # Those that are shown.
    partitions: tuple[PartitionFacts, ...]
    configs: dict[str, str] | None = field(default_factory=dict)
    # As Kafka's tool prints them: whatever is not the default of Kafka, also if the broker says so.
    shown_configs: dict[str, str] | None = field(default_factory=dict)
    min_insync_replicas: int = 1
    note: str | None = None

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0


def facts_of(admin: "AdminClient", names: Sequence[str]) -> list[TopicFacts]:
    """Ask the broker about topics and their configs."""
    from confluent_kafka import TopicCollection

    if not names:
        return []
    with told("Describing topics"):
        described = admin.describe_topics(
            TopicCollection(list(names)), request_timeout=REQUEST_SECONDS
        )
    found = []
    for name, future in described.items():
        topic = answer_of(future, f"Describing topic {name}")
        partitions = sorted(
            (
                PartitionFacts(
                    partition=each.id,
                    leader=None if each.leader is None or each.leader.id < 0 else each.leader.id,
                    replicas=tuple(node.id for node in each.replicas),
                    isr=tuple(node.id for node in each.isr),
                )
                for each in topic.partitions
            ),
            key=lambda each: each.partition,
        )
        found.append(
            TopicFacts(
                name=name,
                topic_id=_id_text(topic.topic_id),
                partition_count=len(partitions),
                partitions=tuple(partitions),
            )
        )
    return [
        replace(facts, **_config_facts(entries))
        for facts, entries in zip(found, _config_entries(admin, names), strict=True)
    ]


def _id_text(topic_id: Any) -> str | None:
    """Kafka's text form; the client's own is another base64."""
    from stratalog.storage.checkpoint import format_id

    high = topic_id.get_most_significant_bits() & _UINT64_MAX
    low = topic_id.get_least_significant_bits() & _UINT64_MAX
    return format_id(uuid.UUID(int=high << 64 | low)) if high or low else None


def _config_entries(admin: "AdminClient", names: Sequence[str]) -> list[dict[str, Any]]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    with told("Describing configs"):
        futures = admin.describe_configs(resources, request_timeout=REQUEST_SECONDS)
    by_name = {resource.name: future for resource, future in futures.items()}
    return [answer_of(by_name[name], f"Describing configs of topic {name}") for name in names]


def _config_facts(entries: dict[str, Any]) -> dict[str, Any]:
    from confluent_kafka.admin import ConfigSource

    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    kafkas = ConfigSource.DEFAULT_CONFIG.value
    by_name = sorted(entries.items())
    minimum = entries.get("min.insync.replicas")
    return {
        "configs": {name: entry.value for name, entry in by_name if entry.source == own},
        "shown_configs": {name: entry.value for name, entry in by_name if entry.source != kafkas},
        "min_insync_replicas": int(minimum.value) if minimum is not None else 1,
    }


# --- selecting -------------------------------------------------------------------------------


def select(
    topics: Sequence[TopicFacts],
    *,
    under_replicated: bool,
    unavailable: bool,
    under_min_isr: bool,
    at_min_isr: bool,
    with_overrides: bool,
) -> list[TopicFacts]:
    """The topics and partitions that one of the conditions picks; all if there is none."""
    if with_overrides:
        topics = [facts for facts in topics if facts.configs]
    if not (under_replicated or unavailable or under_min_isr or at_min_isr):
        return list(topics)

    def is_picked(facts: TopicFacts, each: PartitionFacts) -> bool:
        has_no_leader = each.leader is None
        in_sync = len(each.isr)
        return (
            (under_replicated and in_sync < len(each.replicas))
            or (unavailable and has_no_leader)
            or (under_min_isr and (has_no_leader or in_sync < facts.min_insync_replicas))
            or (at_min_isr and in_sync == facts.min_insync_replicas)
        )

    picked = []
    for facts in topics:
        partitions = tuple(each for each in facts.partitions if is_picked(facts, each))
        if partitions:
            picked.append(replace(facts, partitions=partitions))
    return picked


# --- telling ---------------------------------------------------------------------------------


def write_topics(
    topics: Sequence[TopicFacts],
    output: OutputFormat,
    *,
    shows_partitions: bool = True,
    is_wide: bool = False,
) -> None:
    if output is OutputFormat.JSON:
        write_json([_as_json(facts) for facts in topics])
        return
    for slot, facts in enumerate(topics):
        if slot and shows_partitions:
            write_line()
        _write_topic(facts)
        if shows_partitions:
            _write_partitions(facts.partitions, is_wide=is_wide)


def _as_json(facts: TopicFacts) -> dict[str, Any]:
    row: dict[str, Any] = {
        "topic": facts.name,
        "topic_id": facts.topic_id,
        "partition_count": facts.partition_count,
        "replication_factor": facts.replication_factor,
        "configs": facts.configs,
    }
    if facts.note:
        row["note"] = facts.note
    row["partitions"] = [
        {
            name: value
            for name, value in asdict(each).items()
            if value is not None or name == "leader"
        }
        for each in facts.partitions
    ]
    return row


def _write_topic(facts: TopicFacts) -> None:
    shown = facts.shown_configs
    configs = (
        "unknown" if shown is None else ",".join(f"{name}={value}" for name, value in shown.items())
    )
    parts = [f"Topic: {facts.name}"]
    if facts.topic_id is not None:
        parts.append(f"TopicId: {facts.topic_id}")
    parts.append(f"PartitionCount: {facts.partition_count}")
    if facts.replication_factor:
        parts.append(f"ReplicationFactor: {facts.replication_factor}")
    write_line("  ".join([*parts, f"Configs: {configs}"]))
    if facts.note:
        write_line(facts.note)


def _write_partitions(partitions: Sequence[PartitionFacts], *, is_wide: bool) -> None:
    if any(each.directory is not None for each in partitions):
        columns = (
            *(Column("partition"), Column("start"), Column("end")),
            *(Column("bytes", Cells.BYTES), Column("directory", rank=1)),
        )
        rows = [
            (
                each.partition,
                each.log_start_offset,
                each.log_end_offset,
                each.size_bytes,
                each.directory,
            )
            for each in partitions
        ]
        write_table(columns, rows, is_wide=is_wide)
        return
    write_table(
        (Column("partition"), Column("leader"), Column("replicas", rank=1), Column("isr")),
        [
            (
                each.partition,
                Told("none", Mood.BAD) if each.leader is None else each.leader,
                ",".join(map(str, each.replicas)),
                Told(
                    ",".join(map(str, each.isr)),
                    Mood.WARNING if len(each.isr) < len(each.replicas) else Mood.PLAIN,
                ),
            )
            for each in partitions
        ],
        is_wide=is_wide,
    )
