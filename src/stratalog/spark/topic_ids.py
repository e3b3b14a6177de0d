"""The ids of the topics of a stream, by which a topic that was made anew is told from the old one.

Apache Kafka and our broker write a topic's id into each of its replicas; a directory that was
made without a broker has none, and neither have positions of older releases. Nothing is compared
with an id that is not known.
"""

from collections.abc import Iterator, Mapping

from stratalog.directories.known_directory import topic_id_in
from stratalog.scans.snapshot import PartitionSnapshot
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import PARTITION_METADATA, TopicPartition

TopicIds = Mapping[str, str]


class TopicIdReader:
    """Reads a topic's id from its first replica, and again once that file is another."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._read: dict[str, tuple[tuple[int, int], str]] = {}

    def ids_of(self, partitions: Mapping[TopicPartition, PartitionSnapshot]) -> dict[str, str]:
        """The ids that are known, by topic."""
        first: dict[str, str] = {}
        for each in sorted(partitions):
            first.setdefault(each.topic, partitions[each].directory)
        found = {topic: self._id_in(directory) for topic, directory in first.items()}
        return {topic: topic_id for topic, topic_id in found.items() if topic_id}

    def _id_in(self, directory: str) -> str:
        entry = self._files.stat(f"{directory}/{PARTITION_METADATA}")
        if entry is None:
            return ""
        version = (entry.inode, entry.modified_ms)
        known = self._read.get(directory)
        if known is None or known[0] != version:
            known = self._read[directory] = (version, topic_id_in(self._files, directory))
        return known[1]


def made_anew(known: TopicIds, found: TopicIds) -> Iterator[str]:
    """Topics whose id is another than the one that is ``known``."""
    for topic in sorted(known.keys() & found.keys()):
        if known[topic] != found[topic]:
            yield topic
