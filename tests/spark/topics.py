"""Topics for Spark to read, written to a directory with no broker."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import stratalog
from stratalog.records import Record

START_MS = 1_700_000_000_000


def record(number: int, *, timestamp_ms: int | None = None) -> Record:
    """Key ``k<number % 7>``, value ``v<number>``, a second after the one before it."""
    when = START_MS + number * 1000 if timestamp_ms is None else timestamp_ms
    return Record(
        f"k{number % 7}".encode(), f"v{number}".encode(), timestamp_ms=when, headers=[("n", b"h")]
    )


def write_topic(
    path: Path,
    topic: str,
    partitions: int | Mapping[int, Iterable[Record]],
    records_each: int = 5,
    *,
    batch_records: int = 100,
    codec: str = "none",
    config: Mapping[str, str] | None = None,
) -> None:
    """Append to a topic of the log directory ``path``, and make both if they are not there.

    ``partitions`` are so many with ``records_each`` records of ``record``, numbered through
    from partition to partition, or the very records of each.
    """
    if isinstance(partitions, int):
        partitions = {
            each: [record(each * records_each + number) for number in range(records_each)]
            for each in range(partitions)
        }
    with stratalog.open_directory(path, create=True, topics={topic: config or {}}) as logs:
        present = set(logs.partitions())
        for partition, records in partitions.items():
            is_there = (topic, partition) in present
            log = logs.log(topic, partition) if is_there else logs.create(topic, partition)
            for batch in _batches(list(records), batch_records):
                log.append(batch, codec=codec)


def _batches(records: Sequence[Record], size: int) -> Iterable[Sequence[Record]]:
    return (records[start : start + size] for start in range(0, len(records), size))
