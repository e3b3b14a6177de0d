"""What is known of a log directory: its topics, their ids and configs, its broker's settings.

    1. its broker runs      it is asked over its admin port
    2. our metadata store   a copy of it is read, in the directory or in the one that a pointer
                            there names: the file itself is its next owner's to put right
    3. a KRaft controller's it is read, as an adoption would
       log
    4. none of these        nothing is known

Where both 2 and 3 are, and the log has grown since the store's owner last looked at it, Apache
Kafka had the directory meanwhile: what it has changed is taken over, as the next start of a broker
would. While Kafka itself owns the directory its log alone counts.

What is known of a topic is told, and which of the configs that decide about removing are not:
nothing is guessed. A store that is there and cannot be read is as good as none, and is no reason to
believe an older witness.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stratalog.config import BrokerConfig
from stratalog.directories.controller_log import controller_state, read_controller
from stratalog.directories.found_directory import find_directory
from stratalog.directories.owner_client import ask
from stratalog.directories.owners import Ownership, find_owner
from stratalog.directories.topic_configs import KnownTopic, TopicConfigs
from stratalog.errors import AdoptionError, CorruptFileError, DiskError, MetadataError, StorageError
from stratalog.metadata.controller_changes import plan_following
from stratalog.metadata.dynamic_configs import (
    DYNAMIC_BROKER_CONFIGS,
    effective_broker,
)
from stratalog.metadata.image import MetadataImage, apply_update, configs_by_broker
from stratalog.metadata.kept_store import KeptStore, read_kept_store
from stratalog.metadata.server_configs import known_server_configs
from stratalog.metadata.sqlite_store import METADATA_FILE, METADATA_POINTER
from stratalog.storage.checkpoint import format_id, read_topic_id
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import PARTITION_METADATA
from stratalog.storage.owner_file import Owner
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.topic_names import CLUSTER_METADATA_TOPIC

_SECONDS = 45.0
_ALL_BROKERS = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDirectory:
    """``next_producer_id`` is -1 where nobody has said, ``broker_configs`` is None there: dynamic
    ones by the id of the broker, and under "" for all. ``server_configs`` are those that its broker
    was started with, None where they are not known. ``how`` is for people; ``failure`` is what
    keeps a store that is there from being read."""

    owner: Ownership
    reach: Owner | None = None
    node_id: int | None = None
    topics: Mapping[str, KnownTopic] = field(default_factory=dict)
    next_producer_id: int = -1
    broker_configs: Mapping[str, Mapping[str, str]] | None = None
    server_configs: Mapping[str, str] | None = None
    how: str = "there is neither a broker to ask nor metadata to read"
    failure: CorruptFileError | DiskError | None = None

    @property
    def dynamic_configs(self) -> dict[str, str]:
        """What counts for the broker of this directory of the dynamic configs."""
        configs = self.broker_configs or {}
        return {**configs.get(_ALL_BROKERS, {}), **configs.get(str(self.node_id), {})}

    def broker(self, server: BrokerConfig | None = None) -> BrokerConfig:
        """The settings of its broker as far as they are known, started with ``server`` if that is
        given."""
        if server is None:
            server = BrokerConfig.from_properties(self.server_configs or {})
        return effective_broker(server, self.dynamic_configs)

    def topic_configs(self, server: BrokerConfig | None = None) -> TopicConfigs:
        """What counts for its topics, with a broker that was started with ``server`` if given."""
        return TopicConfigs(
            self.topics,
            broker=self.broker(server),
            dynamic=self.dynamic_configs,
            is_server_known=server is not None or self.server_configs is not None,
        )


def learn_directory(files: FileSystem, log_dir: str) -> KnownDirectory:
    """See the top of this file."""
    ownership, owner = find_owner(log_dir)
    if owner is not None:
        told = _ask(owner, ownership)
        if told is not None:
            return told
    place = _store_place(log_dir)
    paths = dict.fromkeys((log_dir, place or log_dir))
    directories = [LogDirectory(ReadOnlyFileSystem(files), path) for path in paths]
    if place is None:
        return _read_controller(directories, ownership)
    return _read_store(place, directories, ownership)


def not_compacted_topics(log_dir: str) -> frozenset[str]:
    """Those of a directory that nobody owns of which it is known, but for a default in its broker's
    settings where these are not: compaction leaves traces as well. Raises what keeps its next owner
    from reading the metadata."""
    known = learn_directory(OsFileSystem(), log_dir)
    if known.failure is not None:
        raise known.failure
    configs = known.topic_configs()
    found = ((name, configs.of(name)) for name in known.topics)
    return frozenset(name for name, each in found if not each.is_held and not each.config.compact)


def strangers_in(files: FileSystem, log_dir: str, known: KnownDirectory) -> frozenset[str]:
    """Topics of which a replica in ``log_dir`` says that it is of another topic than the ``known``
    one of that name: what is known does not count for it."""
    if not known.topics:
        return frozenset()
    ids = {name: topic.topic_id for name, topic in known.topics.items() if topic.topic_id}
    found = find_directory(LogDirectory(ReadOnlyFileSystem(files), log_dir))
    return frozenset(
        each.topic
        for each in found.replicas
        if each.topic_id is not None and ids.get(each.topic, each.topic_id) != each.topic_id
    )


def topic_id_in(files: FileSystem, directory: str) -> str:
    """What a replica's own file says, in Kafka's text form; empty where that says nothing."""
    try:
        found = read_topic_id(files, f"{directory}/{PARTITION_METADATA}")
    except StorageError:
        found = None
    return "" if found is None else format_id(found)


# --- the broker ------------------------------------------------------------------------------


def _ask(owner: Owner, ownership: Ownership) -> KnownDirectory | None:
    answer: Any = ask(owner, "/v1/topics", seconds=_SECONDS).body
    try:
        # Brokers of older releases say less.
        node_id = answer.get("node_id")
        broker_configs = answer.get("broker_configs")
        server_configs = answer.get("server_configs")
        return KnownDirectory(
            owner=ownership,
            reach=owner,
            node_id=None if node_id is None else int(node_id),
            topics={
                str(row["name"]): KnownTopic(
                    topic_id=uuid.UUID(row["topic_id"]),
                    partition_count=int(row["partitions"]),
                    configs={**row["configs"]},
                    is_held=bool(row["is_held"]),
                )
                for row in answer["topics"]
            },
            next_producer_id=int(answer.get("next_producer_id", -1)),
            broker_configs=None
            if broker_configs is None
            else {node: {**configs} for node, configs in broker_configs.items()},
            server_configs=None if server_configs is None else known_server_configs(server_configs),
            how="its broker was asked",
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


# --- the store -------------------------------------------------------------------------------


def _store_place(log_dir: str) -> str | None:
    """The log directory that has, or should have, the store."""
    if Path(log_dir, METADATA_FILE).is_file():
        return log_dir
    try:
        return Path(log_dir, METADATA_POINTER).read_text(errors="replace").strip()
    except OSError:
        return None


def _read_store(
    place: str, directories: Sequence[LogDirectory], ownership: Ownership
) -> KnownDirectory:
    path = f"{place}/{METADATA_FILE}"
    try:
        kept = read_kept_store(place)
        if kept is None:
            how = f"{path} says nothing yet, or is just changing"
            return KnownDirectory(owner=ownership, how=how)
        if not _has_grown(kept, place, directories):
            return _of_image(kept.image, ownership, f"{METADATA_FILE} was read")
        if ownership.kind == "kafka" or kept.followed is None:
            return _read_controller(directories, ownership)
        return _follow(kept, directories, ownership)
    except (AdoptionError, MetadataError, StorageError) as error:
        how = f"the metadata cannot be read: {error}"
        failure = error if isinstance(error, (CorruptFileError, DiskError)) else None
        return KnownDirectory(owner=ownership, how=how, failure=failure)


def _has_grown(kept: KeptStore, place: str, directories: Sequence[LogDirectory]) -> bool:
    """Whether the controller's log was written to since the owner of the store looked at it. Of a
    store that does not say, by the time of the files: two owners never run at once, and each writes
    to its own when it starts."""
    state = controller_state(directories)
    if kept.followed is not None:
        return state not in ("", kept.followed.state)
    log = f"{CLUSTER_METADATA_TOPIC}-0"
    theirs = [each for one in directories for each in Path(one.path, log).glob("*")]
    ours = [Path(place, name) for name in (METADATA_FILE, f"{METADATA_FILE}-wal")]
    return _written(theirs) > _written(ours)


def _written(paths: Sequence[Path]) -> int:
    return max((path.stat().st_mtime_ns for path in paths if path.exists()), default=-1)


def _follow(
    kept: KeptStore, directories: Sequence[LogDirectory], ownership: Ownership
) -> KnownDirectory:
    """What the store will hold when its next owner has taken over what Kafka has changed. Kafka's
    own settings are not known, and so are not those that counted last."""
    cluster = read_controller(directories)
    assert cluster is not None, "what has a state can be read, or says why not"
    following = plan_following(
        kept.image,
        cluster,
        kept.followed,
        [find_directory(each) for each in directories],
        broker=BrokerConfig(),
        is_broker_config_known=True,
    )
    image = replace(apply_update(kept.image, following.update), server_configs=None)
    how = f"{METADATA_FILE} was read, and the controller's log of Apache Kafka since"
    return _of_image(image, ownership, how)


def _of_image(image: MetadataImage, ownership: Ownership, how: str) -> KnownDirectory:
    noted = image.server_configs
    return KnownDirectory(
        owner=ownership,
        node_id=image.node_id,
        topics={
            name: KnownTopic(
                topic_id=topic.topic_id,
                partition_count=len(topic.partitions),
                configs=dict(topic.configs),
                is_held=topic.is_held,
            )
            for name, topic in image.topics.items()
        },
        next_producer_id=image.next_producer_id,
        broker_configs=configs_by_broker(image.broker_configs),
        server_configs=None if noted is None else known_server_configs(noted),
        how=how,
    )


# --- the controller's log --------------------------------------------------------------------


def _read_controller(directories: Sequence[LogDirectory], ownership: Ownership) -> KnownDirectory:
    try:
        cluster = read_controller(directories)
        identity = directories[0].identity()
    except (AdoptionError, StorageError) as error:
        return KnownDirectory(owner=ownership, how=str(error))
    if cluster is None:
        return KnownDirectory(owner=ownership)
    return KnownDirectory(
        owner=ownership,
        node_id=None if identity is None else identity.node_id,
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
