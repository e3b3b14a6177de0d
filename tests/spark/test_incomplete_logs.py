"""Batches and streams of logs whose files are not whole: a loss, or what is left and a warning."""

import logging
from pathlib import Path
from typing import Any

import pytest
from test_stream_reader import Stream, open_stream
from topics import record

import stratalog
from stratalog.scans.errors import DataLostError, TieredError
from stratalog.scans.snapshot import take_snapshot
from stratalog.spark.batch import StratalogReader
from stratalog.spark.options import SourceOptions
from stratalog.spark.schema import columns_schema
from stratalog.storage.checkpoint import write_offsets
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.rolling import RollCause, RollReason

KEY = TopicPartition("orders", 0)
LOST = {
    "tiered": (0, list(range(3, 9)), TieredError),
    "an index is left": (3, [*range(3), *range(6, 9)], DataLostError),
    "the end": (6, list(range(6)), DataLostError),
}


@pytest.fixture(params=LOST)
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[int], Any]:
    """Three segments of three records, one of which is not there."""
    with stratalog.open_directory(tmp_path, create=True) as made:
        log = made.create("orders")
        for number in range(9):
            if number in (3, 6):
                log._log.roll(RollReason(RollCause.REQUESTED, "a test"))
            log.append([record(number)])
    base_offset, left, error = LOST[request.param]
    (tmp_path / "orders-0" / f"{base_offset:020d}.log").unlink()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    if request.param == "tiered":
        path = str(tmp_path / "log-start-offset-checkpoint")
        write_offsets(OsFileSystem(), path, {KEY: 0})
    return tmp_path, left, error


def read_batch(path: Path, **options: str) -> list[int]:
    told = SourceOptions.parse(
        {"path": str(path), "subscribe": "orders", **options}, is_streaming=False
    )
    snapshot = take_snapshot(told.path, told.selection, isolation=told.isolation)
    reader = StratalogReader(told, columns_schema(("offset",)), snapshot)
    return [
        row["offset"]
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_a_batch_loses_them_or_reads_what_is_left_and_warns(
    logs: tuple[Path, list[int], Any], caplog: pytest.LogCaptureFixture
) -> None:
    path, left, error = logs

    with pytest.raises(error):
        read_batch(path)
    with caplog.at_level(logging.WARNING):
        assert read_batch(path, failOnDataLoss="false") == left
    assert len([each for each in caplog.messages if "orders-0 has" in each]) == 1


def test_a_stream_loses_them_or_reads_what_is_left_and_warns(
    logs: tuple[Path, list[int], Any], caplog: pytest.LogCaptureFixture
) -> None:
    path, left, error = logs

    with pytest.raises(error):
        Stream(open_stream(path, startingOffsets="earliest")).next()
    stream = Stream(open_stream(path, startingOffsets="earliest", failOnDataLoss="false"))
    with caplog.at_level(logging.WARNING):
        assert [offset for _, offset in stream.next()] == left
    assert stream.next() is None
    assert len([each for each in caplog.messages if "orders-0 has" in each]) == 1
