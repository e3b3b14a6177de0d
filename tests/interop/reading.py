"""Reading our own logs to their end, into the shape in which a Kafka client sees records."""

from collections.abc import Mapping
from typing import Any

from consuming import Consumed

from stratalog.records.columns import decode_columns
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation

COLUMNS = ("offset", "timestamp_type", "timestamp_ms", "key", "value", "headers", "is_control")
READ_BYTES = 10_000


def read_all(log: Log, isolation: Isolation = Isolation.LOG_END) -> list[Consumed]:
    """Every record that a client would see, through the reads that its fetches would make."""
    records: list[Consumed] = []
    offset = log.log_start_offset
    while True:
        fetched = log.read(offset, max_bytes=READ_BYTES, isolation=isolation)
        if fetched.records is None or not fetched.records.size_bytes:
            return records
        data = fetched.whole_batches()
        aborted = [
            (each.producer_id, each.first_offset, each.last_offset)
            for each in fetched.aborted or ()
        ]
        kept = decode_columns(data.content, columns=COLUMNS, start_offset=offset, aborted=aborted)
        records += map(_consumed, kept.to_pylist())
        offset = (
            data.next_offset
        )  # of the last batch, whose last records may have been cleaned away


def _consumed(row: Mapping[str, Any]) -> Consumed:
    return Consumed(
        row["offset"],
        row["timestamp_type"] + 1,
        row["timestamp_ms"],
        row["key"],
        row["value"],
        tuple((header["key"], header["value"]) for header in row["headers"]),
    )
