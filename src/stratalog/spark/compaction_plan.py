"""How a compaction on Spark is done, chosen by what is known, and why: decisions, and no action.

    slices     all keys fit a map, and cores would be idle: tasks read the keys of some segments
               each, the driver puts together what they found, and the new segments are written
               by as many tasks as there are
    one map    all keys fit the map that a task may have: a task does the whole partition, as the
               local cleaner would
    ranges     they do not: for each range of the keys' hashes a task reads the keys and marks what
               is superseded; then the new segments are written, by as many tasks as there are
    shuffle    ranges would be so many that reading the log for each of them takes longer than
               sorting, or the offsets so many that a task has no room for their marks: hashes and
               offsets, 24 bytes a record, are shuffled and sorted by Spark

In none of them does a value leave the task that reads it, but to be written.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stratalog.storage.cleaning.key_estimate import Estimate, estimate_round
from stratalog.storage.cleaning.key_scan import dirty_slices
from stratalog.storage.cleaning.marks import span_of
from stratalog.storage.cleaning.outside_work import MAP_BYTES_MAX, groups_of
from stratalog.storage.cleaning.rewriting import RoundPlan
from stratalog.storage.cleaning.round_json import OutsideRound

SLOT_BYTES = 24
MAP_BYTES_MIN = 1 << 20
# Estimates are rough, and a map that is full costs a second look at the log.
SPARE = 1.15
# What one task gets done in a second, roughly, on a core of today.
SCAN_BYTES_PER_SECOND = 700e6
SCAN_RECORDS_PER_SECOND = 7e6
SORT_RECORDS_PER_SECOND = 0.6e6
# Below it, what a second stage costs is more than it saves.
APART_BYTES_MIN = 512 << 20
# Of so many keys the driver puts together what slices have found.
JOINED_KEYS_MAX = 4_000_000
PYTHON_SHARE = 0.6
# Of what a task has for marks and map, marks may take so much.
MARKS_SHARE_MAX = 0.5


class Strategy(StrEnum):
    ONE_MAP = "one map"
    SLICES = "slices"
    RANGES = "ranges"
    SHUFFLE = "shuffle"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRound:
    """How one partition is done, and the numbers behind it. ``map_bytes`` are those that its tasks
    have for their maps: what marks do not take."""

    round: OutsideRound
    strategy: Strategy
    ranges: int
    keys: int
    records: int
    map_keys: int
    map_bytes: int
    bytes_before: int
    groups: int
    reasons: tuple[str, ...]

    @property
    def whole_map_bytes(self) -> int:
        """Of a map for all keys, as far as a task may have it: pages that are touched cost time,
        and keys are touched all over a map. With room for three times what was estimated."""
        return min(self.map_bytes, max(3 * self.keys * SLOT_BYTES, MAP_BYTES_MIN))

    def to_json(self) -> dict[str, Any]:
        plan = self.round.plan
        return {
            "topic": plan.topic_partition.topic,
            "partition": plan.topic_partition.partition,
            "strategy": self.strategy.value,
            "ranges": self.ranges,
            "estimated_keys": self.keys,
            "map_keys": self.map_keys,
            "bytes": self.bytes_before,
            "segments": len(plan.sources),
            "output_segments": self.groups,
            "first_dirty_offset": plan.first_dirty_offset,
            "upper_bound_offset": plan.upper_bound_offset,
            "reasons": list(self.reasons),
        }


def map_bytes_of(executor_bytes: int, slots: int) -> int:
    """What one of ``slots`` tasks in an executor may use for its map: the rest is the JVM's and
    Python's own."""
    return max(int(executor_bytes * PYTHON_SHARE) // max(slots, 1), MAP_BYTES_MIN)


def plan_compact(
    rounds: Sequence[OutsideRound],
    *,
    map_bytes: int,
    slots: int,
    strategy: Strategy | None = None,
    estimate: Callable[[RoundPlan], Estimate] = estimate_round,
) -> list[ChosenRound]:
    """``map_bytes`` is what each of ``slots`` tasks at a time may use. A ``strategy`` that is
    given is taken, whatever the numbers say."""
    return [
        _choose(each, rounds, map_bytes=map_bytes, slots=slots, forced=strategy, estimate=estimate)
        for each in rounds
    ]


def _choose(
    round_: OutsideRound,
    rounds: Sequence[OutsideRound],
    *,
    map_bytes: int,
    slots: int,
    forced: Strategy | None,
    estimate: Callable[[RoundPlan], Estimate],
) -> ChosenRound:
    plan = round_.plan
    size_bytes = sum(each.size_bytes for each in plan.sources)
    offsets = plan.upper_bound_offset - plan.first_dirty_offset
    map_keys = _keys_in(map_bytes, round_)
    expected = Estimate(offsets, plan.upper_bound_offset - plan.sources[0].base_offset)
    if offsets > min(map_keys, JOINED_KEYS_MAX):
        expected = estimate(plan)
    keys = expected.keys
    reasons = [
        f"about {keys:,} keys in the dirty part, of {offsets:,} offsets; a map of "
        f"{min(map_bytes, MAP_BYTES_MAX) / 1e6:,.0f} MB holds {map_keys:,}"
    ]
    marks_bytes = 2 * span_of(plan).size_bytes
    beside_marks = max(map_bytes - marks_bytes, MAP_BYTES_MIN)
    if keys <= map_keys:
        chosen, ranges = Strategy.ONE_MAP, 1
        reasons.append("one map: all keys fit")
        slices = len(dirty_slices(plan, slots))
        is_large = size_bytes >= APART_BYTES_MIN and keys <= JOINED_KEYS_MAX
        is_room = keys * SPARE <= _keys_in(beside_marks, round_)
        if len(rounds) < slots and slices > 1 and is_large and is_room:
            chosen = Strategy.SLICES
            reasons.append(
                f"slices: {slices} tasks share the segments, since {slots} cores are there"
            )
    else:
        fewest = math.ceil(keys * SPARE / _keys_in(beside_marks, round_))
        chosen, ranges = _cheapest(size_bytes, expected.records, fewest, slots, reasons)
        if marks_bytes > map_bytes * MARKS_SHARE_MAX:
            chosen = Strategy.SHUFFLE
            reasons[-1] = (
                f"shuffle: the marks of ranges, two bits for each offset, are "
                f"{marks_bytes / 1e6:,.0f} MB and leave no room for a map"
            )
    if forced is not None:
        chosen = forced
        reasons.append(f"{forced.value}, as was asked for")
    return ChosenRound(
        round=round_,
        strategy=chosen,
        ranges=ranges,
        keys=keys,
        records=expected.records,
        map_keys=map_keys,
        map_bytes=map_bytes if chosen is Strategy.ONE_MAP else beside_marks,
        bytes_before=size_bytes,
        groups=len(groups_of(plan)),
        reasons=tuple(reasons),
    )


def _keys_in(map_bytes: int, round_: OutsideRound) -> int:
    return max(int(min(map_bytes, MAP_BYTES_MAX) / SLOT_BYTES * round_.load_factor), 1)


def _cheapest(
    size_bytes: int, records: int, fewest: int, slots: int, reasons: list[str]
) -> tuple[Strategy, int]:
    ranges = math.ceil(fewest / slots) * slots
    scan_s = max(size_bytes / SCAN_BYTES_PER_SECOND, records / SCAN_RECORDS_PER_SECOND)
    ranges_s = scan_s * math.ceil(ranges / slots)
    shuffle_s = scan_s / slots + records / (SORT_RECORDS_PER_SECOND * slots)
    told = f"reading the keys {ranges} times takes about {ranges_s:,.1f} s on {slots} cores, "
    told += f"sorting hashes and offsets {shuffle_s:,.1f} s"
    if ranges_s <= shuffle_s:
        reasons.append(f"ranges: {told}")
        return Strategy.RANGES, ranges
    reasons.append(f"shuffle: {told}")
    return Strategy.SHUFFLE, ranges
