"""Where a read begins and ends: what the options say, and the offsets that it comes to.

The rules are those of Spark's Kafka source: a time for all partitions goes before a time for each,
and that before offsets; -1 stands for the latest offset and -2 for the earliest; whoever names
partitions names all of them. Offsets are resolved against one snapshot, once.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from stratalog.scans.absences import absence_errors
from stratalog.scans.errors import DataLostError, ScanOptionError
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot
from stratalog.scans.times import offset_for_timestamp
from stratalog.storage.layout import TopicPartition

LATEST_OFFSET = -1
EARLIEST_OFFSET = -2
_LONG_MAX = 2**63 - 1
_PARTITION_MAX = 2**31 - 1

PartitionOffsets = dict[TopicPartition, int]
PartitionRanges = dict[TopicPartition, tuple[int, int]]


class NoMatch(Enum):
    """What becomes of a start whose time is after every record."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Earliest:
    """From the first record that each partition still has."""


@dataclass(frozen=True, slots=True)
class Latest:
    """Up to, or from, the end as it is when the snapshot is taken."""


@dataclass(frozen=True, slots=True)
class SpecificOffsets:
    """An offset for each partition, or one of the two that stand for an end."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class SpecificTimestamps:
    """For each partition, the first record that is not older than its time."""

    option: str
    timestamps_ms: Mapping[TopicPartition, int]
    no_match: NoMatch


@dataclass(frozen=True, slots=True)
class GlobalTimestamp:
    """In every partition, the first record that is not older than this time."""

    option: str
    timestamp_ms: int
    no_match: NoMatch


OffsetLimit = Earliest | Latest | SpecificOffsets | SpecificTimestamps | GlobalTimestamp


# --- what the options say --------------------------------------------------------------------


def parse_limit(
    options: Mapping[str, str], side: str, *, default: OffsetLimit, no_match: NoMatch
) -> OffsetLimit:
    """``side`` is ``starting`` or ``ending``; ``options`` have lower-case names."""
    if (text := options.get(f"{side}timestamp")) is not None:
        option = f"{side}Timestamp"
        return GlobalTimestamp(option, _parse_timestamp(option, text), no_match)
    if (text := options.get(f"{side}offsetsbytimestamp")) is not None:
        option = f"{side}OffsetsByTimestamp"
        found = parse_partition_numbers(option, text)
        for timestamp_ms in found.values():
            if timestamp_ms < 0:
                raise ScanOptionError(option, text, "a time is a number of milliseconds from 0 on")
        return SpecificTimestamps(option, found, no_match)
    if (text := options.get(f"{side}offsets")) is None:
        return default
    return _parse_offsets(f"{side}Offsets", text)


def _parse_timestamp(option: str, text: str) -> int:
    try:
        timestamp_ms = int(text.strip())
    except ValueError:
        timestamp_ms = -1
    if not 0 <= timestamp_ms <= _LONG_MAX:
        raise ScanOptionError(
            option, text, "expected one number, milliseconds since 1970, such as 1735689600000"
        )
    return timestamp_ms


def _parse_offsets(option: str, text: str) -> OffsetLimit:
    word = text.strip().lower()
    if word == "latest":
        return Latest()
    if word == "earliest":
        return Earliest()
    offsets = parse_partition_numbers(option, text)
    for topic_partition, offset in offsets.items():
        if offset < EARLIEST_OFFSET:
            raise ScanOptionError(
                option,
                text,
                f"the offset of {topic_partition} is negative; -1 is the latest, -2 the earliest",
            )
    return SpecificOffsets(option, offsets)


def parse_partition_numbers(option: str, text: str) -> PartitionOffsets:
    """``{"orders": {"0": 23}}``, with every length and type of the JSON checked."""
    example = 'expected JSON such as {"orders": {"0": 23, "1": -1}}'
    try:
        # Python's own integers have no end; Kafka's do, and are checked one by one below.
        found = json.loads(text)
        numbers = {
            TopicPartition(topic, _partition(partition)): _long(number)
            for topic, partitions in found.items()
            for partition, number in partitions.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ScanOptionError(option, text, example) from None
    return numbers


def _partition(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _PARTITION_MAX):
        raise ValueError(text)
    return int(text)


def _long(number: object) -> int:
    # JSON's true is an int in Python, and no offset.
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) > _LONG_MAX:
        raise ValueError(number)
    return number


def check_limits(starting: OffsetLimit, ending: OffsetLimit) -> None:
    """What can be wrong with a batch's two ends before any file is looked at."""
    if isinstance(starting, Latest):
        raise ScanOptionError(
            "startingOffsets", "latest", "a batch query cannot begin at the latest offset"
        )
    if isinstance(ending, Earliest):
        raise ScanOptionError(
            "endingOffsets", "earliest", "a batch query cannot end at the earliest offset"
        )
    _check_sentinel(starting, LATEST_OFFSET, "a batch query cannot begin at the latest offset (-1)")
    _check_sentinel(ending, EARLIEST_OFFSET, "a batch query cannot end at the earliest offset (-2)")
    if isinstance(starting, SpecificOffsets) and isinstance(ending, SpecificOffsets):
        _check_pair(ending.option, starting.offsets, ending.offsets)
    if isinstance(starting, SpecificTimestamps) and isinstance(ending, SpecificTimestamps):
        _check_pair(ending.option, starting.timestamps_ms, ending.timestamps_ms)


def _check_sentinel(limit: OffsetLimit, sentinel: int, rule: str) -> None:
    if isinstance(limit, SpecificOffsets):
        wrong = [str(each) for each, offset in limit.offsets.items() if offset == sentinel]
        if wrong:
            raise ScanOptionError(limit.option, write_offsets(limit.offsets), f"{wrong[0]}: {rule}")


def _check_pair(
    option: str, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> None:
    if starts.keys() != ends.keys():
        raise ScanOptionError(
            option,
            write_offsets(ends),
            f"the start is given for {_names(starts)} and the end for {_names(ends)}; "
            f"both must name the same partitions",
        )
    for topic_partition, start in starts.items():
        if 0 <= ends[topic_partition] < start:
            raise ScanOptionError(
                option,
                write_offsets(ends),
                f"{topic_partition} would begin at {start}, after its end {ends[topic_partition]}",
            )


def write_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """``{"topic":{"0":23}}``, topics and partitions in order: the text is compared as text."""
    told: dict[str, dict[str, int]] = {}
    for each in sorted(offsets):
        told.setdefault(each.topic, {})[str(each.partition)] = offsets[each]
    return json.dumps(told, separators=(",", ":"))


def _names(partitions: Iterable[TopicPartition]) -> str:
    names = [str(each) for each in sorted(partitions)]
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return (", ".join(names[:8]) or "no partition") + more


# --- the offsets that it comes to ------------------------------------------------------------


def resolve_starts(
    limit: OffsetLimit, snapshot: DirectorySnapshot, isolation: ScanIsolation
) -> PartitionOffsets:
    return _resolve(limit, snapshot, isolation, is_start=True)


def resolve_ends(
    limit: OffsetLimit, snapshot: DirectorySnapshot, isolation: ScanIsolation
) -> PartitionOffsets:
    return _resolve(limit, snapshot, isolation, is_start=False)


def _resolve(
    limit: OffsetLimit, snapshot: DirectorySnapshot, isolation: ScanIsolation, *, is_start: bool
) -> PartitionOffsets:
    partitions = snapshot.partitions
    if isinstance(limit, SpecificOffsets):
        _check_named(limit.option, limit.offsets, partitions)
        return {
            each: _offset(limit.offsets[each], partition, isolation, is_start)
            for each, partition in partitions.items()
        }
    if isinstance(limit, SpecificTimestamps):
        _check_named(limit.option, limit.timestamps_ms, partitions)
        return {
            each: _offset_at(limit, limit.timestamps_ms[each], partition, isolation, is_start)
            for each, partition in partitions.items()
        }
    if isinstance(limit, GlobalTimestamp):
        return {
            each: _offset_at(limit, limit.timestamp_ms, partition, isolation, is_start)
            for each, partition in partitions.items()
        }
    sentinel = EARLIEST_OFFSET if isinstance(limit, Earliest) else LATEST_OFFSET
    return {
        each: _offset(sentinel, partition, isolation, is_start)
        for each, partition in partitions.items()
    }


def _check_named(
    option: str,
    named: Mapping[TopicPartition, int],
    there: Mapping[TopicPartition, PartitionSnapshot],
) -> None:
    if named.keys() != there.keys():
        missing, unknown = there.keys() - named.keys(), named.keys() - there.keys()
        raise ScanOptionError(
            option,
            write_offsets(named),
            f"it must name every partition that is read and no other; it lacks {_names(missing)} "
            f"and names {_names(unknown)} too many. Use -1 for the latest offset, -2 for the "
            f"earliest",
        )


def _offset(
    offset: int, partition: PartitionSnapshot, isolation: ScanIsolation, is_start: bool
) -> int:
    """What is named by a word is the log's, so that what its files lack is told as lost."""
    if offset == LATEST_OFFSET and is_start:
        return partition.end_offset(isolation)
    if offset == LATEST_OFFSET:
        return partition.known_end_offset(isolation)
    return partition.first_offset if offset == EARLIEST_OFFSET else offset


def _offset_at(
    limit: SpecificTimestamps | GlobalTimestamp,
    timestamp_ms: int,
    partition: PartitionSnapshot,
    isolation: ScanIsolation,
    is_start: bool,
) -> int:
    end_offset = partition.end_offset(isolation)
    found = offset_for_timestamp(partition, timestamp_ms)
    if found is not None and found < end_offset:
        return found
    if is_start and limit.no_match is NoMatch.ERROR:
        raise ScanOptionError(
            limit.option,
            str(timestamp_ms),
            f"{partition.topic_partition} has no record of that time or after it; choose an "
            f"earlier one, or set startingOffsetsByTimestampStrategy to latest",
        )
    return end_offset


def resolve_ranges(
    starting: OffsetLimit,
    ending: OffsetLimit,
    snapshot: DirectorySnapshot,
    isolation: ScanIsolation,
) -> PartitionRanges:
    """What a batch reads of each partition, [start, end), before it is seen what is still there."""
    starts = resolve_starts(starting, snapshot, isolation)
    ends = resolve_ends(ending, snapshot, isolation)
    for each, start in starts.items():
        if start > ends[each]:
            raise ScanOptionError(
                "startingOffsets",
                write_offsets({each: start}),
                f"{each} would begin at {start}, after its end {ends[each]}",
            )
    return {each: (start, ends[each]) for each, start in starts.items()}


def lost_ranges(
    ranges: PartitionRanges,
    snapshot: DirectorySnapshot,
    isolation: ScanIsolation,
    *,
    only_behind: bool = False,
) -> list[DataLostError]:
    """What was asked for by number and is not there: below a log's start, or beyond its end."""
    lost: list[DataLostError] = []
    for each, (start, end) in ranges.items():
        partition = snapshot.partitions[each]
        log_start, log_end = partition.first_offset, partition.known_end_offset(isolation)
        if start < min(log_start, end) and not only_behind:
            lost.append(
                DataLostError(each, start, min(log_start, end), f"the log begins at {log_start}")
            )
        if not only_behind:
            lost += absence_errors(each, partition.absences, start, end)
        if max(start, log_end) < end:
            lost.append(DataLostError(each, max(start, log_end), end, f"the log ends at {log_end}"))
    return lost


def clamp_ranges(
    ranges: PartitionRanges,
    snapshot: DirectorySnapshot,
    isolation: ScanIsolation,
    *,
    only_behind: bool = False,
) -> PartitionRanges:
    """The part of each range that is there."""
    clamped = {}
    for each, (start, end) in ranges.items():
        partition = snapshot.partitions[each]
        if only_behind:
            clamped[each] = (start, max(start, min(end, partition.known_end_offset(isolation))))
            continue
        first = max(start, partition.start_offset)
        clamped[each] = (first, max(first, min(end, partition.end_offset(isolation))))
    return clamped
