"""A program that streams a topic into Parquet files and kills itself, JVM and all.

python killed_stream.py HOME LOG_DIR BATCHES SECONDS   dies so long after so many more batches
python killed_stream.py HOME LOG_DIR                   reads to the end and prints the rows
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from spark_fixture import running_spark, spark_warnings_aside


def main(home: Path, log_dir: str, batches: int | None = None, seconds: float = 0) -> None:
    local = home / f"run-{os.getpid()}"
    local.mkdir()
    with running_spark(local) as spark, spark_warnings_aside():
        written = (
            spark.readStream.format("stratalog")
            .option("subscribe", "orders")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "1000000" if batches is None else "60")
            .load(log_dir)
            .select("partition", "offset")
            .writeStream.format("parquet")
            .option("path", str(home / "rows"))
            .option("checkpointLocation", str(home / "checkpoint"))
        )
        if batches is None:
            written.trigger(availableNow=True).start().awaitTermination()
            rows = spark.read.parquet(str(home / "rows")).collect()
            print(json.dumps(sorted((row.partition, row.offset) for row in rows)))
            return
        enough = finished(home) + batches
        query = written.trigger(processingTime="0 seconds").start()
        while finished(home) < enough:
            assert not query.awaitTermination(0.05), query.exception()
        threading.Timer(seconds, os.killpg, (os.getpgrp(), signal.SIGKILL)).start()
        query.awaitTermination()


def finished(home: Path) -> int:
    """Batches that are finished; Spark keeps a hundred of them."""
    return len(list((home / "checkpoint" / "commits").glob("[0-9]*")))


if __name__ == "__main__":
    more = sys.argv[3:]
    main(Path(sys.argv[1]), sys.argv[2], *([int(more[0]), float(more[1])] if more else []))
