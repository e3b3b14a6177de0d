"""Committed offsets live in a topic: compacted by our own cleaner, and read again at a start."""

import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from broker_fixture import RunningBroker, running_broker
from stratalog.clock import SteadyClock
from stratalog.coordinator.group import Group
from stratalog.metadata.topics import NewTopic
from stratalog.storage.log import Log

PLACE = ("orders", 0)
COMMITS = 600
HOUR_MS = 3_600_000
METADATA = "m" * 4_000
SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "offsets_topic_segment_bytes": str(1 << 20),
    "log_cleaner_backoff_ms": "10",
    "log_cleaner_min_cleanable_ratio": "0.01",
}


def consumer_of(broker: RunningBroker) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_server,
            "group.id": "readers",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )


def offsets_log(broker: RunningBroker) -> Log:
    logs = broker.broker.services.logs
    return next(log for log in logs if log.topic_partition.topic == "__consumer_offsets")


def test_what_was_committed_outlives_compaction_and_a_restart(tmp_path: Path) -> None:
    with running_broker(tmp_path, **SETTINGS) as broker:
        broker.call(broker.broker.services.topics.create, [NewTopic(name="orders")])
        consumer = consumer_of(broker)
        for offset in range(COMMITS):
            consumer.commit(offsets=[TopicPartition(*PLACE, offset, METADATA)], asynchronous=False)
        consumer.close()
        log = broker.call(offsets_log, broker)
        written_bytes = COMMITS * len(METADATA)
        give_up = time.monotonic() + 120
        while broker.call(lambda: log.size_bytes) > written_bytes / 2:
            assert time.monotonic() < give_up, "the offsets were not compacted"

    with running_broker(tmp_path, **SETTINGS) as broker:
        consumer = consumer_of(broker)
        (found,) = consumer.committed([TopicPartition(*PLACE)], timeout=60)
        consumer.close()

    assert (found.offset, found.metadata) == (COMMITS - 1, METADATA)


def test_a_commit_bears_the_time_of_day_though_the_machine_has_slept_since_the_start(
    tmp_path: Path,
) -> None:
    """By the clock that stands still meanwhile it would be old enough to be forgotten at once."""
    with running_broker(tmp_path, **SETTINGS) as broker:
        services = broker.broker.services
        broker.call(services.topics.create, [NewTopic(name="orders")])
        consumer = consumer_of(broker)
        consumer.commit(offsets=[TopicPartition(*PLACE, 1)], asynchronous=False)
        steady = services.steady_clock
        assert isinstance(steady, SteadyClock)
        steady._ahead_ns -= 30 * 24 * HOUR_MS * 1_000_000
        began_ms = services.clock.now_ms()
        consumer.commit(offsets=[TopicPartition(*PLACE, 2)], asynchronous=False)
        group = broker.call(services.groups.find, "readers")
        assert isinstance(group, Group)
        committed = group.offsets.get(*PLACE)
        steady._ahead_ns += 30 * 24 * HOUR_MS * 1_000_000
        consumer.close()

    assert committed is not None
    assert committed.offset == 2
    assert committed.commit_timestamp_ms >= began_ms - HOUR_MS
