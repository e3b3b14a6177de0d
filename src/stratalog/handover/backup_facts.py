"""What is known of a log directory's topics, for a backup: ids, configs, numbers of partitions;
and of its brokers: their dynamic configs.

    our broker runs on it     it is asked over its admin port
    nobody owns it, and it    a copy of that is read: the file itself may need SQLite to put
    has our metadata          it right first, which is its next owner's to do
    it has a KRaft            its log is read, as an adoption would
    controller's log
    none of these             ids are in the partitions' files, configs are not known

Nothing is guessed: where nobody can say what the configs are, the backup says so.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stratalog.broker.finding import read_controller
from stratalog.errors import AdoptionError, MetadataError, StorageError
from stratalog.handover.asking import ask_overview
from stratalog.metadata.dynamic_configs import DYNAMIC_BROKER_CONFIGS
from stratalog.metadata.image import configs_by_broker
from stratalog.metadata.kept_store import read_kept_image
from stratalog.metadata.sqlite_store import METADATA_FILE
from stratalog.scans.owners import Ownership, find_owner
from stratalog.storage.checkpoint import format_id, read_topic_id
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import PARTITION_METADATA
from stratalog.storage.owner_file import Owner
from stratalog.storage.readonly import ReadOnlyFileSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    """``configs`` is None where they are not known."""

    topic_id: uuid.UUID | None = None
    partition_count: int = 0
    configs: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDirectory:
    """``next_producer_id`` is -1 where nobody has said, ``broker_configs`` is None there; these are
    by the id of the broker, and under "" for all. ``how`` is for people."""

    owner: Ownership
    topics: Mapping[str, KnownTopic] = field(default_factory=dict)
    next_producer_id: int = -1
    broker_configs: Mapping[str, Mapping[str, str]] | None = None
    how: str = "there is neither a broker to ask nor metadata to read"


def learn_topics(files: FileSystem, log_dir: str) -> KnownDirectory:
    """See the top of this file."""
    ownership, owner = find_owner(log_dir)
    if owner is not None:
        told = _ask(owner, ownership)
        if told is not None:
            return told
    if ownership.kind == "none" and Path(log_dir, METADATA_FILE).is_file():
        found = _read_store(log_dir, ownership)
        if found is not None:
            return found
    return _read_controller(files, log_dir, ownership)


def _ask(owner: Owner, ownership: Ownership) -> KnownDirectory | None:
    answer: Any = ask_overview(owner).body
    try:
        broker_configs = answer.get("broker_configs")
        return KnownDirectory(
            owner=ownership,
            topics={
                str(row["name"]): KnownTopic(
                    topic_id=uuid.UUID(row["topic_id"]),
                    partition_count=int(row["partitions"]),
                    configs=None if row["is_held"] else {**row["configs"]},
                )
                for row in answer["topics"]
            },
            # Brokers of older releases do not say.
            next_producer_id=int(answer.get("next_producer_id", -1)),
            broker_configs=None
            if broker_configs is None
            else {node: {**configs} for node, configs in broker_configs.items()},
            how="its broker was asked",
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _read_store(log_dir: str, ownership: Ownership) -> KnownDirectory | None:
    try:
        image = read_kept_image(log_dir)
    except (MetadataError, StorageError):
        return None
    if image is None:
        return None
    return KnownDirectory(
        owner=ownership,
        topics={
            name: KnownTopic(
                topic_id=topic.topic_id,
                partition_count=len(topic.partitions),
                configs=None if topic.is_held else dict(topic.configs),
            )
            for name, topic in image.topics.items()
        },
        next_producer_id=image.next_producer_id,
        broker_configs=configs_by_broker(image.broker_configs),
        how=f"{METADATA_FILE} was read",
    )


def _read_controller(files: FileSystem, log_dir: str, ownership: Ownership) -> KnownDirectory:
    try:
        cluster = read_controller([LogDirectory(ReadOnlyFileSystem(files), log_dir)])
    except (AdoptionError, StorageError):
        cluster = None
    if cluster is None:
        return KnownDirectory(owner=ownership)
    return KnownDirectory(
        owner=ownership,
        topics={
            topic.name: KnownTopic(
                topic_id=topic.topic_id,
                partition_count=len(topic.partitions),
                configs=dict(cluster.topic_configs.get(topic.name, {})),
            )
            for topic in cluster.topics.values()
        },
        next_producer_id=cluster.next_producer_id,
        # Others mean nothing to us, and may be secrets.
        broker_configs={
            node: {name: configs[name] for name in configs if name in DYNAMIC_BROKER_CONFIGS}
            for node, configs in configs_by_broker(cluster.broker_configs).items()
        },
        how="the controller's log was read",
    )


def topic_id_in(files: FileSystem, directory: str) -> str:
    """What a replica's own file says, in Kafka's text form; empty where that says nothing."""
    try:
        found = read_topic_id(files, f"{directory}/{PARTITION_METADATA}")
    except StorageError:
        found = None
    return "" if found is None else format_id(found)
