"""A driver that streams numbers into a topic, and is killed: JVM, Python and all.

python killed_sink.py HOME LOG_DIR POINT     dies at a point of ``dying_sink``
python killed_sink.py HOME LOG_DIR SECONDS   dies so long after its query has begun
python killed_sink.py HOME LOG_DIR           writes all that there is, and ends
"""

import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import dying_sink
from pyspark import cloudpickle
from pyspark.sql import functions

from spark_fixture import running_spark, spark_warnings_aside

# Tasks and commits run in processes that cannot import what lies here.
cloudpickle.register_pickle_by_value(dying_sink)


def main(home: Path, log_dir: str, when: str = "") -> None:
    local = home / f"run-{os.getpid()}"
    local.mkdir()
    settings = {"spark_sql_execution_arrow_maxRecordsPerBatch": "30"}
    # A task may fail, and is tried again.
    with running_spark(local, "local[2,4]", **settings) as spark, spark_warnings_aside():
        spark.dataSource.register(dying_sink.DyingDataSource)
        rows = (
            spark.readStream.schema("id long")
            .option("maxFilesPerTrigger", 2)
            .parquet(str(home / "source"))
            .select(
                functions.col("id").cast("string").alias("key"),
                functions.concat(functions.lit("v"), functions.col("id")).alias("value"),
            )
        )
        query = (
            rows.writeStream.format("dying")
            .option("topic", "orders")
            .option("stratalog.home", str(home))
            .option("stratalog.group", str(os.getpgrp()))
            .option("stratalog.dies", "" if when.replace(".", "").isdigit() else when)
            .option("checkpointLocation", str(home / "checkpoint"))
            .trigger(availableNow=True)
            .start(log_dir)
        )
        if when.replace(".", "").isdigit():
            kill = (os.getpgrp(), signal.SIGKILL)
            threading.Timer(float(when), os.killpg, kill).start()
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
