"""What kafka-python and aiokafka have in common: names of configs, and how records come back."""

from collections.abc import Mapping
from typing import Any

from client_api import HEARTBEAT_MS, ConsumerOptions, ProducerOptions, Record


def producer_configs(options: ProducerOptions) -> dict[str, Any]:
    return {
        "acks": options.acks,
        "compression_type": None if options.codec == "none" else options.codec,
        "enable_idempotence": options.is_idempotent,
        "max_request_size": options.max_request_bytes,
        "linger_ms": 2,
    }


def consumer_configs(options: ConsumerOptions, assignors: Mapping[str, type]) -> dict[str, Any]:
    configs = {
        "group_id": options.group,
        "client_id": options.client_id,
        "group_instance_id": options.instance_id,
        "auto_offset_reset": options.reset,
        "enable_auto_commit": options.is_committing,
        "isolation_level": options.isolation,
        "heartbeat_interval_ms": HEARTBEAT_MS,
        "session_timeout_ms": options.session_timeout_ms,
        "max_partition_fetch_bytes": options.max_partition_bytes,
        "fetch_max_wait_ms": 100,
        "metadata_max_age_ms": options.metadata_age_ms,
    }
    if options.assignor is not None:
        configs["partition_assignment_strategy"] = [assignors[options.assignor]]
    return configs


def plain_records(polled: Mapping[Any, Any]) -> list[Record]:
    """What a poll has brought, by partition."""
    return [
        Record(
            record.value,
            record.key,
            tuple(record.headers),
            record.timestamp,
            record.partition,
            record.offset,
        )
        for records in polled.values()
        for record in records
    ]
