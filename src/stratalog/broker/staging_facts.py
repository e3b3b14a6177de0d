"""What somebody who stages files for a topic has to know of it, as values for JSON.

    {"topic": "orders", "topic_id": "<22 characters>", "is_internal": false, "is_held": false,
     "partition_count": 3, "directories": {"0": "/logs/orders-0"}, "configs": {"segment.bytes": …}}

``configs`` are all that count for the topic, the broker's among them, so that whoever stages goes
by the rules that the commit is checked by. A partition without a directory takes no commits now.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.metadata.image import MetadataImage, TopicMetadata
from stratalog.storage.checkpoint import format_id
from stratalog.storage.layout import TopicPartition

Json = dict[str, Any]


def staging_facts(
    image: MetadataImage,
    broker: BrokerConfig,
    directory_of: Callable[[TopicPartition], str | None],
    names: Sequence[str],
) -> Iterator[Json]:
    """Of the topics of these names, or of all; those that there are not are left out."""
    for name in names or sorted(image.topics):
        topic = image.topics.get(name)
        if topic is not None:
            yield _facts(topic, broker, directory_of)


def _facts(
    topic: TopicMetadata,
    broker: BrokerConfig,
    directory_of: Callable[[TopicPartition], str | None],
) -> Json:
    config = TopicConfig.from_properties(topic.configs, broker=broker)
    found = (
        (each.partition, directory_of(TopicPartition(topic.name, each.partition)))
        for each in topic.partitions
    )
    return {
        "topic": topic.name,
        "topic_id": format_id(topic.topic_id),
        "is_internal": topic.is_internal,
        "is_held": topic.is_held,
        "partition_count": len(topic.partitions),
        "directories": {str(number): path for number, path in found if path is not None},
        "configs": config.to_properties(every=True),
    }
