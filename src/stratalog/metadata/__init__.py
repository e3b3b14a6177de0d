"""Topics, partitions, configs and ids: what a cluster knows beside its logs."""

from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation
from stratalog.metadata.image import (
    CLUSTER_DEFAULT,
    NO_LEADER,
    MetadataChange,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
)
from stratalog.metadata.producer_ids import ProducerIds
from stratalog.metadata.store import MetadataStore
from stratalog.metadata.topics import NewTopic, PartitionChange

__all__ = [
    "CLUSTER_DEFAULT",
    "NO_LEADER",
    "ConfigChange",
    "ConfigOperation",
    "MetadataChange",
    "MetadataImage",
    "MetadataStore",
    "NewTopic",
    "PartitionChange",
    "PartitionMetadata",
    "ProducerIds",
    "TopicMetadata",
    "TopicState",
    "Update",
]
