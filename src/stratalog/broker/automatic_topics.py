"""The topics that nobody has to create: what is made when a client first asks for one, and the
broker's own.

The broker's own get as many replicas as their settings ask for, and no more than there are nodes.
"""

from stratalog.config import BrokerConfig
from stratalog.metadata.topics import NewTopic
from stratalog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC


def automatic_topic(name: str, config: BrokerConfig, *, node_count: int) -> NewTopic:
    """The topic of this name, as it is made without anybody saying how."""
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config.offsets_topic_num_partitions,
            replication_factor=min(config.offsets_topic_replication_factor, node_count),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config.transaction_state_log_num_partitions,
            replication_factor=min(config.transaction_state_log_replication_factor, node_count),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    return NewTopic(name=name)
