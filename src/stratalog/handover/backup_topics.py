"""The topics of a backup: which lie in a log directory, and what a manifest says of each."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from stratalog.directories.known_directory import KnownDirectory
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import PartitionBackup, TopicBackup
from stratalog.storage.checkpoint import format_id
from stratalog.storage.files import FileSystem
from stratalog.storage.inspection import find_replicas
from stratalog.storage.layout import TopicPartition, parse_replica_directory
from stratalog.topic_names import CLUSTER_METADATA_TOPIC, broken_name_rule


def seen_topics(files: FileSystem, log_dir: str) -> set[str]:
    """All that lie there, but for what is no topic of anybody's."""
    found = find_replicas(files, log_dir)
    if not found.is_log_directory:
        raise BackupError(f"{log_dir} is one replica; name the log directory, and --topic")
    names = (parse_replica_directory(Path(each).name) for each in found.replicas)
    topics = {each.topic_partition.topic for each in names if not each.state}
    return {each for each in topics - {CLUSTER_METADATA_TOPIC} if broken_name_rule(each) is None}


def describe_topics(
    found: Mapping[str, Sequence[PartitionBackup]],
    topic_ids: Mapping[TopicPartition, str],
    known: KnownDirectory,
    *,
    deleted: Collection[str],
    made_anew: Collection[str],
) -> tuple[tuple[TopicBackup, ...], list[str]]:
    """Those that are in order of what was ``found``, with what is to be told of the others:
    of one that was deleted, or deleted and made anew, only a part was copied."""
    ids = {
        name: topic_ids[TopicPartition(name, partitions[0].partition)]
        for name, partitions in found.items()
    }
    times = Counter(each for each in ids.values() if each)
    notes = [
        f"{name} was deleted while it was backed up, and is left out" for name in sorted(deleted)
    ]
    topics = []
    for name, partitions in found.items():
        if name in deleted:
            continue
        told, topic_id = known.topics.get(name), ids[name]
        known_id = format_id(told.topic_id) if told and told.topic_id else ""
        if times[topic_id] > 1 and topic_id != known_id:
            other = min(each for each in ids if ids[each] == topic_id and each != name)
            notes.append(
                f"the id of {name} is left out, since {other} has the same: was one copied from "
                "the other by hand?"
            )
            topic_id = ""
        if name in made_anew or (topic_id and known_id and topic_id != known_id):
            notes.append(
                f"{name} was deleted and made anew while it was backed up, and is left out"
            )
            continue
        configs = None if told is None or told.is_held else told.configs
        if configs is None:
            notes.append(f"the configs of {name} are not known: {known.how}")
        count = 0 if told is None else told.partition_count
        topics.append(
            TopicBackup(
                name=name,
                topic_id=topic_id or known_id,
                partition_count=max(partitions[-1].partition + 1, count),
                configs=configs,
                partitions=tuple(partitions),
            )
        )
    return tuple(topics), notes
