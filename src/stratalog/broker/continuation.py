"""Leader epochs and producer ids at a start: where the last owner, ours or Apache Kafka's, was.

An epoch is continued, whoever led in it. Where a log ends below where it may have been read, a new
one begins: readers learn from it that records are gone. No other start begins one, because Kafka's
controller does not hear of it, and clients take an epoch of that for old which is below one that
they have seen. The controller begins a new epoch with each start of its own, so that one above its
last does no harm, and two would.
"""

import uuid
from collections.abc import Mapping, Sequence
from math import inf

from stratalog.metadata import PartitionChange
from stratalog.metadata.following import FollowedController
from stratalog.metadata.sqlite_store import SqliteMetadataStore
from stratalog.storage.checkpoint import EpochEntry
from stratalog.storage.directory import LogDirectory, for_each_online
from stratalog.storage.epochs import assign_together
from stratalog.storage.layout import CLEAN_SHUTDOWN_FILE, TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager


def read_before(
    directories: Sequence[LogDirectory], *, is_certain: bool
) -> dict[TopicPartition, float]:
    """Up to where each log may have been read, as far as that is known before it is opened. Unless
    it is certain that only records on disk were told, a stop that was not clean leaves it open."""
    was_read: dict[TopicPartition, float] = {}
    for each in directories:
        was_closed = each.files.exists(f"{each.path}/{CLEAN_SHUTDOWN_FILE}")
        for key, offset in each.high_watermarks().items():
            was_read[key] = offset if was_closed or is_certain else inf
    return was_read


def go_on_with_epochs(
    store: SqliteMetadataStore, logs: LogManager, was_read: Mapping[TopicPartition, float]
) -> None:
    """Continue the newest epoch that the store or the log knows, or begin one; durably in both."""
    followed = store.followed
    changes = []
    for log in logs:
        key = log.topic_partition
        topic = store.image.topics.get(key.topic)
        if topic is None or store.image.node_id not in topic.partition(key.partition).isr:
            continue
        newest = max(topic.partition(key.partition).leader_epoch, log.epochs.latest_epoch)
        if log.log_end_offset < was_read.get(key, 0):
            known = (
                None if followed is None else followed.leader_epoch(topic.topic_id, key.partition)
            )
            if known is None or newest <= known:
                newest += 1
        if newest > topic.partition(key.partition).leader_epoch:
            changes.append(_leading(store, key, newest))
    store.change_partitions(changes)
    for_each_online(logs.directories, lambda each: _assign_epochs(store, each))


def _above(
    newest: int, followed: FollowedController | None, topic_id: uuid.UUID, partition: int
) -> int:
    """The next epoch, if that is not ahead of the next that Kafka's controller will begin."""
    recorded = None if followed is None else followed.leader_epoch(topic_id, partition)
    return newest + 1 if recorded is None or newest <= recorded else newest


def _leading(store: SqliteMetadataStore, key: TopicPartition, epoch: int) -> PartitionChange:
    return PartitionChange(
        name=key.topic,
        partition=key.partition,
        leader=store.image.node_id,
        leader_epoch_above=epoch - 1,
    )


def _assign_epochs(store: SqliteMetadataStore, directory: LogDirectory) -> None:
    wanted = []
    for key, log in directory.logs.items():
        partition = store.image.topics[key.topic].partitions[key.partition]
        if partition.leader == store.image.node_id:
            wanted.append((log.epochs, EpochEntry(partition.leader_epoch, log.log_end_offset)))
    assign_together(directory.files, directory.path, wanted)


def go_on_with_producer_ids(store: SqliteMetadataStore, logs: LogManager) -> None:
    """Give out none that a log knows."""
    seen = max((_newest_producer(log) for log in logs), default=-1)
    store.go_on_with_producer_ids(seen)


def _newest_producer(log: Log) -> int:
    return max((each.producer_id for each in log.producers), default=-1)
