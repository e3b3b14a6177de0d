"""What a stream can no longer read although it has not read it yet: exact ranges, by comparison.

    retention overtook it      the log starts behind the position        [position, log start)
    the log went back          it ends before the position: truncated,   [end, position)
                               or the topic was made anew
    the partition is gone      [position, where it was last seen to end)
    a partition began late     new to the stream, and not from 0         [0, log start)

    its files lack some        in remote storage, or missing             those, from the position on

The first four cases are those in which Spark's Kafka source reports a loss.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from stratalog.scans.absences import absence_errors
from stratalog.scans.errors import DataLostError, ScanError
from stratalog.spark.admission import Offsets
from stratalog.storage.absences import Absence
from stratalog.storage.layout import TopicPartition

_WHAT_TO_DO = (
    'set failOnDataLoss to "false" to go on with what is left, or start anew with another '
    "checkpointLocation"
)
_OVERTAKEN = "retention (or a delete request) took them before they were read"
_OFFSET_MAX = 2**63 - 1
_REMADE = "the topic was made anew, and what they were of is gone"
_BEGAN_LATE = "the partition is new to this query and does not begin at 0"
_WENT_BACK = "the log now ends before them: it was truncated, or the topic was made anew"
_GONE = "the partition is gone"


class PartitionGoneError(ScanError):
    """A partition that a stream reads is no longer there; nothing unread is known to be lost."""

    def __init__(self, topic_partition: TopicPartition, offset: int) -> None:
        super().__init__(topic_partition, offset)
        self.topic_partition = topic_partition
        self.offset = offset

    def __str__(self) -> str:
        return (
            f"{self.topic_partition} is gone; it had been read up to offset {self.offset}, and "
            f"whatever came after that is lost: {_WHAT_TO_DO}"
        )


class TopicRemadeError(ScanError):
    """A stream's position is of another topic than the one that now has its name."""

    def __init__(self, topic: str, known_id: str, found_id: str) -> None:
        super().__init__(topic, known_id, found_id)
        self.topic = topic
        self.known_id = known_id
        self.found_id = found_id

    def __str__(self) -> str:
        return (
            f"topic {self.topic!r} was deleted and made anew: the query has read the one with the "
            f"id {self.known_id}, and the directory holds one with the id {self.found_id}; "
            'set failOnDataLoss to "false" to read that one from its beginning, or start anew '
            "with another checkpointLocation"
        )


@dataclass(frozen=True, slots=True)
class Span:
    """A partition as the stream sees it: [start_offset, end_offset).

    ``is_exact`` is false while all that is known of the end is that it is no lower: the owner
    does not answer, and what it wrote down last may be old. ``absences`` are offsets of the log
    outside the span.
    """

    start_offset: int
    end_offset: int
    is_exact: bool = True
    absences: tuple[Absence, ...] = ()

    @property
    def first_offset(self) -> int:
        """Where the log begins, here or elsewhere."""
        return min([self.start_offset, *(each.start_offset for each in self.absences)])

    @property
    def known_end_offset(self) -> int:
        return max([self.end_offset, *(each.end_offset for each in self.absences)])


Spans = Mapping[TopicPartition, Span]


def find_losses(position: Offsets, spans: Spans, last_ends: Offsets) -> Iterator[ScanError]:
    """Losses of a stream at ``position`` that once saw its logs end at ``last_ends``."""
    for each in sorted(position.keys() - spans.keys()):
        end = last_ends.get(each, 0)
        if end > position[each]:
            yield _lost(each, position[each], end, _GONE)
        else:
            yield PartitionGoneError(each, position[each])
    for each in sorted(spans):
        span = spans[each]
        reached = position.get(each, 0)
        if reached < span.first_offset:
            reason = _OVERTAKEN if each in position else _BEGAN_LATE
            yield _lost(each, reached, span.first_offset, reason)
        yield from _absent(each, span, reached, _OFFSET_MAX)
        end = span.known_end_offset
        if span.is_exact and end < reached:
            yield _lost(each, end, reached, _WENT_BACK)


def find_losses_of_batch(
    start: Offsets, end: Offsets, spans: Spans, *, remade: Collection[str] = ()
) -> Iterator[ScanError]:
    """Losses of a batch [start, end) that is written down and about to be read; ``remade`` are
    topics that were made anew since it was."""
    for each in sorted(end):
        first, last = start.get(each, 0), end[each]
        if first >= last:
            continue
        if each.topic in remade:
            yield _lost(each, first, last, _REMADE)
            continue
        span = spans.get(each)
        if span is None:
            yield _lost(each, first, last, _GONE)
            continue
        if first < span.first_offset:
            reason = _OVERTAKEN if each in start else _BEGAN_LATE
            yield _lost(each, first, min(last, span.first_offset), reason)
        yield from _absent(each, span, first, last)
        end_offset = max(first, span.known_end_offset)
        if span.is_exact and end_offset < last:
            yield _lost(each, end_offset, last, _WENT_BACK)


def _absent(
    each: TopicPartition, span: Span, start_offset: int, end_offset: int
) -> Iterator[ScanError]:
    for lost in absence_errors(each, span.absences, start_offset, end_offset):
        reason = f"{lost.reason}; {_WHAT_TO_DO}"
        yield type(lost)(each, lost.start_offset, lost.end_offset, reason)


def _lost(each: TopicPartition, start_offset: int, end_offset: int, reason: str) -> DataLostError:
    return DataLostError(each, start_offset, end_offset, f"{reason}; {_WHAT_TO_DO}")
