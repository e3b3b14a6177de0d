"""How far behind a streaming query is, by partition."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stratalog.scans.selection import Assign
from stratalog.scans.snapshot import take_snapshot
from stratalog.spark.admission import offsets_from_json
from stratalog.storage.layout import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """``offset`` is the next that the query reads, ``end_offset`` where the log ends."""

    topic: str
    partition: int
    offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        """Offsets that are still to be read; not rows where a log has holes."""
        return max(0, self.end_offset - self.offset)


def lag(query: Any, path: str | None = None) -> list[PartitionLag]:
    """The lag of each partition that ``query`` reads from format ``stratalog``.

    By default as of the query's last progress report: its last batch against where the logs ended
    then. With ``path``, the log directory, the logs are looked at now. Empty until the query has
    reported for the first time.
    """
    report = query.lastProgress
    if report is None:
        return []
    return sorted(
        (
            each
            for source in _field(report, "sources")
            if "PythonMicroBatchStream" in str(_field(source, "description"))
            for each in _lag_of(source, path)
        ),
        key=lambda each: (each.topic, each.partition),
    )


def _lag_of(source: Any, path: str | None) -> Iterator[PartitionLag]:
    reached = offsets_from_json(_offset(source, "endOffset"))
    if path is None:
        ends = offsets_from_json(_offset(source, "latestOffset"))
    else:
        ends = _ends_now(path, reached.keys())
    for each, offset in reached.items():
        yield PartitionLag(each.topic, each.partition, offset, ends.get(each, offset))


def _ends_now(path: str, wanted: Any) -> dict[TopicPartition, int]:
    named: dict[str, tuple[int, ...]] = {}
    for each in sorted(wanted):
        named[each.topic] = (*named.get(each.topic, ()), each.partition)
    found = take_snapshot(path, Assign(named)).partitions
    return {each: partition.high_watermark for each, partition in found.items()}


def _offset(source: Any, name: str) -> dict[str, Any]:
    """A position in a report: JSON text, or ``"null"`` before there is one."""
    found = _field(source, name)
    return (json.loads(found) if isinstance(found, str) else found) or {}


def _field(value: Any, name: str) -> Any:
    """Of a report as the object it is or, over Spark Connect and before Spark 4, as a dict."""
    return value[name] if isinstance(value, dict) else getattr(value, name)
