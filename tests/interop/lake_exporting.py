"""Exports a topic with jars that only a new JVM can be given: run as a program, by a test.

    python lake_exporting.py JARS HOME FORMAT

``HOME`` holds ``log``, a log directory; what the export said is printed as one line of JSON.
"""

import json
import sys
from pathlib import Path

from stratalog.spark.jobs import export
from stratalog.spark.session import session

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def settings(jars: str) -> dict[str, str]:
    return {
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "1g",
        # It lives for a minute: compiled well is compiled too late.
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
    }


def main(jars: str, home: Path, format_name: str) -> None:
    configs, target, how = settings(jars), home / format_name, {"format": format_name}
    if format_name == "delta":
        configs |= DELTA
    if format_name == "avro":
        target, how["format"] = home / "decoded", "parquet"
        how["columns"] = ["offset", "timestamp", f"from_avro(value, '{AVRO}').id AS id"]
    spark = session("local[2]", configs=configs)
    result = export(spark, home / "log", "orders", target, **how)
    print(json.dumps(result.to_json()))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
