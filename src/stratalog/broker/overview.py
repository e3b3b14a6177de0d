"""How a broker stands, as values for JSON: its health, topics, groups and what needs a person.

Only looks. Lists that grow with the number of partitions are iterators, for whoever reads them to
take in slices.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from stratalog.broker.services import Services
from stratalog.coordinator.group import Group
from stratalog.storage.context import DiskState
from stratalog.storage.directory import LogDirectory
from stratalog.storage.layout import TopicPartition

Json = dict[str, Any]


class Health(Enum):
    OK = "ok"
    DEGRADED = "degraded"  # serves, and something needs a person
    UNAVAILABLE = "unavailable"  # serves nobody: starting, stopping, or without a directory


def health(services: Services, *, is_ready: bool) -> tuple[Health, Json]:
    directories = services.logs.directories
    offline = _offline_logs(services)
    damaged = [str(log.topic_partition) for log in services.logs if log.is_damaged]
    found = Health.OK
    if not is_ready or not any(each.is_online for each in directories):
        found = Health.UNAVAILABLE
    elif offline or damaged or any(map(_needs_a_person, directories)):
        found = Health.DEGRADED
    return found, {
        "status": found.value,
        "is_ready": is_ready,
        "directories": [
            {
                "path": each.path,
                "state": each.state.state.value,
                "reason": each.state.reason or each.state.refused,
                "logs": len(each.logs),
            }
            for each in directories
        ],
        "offline_logs": offline,
        "damaged_logs": damaged,
        "recovery_cuts": _recovery_cuts(services),
    }


def _recovery_cuts(services: Services) -> dict[str, list[Json]]:
    """What recovery has cut off, as long as it is kept. Nobody was promised any of it and the logs
    go on, so it is told and nothing is degraded."""
    return {
        str(log.topic_partition): [
            {
                "offset": cut.start_offset,
                "bytes": cut.size_bytes,
                "reason": cut.reason,
                "at_ms": cut.at_ms,
                "kept_until_ms": cut.kept_until_ms,
            }
            for cut in log.recovery_cuts
        ]
        for log in services.logs
        if log.recovery_cuts
    }


def _needs_a_person(directory: LogDirectory) -> bool:
    state = directory.state
    return state.state is not DiskState.ONLINE or bool(state.refused)


def status(services: Services) -> Json:
    """What an operator asks for first."""
    image = services.store.image
    return {
        "cluster_id": image.cluster_id,
        "node_id": image.node_id,
        "endpoint": f"{services.endpoint.host}:{services.endpoint.port}",
        "metadata_epoch": image.epoch,
        "topics": len(image.topics),
        "partitions": image.partition_count,
        "connections": services.metrics.connections,
        "held_topics": sorted(each.name for each in image.topics.values() if each.is_held),
        "offline_logs": _offline_logs(services),
        "retention_failures": {
            str(key): reason for key, reason in services.logs.retention_failures.items()
        },
        "cleaner": _cleaner(services),
        "commits": {
            "running": services.commits.running_count,
            "committed": services.metrics.commits.committed,
            "refused": services.metrics.commits.refused,
        },
        "purgatories": {
            "append": len(services.replicas.append_purgatory),
            "produce": len(services.replicas.produce_purgatory),
            "fetch": len(services.replicas.fetch_purgatory),
            "delete_records": len(services.replicas.delete_purgatory),
        },
    }


def _offline_logs(services: Services) -> dict[str, str]:
    return {
        str(key): reason
        for directory in services.logs.directories
        for key, reason in directory.offline_logs.items()
    }


def _cleaner(services: Services) -> Json | None:
    cleaner = services.logs.cleaner
    if cleaner is None:
        return None
    now = cleaner.status()
    return {
        "states": {str(key): str(state) for key, state in now.states.items()},
        "uncleanable": {
            str(key): {
                "reason": each.reason,
                "since_ms": each.since_ms,
                "attempts": each.attempts,
                "retry_at_ms": each.retry_at_ms,
            }
            for key, each in now.uncleanable.items()
        },
        "uncleanable_bytes": now.uncleanable_bytes,
        "max_dirty_percent": now.max_dirty_percent,
        "last_run_ms": now.last_run_ms,
    }


# --- lists ------------------------------------------------------------------------------------


def topics(services: Services) -> Iterator[Json]:
    for topic in sorted(services.store.image.topics.values(), key=lambda each: each.name):
        yield {
            "name": topic.name,
            "topic_id": str(topic.topic_id),
            "partitions": len(topic.partitions),
            "is_internal": topic.is_internal,
            "is_held": topic.is_held,
            "configs": dict(topic.configs),
        }


def partitions(services: Services, name: str) -> Iterator[Json]:
    """Raises UnknownTopicError before the first."""
    return _partitions(services, name, len(services.store.image.topic(name).partitions))


def _partitions(services: Services, name: str, count: int) -> Iterator[Json]:
    for number in range(count):
        partition = services.replicas.find(TopicPartition(name, number))
        if partition is None:
            yield {"partition": number, "is_online": False}
            continue
        log = partition.log
        yield {
            "partition": number,
            "is_online": log.failure is None and not log.is_closed,
            "leader": partition.leader_id,
            "leader_epoch": partition.leader_epoch,
            "isr": sorted(partition.isr),
            "directory": log.directory,
            "log_start_offset": log.log_start_offset,
            "log_end_offset": log.log_end_offset,
            "high_watermark": log.high_watermark,
            "last_stable_offset": log.last_stable_offset,
            "size_bytes": log.size_bytes,
            "segments": len(log.segments),
            "is_damaged": log.is_damaged,
            "is_held": log.is_held,
        }


def offsets(services: Services, names: Sequence[str]) -> Iterator[Json]:
    """Where each partition of these topics begins and ends, or of all; nothing of a partition that
    is not online here. Raises UnknownTopicError before the first."""
    image = services.store.image
    counts = {name: len(image.topic(name).partitions) for name in names or sorted(image.topics)}
    return _offsets(services, counts)


def _offsets(services: Services, counts: dict[str, int]) -> Iterator[Json]:
    for name, count in counts.items():
        for number in range(count):
            partition = services.replicas.find(TopicPartition(name, number))
            if partition is None or partition.log.failure is not None or partition.log.is_closed:
                continue
            log = partition.log
            yield {
                "topic": name,
                "partition": number,
                "log_start_offset": log.log_start_offset,
                "high_watermark": log.high_watermark,
                "last_stable_offset": log.last_stable_offset,
                "log_end_offset": log.log_end_offset,
            }


def groups(services: Services) -> Iterator[Json]:
    for group in sorted(services.groups.all(), key=lambda each: each.group_id):
        lags = [lag for _, lag in group_lags(services, group)]
        yield {
            "group_id": group.group_id,
            "state": group.state.value,
            "members": len(group.members),
            "committed_partitions": len(group.offsets),
            "lag": sum(lags),
        }


def group_lags(services: Services, group: Group) -> Iterator[tuple[TopicPartition, int]]:
    """How many records lie between what a group has committed and the high watermark; nothing of
    a partition that is not here any more."""
    # A copy: commits arrive while somebody takes these in slices.
    for topic, number, committed in list(group.offsets):
        key = TopicPartition(topic, number)
        partition = services.replicas.find(key)
        if partition is not None:
            yield key, max(partition.log.high_watermark - committed.offset, 0)
