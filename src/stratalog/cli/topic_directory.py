"""The topics of a log directory, by its files and by what is known of it; nothing is changed.

Which topics there are is written in the names of directories. Their configs are those that the
directory's broker has, or has left there.
"""

from collections import defaultdict
from typing import TYPE_CHECKING

from stratalog.cli.topic_configs import Chosen, choose, why_unknown
from stratalog.cli.topic_describe import PartitionFacts, TopicFacts
from stratalog.errors import StratalogError

if TYPE_CHECKING:
    from stratalog.storage.views import LogView


def look_at_topics(log_dir: str) -> list[TopicFacts]:
    """What is in ``log_dir``, in order of names."""
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import topic_partition_of

    chosen = choose(OsFileSystem(), log_dir)
    replicas: dict[str, list[str]] = defaultdict(list)
    for directory in chosen.replicas:
        replicas[topic_partition_of(directory).topic].append(directory)
    return [_topic(chosen, name, found) for name, found in sorted(replicas.items())]


def _topic(chosen: Chosen, name: str, directories: list[str]) -> TopicFacts:
    from stratalog.directories.known_directory import topic_id_in
    from stratalog.storage.files import OsFileSystem

    files = OsFileSystem()
    found = chosen.resolved(name)
    config = None if found.is_held else found.config
    note = None
    if not found.is_known and name in chosen.known.topics:
        note = f"held: its configs are unknown: {why_unknown(chosen, name)}"
    ids = {topic_id_in(files, each) for each in directories} - {""}
    partitions = [_partition(chosen, each) for each in directories]
    return TopicFacts(
        name=name,
        topic_id=min(ids, default=None),
        partition_count=len(directories),
        partitions=tuple(sorted(partitions, key=lambda each: each.partition)),
        configs=None if config is None else dict(sorted(config.to_properties().items())),
        shown_configs=None if config is None else chosen.known_configs.stated(config),
        note=note,
    )


def _partition(chosen: Chosen, directory: str) -> PartitionFacts:
    from stratalog.config import TopicConfig
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import topic_partition_of

    number = topic_partition_of(directory).partition

    def facts(view: "LogView") -> PartitionFacts:
        return PartitionFacts(
            partition=number,
            log_start_offset=view.log_start_offset,
            log_end_offset=view.log_end_offset,
            size_bytes=view.size_bytes,
            directory=directory,
        )

    try:
        return chosen.look_at(OsFileSystem(), directory, TopicConfig(), facts)
    except StratalogError:
        # Damaged, or not filled yet. `stratalog log verify` tells what is wrong.
        return PartitionFacts(partition=number, directory=directory)
