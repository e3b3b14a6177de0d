"""How much of what is there goes into the next micro-batch: pure decisions about offsets.

A stream's position is the next offset to read of each partition. As JSON, and so in Spark's
checkpoints, it is what Spark's Kafka source writes, topics and partitions always in order:

    {"orders": {"0": 42, "1": 17}}

Spark compares positions as text: the same position must always be the same text.

A topic that is deleted and made anew is another one. So a position tells the ids of its topics too,
as topics without a partition, which Spark's Kafka source and older releases pass over:

    {"orders": {"0": 42, "1": 17}, "orders#rL6vV5KoTnuRWs_1A9d0Zg": {}}
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stratalog.scans.errors import ScanOptionError
from stratalog.storage.layout import TopicPartition

Offsets = Mapping[TopicPartition, int]
# In no name of a topic.
_ID_MARK = "#"
OFFSET_MAX = (1 << 63) - 1

DEFAULT_MAX_TRIGGER_DELAY_MS = 15 * 60 * 1000  # of Spark's Kafka source


def offsets_to_json(
    offsets: Offsets, topic_ids: Mapping[str, str] | None = None
) -> dict[str, dict[str, int]]:
    """A position as JSON: topics by name, partitions by number (``"2"`` before ``"10"``), then
    the ids of those topics."""
    by_topic: dict[str, dict[str, int]] = {}
    for each in sorted(offsets):
        by_topic.setdefault(each.topic, {})[str(each.partition)] = offsets[each]
    known = topic_ids or {}
    ids: dict[str, dict[str, int]] = {
        f"{topic}{_ID_MARK}{known[topic]}": {} for topic in by_topic if topic in known
    }
    return {**by_topic, **ids}


def topic_ids_from_json(found: Mapping[str, Any]) -> dict[str, str]:
    """The ids that a position tells, by topic; none in one of Spark's Kafka source."""
    parts = (name.partition(_ID_MARK) for name in found)
    return {topic: topic_id for topic, mark, topic_id in parts if mark}


def offsets_from_json(found: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """A position that a checkpoint holds, of ours or of Spark's Kafka source."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partitions in found.items()
            for partition, offset in partitions.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise ScanOptionError(
            "checkpointLocation",
            repr(found),
            'is no position of this source, which looks like {"orders": {"0": 42}}',
        ) from error


@dataclass(frozen=True, slots=True)
class Admission:
    """The limits of one micro-batch; ``None`` is no limit.

    ``min_offsets`` waits for so many offsets, and no longer than ``max_trigger_delay_ms``.
    ``max_bytes`` is of the files: what is read, compressed as it lies there.
    """

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_trigger_delay_ms: int = DEFAULT_MAX_TRIGGER_DELAY_MS
    max_bytes: int | None = None

    def should_wait(self, new_offsets: int, waited_ms: int) -> bool:
        """Whether too little is there for a batch, and it may still wait for more."""
        if self.min_offsets is None or waited_ms >= self.max_trigger_delay_ms:
            return False
        return new_offsets < self.min_offsets


def count_new(start: Offsets, end: Offsets) -> int:
    return sum(max(0, offset - start.get(each, offset)) for each, offset in end.items())


def share(limit: int, sizes: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """``limit`` divided among partitions in proportion to what each has, and at least one each.

    The arithmetic is that of Spark's Kafka source, so that the same limit makes the same batches.
    Who has nothing gets nothing; nobody gets more than they have.
    """
    total = float(sum(size for size in sizes.values() if size > 0))
    shares: dict[TopicPartition, int] = {}
    for each, size in sizes.items():
        if size <= 0:
            shares[each] = 0
            continue
        part = limit * (size / total)
        shares[each] = min(size, math.ceil(part) if part < 1 else math.floor(part))
    return shares


def limit_offsets(limit: int, start: Offsets, end: Offsets) -> dict[TopicPartition, int]:
    """As much of [start, end) as ``limit`` offsets allow; a log that went back stays there."""
    shares = share(limit, {each: offset - start[each] for each, offset in end.items()})
    return {
        each: start[each] + shares[each] if offset > start[each] else offset
        for each, offset in end.items()
    }
