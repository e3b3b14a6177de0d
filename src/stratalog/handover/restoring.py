"""Restoring a backup: into an empty directory, as a log directory that brokers open."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from stratalog.clock import Clock, SystemClock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.metadata.dynamic_configs import (
    check_broker_configs,
    check_topic_configs,
    effective_broker,
    possible_configs,
)
from stratalog.metadata.image import (
    CLUSTER_DEFAULT,
    NO_LEADER,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
)
from stratalog.metadata.names import random_topic_id
from stratalog.metadata.producer_ids import first_producer_id
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore
from stratalog.storage.backup.copying import Progress
from stratalog.storage.backup.laying_out import DirectoryRestore
from stratalog.storage.backup.manifest import BackupManifest, StoredAppVersion, TopicBackup
from stratalog.storage.backup.restore_plan import RestoredSegment, RestorePlan
from stratalog.storage.backup.store import BackupStore
from stratalog.storage.checkpoint import parse_id
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import META_PROPERTIES, RESTORING_DIRECTORY, TopicPartition

_NAMES_MANY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreResult:
    plan: RestorePlan
    log_dir: str
    notes: tuple[str, ...] = ()


def is_restored_whole(log_dir: str) -> bool:
    """Whether ``log_dir`` becomes a log directory by a restore; or is one, with topics that others
    know, into which it is restored."""
    path = Path(log_dir)
    return (
        not path.exists()
        or not any(each.name in (META_PROPERTIES, METADATA_FILE) for each in path.iterdir())
        or (path / RESTORING_DIRECTORY).exists()
    )


def restore_directory(
    store: BackupStore,
    plan: RestorePlan,
    log_dir: str,
    *,
    files: FileSystem | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda _bytes: None,
) -> RestoreResult:
    """Make ``log_dir``, which is missing or empty, what ``plan`` says."""
    configs = _Configs(plan)
    restore = DirectoryRestore(files or OsFileSystem(), log_dir, store, plan, progress=progress)
    has_controller = plan.is_all and bool(plan.manifest.controller)
    notes = list(plan.notes)
    if plan.manifest.controller and not has_controller:
        notes.append("Apache Kafka's own metadata is left out: it tells of more than is restored")
    restore.run(lambda: None if has_controller else _write_metadata(plan, configs, log_dir))
    notes += configs.notes
    notes += forgotten_notes(plan, known=plan.restored_app_versions)
    notes += retention_notes(plan, configs.governing, (clock or SystemClock()).now_ms())
    return RestoreResult(plan=plan, log_dir=log_dir, notes=tuple(notes))


def forgotten_notes(
    plan: RestorePlan, *, known: Collection[StoredAppVersion] = ()
) -> Iterable[str]:
    """Which applications may write twice what they have written once: all but the ``known``."""
    names = [each.name for each in plan.manifest.app_versions if each not in known]
    if names:
        named = ", ".join(names[:_NAMES_MANY]) + (", …" if len(names) > _NAMES_MANY else "")
        yield (
            f"which versions were committed is not known any more of {named}: a batch or a load "
            "that it tries again is written again"
        )


def retention_notes(
    plan: RestorePlan, configs: Mapping[str, TopicConfig], now_ms: int
) -> Iterable[str]:
    """For each topic of ``configs`` of which a broker will delete what is restored: it is old."""
    for name, config in configs.items():
        if not config.delete or config.retention_ms < 0:
            continue
        segments = [
            each
            for partition in plan.partitions
            if partition.topic_partition.topic == name
            for each in partition.segments
        ]
        latest = [_latest_ms(plan, each) for each in segments]
        old = [each for each in latest if 0 <= each < now_ms - config.retention_ms]
        if old:
            yield (
                f"{len(old)} of the {len(segments)} segments restored to {name} are older than "
                f"retention.ms={config.retention_ms}, and will be deleted by that soon; raise it "
                f"now, as with 'stratalog config alter --topic {name} --add-config retention.ms=-1'"
            )


def _latest_ms(plan: RestorePlan, segment: RestoredSegment) -> int:
    """The largest timestamp, or one that is not below it; -1 if the records have none."""
    if plan.until_ms is None:
        return segment.stored.max_timestamp_ms
    return max(segment.stored.max_timestamp_ms, -1 if segment.is_whole else plan.until_ms)


class _Configs:
    """What of the configs is taken over, as when a directory is adopted: a topic is held if its
    own were not known, or not all of them are possible here. ``brokers`` are the dynamic ones of
    all brokers and of the one that the directory belongs to."""

    def __init__(self, plan: RestorePlan) -> None:
        self.taken: dict[str, dict[str, str]] = {}
        # Of topics that are not held; what a broker's own settings will say is not known.
        self.governing: dict[str, TopicConfig] = {}
        self.brokers: dict[int | None, dict[str, str]] = {}
        self.notes: list[str] = []
        broker = self._take_brokers(plan.manifest)
        check = partial(check_topic_configs, broker=broker)
        for topic in plan.topics:
            taken, refused = possible_configs(topic.configs or {}, check)
            self.taken[topic.name] = taken
            if topic.configs is None:
                self.notes.append(f"the configs of {topic.name} were not known: it is held")
            elif refused:
                self.notes += [
                    f"a config of {topic.name} is not possible here, and it is held: {error}"
                    for error in refused
                ]
            else:
                self.governing[topic.name] = TopicConfig.from_properties(taken, broker=broker)

    def _take_brokers(self, manifest: BackupManifest) -> BrokerConfig:
        """What a broker with no settings of its own does by those that are taken."""
        told = manifest.broker_configs or {}
        node_id, broker = manifest.source.node_id, BrokerConfig()
        whose = ((CLUSTER_DEFAULT, "", "all brokers"), (node_id, str(node_id), f"broker {node_id}"))
        for node, name, people in whose:
            check = partial(check_broker_configs, broker=broker)
            taken, refused = possible_configs(told.get(name, {}), check)
            self.notes += [
                f"a dynamic config of {people} is not possible here, and is left out: {error}"
                for error in refused
            ]
            if taken:
                self.brokers[node] = taken
                broker = effective_broker(broker, taken)
        return broker


def _write_metadata(plan: RestorePlan, configs: _Configs, log_dir: str) -> None:
    """What our broker knows of its topics. Apache Kafka does not look at it."""
    source = plan.manifest.source
    if source.node_id < 0:
        return  # nobody has served it yet: its first broker will adopt it
    path = str(Path(log_dir).absolute() / METADATA_FILE)
    with SqliteMetadataStore.open(path, broker=BrokerConfig()) as metadata:
        update = Update(
            topics=tuple(_topics(plan, configs, source.node_id)),
            broker_configs=configs.brokers,
            next_producer_id=_next_producer_id(plan.manifest),
        )
        metadata.initialize(source.cluster_id, source.node_id, update)


def _topics(plan: RestorePlan, configs: _Configs, node_id: int) -> Iterable[TopicMetadata]:
    epochs = {each.topic_partition: each.epochs[-1][0] for each in plan.partitions if each.epochs}
    for topic in plan.topics:
        here = {each.partition for each in topic.partitions}
        yield TopicMetadata(
            name=topic.name,
            topic_id=_topic_id(topic),
            partitions=tuple(
                PartitionMetadata(
                    partition=number,
                    leader=node_id if number in here else NO_LEADER,
                    leader_epoch=epochs.get(TopicPartition(topic.name, number), 0),
                    replicas=(node_id,) if number in here else (),
                    isr=(node_id,) if number in here else (),
                )
                for number in range(topic.partition_count)
            ),
            configs=configs.taken[topic.name],
            state=TopicState.LIVE,
            is_held=topic.name not in configs.governing,
        )


def _topic_id(topic: TopicBackup) -> uuid.UUID:
    return parse_id(topic.topic_id) if topic.topic_id else random_topic_id()


def _next_producer_id(manifest: BackupManifest) -> int:
    """The source may live on: what a producer holds that was given an id there must not be taken
    for repeats of one that is given the id here."""
    seen = (each.producer_id_max for _, each in manifest.partitions)
    return first_producer_id(*seen, manifest.source.next_producer_id - 1)
