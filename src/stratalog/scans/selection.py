"""Which partitions a scan is about: by topic, by a pattern of names, or one by one.

What is named and is not there is an error; a pattern may match nothing.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stratalog.scans.errors import MissingTopicError, ScanOptionError
from stratalog.storage.layout import TopicPartition
from stratalog.topic_names import KAFKAS_OWN_TOPICS


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics."""

    topics: tuple[str, ...]

    def choose(self, found: Iterable[TopicPartition], path: str) -> list[TopicPartition]:
        wanted = set(self.topics)
        chosen = sorted(each for each in found if each.topic in wanted)
        missing = wanted - {each.topic for each in chosen}
        if missing:
            raise MissingTopicError(min(missing), -1, path)
        return chosen


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics in whose name the pattern is found, as Spark's Kafka source
    looks for it; topics that are Kafka's own are not meant."""

    pattern: str

    def choose(self, found: Iterable[TopicPartition], path: str) -> list[TopicPartition]:
        try:
            is_found = re.compile(self.pattern).search
        except re.error as error:
            raise ScanOptionError(
                "subscribePattern", self.pattern, f"it is no regular expression: {error}"
            ) from error
        return sorted(
            each for each in found if each.topic not in KAFKAS_OWN_TOPICS and is_found(each.topic)
        )


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions."""

    partitions: Mapping[str, tuple[int, ...]]

    def choose(self, found: Iterable[TopicPartition], path: str) -> list[TopicPartition]:
        wanted = {
            TopicPartition(topic, partition)
            for topic, partitions in self.partitions.items()
            for partition in partitions
        }
        missing = wanted - set(found)
        if missing:
            first = min(missing)
            raise MissingTopicError(first.topic, first.partition, path)
        return sorted(wanted)


Selection = Subscribe | SubscribePattern | Assign
