"""Errors for offsets that a log has and its files here do not, where a plan asks for them.

What is missing between two segments only shows when the first of them is read: see ``holes``.
"""

from collections.abc import Iterable, Iterator

from stratalog.scans.errors import DataLostError, TieredError
from stratalog.scans.snapshot import DirectorySnapshot
from stratalog.storage.absences import TIERED, Absence
from stratalog.storage.layout import TopicPartition

_OFFSET_MAX = 2**63 - 1


def absence_errors(
    topic_partition: TopicPartition,
    absences: Iterable[Absence],
    start_offset: int,
    end_offset: int,
) -> Iterator[DataLostError]:
    """What a reader of ``[start_offset, end_offset)`` does not get."""
    for each in absences:
        first, last = max(start_offset, each.start_offset), min(end_offset, each.end_offset)
        if first < last:
            kind = TieredError if each.kind == TIERED else DataLostError
            yield kind(topic_partition, first, last, each.reason)


def absence_notes(snapshot: DirectorySnapshot) -> list[str]:
    """What whoever copies all files of a directory does not get."""
    return [
        str(error)
        for key, each in snapshot.partitions.items()
        for error in absence_errors(key, each.absences, 0, _OFFSET_MAX)
    ]
