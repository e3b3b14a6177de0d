"""A driver on a cluster: writes to a topic while attempts of its tasks race, and die.

Arguments: master, archive, a directory to leave marks in, the log directory.

    racing   the first attempt of task 1 waits until Spark has begun a second one on another host;
             then both stage everything, and none of them ends before the other has staged
    dying    an attempt of task 1, the first to come, ends its process when it has staged some rows
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cluster_reader import CONFIGS, wait_for_executors
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter

from stratalog.spark.session import session
from stratalog.spark.shipping import package_archive, shipping_configs
from stratalog.spark.source import StratalogDataSource

ROWS = 4000
WAIT_SECONDS = 240
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
    "spark.task.maxFailures": "4",
}


class UnluckyDataSource(StratalogDataSource):
    @classmethod
    def name(cls):
        return "unlucky"

    def writer(self, schema, overwrite):
        fate, marks = self.options["stratalog.fate"], self.options["stratalog.marks"]
        return UnluckyWriter(super().writer(schema, overwrite), fate, Path(marks) / fate)


class UnluckyWriter(DataSourceArrowWriter):
    def __init__(self, inner, fate, marks):
        self.inner = inner
        self.fate = fate
        self.marks = marks

    def write(self, iterator):
        context = TaskContext.get()
        if context.partitionId() != 1:
            return self.inner.write(iterator)
        attempt = context.attemptNumber()
        self.mark("began", attempt)
        if self.fate == "dying" and self.is_first():
            return self.inner.write(self.some_of(iterator, attempt))
        if self.fate == "racing" and not attempt:
            self.wait_for("began", 1)
        told = self.inner.write(iterator)
        self.mark("staged", attempt)
        if self.fate == "racing":
            self.wait_for("staged", 1 - attempt)
        return told

    def is_first(self):
        try:
            (self.marks / "first").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def some_of(self, iterator, attempt):
        yield next(iterator)
        self.mark("died", attempt)
        os._exit(1)

    def mark(self, what, attempt):
        self.marks.mkdir(parents=True, exist_ok=True)
        (self.marks / f"{what}-{attempt}").write_text(os.environ["SPARK_LOCAL_IP"])

    def wait_for(self, what, attempt):
        """For another process: its mark is all there is to wait for."""
        until = time.monotonic() + WAIT_SECONDS
        while not (self.marks / f"{what}-{attempt}").exists():
            assert time.monotonic() < until, f"attempt {attempt} has not {what}"
            time.sleep(0.02)

    def commit(self, messages):
        self.inner.commit(messages)

    def abort(self, messages):
        self.inner.abort(messages)


def main(master: str, archive: str, marks: str, log_dir: str) -> None:
    configs = shipping_configs(package_archive(archive), {**CONFIGS, **SPECULATION})
    spark = session(master, app_name="cluster writer", configs=configs)
    wait_for_executors(spark, 2)
    spark.dataSource.register(UnluckyDataSource)
    rows = spark.range(0, ROWS, 1, 2).selectExpr("cast(id as string) as key", "'v' as value")
    for fate in ("racing", "dying"):
        (
            rows.write.format("unlucky")
            .option("topic", fate)
            .option("stratalog.fate", fate)
            .option("stratalog.marks", marks)
            .mode("append")
            .save(log_dir)
        )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
