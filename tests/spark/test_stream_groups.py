"""A stream that tells a consumer group how far it has come."""

import logging
import threading

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from pyspark.sql.streaming.datasource import ReadMaxRows

from broker_fixture import running_broker
from stratalog.errors import StratalogError
from stratalog.spark.groups import GroupOffsets, owner_endpoint
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema
from stratalog.spark.streaming import StratalogStreamReader
from stratalog.storage.layout import TopicPartition

ORDERS = TopicPartition("orders", 0)


class Recorded:
    """Takes offsets, and waits before the first until it is let go."""

    def __init__(self):
        self.committed = []
        self.is_asked = threading.Event()
        self.go_on = threading.Event()

    def commit(self, offsets):
        self.is_asked.set()
        assert self.go_on.wait(60)
        self.committed.append(dict(offsets))


def test_only_the_newest_of_what_is_pending_is_committed():
    recorded = Recorded()
    group = GroupOffsets("lag-watchers", lambda: recorded)

    group.submit({ORDERS: 1})
    assert recorded.is_asked.wait(60)
    for offset in (2, 3, 4, 4):
        group.submit({ORDERS: offset})
    assert not group.wait(seconds=0)
    recorded.go_on.set()

    assert group.wait(seconds=60)
    group.submit({ORDERS: 4})
    assert group.wait(seconds=60)
    assert recorded.committed == [{ORDERS: 1}, {ORDERS: 4}]
    group.close()


class Refusing:
    def __init__(self):
        self.asked = 0

    def commit(self, _offsets):
        self.asked += 1
        raise StratalogError("the group has members")


def test_what_goes_wrong_is_warned_of_once_and_holds_nothing_up(caplog):
    refusing = Refusing()
    group = GroupOffsets("lag-watchers", lambda: refusing)

    with caplog.at_level(logging.WARNING):
        for offset in range(1, 4):
            group.submit({ORDERS: offset})
            with group.answered:
                group.answered.wait_for(lambda offset=offset: refusing.asked == offset, 60)
    group.close()

    assert refusing.asked == 3
    assert [each.message for each in caplog.records if "the group has members" in each.message]
    assert len(caplog.records) == 1


@pytest.fixture
def broker(tmp_path):
    with running_broker(tmp_path, num_partitions="2") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_server})
        for number in range(10):
            producer.produce("orders", b"value", partition=number % 2)
        assert producer.flush(60) == 0
        yield broker


def group_offsets(broker, reader):
    """What the group is at when the reader's commits, which nothing waits for, are answered."""
    assert reader._group.wait(60)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_server, "group.id": "spark-orders"})
    try:
        asked = [ClientPartition("orders", each) for each in range(2)]
        return [each.offset for each in consumer.committed(asked, 60)]
    finally:
        consumer.close()


def test_the_owner_of_a_directory_tells_where_its_clients_reach_it(broker, tmp_path):
    assert owner_endpoint(str(tmp_path)) == broker.bootstrap_server


def test_a_directory_without_an_owner_has_nobody_to_ask(tmp_path):
    with pytest.raises(StratalogError, match="no broker runs"):
        owner_endpoint(str(tmp_path))


def test_a_stream_with_a_group_id_commits_what_is_processed_and_nothing_else(broker, tmp_path):
    options = {
        "path": str(tmp_path),
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "kafka.group.id": "spark-orders",
    }
    reader = StratalogStreamReader(
        SourceOptions.parse(options, is_streaming=True), columns_schema(["offset"])
    )
    start = reader.initialOffset()

    end = reader.latestOffset(start, ReadMaxRows(4))
    assert end["orders"] == {"0": 2, "1": 2}
    assert group_offsets(broker, reader) == [0, 0]

    reader.latestOffset(end, ReadMaxRows(4))  # Spark asks on when a batch is done
    assert group_offsets(broker, reader) == [2, 2]
    reader.commit({"orders": {"0": 4, "1": 4}})
    assert group_offsets(broker, reader) == [4, 4]
    reader.stop()
