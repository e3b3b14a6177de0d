"""Exports a topic with jars that only a new JVM can be given: run as a program, by a test.

    python lake_exporting.py JARS HOME FORMAT MODE

``HOME`` holds ``log``, a log directory; what the export said is printed as one line of JSON.
"""

import json
import sys
from pathlib import Path

from stratalog.spark.jobs import export
from stratalog.spark.session import session

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'


def settings(jars: str, home: Path, format_name: str) -> dict[str, str]:
    common = {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }
    if format_name == "delta":
        return common | {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    return common | {
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(home / "warehouse"),
    }


def main(jars: str, home: Path, format_name: str, mode: str) -> None:
    spark = session("local[2]", configs=settings(jars, home, format_name))
    how = {"format": format_name, "mode": mode, "checkpoint": home / "checkpoint"}
    target: str | Path = "lake.db.orders" if format_name == "iceberg" else home / format_name
    if format_name == "avro":
        target, how["format"] = home / "decoded", "parquet"
        how["columns"] = ["offset", "timestamp", f"from_avro(value, '{AVRO}').id AS id"]
    result = export(spark, home / "log", "orders", target, **how).to_json()
    if format_name == "iceberg":
        rows = spark.table("lake.db.orders").select("partition", "offset").collect()
        result["landed"] = sorted(map(list, rows))
    print(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
