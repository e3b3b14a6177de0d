"""Exactly once, whatever is killed: every row is in the topic, and none of them twice.

Rows are counted, and so are distinct keys. The source has its rows in files, two of them a batch,
one a task.
"""

import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import dying_sink
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from sink_topics import left_behind, make_topics, rows_in

from broker_fixture import running_broker
from spark_fixture import spark_warnings_aside

PROGRAM = Path(__file__).with_name("killed_sink.py")
DYING_BROKER = Path(__file__).with_name("dying_broker.py")
RUN_SECONDS = 300
ROWS_A_FILE = 100

pytestmark = pytest.mark.xdist_group("spark")


def make_source(home, batches):
    """Two files a batch, each for one task, of several record batches of Spark's."""
    source = home / "source"
    source.mkdir(exist_ok=True)
    for number in range(2 * batches):
        first = number * ROWS_A_FILE
        table = pa.table({"id": pa.array(range(first, first + ROWS_A_FILE), pa.int64())})
        pq.write_table(table, source / f"{number:05d}.parquet")
        os.utime(source / f"{number:05d}.parquet", (number, number))  # the order of batches
    return 2 * batches * ROWS_A_FILE


def run_driver(home, *told):
    """The exit code of a driver that writes the source to the topic."""
    with (
        (home / "stderr").open("ab") as errors,
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(home), str(home / "logs"), *map(str, told)],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        ) as driver,
    ):
        try:
            return driver.wait(RUN_SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)


def what_it_said(home):
    return (home / "stderr").read_text()[-3000:]


def assert_once(log_dir, rows):
    keys = [int(row["key"]) for row in rows_in(log_dir, "orders")]
    assert (len(keys), len(set(keys))) == (rows, rows)
    assert set(keys) == set(range(rows))


def test_rows_are_there_once_after_the_driver_was_killed_at_five_points(tmp_path):
    make_topics(tmp_path / "logs", {"orders": 2})
    rows = make_source(tmp_path, batches=4)

    for point in ("staged", "before", "after", "journaled", "applied"):
        code = run_driver(tmp_path, point)
        assert code == -signal.SIGKILL, what_it_said(tmp_path)
        assert (tmp_path / f"done-{point}").exists(), "it died of something else"
    assert run_driver(tmp_path, "task") == 0, what_it_said(tmp_path)

    assert (tmp_path / "task-died").exists()
    assert_once(tmp_path / "logs", rows)


@pytest.mark.deep
def test_rows_are_there_once_after_fifty_kills_at_random(tmp_path):
    choice = random.Random(50)
    make_topics(tmp_path / "logs", {"orders": 2})
    rows = make_source(tmp_path, batches=150)
    points = ["staged", "before", "settling", "journaled", "applied", "after"]

    for number in range(50):
        # Half of them anywhere, the others where it hurts.
        when = choice.choice(points) if number % 2 else f"{choice.uniform(0, 6):.3f}"
        for mark in [*tmp_path.glob("done-*"), *tmp_path.glob("staged-*")]:
            mark.unlink()
        code = run_driver(tmp_path, when)
        assert code in (-signal.SIGKILL, 0), what_it_said(tmp_path)
    assert run_driver(tmp_path) == 0, what_it_said(tmp_path)

    assert_once(tmp_path / "logs", rows)


# --- in one session: the driver stays, and others die ------------------------------------------


@pytest.fixture(scope="module")
def dying(spark):
    cloudpickle.register_pickle_by_value(dying_sink)
    with spark_warnings_aside():
        spark.dataSource.register(dying_sink.DyingDataSource)
    yield spark
    cloudpickle.unregister_pickle_by_value(dying_sink)


def run_query(spark, home, point=""):
    with spark_warnings_aside():
        start_query(spark, home, point).awaitTermination()


def start_query(spark, home, point=""):
    return (
        spark.readStream.schema("id long")
        .option("maxFilesPerTrigger", 2)
        .parquet(str(home / "source"))
        .selectExpr("cast(id as string) as key", "concat('v', id) as value")
        .writeStream.format("dying")
        .option("topic", "orders")
        .option("stratalog.home", str(home))
        .option("stratalog.dies", point)
        .option("checkpointLocation", str(home / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(home / "logs"))
    )


def test_an_abort_after_a_commit_takes_nothing_back(dying, tmp_path):
    make_topics(tmp_path / "logs", {"orders": 2})
    rows = make_source(tmp_path, batches=2)

    with pytest.raises(PySparkException, match="the answer was lost"):
        run_query(dying, tmp_path, "failing")

    assert (tmp_path / "aborted-2").exists()
    assert_once(tmp_path / "logs", rows // 2)
    run_query(dying, tmp_path)
    assert_once(tmp_path / "logs", rows)
    assert left_behind(tmp_path / "logs") == []


@pytest.mark.parametrize("point", ["settling", "journaled", "applied"])
def test_rows_are_there_once_after_the_process_that_commits_has_died(dying, tmp_path, point):
    make_topics(tmp_path / "logs", {"orders": 2})
    rows = make_source(tmp_path, batches=2)

    with pytest.raises(PySparkException):
        run_query(dying, tmp_path, point)

    assert (tmp_path / f"done-{point}").exists()
    run_query(dying, tmp_path)
    assert_once(tmp_path / "logs", rows)


@contextmanager
def dying_broker(log_dir, step):
    told = [sys.executable, str(DYING_BROKER), str(log_dir), step, "orders", "2"]
    with subprocess.Popen(told, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout.readline() == "ready\n"
            yield broker
        finally:
            broker.kill()


@pytest.mark.parametrize("step", ["settle", "apply", "complete"])
def test_rows_are_there_once_after_the_broker_was_killed_inside_the_commit(dying, tmp_path, step):
    log_dir = tmp_path / "logs"
    rows = make_source(tmp_path, batches=2)
    with dying_broker(log_dir, step) as broker:
        query = start_query(dying, tmp_path)
        while broker.poll() is None:
            with spark_warnings_aside():
                assert not query.awaitTermination(0.1), "it ended, and the broker still runs"
        assert broker.returncode == -signal.SIGKILL

    # The driver asks on, until somebody can say what became of it.
    with running_broker(log_dir), spark_warnings_aside():
        query.awaitTermination()
        assert_once(log_dir, rows)
    assert left_behind(log_dir) == []
