"""Offsets that a log has and that its files here do not: at its start, or at its end.

    tiered     [log start, first segment): Apache Kafka keeps them in remote storage
    missing    [end of the files, high watermark): they were committed, and are gone

They are told when a plan asks for them, exactly: a scan never returns fewer rows in silence.
What is missing between two segments only shows when the first of them is read (see ``holes``).
"""

from typing import NamedTuple

from stratalog.scans.errors import DataLostError, TieredError
from stratalog.scans.gaps import MISSING, TIERED
from stratalog.storage.layout import TopicPartition


class Absence(NamedTuple):
    """``gap`` is a name of ``gaps.REASONS``; ``reason`` is a sentence's end, for people."""

    start_offset: int
    end_offset: int
    gap: str
    reason: str

    def error(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int
    ) -> DataLostError | None:
        """What a reader of ``[start_offset, end_offset)`` does not get; None if it gets all."""
        first, last = max(start_offset, self.start_offset), min(end_offset, self.end_offset)
        if first >= last:
            return None
        kind = TieredError if self.gap == TIERED else DataLostError
        return kind(topic_partition, first, last, self.reason)


def missing_end(end_offset: int, *, recovery_point: int, high_watermark: int) -> list[Absence]:
    """What the checkpoints of a log without an owner promise beyond ``end_offset``."""
    known = max(recovery_point, high_watermark)
    if known <= end_offset:
        return []
    what = "the high watermark" if high_watermark >= recovery_point else "the recovery point"
    reason = (
        f"its files end at {end_offset}, and {what} was checkpointed at {known}: the last "
        "segment, or a part of it, is missing"
    )
    return [Absence(end_offset, known, MISSING, reason)]
