"""The topics of a bare log directory, as its files tell them: nobody is asked, nothing is changed.

Which topics there are is written in the names of directories. Their configs are in our own metadata
if a stratalog broker has served the directory; it is read only while nobody owns it, and only when
it was closed cleanly: otherwise a part of it may still lie in SQLite's write-ahead log.
"""

import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from stratalog.cli.topic_describe import PartitionFacts, TopicFacts
from stratalog.errors import StratalogError

if TYPE_CHECKING:
    from stratalog.metadata.image import MetadataImage, TopicMetadata


def look_at_topics(log_dir: str) -> list[TopicFacts]:
    """What is in ``log_dir``, in order of names."""
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import find_replicas
    from stratalog.storage.layout import parse_replica_directory
    from stratalog.topic_names import CLUSTER_METADATA_TOPIC

    found = find_replicas(OsFileSystem(), log_dir)
    image = _image(Path(found.log_directory))
    partitions: dict[str, list[PartitionFacts]] = defaultdict(list)
    ids: dict[str, str] = {}
    for directory in found.replicas:
        name = parse_replica_directory(Path(directory).resolve().name)
        topic = name.topic_partition.topic
        if name.state or topic == CLUSTER_METADATA_TOPIC:
            continue
        partitions[topic].append(_partition(directory, name.topic_partition.partition))
        topic_id = _topic_id(directory)
        if topic_id is not None:
            ids[topic] = topic_id
    return [
        _topic(name, ids.get(name), found_partitions, image)
        for name, found_partitions in sorted(partitions.items())
    ]


def _topic(
    name: str,
    topic_id: str | None,
    partitions: list[PartitionFacts],
    image: "MetadataImage | None",
) -> TopicFacts:
    stored: TopicMetadata | None = image.topics.get(name) if image is not None else None
    is_known = stored is not None and not stored.is_held
    note = None
    if stored is not None and stored.is_held:
        note = "held: its configs are unknown; give them with `stratalog topic adopt`"
    configs = dict(sorted(stored.configs.items())) if stored is not None and is_known else None
    return TopicFacts(
        name=name,
        topic_id=topic_id,
        partition_count=len(partitions),
        partitions=tuple(sorted(partitions, key=lambda each: each.partition)),
        configs=configs,
        shown_configs=configs,
        note=note,
    )


def _partition(directory: str, partition: int) -> PartitionFacts:
    from stratalog.config import TopicConfig
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.views import LogView, look_at

    def facts(view: LogView) -> PartitionFacts:
        return PartitionFacts(
            partition=partition,
            log_start_offset=view.log_start_offset,
            log_end_offset=view.log_end_offset,
            size_bytes=view.size_bytes,
            directory=directory,
        )

    try:
        return look_at(OsFileSystem(), directory, TopicConfig(), facts)
    except StratalogError:
        # Damaged, or not filled yet. `stratalog log verify` tells what is wrong.
        return PartitionFacts(partition=partition, directory=directory)


def _topic_id(directory: str) -> str | None:
    from stratalog.storage.checkpoint import format_id, read_topic_id
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.layout import PARTITION_METADATA

    try:
        found = read_topic_id(OsFileSystem(), f"{directory}/{PARTITION_METADATA}")
    except StratalogError:
        return None
    return None if found is None else format_id(found)


def _image(log_dir: Path) -> "MetadataImage | None":
    from stratalog.metadata.sqlite_store import METADATA_FILE
    from stratalog.metadata.tables import BadRowsError, read_image
    from stratalog.storage.layout import LOCK_FILE
    from stratalog.storage.readonly import lock_owner

    path = log_dir / METADATA_FILE
    journal = path.with_name(f"{METADATA_FILE}-wal")
    if not path.is_file() or (journal.is_file() and journal.stat().st_size):
        return None
    if lock_owner(str(log_dir / LOCK_FILE)) is not None:
        return None
    # Immutable: SQLite then neither locks nor creates files beside it.
    address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(address, uri=True)
        try:
            return read_image(connection, None)
        finally:
            connection.close()
    except (sqlite3.Error, BadRowsError):
        return None
