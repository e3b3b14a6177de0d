"""Directories against the store, each time that an owner opens them: what belongs to whom.

Pure, and the store decides: a directory that it does not know is set aside as a stray, never made
a topic; one whose topic is being deleted is deleted; one that it misses is named.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from stratalog.metadata.adoption import FoundDirectory, FoundReplica, StrayReplica
from stratalog.metadata.image import MetadataImage, TopicMetadata, TopicState


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """A replica's directory, in the log directory ``path``."""

    path: str
    replica: FoundReplica


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """``to_create`` never had a directory; ``missing`` had one, and it is gone or offline."""

    kept: tuple[PlacedReplica, ...]
    strays: tuple[PlacedReplica, ...]
    to_delete: tuple[PlacedReplica, ...]
    to_create: tuple[FoundReplica, ...]
    missing: tuple[FoundReplica, ...]


def reconcile(image: MetadataImage, found: Sequence[FoundDirectory]) -> Reconciliation:
    """What to do with each directory, on the node that ``image`` is of."""
    kept, strays, to_delete = [], [], []
    for directory in found:
        for replica in directory.replicas:
            placed = PlacedReplica(directory.path, replica)
            if replica.topic_id in image.deleting:
                to_delete.append(placed)
            elif _is_known(image, replica):
                kept.append(placed)
            else:
                strays.append(placed)
    here = {(placed.replica.topic, placed.replica.partition) for placed in kept}
    absent = [
        (topic, FoundReplica(topic=name, partition=each.partition, topic_id=topic.topic_id))
        for name, topic in sorted(image.topics.items())
        for each in topic.partitions
        if image.node_id in each.replicas and (name, each.partition) not in here
    ]
    return Reconciliation(
        kept=tuple(kept),
        strays=tuple(strays),
        to_delete=tuple(to_delete),
        to_create=tuple(replica for topic, replica in absent if _is_being_created(topic)),
        missing=tuple(replica for topic, replica in absent if not _is_being_created(topic)),
    )


def strays_to_take_back(
    image: MetadataImage, found: Sequence[FoundDirectory]
) -> list[tuple[StrayReplica, FoundReplica]]:
    """The strays that are replicas of a topic: Apache Kafka sets aside what its controllers have
    not heard of. None where the partition has a directory, or more than one stray."""
    here = {(each.topic, each.partition) for directory in found for each in directory.replicas}
    wanted: dict[tuple[str, int], list[tuple[StrayReplica, FoundReplica]]] = defaultdict(list)
    for stray in (each for directory in found for each in directory.strays):
        topic = None if stray.topic_id is None else image.topics_by_id.get(stray.topic_id)
        if topic is not None:
            # Not by the name of the directory, in which a long name of a topic is cut short.
            replica = FoundReplica(
                topic=topic.name, partition=stray.partition, topic_id=topic.topic_id
            )
            if (topic.name, stray.partition) not in here and _is_known(image, replica):
                wanted[topic.name, stray.partition].append((stray, replica))
    return [each[0] for each in wanted.values() if len(each) == 1]


def _is_being_created(topic: TopicMetadata) -> bool:
    return topic.state is TopicState.CREATING


def _is_known(image: MetadataImage, replica: FoundReplica) -> bool:
    """A directory without an id is known by its name: its owner ended before writing the file."""
    topic = image.topics.get(replica.topic)
    if topic is None or not 0 <= replica.partition < len(topic.partitions):
        return False
    if replica.topic_id not in (None, topic.topic_id):
        return False
    return image.node_id in topic.partitions[replica.partition].replicas
