"""Leader epochs and producer ids at a start: where the last owner, ours or Apache Kafka's, was.

An epoch is continued, whoever led in it. Where a log ends below where it may have been read, a new
one begins: readers learn from it that records are gone. No other start begins one, because Kafka's
controller does not hear of it, and clients take an epoch of that for old which is below one that
they have seen. The controller begins a new epoch with each start of its own, so that one above its
last does no harm, and two would.
"""

from collections.abc import Mapping, Sequence
from math import inf

from stratalog.metadata import PartitionChange, PartitionMetadata
from stratalog.metadata.controller_changes import FollowedController
from stratalog.metadata.sqlite_store import SqliteMetadataStore
from stratalog.storage.directory import LogDirectory, for_each_online
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
    """Continue the newest epoch that the store or the log knows, or begin one: durably in the
    store, and in a log with its first batch."""
    led = [log for log in logs if _is_led(store, log.topic_partition)]
    newest = {log.topic_partition: _newest_epoch(store, log) for log in led}
    short = [key for log in led if log.log_end_offset < was_read.get(key := log.topic_partition, 0)]
    if short:
        followed = store.followed
        newest |= {key: _above(store, followed, key, newest[key]) for key in short}
    store.change_partitions(
        [
            PartitionChange(
                name=key.topic,
                partition=key.partition,
                leader=store.image.node_id,
                leader_epoch_above=epoch - 1,
            )
            for key, epoch in newest.items()
            if epoch > _partition(store, key).leader_epoch
        ]
    )
    for_each_online(logs.directories, lambda each: _assign_epochs(store, each))


def _partition(store: SqliteMetadataStore, key: TopicPartition) -> PartitionMetadata:
    return store.image.topic(key.topic).partition(key.partition)


def _is_led(store: SqliteMetadataStore, key: TopicPartition) -> bool:
    return key.topic in store.image.topics and store.image.node_id in _partition(store, key).isr


def _newest_epoch(store: SqliteMetadataStore, log: Log) -> int:
    stored = _partition(store, log.topic_partition).leader_epoch
    return max(stored, log.epochs.latest_epoch)


def _above(
    store: SqliteMetadataStore, followed: FollowedController | None, key: TopicPartition, epoch: int
) -> int:
    """The next epoch, if that is not ahead of the next that Kafka's controller will begin."""
    topic_id = store.image.topic(key.topic).topic_id
    recorded = None if followed is None else followed.leader_epoch(topic_id, key.partition)
    return epoch + 1 if recorded is None or epoch <= recorded else epoch


def _assign_epochs(store: SqliteMetadataStore, directory: LogDirectory) -> None:
    for key, log in directory.logs.items():
        partition = store.image.topics[key.topic].partitions[key.partition]
        if partition.leader == store.image.node_id:
            log.epochs.assign_later(partition.leader_epoch, log.log_end_offset)


def go_on_with_producer_ids(store: SqliteMetadataStore, logs: LogManager) -> None:
    """Give out none that a log knows."""
    seen = max((_newest_producer(log) for log in logs), default=-1)
    store.go_on_with_producer_ids(seen)


def _newest_producer(log: Log) -> int:
    return max((each.producer_id for each in log.producers), default=-1)
