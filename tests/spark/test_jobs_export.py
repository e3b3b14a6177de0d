"""``export``: a topic as Parquet, every record exactly once, decoded and partitioned as asked."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from job_commands import spark_command
from topics import START_MS, record, write_topic

import stratalog
from stratalog.records import Record
from stratalog.spark.jobs import export, start_export
from stratalog.spark.jobs.errors import FormatMissingError, JobOptionError
from stratalog.spark.jobs.export_rows import ExportRows, parse_partition_by
from stratalog.spark.jobs.exporting import Export
from stratalog.spark.jobs.file_sink import check_target
from stratalog.spark.jobs.places import absolute, local_path
from stratalog.spark.jobs.stream_progress import StreamTotals, initial_positions
from stratalog.spark.options import SourceOptions

pytestmark = pytest.mark.xdist_group("spark")

DAY_MS = 86_400_000
DEFAULT = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_topic(tmp_path / "log", "orders", 2, 20)
    return tmp_path / "log"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "orders"


def landed(spark: Any, target: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(target)).select("partition", "offset").collect()
    return sorted((row.partition, row.offset) for row in rows)


def offsets(*partitions: range) -> list[tuple[int, int]]:
    return [(number, offset) for number, each in enumerate(partitions) for offset in each]


# --- exactly once --------------------------------------------------------------------------------


def test_what_was_exported_is_not_exported_again(spark: Any, log_dir: Path, target: Path) -> None:
    first = export(spark, log_dir, "orders", target)
    again = export(spark, log_dir, "orders", target)
    write_topic(log_dir, "orders", {1: [record(number) for number in range(7)]})
    third = export(spark, log_dir, "orders", target)

    assert (first.rows_written, again.rows_written, third.rows_written) == (40, 0, 7)
    assert first.rows() == [("orders", 0, 0, 20), ("orders", 1, 0, 20)]
    assert third.offsets["orders"][1] == (20, 27)
    assert landed(spark, target) == offsets(range(20), range(27))


def test_where_a_run_began_is_where_the_log_began_however_many_batches_it_took(
    spark: Any, log_dir: Path, target: Path
) -> None:
    with stratalog.open_directory(log_dir) as logs:
        logs.log("orders", 0).delete_records(5)

    done = export(spark, log_dir, "orders", target, options={"maxOffsetsPerTrigger": "20"})

    assert done.batches > 1
    assert done.rows() == [("orders", 0, 5, 20), ("orders", 1, 0, 20)]
    assert (done.rows_written, landed(spark, target)) == (35, offsets(range(5, 20), range(20)))


def test_rows_are_those_that_a_condition_has_left(spark: Any, log_dir: Path, target: Path) -> None:
    done = export(spark, log_dir, "orders", target, where="offset < 7")

    assert (done.rows_written, done.batches) == (14, 1)
    assert done.rows() == [("orders", 0, 0, 20), ("orders", 1, 0, 20)]
    assert len(landed(spark, target)) == 14


class Report:
    """What Spark tells of a batch."""

    def __init__(self, batch: int, start: int | None, end: int, *, read: int, **told: Any) -> None:
        places = [None if each is None else {"t": {"0": each}} for each in (start, end)]
        self.batchId, self.numInputRows = batch, read
        self.observedMetrics = {"stratalog": told["rows"]} if "rows" in told else {}
        self.sink = SimpleNamespace(numOutputRows=told.get("sink", -1))
        said = dict(zip(("startOffset", "endOffset"), places, strict=True))
        self.sources = [SimpleNamespace(json=json.dumps(said))]


@pytest.mark.parametrize(
    ("initial", "reports", "expected"),
    [
        ({"t": {"0": 7}}, [Report(0, None, 9, read=2, rows={"rows": 1})], (1, 1, {0: (7, 9)})),
        ({"t": {"0": 7}}, [Report(0, None, 7, read=0)], (0, 0, {})),
        # It began at the end, which the first batch settles and takes nothing of.
        ({}, [Report(0, None, 9, read=0), Report(1, 9, 12, read=3)], (3, 1, {0: (9, 12)})),
        # A client of Spark Connect may not see the directory.
        (None, [Report(0, None, 9, read=2, sink=1)], (1, 1, {0: (0, 9)})),
        # What was read may be nothing that anybody sees, as of an aborted transaction.
        (None, [Report(4, 5, 9, read=0), Report(5, 9, 9, read=0)], (0, 1, {0: (5, 9)})),
        (None, [Report(4, 5, 9, read=4), Report(4, 5, 9, read=4)], (4, 1, {0: (5, 9)})),
    ],
)
def test_what_a_run_did_is_told_by_the_reports_of_its_batches(
    initial: Any, reports: list[Report], expected: tuple[int, int, dict[int, tuple[int, int]]]
) -> None:
    totals = StreamTotals(initial)

    totals.take(SimpleNamespace(recentProgress=reports))

    assert (totals.rows, totals.batches, totals.offsets.get("t", {})) == expected


def test_a_start_that_moves_is_left_to_the_first_batch(log_dir: Path) -> None:
    def initial(**more: str) -> Any:
        given = {"path": str(log_dir), "subscribe": "orders", **more}
        return initial_positions(SourceOptions.parse(given, is_streaming=True))

    assert initial(startingOffsets="earliest") == {"orders": {"0": 0, "1": 0}}
    assert initial(startingOffsets="latest") == {}
    assert initial(startingOffsets='{"orders": {"0": 3, "1": -1}}') == {"orders": {"0": 3}}
    assert initial(path="/nowhere") is None


def test_what_a_failed_run_left_is_seen_by_nobody(spark: Any, log_dir: Path, target: Path) -> None:
    from pyspark.errors import PySparkException

    def failing(frame: Any) -> Any:
        # One partition's task has written its file by the time the other's fails.
        return frame.selectExpr(
            "*", "CASE WHEN partition = 1 AND offset = 19 THEN raise_error('no') END AS never"
        ).drop("never").where("CASE WHEN partition = 1 AND offset = 19 THEN raise_error('no') END "
                              "IS NULL")  # fmt: skip

    with pytest.raises(PySparkException, match="no"):
        export(spark, log_dir, "orders", target, transform=failing, partition_by=None)
    done = export(spark, log_dir, "orders", target, partition_by=None)

    assert done.rows_written == 40
    assert landed(spark, target) == offsets(range(20), range(20))


def test_a_continuous_export_goes_on_until_it_is_stopped(
    spark: Any, log_dir: Path, target: Path
) -> None:
    query = start_export(
        spark, log_dir, "orders", target, mode="continuous", every="0 seconds", partition_by=None
    )
    try:
        query.processAllAvailable()
        write_topic(log_dir, "orders", {0: [record(1)]})
        query.processAllAvailable()
    finally:
        query.stop()

    assert landed(spark, target) == offsets(range(21), range(20))


def test_a_batch_is_one_moment_and_never_lands_twice(
    spark: Any, log_dir: Path, target: Path
) -> None:
    from pyspark.errors import AnalysisException

    done = export(spark, log_dir, "orders", target, mode="batch", where="offset >= 15")

    assert (done.rows_written, done.batches) == (10, 1)
    assert landed(spark, target) == offsets(range(15, 20), range(15, 20))
    with pytest.raises(AnalysisException, match="already exists"):
        export(spark, log_dir, "orders", target, mode="batch")


# --- a target that is there ----------------------------------------------------------------------


@pytest.mark.parametrize("is_lost", [True, False], ids=["removed", "another"])
def test_a_target_is_refused_to_any_checkpoint_that_did_not_write_it(
    spark: Any, log_dir: Path, tmp_path: Path, *, is_lost: bool
) -> None:
    target = tmp_path / "x=1" / "lake [all]"
    export(spark, log_dir, "orders", target)
    if is_lost:
        shutil.rmtree(target / "_checkpoints")
    checkpoint = None if is_lost else tmp_path / "checkpoint"

    with pytest.raises(JobOptionError, match=r"written with another one.*or another target"):
        export(spark, log_dir, "orders", target, checkpoint=checkpoint)

    assert not (target / "_checkpoints").exists() or not is_lost
    assert landed(spark, target) == offsets(range(20), range(20))


def test_a_checkpoint_that_has_come_less_far_than_its_target_is_refused(
    spark: Any, log_dir: Path, target: Path, tmp_path: Path
) -> None:
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    export(spark, log_dir, "orders", target, checkpoint=checkpoint)
    shutil.copytree(checkpoint, copy)
    write_topic(log_dir, "orders", {1: [record(1)]})
    export(spark, log_dir, "orders", target, checkpoint=checkpoint)

    with pytest.raises(JobOptionError, match="up to number 1 for written"):
        export(spark, log_dir, "orders", target, checkpoint=copy)

    assert landed(spark, target) == offsets(range(20), range(21))


def test_a_run_that_died_between_the_target_and_its_checkpoint_is_gone_on_with(
    spark: Any, log_dir: Path, target: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    export(spark, log_dir, "orders", target, checkpoint=checkpoint)
    shutil.rmtree(checkpoint / "commits")
    write_topic(log_dir, "orders", {1: [record(1)]})

    export(spark, log_dir, "orders", target, checkpoint=checkpoint)

    assert landed(spark, target) == offsets(range(20), range(21))


@pytest.mark.parametrize("partition_by", [None, "topic", ["date", "topic"]])
@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_target_stays_partitioned_as_it_is(
    spark: Any, log_dir: Path, tmp_path: Path, scheme: str, partition_by: Any
) -> None:
    target = tmp_path / "x=1" / "größe=2"
    # The first batch has no rows to tell by.
    export(spark, log_dir, "orders", target, where="false")
    export(spark, log_dir, "orders", target, where="false", partition_by=None)
    write_topic(log_dir, "orders", {1: [record(1)]})
    export(spark, log_dir, "orders", target)

    with pytest.raises(
        JobOptionError, match=r"partitioned by date, and could not be read.*or give"
    ):
        export(spark, log_dir, "orders", f"{scheme}{target}", partition_by=partition_by)

    assert landed(spark, target) == [(1, 20)]


def test_a_session_without_a_jvm_looks_at_the_files_that_are_here(
    spark: Any, log_dir: Path, target: Path, tmp_path: Path
) -> None:
    export(spark, log_dir, "orders", target)
    remote: Any = object()
    own = f"{target}/_checkpoints/stratalog"

    check_target(remote, str(target), own, ["date"])
    check_target(remote, "s3a://lake/orders", own, ["date"])
    check_target(remote, str(target), "s3a://lake/checkpoints/orders", ["date"])
    with pytest.raises(JobOptionError, match="is partitioned by date"):
        check_target(remote, f"file://{target}", own, [])
    with pytest.raises(JobOptionError, match="written with another one"):
        check_target(remote, str(target), str(tmp_path / "checkpoint"), ["date"])


# --- what it looks like --------------------------------------------------------------------------


def test_days_are_directories(spark: Any, tmp_path: Path, target: Path) -> None:
    days = [record(number, timestamp_ms=START_MS + number * DAY_MS // 2) for number in range(6)]
    write_topic(tmp_path / "log", "orders", {0: days})

    export(spark, tmp_path / "log", "orders", target)

    found = sorted(path.name for path in target.glob("date=*"))
    assert found == ["date=2023-11-14", "date=2023-11-15", "date=2023-11-16", "date=2023-11-17"]
    counted = spark.read.parquet(str(target)).groupBy("date").count().collect()
    assert sorted(row["count"] for row in counted) == [1, 1, 2, 2]


def test_values_are_decoded_by_sparks_own_functions(
    spark: Any, tmp_path: Path, target: Path
) -> None:
    values = [b'{"id": %d, "amount": 2.5, "country": "%s"}' % (n, b"nl de".split()[n % 2])
              for n in range(6)]  # fmt: skip
    write_topic(tmp_path / "log", "orders", {0: [Record(b"k", each) for each in values]})

    export(
        spark,
        tmp_path / "log",
        "orders",
        target,
        transform=lambda rows: rows.selectExpr(
            "offset",
            "from_json(cast(value AS string), 'id INT, amount DOUBLE, country STRING') AS v",
        ),
        columns=["offset", "v.id", "v.amount"],
        partition_by="upper(v.country) AS country",
        compression="zstd",
    )

    rows = spark.read.parquet(str(target)).orderBy("offset").collect()
    assert [(row.id, row.amount, row.country) for row in rows[:2]] == [
        (0, 2.5, "NL"),
        (1, 2.5, "DE"),
    ]
    assert [path.name for path in sorted(target.glob("country=*"))] == ["country=DE", "country=NL"]
    assert list(target.glob("country=NL/*.zstd.parquet"))


@pytest.mark.parametrize(
    ("columns", "partition_by", "where", "expected"),
    [
        (["offset"], None, None, {"offset"}),
        (["offset"], "date", None, {"offset", "timestamp"}),
        (["cast(KEY AS string) AS k"], None, "headers[0].key = 'n'", {"key", "headers"}),
        (["1 AS one"], None, None, {"offset"}),
        (["upper(topic) || codec AS t"], None, None, {"topic", "codec"}),
        (["headers", "offset * 2 AS twice"], None, None, {*DEFAULT, "headers"}),
        (["offset"], None, "size(headers) * 2 > 4 OR codec = 'a*'", {*DEFAULT, "headers", "codec"}),
        (["count(HEADERS"], None, None, {*DEFAULT, "headers"}),
    ],
)
def test_only_what_is_spoken_of_is_decoded(
    columns: list[str], partition_by: str | None, where: str | None, expected: set[str]
) -> None:
    options = SourceOptions.parse({"path": "/log", "subscribe": "a"}, is_streaming=False)
    rows = ExportRows(tuple(columns), parse_partition_by(partition_by), where)

    assert set(rows.needed(options)) == expected


@pytest.mark.parametrize("columns", [None, ("*",), ("count(",)])
def test_all_is_decoded_where_nobody_chose(columns: tuple[str, ...] | None) -> None:
    options = SourceOptions.parse({"path": "/log", "subscribe": "a"}, is_streaming=False)
    names = ExportRows(columns, parse_partition_by("codec"), None).needed(options)

    assert names[:7] == DEFAULT


def test_a_star_stands_for_the_columns_that_a_row_has_anyway(
    spark: Any, log_dir: Path, target: Path
) -> None:
    export(spark, log_dir, "orders", target, columns=["*", "offset * 2 AS twice"],
           where="headers IS NULL OR size(headers) >= 0", partition_by=None)  # fmt: skip

    rows = spark.read.parquet(str(target))
    assert rows.columns == [*DEFAULT, "twice"]
    assert rows.count() == 40


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"partition_by": "hour(timestamp)"}, "give the expression a name"),
        ({"partition_by": "country"}, "no column country"),
        ({"columns": ["offset", "1 AS date"]}, "more than one column date"),
        ({"mode": "often"}, "there are once, continuous, batch"),
        ({"mode": "continuous", "every": "zzz"}, "every is 'zzz': expected an interval"),
        ({"mode": "continuous", "every": ""}, "every is '': expected an interval"),
        ({"every": "1 minute"}, "it says how often continuous writes"),
        ({"where": "offst > 3"}, "where is 'offst > 3': .*`offst` cannot be resolved"),
        ({"where": "offset >"}, "where is 'offset >': .*PARSE_SYNTAX_ERROR"),
        ({"columns": ["valu"]}, r"columns is \['valu', .*`valu` cannot be resolved"),
        ({"mode": "batch", "every": "1 minute"}, "every is '1 minute': a batch is written once"),
        ({"mode": "batch", "checkpoint": "/x"}, "checkpoint is '/x': a batch has none"),
        ({"write_options": {"checkpointlocation": "/x"}}, "give it as checkpoint"),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_written(
    spark: Any, log_dir: Path, target: Path, how: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(JobOptionError, match=sentence):
        export(spark, log_dir, "orders", target, **how)

    assert not target.exists()


@pytest.mark.parametrize("mode", ["once", "batch"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_nothing_is_put_into_the_log_directory(
    spark: Any, log_dir: Path, target: Path, mode: str, scheme: str
) -> None:
    with pytest.raises(JobOptionError, match=r"target is .* inside the log directory"):
        export(spark, log_dir, "orders", f"{scheme}{log_dir}/lake", mode=mode)
    with pytest.raises(JobOptionError, match=r"checkpoint is .* inside the log directory"):
        export(spark, log_dir, "orders", target, mode=mode, checkpoint=f"{scheme}{log_dir}/c")
    assert not (log_dir / "lake").exists()
    assert not target.exists()


@pytest.mark.parametrize("scheme", ["file:", "file://"])
def test_a_target_may_be_a_uri(spark: Any, log_dir: Path, target: Path, scheme: str) -> None:
    done = export(spark, log_dir, "orders", f"{scheme}{target}")

    assert done.target == f"{scheme}{target}"
    assert landed(spark, target) == offsets(range(20), range(20))


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("/lake", "/lake"),
        ("file:/lake", "/lake"),
        ("FILE:///lake", "///lake"),
        ("hdfs:/lake", None),
        ("s3a://bucket/lake", None),
        ("a+b.c-1:/lake", None),
    ],
)
def test_a_place_is_a_path_or_a_uri(place: str, path: str | None) -> None:
    assert (absolute(place), local_path(place)) == (place, path)


@pytest.mark.parametrize("place", ["lake", "lake:2", "1:/lake", "./file:/lake"])
def test_all_other_places_are_paths_of_this_machine(place: str) -> None:
    assert (absolute(place), local_path(place)) == (str(Path(place).absolute()), place)


def test_a_format_whose_jars_are_missing_is_told_by_its_name(
    spark: Any, log_dir: Path, target: Path
) -> None:
    with pytest.raises(FormatMissingError, match="cannot write delta"):
        export(spark, log_dir, "orders", target, format="delta")


def test_a_table_needs_a_place_for_its_checkpoint() -> None:
    asked = Export(log_dir="/log", topic="orders", target="lake.orders", format="iceberg")

    with pytest.raises(JobOptionError, match="name one"):
        _ = asked.checkpoint_place
    assert (asked.is_table, asked.place) == (True, "lake.orders")


# --- the command ---------------------------------------------------------------------------------


def test_the_command_exports_and_says_how_far_it_came(
    spark: Any, log_dir: Path, target: Path
) -> None:
    arguments = ("export", target, "--log-dir", log_dir, "--topic", "orders", "--column", "offset",
                 "--column", "partition", "--partition-by", "partition")  # fmt: skip

    done = spark_command(*arguments)
    again = spark_command(*arguments, "-o", "json")

    assert done.exit_code == 0, done.stderr
    assert done.table[:3] == [
        ["topic", "partition", "from", "to"],
        ["orders", "0", "0", "20"],
        ["orders", "1", "0", "20"],
    ]
    assert f"40 rows in 1 batch written to {target}" in done.stdout
    assert (again.json["rows"], again.json["mode"]) == (0, "once")
    assert landed(spark, target) == offsets(range(20), range(20))


@pytest.mark.parametrize(
    "wrong",
    [
        ("--mode", "continuous", "--every", "zzz"),
        ("--mode", "often"),
        ("--partition-by", "hour(timestamp)"),
        ("--option", "startingOffsets=zzz"),
        ("--mode", "batch", "--option", "maxBytesPerTrigger=zzz"),
    ],
)
def test_what_has_to_be_typed_otherwise_ends_with_2(
    spark: Any, log_dir: Path, target: Path, wrong: tuple[str, ...]
) -> None:
    done = spark_command("export", target, "--log-dir", log_dir, "--topic", "orders", *wrong)

    assert (done.exit_code, done.stdout) == (2, ""), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_the_command_tells_what_is_wrong_in_one_sentence(
    spark: Any, log_dir: Path, target: Path
) -> None:
    done = spark_command("export", target, "--log-dir", log_dir, "--topic", "order")

    assert done.exit_code == 1
    assert "holds no topic 'order'" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
