"""The driver's side of a write, without Spark: what is refused before any task runs, and what a
commit needs."""

import pickle
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType
from sink_topics import create_topics, left_behind, make_topics, values_in
from topics import write_topic

from broker_fixture import running_broker
from stratalog.spark.sink import StratalogWriter
from stratalog.spark.sink_commit import commit_staged, plan_sink
from stratalog.spark.sink_errors import SinkError, UntoldRowsError
from stratalog.spark.sink_options import SinkOptions
from stratalog.spark.sink_plan import TaskPlace
from stratalog.spark.sink_tasks import stage_rows
from stratalog.spark.stream_sink import StratalogStreamWriter
from stratalog.spark.wire_sink import Produced, WireStreamWriter
from stratalog.storage.files import OsFileSystem

SCHEMA = StructType([StructField("value", BinaryType())])


def options(path, topic=None, **more):
    named = {} if topic is None else {"topic": topic}
    return SinkOptions.parse({"path": str(path), **named, **more}, is_streaming=False)


def wire_options():
    told = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "orders"}
    return SinkOptions.parse(told, is_streaming=True)


def test_a_micro_batch_is_not_committed_without_what_every_task_wrote(tmp_path):
    """As Spark does it with trigger(continuous=...), which shows no row to a sink in Python."""
    direct = StratalogStreamWriter(options(tmp_path, "orders"), SCHEMA, is_planned=False)
    wire = WireStreamWriter(wire_options(), SCHEMA, is_planned=False)

    for writer, messages, task in (
        (direct, [None, None], 0),
        (wire, [None], 0),
        (wire, [Produced(5), None], 1),
        (direct, [Produced(5)], 0),  # not of ours
    ):
        with pytest.raises(
            UntoldRowsError, match=rf"batch 7 without what task {task} wrote"
        ) as why:
            writer.commit(messages, 7)
        assert "trigger(continuous=...) hands no rows" in str(why.value)
        assert str(pickle.loads(pickle.dumps(why.value))) == str(why.value)
    wire.commit([Produced(5)], 7)


def test_a_write_is_not_committed_without_what_every_task_wrote_and_leaves_nothing(tmp_path):
    make_topics(tmp_path, {"orders": 1})
    writer = StratalogWriter(options(tmp_path, "orders"), SCHEMA)

    with pytest.raises(UntoldRowsError, match="a write without what task 0 wrote"):
        writer.commit([None])
    writer.abort([None])

    assert left_behind(tmp_path) == []


def test_only_what_lies_in_the_directory_itself_is_written_of_a_broker_that_has_several(tmp_path):
    first, second, alias = tmp_path / "a", tmp_path / "b", tmp_path / "alias"
    alias.symlink_to(first)
    with running_broker(first, log_dirs=f"{first},{second}") as broker:
        create_topics(broker.bootstrap_server, {"split": 4})
        for number in range(4):
            create_topics(broker.bootstrap_server, {f"one{number}": 1})
        home = {f"one{n}": first if (first / f"one{n}-0").is_dir() else second for n in range(4)}
        assert set(home.values()) == {first, second}

        for path in (first, second, alias):
            with pytest.raises(
                SinkError, match=rf"2 of the 4 partitions of split are not in {path}"
            ):
                plan_sink(options(path, "split"), ("value",), opens_staging=True)
        for topic, path in home.items():
            other = second if path == first else first
            plan_sink(options(path, topic), ("value",))
            with pytest.raises(SinkError, match=f"1 of the 1 partitions of {topic} are not in"):
                plan_sink(options(other, topic), ("value",), opens_staging=True)
        by_column = plan_sink(options(alias), ("topic", "value")).topics

    for each in by_column.values():
        assert all(path.startswith(f"{first}/") for path in each.directories.values())
    assert len(by_column["split"].directories) == 2
    assert left_behind(tmp_path) == []


def test_a_topic_whose_settings_are_not_known_is_refused_before_anything_is_staged(tmp_path):
    write_topic(tmp_path, "raw", 2)

    with pytest.raises(SinkError, match=r"settings of raw are not known.*stratalog topic adopt"):
        plan_sink(options(tmp_path, "raw"), ("value",), opens_staging=True)

    by_column = plan_sink(options(tmp_path), ("topic", "value"))
    assert "stratalog topic adopt" in by_column.refused["raw"]
    assert by_column.topics == {}
    assert left_behind(tmp_path) == []


def test_a_directory_of_other_things_is_told_apart_from_a_log_directory(tmp_path):
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "docs").mkdir()

    with pytest.raises(SinkError, match=rf"{tmp_path} has directories that .*'docs'"):
        plan_sink(options(tmp_path, "orders"), ("value",))


@pytest.mark.parametrize(
    ("topics_codec", "codec"),
    [("producer", "snappy"), ("snappy", "none"), ("lz4", "lz4")],
)
def test_rows_that_do_not_compress_are_committed_whatever_batches_they_fill(
    tmp_path, topics_codec, codec
):
    settings = {"max.message.bytes": "65536", "compression.type": topics_codec}
    make_topics(tmp_path, {"orders": 1}, settings)
    told = options(tmp_path, "orders", compression=codec)
    plan = plan_sink(told, ("value",), opens_staging=True)
    random = Random(7)
    values = [random.randbytes(random.randint(100, 150)) for _ in range(50_000)]

    rows = pa.RecordBatch.from_pydict({"value": pa.array(values)})
    staged = stage_rows(iter([rows]), plan, TaskPlace(task=0, attempt=0), OsFileSystem())
    commit_staged(told, [staged], "a-load", None)

    assert values_in(tmp_path, "orders") == values
