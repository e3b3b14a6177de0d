"""Which partitions are read, where Spark's Kafka source does not mind what is missing.

A scan is strict about what it is told by name. Spark's Kafka source passes over partitions that a
topic does not have, and over Kafka's internal topics; a query that was written for it relies on
that, so these do the same. A topic that is not there at all is an error to both.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from stratalog.scans.errors import MissingTopicError
from stratalog.scans.selection import Assign, Subscribe
from stratalog.storage.layout import TopicPartition
from stratalog.topic_names import KAFKAS_OWN_TOPICS


@dataclass(frozen=True, slots=True)
class SubscribeAsSpark(Subscribe):
    """All partitions of these topics, but none of Kafka's internal ones."""

    def choose(self, found: Iterable[TopicPartition], path: str) -> list[TopicPartition]:
        topics = tuple(each for each in self.topics if each not in KAFKAS_OWN_TOPICS)
        return Subscribe(topics).choose(found, path)


@dataclass(frozen=True, slots=True)
class AssignAsSpark(Assign):
    """Those of these partitions that are there."""

    def choose(self, found: Iterable[TopicPartition], path: str) -> list[TopicPartition]:
        there = list(found)
        topics = {each.topic for each in there}
        wanted = {
            topic: each for topic, each in self.partitions.items() if topic not in KAFKAS_OWN_TOPICS
        }
        for topic in wanted:
            if topic not in topics:
                raise MissingTopicError(topic, -1, path)
        return sorted(each for each in there if each.partition in wanted.get(each.topic, ()))
