"""A stream beside a running Apache Kafka, which cannot be asked and whose checkpoints lag."""

import uuid
from pathlib import Path

import pytest
from modelled import ORDERS
from pyspark.sql.streaming.datasource import ReadAllAvailable
from test_snapshot import batch, somebody_else, write_log

from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema
from stratalog.spark.streaming import StratalogStreamReader
from stratalog.storage.checkpoint import format_id, write_offsets, write_topic_id
from stratalog.storage.files import OsFileSystem
from stratalog.testing import ManualClock

OLD, NEW = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100)


def at(offset: int, topic_id: uuid.UUID) -> dict[str, dict[str, int]]:
    return {"orders": {"3": offset}, f"orders#{format_id(topic_id)}": {}}


@pytest.mark.parametrize("stale", [3, 7, 500])
def test_the_high_watermark_of_a_deleted_topic_is_not_that_of_the_one_made_anew(
    tmp_path: Path, stale: int
) -> None:
    directory = write_log(tmp_path, batch(0))
    files = OsFileSystem()
    write_topic_id(files, f"{directory}/partition.metadata", NEW)
    write_offsets(files, f"{tmp_path}/replication-offset-checkpoint", {ORDERS: stale})
    given = {"path": str(tmp_path), "subscribe": "orders", "failOnDataLoss": "false"}
    options = SourceOptions.parse(given, is_streaming=True)
    clock = ManualClock()
    with somebody_else(tmp_path):
        reader = StratalogStreamReader(
            options,
            columns_schema(("offset",)),
            clock=clock,
            sleep=lambda seconds: clock.advance(int(seconds * 1000)),
        )
        end = reader.latestOffset(at(7, OLD), ReadAllAvailable())
        tasks = reader.partitions(at(7, OLD), end)
        rows = [row for task in tasks for each in reader.read(task) for row in each.to_pylist()]

        assert end == at(3, NEW)
        assert [row["offset"] for row in rows] == [0, 1, 2]
        assert reader.latestOffset(end, ReadAllAvailable()) == end
