"""A plan in words and numbers: what is read, what is not, and why."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stratalog.errors import StratalogError
from stratalog.scans.partition_notes import absent_partitions
from stratalog.scans.planning import PartitionPlan, ScanPlan
from stratalog.scans.pruning import Skip
from stratalog.storage.files import OsFileSystem


@dataclass(frozen=True, slots=True)
class Skipped:
    """Bytes that are not read for one reason; ``segments`` of which nothing is."""

    reason: Skip
    segments: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ScanExplanation:
    """``upper_time_bound`` says whether one could prune, and why not."""

    partitions: int
    partitions_kept: int
    segments: int
    segments_kept: int
    bytes_total: int
    bytes_kept: int
    tasks: int
    task_bytes_max: int
    skipped: tuple[Skipped, ...]
    upper_time_bound: str
    notes: tuple[str, ...]
    rows: tuple[PartitionPlan, ...]

    def lines(self) -> list[str]:
        """For people."""
        share = 100 * self.bytes_kept / self.bytes_total if self.bytes_total else 0
        found = [
            f"{self.bytes_kept:,} of {self.bytes_total:,} bytes are read ({share:.2f} %), of "
            f"{self.segments_kept:,} of {self.segments:,} segments in {self.partitions_kept:,} of "
            f"{self.partitions:,} partitions",
            f"tasks: {self.tasks:,}, the largest of {self.task_bytes_max:,} bytes",
        ]
        found += [
            f"not read: {each.size_bytes:,} bytes, {_segments(each.segments)} whole: "
            f"{each.reason.value}"
            for each in self.skipped
        ]
        found.append(f"upper time bound: {self.upper_time_bound}")
        return [*found, *self.notes]

    def to_json(self) -> dict[str, Any]:
        return {
            "partitions": self.partitions,
            "partitions_kept": self.partitions_kept,
            "segments": self.segments,
            "segments_kept": self.segments_kept,
            "bytes": self.bytes_total,
            "bytes_kept": self.bytes_kept,
            "tasks": self.tasks,
            "task_bytes_max": self.task_bytes_max,
            "skipped": [
                {
                    "reason": each.reason.name.lower(),
                    "explanation": each.reason.value,
                    "segments": each.segments,
                    "bytes": each.size_bytes,
                }
                for each in self.skipped
            ],
            "upper_time_bound": self.upper_time_bound,
            "notes": list(self.notes),
            "details": [_partition_json(each) for each in self.rows],
        }


def _partition_json(plan: PartitionPlan) -> dict[str, Any]:
    return {
        "topic": plan.topic_partition.topic,
        "partition": plan.topic_partition.partition,
        "start_offset": plan.start_offset,
        "end_offset": plan.end_offset,
        "segments": plan.segments,
        "segments_kept": plan.segments_kept,
        "bytes": plan.bytes_total,
        "bytes_kept": plan.bytes_kept,
        "skipped_bytes": {
            reason.name.lower(): size for reason, size in plan.tally.skipped_bytes.items()
        },
    }


def explain_plan(plan: ScanPlan) -> ScanExplanation:
    rows = plan.partitions
    skipped = []
    for reason in Skip:
        size = sum(each.tally.skipped_bytes.get(reason, 0) for each in rows)
        segments = sum(each.tally.skipped_segments.get(reason, 0) for each in rows)
        if size or segments:
            skipped.append(Skipped(reason, segments, size))
    return ScanExplanation(
        len(rows),
        sum(1 for each in rows if each.segments_kept),
        sum(each.segments for each in rows),
        sum(each.segments_kept for each in rows),
        plan.bytes_total,
        plan.bytes_kept,
        len(plan.tasks),
        max((task.size_bytes for task in plan.tasks), default=0),
        tuple(skipped),
        _upper_time_bound(plan),
        (*plan.notes, *_absent(plan), *(str(each) for each in plan.lost)),
        rows,
    )


def _absent(plan: ScanPlan) -> list[str]:
    topics = {each.topic_partition.topic for each in plan.partitions}
    with suppress(StratalogError):
        return list(absent_partitions(OsFileSystem(), plan.log_directory, topics))
    return []


def _upper_time_bound(plan: ScanPlan) -> str:
    if plan.where.max_timestamp_ms is None:
        return "none is asked for"
    with_ranges = sum(each.tally.with_ranges for each in plan.partitions)
    without = sum(each.tally.without_ranges for each in plan.partitions)
    if plan.max_lateness_ms is not None:
        return (
            f"prunes, since nothing is late by more than {plan.max_lateness_ms} ms (maxLateness); "
            f"{with_ranges:,} of {_segments(with_ranges + without)} looked at have time ranges too"
        )
    if not without:
        return f"prunes, by the time ranges of {_segments(with_ranges)}"
    missing = (
        "have no time ranges, and Kafka's own indexes hold no smallest timestamp. A broker of "
        "stratalog writes them, and so does stratalog log verify --write-time-ranges; maxLateness "
        "does without"
    )
    if not with_ranges:
        return f"could not prune: {_segments(without)} {missing}"
    return (
        f"prunes by the time ranges of {_segments(with_ranges)}, and could not in others: "
        f"{_segments(without)} {missing}"
    )


def _segments(count: int) -> str:
    return f"{count:,} segment" if count == 1 else f"{count:,} segments"
