"""The rows that Spark's own Kafka connector returns, from the files alone: equal DataFrames.

The connector says what is right. It asks Apache Kafka while we read the directory of that very
Kafka, running and then stopped; it asks our broker while we read its directory. The tests stand in
the order of that story, and one Kafka and one session serve them all.
"""

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka_runs import copy_tree
from same_rows_asking import Pair, Questions
from same_rows_cases import ANSWERED, AT_MOST, OUR_OWN, REFUSED, SPLIT
from same_rows_data import await_checkpoints, grow
from same_rows_sides import connector, files, filled_kafka, filled_ours, spark_session
from same_rows_streams import REFUSED_STREAMS, STREAMS, Streamed, run_stream
from same_rows_times import kafkas_times, times_of
from tools_brokers import ours
from tools_fetched import ToolUnavailableError, spark_connector

import stratalog.spark
from stratalog.scans.selection import Subscribe
from stratalog.scans.snapshot import take_snapshot
from stratalog.scans.times import offset_for_timestamp
from stratalog.storage.layout import TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark-same-rows")]

# What a directory alone has to tell: its ends, its kinds of records, its times.
COLD = (
    "a pattern for all but one",
    "headers",
    "offsets",
    "between times",
    "from a time, clocks jumping",
    "every codec",
    "append times",
    "old formats",
    "compacted",
    "uncommitted",
    "committed",
    "committed offsets",
    "compacted transactions, committed",
    "what is left",
    "what is left of more",
)
# No client can have our broker write these; it serves them in a directory that it adopted.
NOT_OURS = (
    "old formats",
    "uncommitted",
    "committed",
    "committed offsets",
    "compacted transactions, committed",
)
OURS = tuple(name for name in COLD if name not in NOT_OURS)
BATCHES = ANSWERED | OUR_OWN | SPLIT | AT_MOST | REFUSED
ADOPTED = (*NOT_OURS, "a pattern for all but one", "compacted", "append times", "what is left")


def unavailable() -> str | None:
    """Why Spark does not run here."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: pip install -e '.[spark]'"
    if shutil.which("java") is None:
        return "no java on the PATH"
    try:
        spark_connector()
    except ToolUnavailableError as error:
        return f"Spark's Kafka connector cannot be had here: {error}"
    return None


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if reason := unavailable():
        pytest.skip(reason)
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def broker(
    kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker]:
    with filled_kafka(kafka, tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def live(request: pytest.FixtureRequest, spark: Any, broker: KafkaBroker) -> Iterator[Questions]:
    """Apache Kafka, running."""
    asked = connector(spark, broker.bootstrap_server), files(spark, broker.log_dir)
    with Questions(*asked, broker.data_dir / "checkpoints") as questions:
        questions.ask_for(request, BATCHES, STREAMS | REFUSED_STREAMS)
        yield questions


@pytest.fixture(scope="module")
def cold(
    request: pytest.FixtureRequest, spark: Any, broker: KafkaBroker, live: Questions
) -> Iterator[Questions]:
    """The directory that it left; what the connector said of it is kept."""
    answers = {name: live.batches(name, ANSWERED[name]).right for name in COLD}
    broker.stop()
    asked = live.connector, files(spark, broker.log_dir), broker.data_dir / "none", answers
    with Questions(*asked) as questions:
        questions.ask_for(request, {name: ANSWERED[name] for name in COLD})
        yield questions


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Questions]:
    """Our broker, running over a directory of its own."""
    log_dir = tmp_path_factory.mktemp("served") / "log"
    with (
        filled_ours(log_dir) as address,
        Questions(connector(spark, address), files(spark, log_dir), log_dir / "none") as questions,
    ):
        questions.ask_for(request, {name: ANSWERED[name] for name in OURS})
        yield questions


@pytest.fixture(scope="module")
def adopted(
    request: pytest.FixtureRequest,
    spark: Any,
    broker: KafkaBroker,
    cold: Questions,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Questions]:
    """Our broker, running over a copy of what Kafka left."""
    log_dir = tmp_path_factory.mktemp("adopted") / "log"
    copy_tree(broker.log_dir, log_dir)
    with (
        ours(log_dir) as address,
        Questions(connector(spark, address), files(spark, log_dir), log_dir / "none") as questions,
    ):
        questions.ask_for(request, {name: ANSWERED[name] for name in ADOPTED})
        yield questions


@pytest.mark.parametrize("name", [*ANSWERED, *OUR_OWN])
def test_the_directory_of_a_running_kafka_reads_as_the_connector_reads_it(
    name: str, live: Questions
) -> None:
    agree(live, name)


@pytest.mark.parametrize("name", SPLIT)
def test_tasks_that_are_asked_for_are_as_many_and_return_the_same_rows(
    name: str, live: Questions
) -> None:
    right, found = agree(live, name)
    # The connector has a task for each partition at the least; we read small ones together.
    assert found.task_count >= min(right.task_count, int(SPLIT[name]["minPartitions"]))


@pytest.mark.parametrize("name", AT_MOST)
def test_no_task_has_more_records_than_it_may(name: str, live: Questions) -> None:
    from pyspark.sql.functions import spark_partition_id

    agree(live, name)
    counted = live.ours.frame(AT_MOST[name]).groupBy(spark_partition_id()).count().collect()
    assert max(row["count"] for row in counted) <= int(AT_MOST[name]["maxRecordsPerPartition"])


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_connector_refuses_is_refused_with_a_sentence(name: str, live: Questions) -> None:
    both_refuse(live.batches(name, REFUSED[name]))


def test_some_of_the_columns_are_those_of_the_connectors_rows(live: Questions) -> None:
    options = {"subscribe": "plain,codecs", "includeHeaders": "true"}
    right = live.connector.frame(options).select("topic", "headers", "offset", "partition")
    found = live.ours.reader(options).schema(right.schema).load(live.ours.path)
    same_frame(found, right)


def test_columns_of_our_own_stand_beside_those_of_the_connector(live: Questions) -> None:
    right = live.connector.frame({"subscribe": "codecs,old"})
    found = live.ours.frame({"subscribe": "codecs,old", "includeMetadata": "true"})
    same_frame(found.select(*right.columns), right)
    assert len(found.columns) > len(right.columns)


def test_one_key_is_what_a_filter_of_the_connectors_rows_leaves(live: Questions) -> None:
    right = live.connector.frame({"subscribe": "codecs"}).where("key = CAST('key 3' AS BINARY)")
    same_frame(live.ours.frame({"subscribe": "codecs", "key": "key 3"}), right)


@pytest.mark.parametrize(
    "where",
    [
        "partition = 1 AND offset BETWEEN 40 AND 90",
        "timestamp >= TIMESTAMP '2023-11-14 22:13:40.5' AND timestamp < '2023-11-14 22:13:55'",
        "timestamp <= TIMESTAMP '2023-11-14 22:13:30' OR offset > 250",
        "NOT (partition = 0) AND key IN (CAST('key 1' AS BINARY), X'6B65792032')",
    ],
)
def test_a_condition_of_a_scan_leaves_what_it_leaves_of_the_connectors_rows(
    where: str, live: Questions, spark: Any
) -> None:
    found = stratalog.spark.scan(spark, str(live.ours.path), topic="mixed", where=where)
    right = live.connector.frame({"subscribe": "mixed"}).where(where)
    same_frame(found, right)
    assert right.count() > 0, "a condition that leaves nothing tells nothing"


def test_a_view_over_the_files_is_the_connectors_view(live: Questions, spark: Any) -> None:
    asked = "subscribe 'timed', startingTimestamp '1700000031000', includeHeaders 'true'"
    address = live.connector.address["kafka.bootstrap.servers"]
    made = "CREATE OR REPLACE TEMPORARY VIEW"
    spark.sql(f"{made} kafkas USING kafka OPTIONS ({asked}, kafka.bootstrap.servers '{address}')")
    spark.sql(f"{made} ours USING stratalog OPTIONS ({asked}, path '{live.ours.path}')")
    same_frame(*(spark.table(view).where("partition = 1") for view in ("ours", "kafkas")))


def same_frame(found: Any, right: Any) -> None:
    order = [name for name in ("topic", "partition", "offset") if name in right.columns]
    assert found.schema == right.schema
    assert found.orderBy(*order).toArrow().equals(right.orderBy(*order).toArrow())


def agree(questions: Questions, name: str) -> Pair:
    right, found = pair = questions.batches(name, BATCHES[name])
    assert right.refusal is None
    assert found.refusal is None
    assert found.schema == right.schema
    assert found.rows == right.rows
    return pair


def both_refuse(pair: Pair) -> None:
    """And ours is an error that we meant, not one that nobody foresaw."""
    right, found = pair
    assert right.refusal is not None
    assert found.refusal is not None
    assert re.search(r"^stratalog\.\S+Error: ", found.refusal, re.MULTILINE), found.refusal


# --- times ---------------------------------------------------------------------------------------


def test_a_time_is_found_where_kafka_finds_it(live: Questions, broker: KafkaBroker) -> None:
    topics = ("timed", "jumbled", "plain", "codecs", "old", "compacted", "trimmed")
    options = {"subscribe": ",".join(topics)}
    rows = live.ours.read(options).rows
    snapshot = take_snapshot(str(broker.log_dir), Subscribe(topics))
    wrong = []
    for asked, kafkas in kafkas_times(broker.bootstrap_server, times_of(rows)):
        partition = snapshot.partitions[TopicPartition(asked.topic, asked.partition)]
        found = offset_for_timestamp(partition, asked.timestamp_ms)
        if found != kafkas:
            wrong.append((asked, found, kafkas))
    assert wrong == []


# --- streams -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_has_the_batches_and_the_offsets_of_the_connectors(
    stream: str, live: Questions
) -> None:
    same_stream(*live.streams(stream, STREAMS[stream]))


@pytest.mark.parametrize("stream", REFUSED_STREAMS)
def test_a_stream_that_the_connector_refuses_is_refused_with_a_sentence(
    stream: str, live: Questions
) -> None:
    both_refuse(live.streams(stream, REFUSED_STREAMS[stream]))


def test_a_stream_that_stays_has_the_batches_of_the_connectors(
    live: Questions, tmp_path: Path
) -> None:
    options = {"subscribe": "codecs", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "60"}
    same_stream(
        *(
            run_stream(side, options, tmp_path / side.format, stays=True)
            for side in (live.connector, live.ours)
        )
    )


def test_all_that_is_available_is_read_where_the_connector_leaves_what_is_less_than_the_least(
    live: Questions, tmp_path: Path
) -> None:
    options = {"subscribe": "codecs", "startingOffsets": "earliest"}
    limits = {"minOffsetsPerTrigger": "30", "maxOffsetsPerTrigger": "50"}
    right, found = (
        run_stream(side, options | limits, tmp_path / side.format)
        for side in (live.connector, live.ours)
    )
    assert right.offsets[-1] == {"codecs": {"0": 200}}
    assert found.offsets == [*right.offsets, {"codecs": {"0": 205}}]
    assert found.batches[:-1] == right.batches


def test_streams_go_on_from_either_checkpoint_also_with_partitions_that_are_new(
    live: Questions, broker: KafkaBroker, tmp_path: Path
) -> None:
    options = {"subscribe": "growing", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "4"}
    kafkas, mine = tmp_path / "kafka", tmp_path / "ours"
    sides = [(live.connector, kafkas), (live.ours, mine)]
    same_stream(*(run_stream(side, options, checkpoint) for side, checkpoint in sides))

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_server})
    admin.create_partitions([NewPartitions("growing", 3)])["growing"].result(30)
    with broker.connect() as connection:
        for partition in range(3):
            grow(connection, partition=partition, count=5)
    await_checkpoints(broker.log_dir, broker.bootstrap_server)
    copies = tmp_path / "kafka's copy", tmp_path / "our copy"
    copy_tree(kafkas, copies[0])
    copy_tree(mine, copies[1])

    right = run_stream(live.connector, options, kafkas)
    same_stream(right, run_stream(live.ours, options, mine))
    same_stream(right, run_stream(live.ours, options, copies[0]))
    same_stream(right, run_stream(live.connector, options, copies[1]))


def same_stream(right: Streamed, found: Streamed) -> None:
    assert right.refusal is None
    assert found.refusal is None
    assert found.schema == right.schema
    assert found.offsets == right.offsets
    assert found.batches == right.batches


# --- other directories ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", COLD)
def test_a_directory_that_kafka_left_reads_as_the_connector_read_it(
    name: str, cold: Questions
) -> None:
    agree(cold, name)


@pytest.mark.parametrize("name", OURS)
def test_the_directory_of_our_broker_reads_as_the_connector_reads_it(
    name: str, served: Questions
) -> None:
    agree(served, name)


@pytest.mark.parametrize("name", ADOPTED)
def test_the_directory_that_our_broker_adopted_reads_as_the_connector_reads_it(
    name: str, adopted: Questions
) -> None:
    agree(adopted, name)
