"""What a Spark Connect client does with a topic; prints what it saw as one JSON object."""

import contextlib
import io
import json
import sys
from pathlib import Path

import stratalog.spark
from stratalog.cli.app import run
from stratalog.spark.session import session


def main(server: str, log_dir: str) -> None:
    spark = session(server)
    frame = spark.read.format("stratalog").option("subscribe", "orders").load(log_dir)
    frame.createOrReplaceTempView("orders")
    spark.sql(
        "CREATE TEMPORARY VIEW by_sql USING stratalog "
        f"OPTIONS (subscribe 'orders', path '{log_dir}')"
    )
    found = stratalog.spark.scan(
        spark, log_dir, topic="orders", where="partition = 1 AND offset >= 3", columns=["offset"]
    )
    seen = {
        "client": type(spark).__module__,
        "columns": frame.columns,
        "counted": frame.count(),
        "two filters": [
            frame.where("partition = 1").count(),
            frame.where("partition IN (0, 2)").count(),
            frame.count(),
        ],
        "temp view": spark.sql("SELECT count(*) AS n FROM orders WHERE offset < 2").first().n,
        "view by sql": spark.sql("SELECT max(offset) AS n FROM by_sql").first().n,
        "scan": sorted(row.offset for row in found.collect()),
        "scan columns": found.columns,
        "failure": failure(spark, log_dir),
        "jobs": jobs(spark, log_dir, f"{sys.argv[3]}.lake"),
    }
    spark.stop()
    seen["command"] = command(server, log_dir)
    Path(sys.argv[3]).write_text(json.dumps(seen))


def jobs(spark, log_dir: str, target: str) -> list[object]:  # type: ignore[no-untyped-def]
    """Jobs need no JVM beside them, nor does their progress."""
    from stratalog.spark.jobs import export, stats, verify

    heard: list[object] = []
    return [
        verify(spark, log_dir, progress=heard.append).verdict,
        stats(spark, log_dir, "orders", progress=heard.append).topics[0].records,
        export(spark, log_dir, "orders", f"{target}/once", progress=heard.append).rows_written,
        export(spark, log_dir, "orders", f"{target}/batch", mode="batch").rows_written,
    ]


def command(server: str, log_dir: str) -> str:
    """What the command line prints of a query that the server runs."""
    printed = io.StringIO()
    query = "SELECT count(*) AS records FROM orders"
    with contextlib.redirect_stdout(printed):
        run(["spark", "sql", query, "--log-dir", log_dir, "--master", server, "-o", "json"])
    return printed.getvalue()


def failure(spark, log_dir: str) -> str:  # type: ignore[no-untyped-def]
    from pyspark.errors import PySparkException

    try:
        spark.read.format("stratalog").option("subscribe", "nothing").load(log_dir).count()
    except PySparkException as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:3])
