"""format("stratalog"): the rows and columns of a batch read."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from batch_loads import all_places, load, places
from topics import START_MS, record, write_topic

import stratalog
from stratalog.records import Record

pytestmark = pytest.mark.xdist_group("spark")

KAFKA_SCHEMA = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
    "timestamp:timestamp,timestampType:int>"
)


def test_a_topic_is_read_without_registering_anything(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 3, 4)

    found = load(spark, tmp_path)

    assert found.schema.simpleString() == KAFKA_SCHEMA
    assert all(field.nullable for field in found.schema)
    assert places(found) == all_places("orders", 3, 4)
    row = found.where("partition = 1 and offset = 2").collect()[0]
    assert (bytes(row.key), bytes(row.value), row.timestampType) == (b"k6", b"v6", 0)
    assert row.timestamp.astimezone(UTC) == datetime.fromtimestamp(START_MS / 1000 + 6, UTC)


def test_nulls_and_empty_bytes_are_kept_apart(spark: Any, tmp_path: Path) -> None:
    records = [Record(None, b"", timestamp_ms=0), Record(b"", None, timestamp_ms=1)]
    write_topic(tmp_path, "orders", {0: records})

    rows = load(spark, tmp_path).orderBy("offset").collect()

    assert [(row.key, row.value) for row in rows] == [(None, b""), (b"", None)]


def test_headers_come_when_asked_for_and_are_null_where_there_are_none(
    spark: Any, tmp_path: Path
) -> None:
    headers = [("a", b"1"), ("a", None), ("b", b"")]
    records = [
        Record(b"k", b"v", timestamp_ms=0, headers=headers),
        Record(b"k", b"v", timestamp_ms=1),
    ]
    write_topic(tmp_path, "orders", {0: records})

    found = load(spark, tmp_path, includeHeaders="true")

    assert found.schema["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )
    rows = found.orderBy("offset").collect()
    assert [(each.key, each.value) for each in rows[0].headers] == headers
    assert rows[1].headers is None


def test_metadata_tells_where_a_record_lies(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 4, batch_records=2, codec="zstd")

    rows = load(spark, tmp_path, includeMetadata="true").orderBy("offset").collect()

    assert {row.codec for row in rows} == {"zstd"}
    assert {row.segmentFile for row in rows} == {"orders-0/00000000000000000000.log"}
    assert [row.producerId for row in rows] == [-1] * 4
    positions = [row.batchPosition for row in rows]
    assert positions[:2] == [0, 0]
    assert positions[2] == positions[3] > 0


def test_a_schema_of_some_columns_decodes_only_those(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 3)

    found = load(
        spark, tmp_path, "offset long, headers array<struct<key string, value binary>>, key binary"
    )

    assert found.columns == ["offset", "headers", "key"]
    rows = found.where("offset = 2").collect()
    assert sorted(bytes(row.key) for row in rows) == [b"k2", b"k5"]
    assert [(each.key, bytes(each.value)) for each in rows[0].headers] == [("n", b"h")]


def test_columns_that_are_never_null_may_be_declared_so(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 3)

    found = load(spark, tmp_path, "offset long not null, partition int not null")

    assert found.agg({"offset": "sum"}).collect()[0][0] == 3


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("offset long, size long", "'size': there is no such column"),
        ("Offset long", "'Offset': there is no such column"),
        ("offset int", "'offset int': this column is of type bigint"),
        ("value string", "'value string': this column is of type binary"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    spark: Any, tmp_path: Path, schema: str, sentence: str
) -> None:
    write_topic(tmp_path, "orders", 1, 1)

    with pytest.raises(Exception, match=sentence):
        load(spark, tmp_path, schema).collect()


def test_topics_are_chosen_by_name_by_pattern_and_by_partition(spark: Any, tmp_path: Path) -> None:
    for topic in ("orders", "order-lines", "bills"):
        write_topic(tmp_path, topic, 2, 2)

    both = all_places("bills", 2, 2) + all_places("orders", 2, 2)
    assert places(load(spark, tmp_path, subscribe="orders, bills")) == both
    by_pattern = load(spark, tmp_path, subscribePattern="rder")
    assert {place[0] for place in places(by_pattern)} == {"orders", "order-lines"}
    assert places(load(spark, tmp_path, subscribePattern="nothing.*")) == []
    assigned = load(spark, tmp_path, assign='{"orders":[1],"bills":[0]}')
    assert places(assigned) == [
        ("bills", 0, 0),
        ("bills", 0, 1),
        ("orders", 1, 0),
        ("orders", 1, 1),
    ]


def test_a_partition_directory_alone_can_be_read(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 2)

    assert places(load(spark, tmp_path / "orders-1")) == [("orders", 1, 0), ("orders", 1, 1)]


def test_an_empty_topic_has_no_rows(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", {0: [], 1: []})

    assert load(spark, tmp_path).count() == 0


def test_a_load_is_a_snapshot_and_a_fresh_one_sees_more(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 3)
    found, counted_before = load(spark, tmp_path), load(spark, tmp_path)
    assert counted_before.count() == 3

    write_topic(tmp_path, "orders", 2, 4)

    assert (found.count(), found.count()) == (3, 3)
    assert counted_before.where("offset >= 0").count() == 3
    assert load(spark, tmp_path).count() == 11


def test_one_dataframe_answers_every_filter_rightly(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 4, 5)
    found = load(spark, tmp_path)
    one, two = found.where("partition = 1"), found.where("partition = 2 or offset = 0")

    assert (one.count(), two.count(), found.count()) == (5, 8, 20)
    assert one.union(two).count() == 13
    found.createOrReplaceTempView("same_orders")
    joined = spark.sql(
        "select count(*) from same_orders a join same_orders b on a.offset = b.offset "
        "where a.partition = 1 and b.partition = 2"
    )
    assert joined.collect()[0][0] == 5


def test_tables_and_views_are_made_with_sql(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 2, 3)
    spark.sql(
        f"create or replace temporary view orders_view using stratalog "
        f"options (path '{tmp_path}', subscribe 'orders', includeHeaders 'true')"
    )
    assert spark.sql("select sum(offset), count(headers) from orders_view").collect() == [(6, 6)]

    spark.sql("drop table if exists orders_table")
    spark.sql(
        f"create table orders_table using stratalog options (subscribe 'orders') "
        f"location '{tmp_path}'"
    )
    try:
        assert spark.table("orders_table").where("partition = 1").count() == 3
        some = spark.read.option("endingOffsets", '{"orders":{"0":1,"1":0}}').table("orders_table")
        assert places(some) == [("orders", 0, 0)]
        write_topic(tmp_path, "orders", 2, 1)
        assert spark.sql("select count(*) from orders_table").collect()[0][0] == 8
    finally:
        spark.sql("drop table orders_table")
    assert (tmp_path / "orders-0").is_dir(), "dropping a table leaves the log alone"


def test_an_owner_who_cannot_be_asked_is_read_up_to_its_checkpoint(
    spark: Any, tmp_path: Path
) -> None:
    write_topic(tmp_path, "orders", 1, 3)
    with stratalog.open_directory(tmp_path, topics={"orders": {}}) as logs:
        logs.log("orders").append([record(3)])

        offsets = [offset for _, _, offset in places(load(spark, tmp_path))]
        assert offsets in ([0, 1, 2], [0, 1, 2, 3])
