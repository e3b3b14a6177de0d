"""``load``: rows of any source as records of a topic, in one commit."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from job_commands import spark_command
from sink_topics import left_behind, make_topics, rows_in

from stratalog.spark.jobs import load
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.load_rows import LoadSource, RecordExpressions
from stratalog.storage.check import check

pytestmark = pytest.mark.xdist_group("spark")

CSV = "id,country,amount,at\n1,nl,2.5,2026-01-31 12:00:00\n2,de,3.5,2026-02-01 12:00:00\n3,nl,,\n"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    log_dir = tmp_path_factory.mktemp("loaded") / "log"
    make_topics(log_dir, dict.fromkeys("abcdef", 2))
    yield log_dir
    assert check(str(log_dir)) == []
    assert left_behind(log_dir) == []


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "orders.csv"
    path.write_text(CSV)
    return path


# --- rows to records -----------------------------------------------------------------------------


def test_a_row_is_json_unless_somebody_says_what_its_value_is(
    spark: Any, directory: Path, csv: Path
) -> None:
    source = LoadSource(paths=[str(csv)], format="csv", options={"header": "true"})

    result = load(spark, source, directory, "a", key="id")

    assert (result.status, result.record_count) == ("committed", 3)
    rows = sorted(rows_in(directory, "a"), key=lambda row: row["key"])
    assert [row["key"] for row in rows] == [b"1", b"2", b"3"]
    assert json.loads(rows[0]["value"]) == {
        "id": "1", "country": "nl", "amount": "2.5", "at": "2026-01-31 12:00:00",
    }  # fmt: skip
    written = {row["partition"]: 0 for row in rows}
    for row in rows:
        written[row["partition"]] += 1
    assert result.partitions == {each: (0, count) for each, count in written.items()}


def test_every_field_of_a_record_can_be_said(spark: Any, directory: Path) -> None:
    frame = spark.range(4).selectExpr("id", "timestamp_seconds(1700000000 + id) AS at")

    result = load(
        spark,
        frame,
        directory,
        "b",
        key="struct(id)",
        value="CASE WHEN id < 3 THEN id END",
        timestamp="at",
        headers={"source": "'test'", "id": "id", "half": "id / 2", "all": "struct(id)"},
        partition="id % 2",
        where="id > 0",
        options={"compression": "zstd"},
    )

    assert result.rows() == [("b", 0, 0, 1, 1), ("b", 1, 0, 2, 2)]
    rows = {row["key"]: row for row in rows_in(directory, "b")}
    assert rows[b'{"id":3}']["value"] is None
    row = rows[b'{"id":2}']
    assert (row["partition"], row["value"]) == (0, b"2")
    assert row["timestamp"].timestamp() == 1700000002
    assert [(each["key"], each["value"]) for each in row["headers"]] == [
        ("source", b"test"), ("id", b"2"), ("half", b"1.0"), ("all", b'{"id":2}'),
    ]  # fmt: skip


def test_rows_that_are_records_stay_what_they_are(spark: Any, directory: Path) -> None:
    load(spark, spark.range(6).selectExpr("cast(id AS string) AS key", "'v' AS value"),
         directory, "c")  # fmt: skip
    copied = spark.read.format("stratalog").option("subscribe", "c").load(str(directory))

    result = load(spark, copied, directory, "d")

    names = ("partition", "offset", "key", "value", "timestamp")
    assert result.record_count == 6
    assert [[row[name] for name in names] for row in rows_in(directory, "d")] == [
        [row[name] for name in names] for row in rows_in(directory, "c")
    ]


def test_columns_that_only_sound_like_a_records_are_part_of_its_json(spark: Any) -> None:
    rows = spark.createDataFrame([(1, "p", "x")], "key INT, partition STRING, other STRING")

    records = RecordExpressions().records(rows)

    assert records.columns == ["value"]
    assert json.loads(records.first().value) == {"key": 1, "partition": "p", "other": "x"}


def test_what_becomes_json_keeps_all_of_a_time(spark: Any) -> None:
    rows = spark.sql(
        "SELECT timestamp'2024-01-02 03:04:05.123456Z' AS at, timestamp_ntz'0300-01-02 03:04:05.1' "
        "AS there, timestamp'1800-01-02 03:04:05.000001 Europe/Amsterdam' AS old, null AS nothing"
    )

    made = RecordExpressions(
        key="struct(at)", headers={"all": "array(at)", "at": "at"}
    ).records(rows).first()  # fmt: skip

    def moment(text: str) -> datetime:
        return datetime.fromisoformat(text)

    at = datetime(2024, 1, 2, 3, 4, 5, 123456, UTC)
    old = datetime(1800, 1, 2, 3, 4, 5, 1, timezone(timedelta(minutes=17, seconds=30)))
    value = json.loads(made.value)
    assert moment(json.loads(made.key)["at"]) == moment(value["at"]) == at
    assert moment(value["old"]) == old
    assert (value["there"], "nothing" in value) == ("0300-01-02T03:04:05.100000", False)
    assert moment(json.loads(made.headers[0].value)[0]) == at


# --- once ----------------------------------------------------------------------------------------


def test_a_version_is_loaded_once(spark: Any, directory: Path) -> None:
    def run(version: int) -> tuple[str, dict[int, tuple[int, int]]]:
        done = load(spark, spark.range(3), directory, "e", app=("nightly", version), partition="0")
        return done.status, done.partitions

    assert run(7) == ("committed", {0: (0, 3)})
    assert run(7)[0] == "already committed"
    assert run(8) == ("committed", {0: (3, 6)})
    assert len(rows_in(directory, "e")) == 6


def test_nothing_to_load_is_told(spark: Any, directory: Path) -> None:
    result = load(spark, spark.range(0), directory, "f")

    assert (result.status, result.record_count, result.rows()) == ("nothing to write", 0, [])


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["topic", "PATH", "txnAppId", "txnversion"])
def test_the_sinks_options_do_not_say_what_is_said_otherwise(
    spark: Any, directory: Path, name: str
) -> None:
    with pytest.raises(JobOptionError, match=f"the option {name} is 'a': say it as"):
        load(spark, spark.range(1), directory, "f", app=("x", 1), options={name: "a"})

    assert rows_in(directory, "f") == []


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (LoadSource(), "name paths with a format, or one table"),
        (LoadSource(paths=["/x"], table="t"), "name paths with a format, or one table"),
    ],
)
def test_a_source_is_paths_or_a_table(spark: Any, source: LoadSource, sentence: str) -> None:
    with pytest.raises(JobOptionError, match=sentence):
        source.read(spark)


def test_a_version_without_a_name_is_refused(spark: Any, directory: Path) -> None:
    with pytest.raises(JobOptionError, match="not negative"):
        load(spark, spark.range(1), directory, "f", app=("nightly", -1))


@pytest.fixture(params=["true", "false"])
def ansi(spark: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    name = "spark.sql.ansi.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, request.param)
    yield
    spark.conf.set(name, before)


@pytest.mark.usefixtures("ansi")
@pytest.mark.parametrize("partition", [2**32, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63) + 2])
def test_a_partition_that_is_no_int_is_refused_by_its_number(
    spark: Any, directory: Path, partition: int
) -> None:
    rows = spark.range(2).selectExpr("'v' AS value", f"id * {partition}L AS partition")

    with pytest.raises(Exception, match=f"there is no partition {partition}"):
        load(spark, rows, directory, "c")

    assert left_behind(directory) == []


@pytest.mark.usefixtures("ansi")
def test_a_partition_may_be_any_whole_number_or_nothing(spark: Any, directory: Path) -> None:
    for kind in ("BIGINT", "SMALLINT", "INT"):
        rows = spark.range(3).selectExpr("'v' AS value", f"cast(nullif(id, 2) AS {kind}) AS p")
        records = RecordExpressions(partition="p").records(rows)
        assert [row.partition for row in records.collect()] == [0, 1, None]


# --- the command ---------------------------------------------------------------------------------


def test_the_command_loads_and_says_where_the_records_are(
    spark: Any, directory: Path, csv: Path
) -> None:
    arguments = ("load", csv, "--format", "csv", "--option", "header=true", "--log-dir", directory,
                 "--topic", "f", "--key", "id", "--value", "amount", "--timestamp",
                 "to_timestamp(at)", "--header", "country=country", "--partition", "1",
                 "--app-id", "nightly", "--app-version", "1")  # fmt: skip

    done = spark_command(*arguments)
    again = spark_command(*arguments, "-o", "json")

    assert done.exit_code == 0, done.stderr
    assert done.table[1] == ["f", "1", "0", "3", "3"]
    assert "committed: 3 records in f" in done.stdout
    assert again.json["status"] == "already committed"
    assert [row["value"] for row in rows_in(directory, "f")] == [b"2.5", b"3.5", None]


def test_a_header_may_be_repeated_as_kafka_has_it(
    spark: Any, directory: Path, tmp_path: Path
) -> None:
    (tmp_path / "rows.json").write_text('{"key": "twice", "value": "v", "n": 2}\n')
    headers = ("--header", "h='1'", "--header", "i=key", "--header", "h=n")

    done = spark_command("load", tmp_path / "rows.json", "--format", "json", "--log-dir", directory,
                         "--topic", "d", *headers)  # fmt: skip

    assert done.exit_code == 0, done.stderr
    (row,) = (each for each in rows_in(directory, "d") if each["key"] == b"twice")
    assert [(each["key"], each["value"]) for each in row["headers"]] == [
        ("h", b"1"), ("i", b"twice"), ("h", b"2"),
    ]  # fmt: skip


def test_what_is_loaded_may_be_named_by_a_uri(spark: Any, directory: Path, csv: Path) -> None:
    before = len(rows_in(directory, "d"))

    done = spark_command("load", f"file:{csv}", "--format", "text", "--log-dir", directory,
                         "--topic", "d")  # fmt: skip

    assert done.exit_code == 0, done.stderr
    assert len(rows_in(directory, "d")) == before + 4


# What is understood, and cannot be done as things are.
_OF_NOW = ("range", "no such file")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--topic", "f"], "Name what to load"),
        (["--topic", "f", "--app-id", "x"], "only together"),
        (["/x", "--topic", "f", "--write-option", "compression=zzz"], "'compression' is 'zzz'"),
        (["/nowhere.csv", "--format", "csv", "--topic", "f"], "no such file"),
        (["/nowhere*.csv", "--format", "csv", "--topic", "f"], "PATH_NOT_FOUND"),
        (["--table", "nothing", "--topic", "f"], "TABLE_OR_VIEW_NOT_FOUND"),
        (["--format", "range", "--topic", "f"], "range"),
    ],
)
def test_the_command_tells_what_is_wrong_in_one_sentence(
    spark: Any, directory: Path, arguments: list[str], sentence: str
) -> None:
    done = spark_command("load", *arguments, "--log-dir", directory)

    assert done.exit_code == (1 if sentence.isupper() or sentence in _OF_NOW else 2)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_topic_that_is_not_there_is_told_with_what_to_do(
    spark: Any, directory: Path, csv: Path
) -> None:
    done = spark_command("load", csv, "--format", "text", "--log-dir", directory, "--topic", "zz")

    assert done.exit_code == 1
    assert "there is no topic 'zz'" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
