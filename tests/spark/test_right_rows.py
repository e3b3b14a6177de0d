"""Right rows, however one DataFrame is used: with two filters, joined, cached, explained.

Spark keeps one pushed plan for each load; a source that prunes by it returns too few rows to the
next query. The numbers here are those of four partitions with five records each.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from topics import START_MS, write_topic

pytestmark = pytest.mark.xdist_group("spark")

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("right") / "log"
    write_topic(path, "orders", 4, 5, batch_records=2)
    return str(path)


@pytest.fixture(params=["false", "true"], ids=["spark's default", "spark pushes filters"])
def frame(request: pytest.FixtureRequest, spark: Any, log_dir: str) -> Iterator[Any]:
    """A DataFrame as anybody loads it, with Spark's setting either way."""
    with setting(spark, PUSHDOWN, request.param):
        yield load(spark, log_dir)


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.set(name, before)


def load(spark: Any, log_dir: str) -> Any:
    return spark.read.format("stratalog").option("subscribe", "orders").load(log_dir)


def numbers(frame: Any) -> list[int]:
    return sorted(int(bytes(row.value)[1:]) for row in frame.select("value").collect())


def test_filtered_then_whole(frame: Any) -> None:
    assert frame.where("partition = 1").count() == 5
    assert frame.count() == 20


def test_two_filters_one_after_the_other(frame: Any) -> None:
    assert numbers(frame.where("partition = 1")) == [5, 6, 7, 8, 9]
    assert numbers(frame.where("partition = 2 AND offset < 2")) == [10, 11]
    assert numbers(frame.where("partition = 1")) == [5, 6, 7, 8, 9]


def test_a_union_of_two_filters(frame: Any) -> None:
    both = frame.where("partition = 1").union(frame.where("partition IN (0, 2)"))

    assert numbers(both) == list(range(15))


def test_a_self_join_of_two_filters(frame: Any, spark: Any) -> None:
    frame.createOrReplaceTempView("right_rows")
    query = (
        "SELECT a.value FROM right_rows a JOIN right_rows b ON a.topic = b.topic "
        "WHERE a.partition = 1 AND b.partition = 2"
    )

    assert spark.sql(query).count() == 25
    assert spark.sql("SELECT * FROM right_rows").count() == 20


def test_a_subquery_over_the_same_frame(frame: Any, spark: Any) -> None:
    frame.createOrReplaceTempView("right_rows")
    query = (
        "SELECT * FROM right_rows WHERE partition = 3 "
        "AND offset IN (SELECT offset FROM right_rows WHERE partition = 0 AND offset >= 3)"
    )

    assert numbers(spark.sql(query)) == [18, 19]


def test_explained_then_run(frame: Any, capsys: pytest.CaptureFixture[str]) -> None:
    frame.where("partition = 1").explain(extended=True)

    assert "stratalog" in capsys.readouterr().out
    assert frame.count() == 20
    assert numbers(frame.where("partition = 3")) == [15, 16, 17, 18, 19]


def test_cached_by_one_filter_then_asked_by_another(frame: Any) -> None:
    cached = frame.where("partition >= 1").cache()
    try:
        assert cached.count() == 15
        assert cached.where("partition = 1").count() == 5
        assert frame.where("partition = 0").count() == 5
        assert frame.count() == 20
    finally:
        cached.unpersist()


def test_the_whole_cached_while_filtered(frame: Any) -> None:
    assert frame.where("offset = 0").count() == 4
    cached = frame.cache()
    try:
        assert cached.count() == 20
        assert cached.where("partition = 1").count() == 5
    finally:
        frame.unpersist()


def test_conditions_that_no_source_understands(frame: Any) -> None:
    odd = "cast(key AS string) = 'k3' OR pmod(offset, 2) = 1"

    expected = [each for each in range(20) if each % 7 == 3 or (each % 5) % 2 == 1]
    assert numbers(frame.where(odd)) == expected


def test_a_time_is_compared_as_spark_compares_it(frame: Any) -> None:
    early = f"timestamp < timestamp_millis({START_MS + 7_500})"

    assert numbers(frame.where(early)) == list(range(8))
    assert frame.where("to_date(timestamp) = DATE'2023-11-14'").count() == 20
    assert frame.where("timestamp IS NULL").count() == 0


def test_a_frame_is_a_snapshot_and_a_new_load_sees_more(spark: Any, tmp_path: Path) -> None:
    log_dir = tmp_path / "log"
    write_topic(log_dir, "orders", 2, 5)
    before = load(spark, str(log_dir))
    assert before.count() == 10

    write_topic(log_dir, "orders", 2, 3)

    assert before.count() == 10
    assert before.where("partition = 1").count() == 5
    assert load(spark, str(log_dir)).count() == 16


def test_pushdown_on_request_is_right_for_one_filter_per_load(spark: Any, log_dir: str) -> None:
    def pushed() -> Any:
        reader = spark.read.format("stratalog").option("subscribe", "orders")
        return reader.option("pushdown", "true").load(log_dir)

    for value in ("false", "true"):
        with setting(spark, PUSHDOWN, value):
            assert numbers(pushed().where("partition = 1")) == [5, 6, 7, 8, 9]
            assert numbers(pushed().where("partition = 1 AND offset BETWEEN 1 AND 2")) == [6, 7]
            assert pushed().count() == 20
