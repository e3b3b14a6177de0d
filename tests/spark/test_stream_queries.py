"""Streaming queries, in Spark: what is asked of the reader there, and what comes of it."""

from collections import Counter

import pytest
from confluent_kafka import Producer
from topics import record, write_topic

import stratalog.spark
from broker_fixture import running_broker
from stratalog.broker import overview

pytestmark = pytest.mark.xdist_group("spark")

WAIT_SECONDS = 300


class Collected:
    """A sink that keeps each batch's rows as (partition, offset)."""

    def __init__(self):
        self.batches = []

    def __call__(self, frame, _batch_id):
        self.batches.append([(row.partition, row.offset) for row in frame.collect()])

    @property
    def rows(self):
        return sorted(row for batch in self.batches for row in batch)


class Query:
    """A query from a log directory into a sink, with a checkpoint to resume from."""

    def __init__(self, spark, home, **options):
        self._spark = spark
        self._home = home
        self._options = {"subscribe": "orders", "startingOffsets": "earliest", **options}
        self.sink = Collected()

    def start(self, **trigger):
        frame = self._spark.readStream.format("stratalog").options(**self._options)
        return (
            frame.load(str(self._home / "logs"))
            .writeStream.foreachBatch(self.sink)
            .option("checkpointLocation", str(self._home / "checkpoint"))
            .trigger(**trigger)
            .start()
        )

    def run(self):
        """Read all there is, as Trigger.AvailableNow does."""
        query = self.start(availableNow=True)
        query.awaitTermination(WAIT_SECONDS)
        return query

    def written_down(self):
        """The positions in the checkpoint, by batch."""
        logged = sorted(
            (self._home / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda each: int(each.name)
        )
        return [each.read_text().splitlines()[2] for each in logged]


def rows(*counts):
    return [(partition, n) for partition, count in enumerate(counts) for n in range(count)]


def test_a_query_reads_all_in_limited_batches_and_resumes_where_it_stopped(spark, tmp_path):
    write_topic(tmp_path / "logs", "orders", 3, 20)
    query = Query(spark, tmp_path, maxOffsetsPerTrigger="25")

    query.run()
    assert [len(batch) for batch in query.sink.batches] == [24, 24, 12]
    assert query.sink.rows == rows(20, 20, 20)

    write_topic(tmp_path / "logs", "orders", {0: [record(1)], 10: [record(2)], 2: [record(3)]})
    query.run()
    assert query.sink.batches[3:] == [[(0, 20), (2, 20), (10, 0)]]
    assert query.written_down()[-1] == '{"orders": {"0": 21, "1": 20, "2": 21, "10": 1}}'


def test_a_limit_of_bytes_holds_and_trigger_once_knows_none(spark, tmp_path):
    write_topic(tmp_path / "logs", "orders", 1, 40, batch_records=10)
    limited = Query(spark, tmp_path, maxBytesPerTrigger="1")

    limited.run()
    assert [len(batch) for batch in limited.sink.batches] == [10] * 4

    write_topic(tmp_path / "logs", "orders", 1, 40, batch_records=10)
    limited.start(once=True).awaitTermination(WAIT_SECONDS)
    assert [len(batch) for batch in limited.sink.batches[4:]] == [40]


def test_a_query_resumes_from_a_checkpoint_of_sparks_kafka_source(spark, tmp_path):
    write_topic(tmp_path / "logs", "orders", 2, 5)
    query = Query(spark, tmp_path)
    query.run()
    logged = tmp_path / "checkpoint" / "offsets" / "0"
    lines = logged.read_text().splitlines()
    logged.write_text("\n".join([*lines[:2], '{"orders":{"1":3,"0":5}}']))
    (logged.parent / ".0.crc").unlink()

    query.sink.batches.clear()
    query.run()

    assert query.sink.rows == [(1, 3), (1, 4)]


def test_what_is_lost_stops_a_query_with_a_sentence_that_says_so(spark, tmp_path):
    write_topic(tmp_path / "logs", "orders", 1, 5, batch_records=1)
    query = Query(spark, tmp_path, maxOffsetsPerTrigger="2")
    query.run()
    write_topic(tmp_path / "logs", "orders", 1, 5, batch_records=1)
    with stratalog.open_directory(tmp_path / "logs") as logs:
        logs.log("orders", 0).delete_records(8)

    failed = query.start(availableNow=True)
    with pytest.raises(Exception, match=r"orders-0 has lost the offsets 5 to 7 \(3 of them\)"):
        failed.awaitTermination(WAIT_SECONDS)

    forgiving = Query(spark, tmp_path, failOnDataLoss="false")
    forgiving.run()
    assert forgiving.sink.rows == [(0, 8), (0, 9)]


def test_a_topic_that_is_not_there_stops_a_query_before_it_starts(spark, tmp_path):
    write_topic(tmp_path / "logs", "other", 1, 1)

    with pytest.raises(Exception, match="holds no topic 'orders'"):
        Query(spark, tmp_path).run()


def test_the_lag_of_a_query_is_known_by_partition(spark, tmp_path):
    write_topic(tmp_path / "logs", "orders", 2, 5)
    query = Query(spark, tmp_path)

    finished = query.run()
    write_topic(tmp_path / "logs", "orders", 1, 3)

    assert [each.lag for each in stratalog.spark.lag(finished)] == [0, 0]
    now = stratalog.spark.lag(finished, path=str(tmp_path / "logs"))
    assert [(each.partition, each.offset, each.end_offset, each.lag) for each in now] == [
        (0, 5, 8, 3),
        (1, 5, 5, 0),
    ]


def test_a_running_query_follows_a_broker_and_tells_its_group(spark, tmp_path):
    with running_broker(tmp_path / "logs", num_partitions="2") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_server, "linger.ms": 0})

        def produce(count):
            for number in range(count):
                producer.produce("orders", b"value", partition=number % 2)
            assert producer.flush(WAIT_SECONDS) == 0

        produce(4)
        query = Query(spark, tmp_path, **{"kafka.group.id": "spark-orders"})
        running = query.start(processingTime="0 seconds")
        try:
            running.processAllAvailable()
            produce(6)
            running.processAllAvailable()
        finally:
            running.stop()
        assert Counter(query.sink.rows) == Counter(rows(5, 5))
        seen = broker.call(lambda: list(overview.groups(broker.broker.services)))
        assert [(each["group_id"], each["committed_partitions"], each["lag"]) for each in seen] == [
            ("spark-orders", 2, 0)
        ]


def test_a_stream_with_a_sub_schema_returns_those_columns_alone(spark, tmp_path):
    write_topic(tmp_path / "logs", "orders", 1, 3)
    stream = (
        spark.readStream.format("stratalog")
        .schema("offset long, key binary")
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load(str(tmp_path / "logs"))
    )

    query = stream.writeStream.format("memory").queryName("narrow").trigger(availableNow=True)
    query.start().awaitTermination(WAIT_SECONDS)

    assert [tuple(row) for row in spark.table("narrow").orderBy("offset").collect()] == [
        (0, b"k0"),
        (1, b"k1"),
        (2, b"k2"),
    ]
