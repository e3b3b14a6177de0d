"""``compact``: the compaction of topics, done by Spark, with any number of keys.

What a broker's own cleaner would do, in one pass and by all cores of a cluster, to the same bytes.
The owner of the log directory, if it runs, leaves those partitions alone meanwhile and puts the
result in place; without one, the driver does.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stratalog.spark.compaction import CompactedRound, Compaction
from stratalog.spark.compaction_plan import ChosenRound, Strategy, map_bytes_of
from stratalog.spark.jobs.arguments import check_names, check_path
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.progress import Progress, told
from stratalog.spark.session import executor_slots, task_slots
from stratalog.storage.cleaning.outside import NOT_HERE, LeftOut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

_SIZE = re.compile(r"(?P<number>[0-9]+)(?P<unit>[kmgt]?)b?")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_EXECUTOR_MEMORY = "1g"


def compact(
    spark: SparkSession,
    log_dir: str | os.PathLike[str],
    topic: str | Sequence[str],
    *,
    partitions: Sequence[int] | None = None,
    force: bool = False,
    dry_run: bool = False,
    memory: str | int | None = None,
    strategy: str | None = None,
    config: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> CompactResult:
    """Compact partitions of topics of ``log_dir``, which driver and workers see.

    As a cleaner does, only those that are dirty enough, unless ``force``; of those that are
    damaged nothing is changed, and ``CompactResult.damaged`` says where. ``memory`` is what an
    executor has, as ``spark.executor.memory``, which is taken if it is not given. ``dry_run`` says
    what would be done, and why. ``config`` are settings of the broker, for when it does not run.
    """
    started = time.monotonic()
    topics = list(check_names("topic", topic))
    compaction = Compaction(
        spark,
        str(Path(check_path("log_dir", log_dir)).absolute()),
        slots=task_slots(spark),
        map_bytes=map_bytes_of(_memory_bytes(spark, memory), executor_slots(spark)),
        config=dict(config or {}),
        strategy=_strategy(strategy),
    )
    done: list[CompactedRound] = []
    is_to_run = False
    try:
        compaction.plan(topics, partitions, is_forced=force)
        _refuse_missing(compaction, str(log_dir))
        is_to_run = bool(compaction.chosen) and not dry_run
    finally:
        # A run releases by itself what it may: a commit of which nobody knows is kept.
        if not is_to_run:
            compaction.close()
    if is_to_run:
        with told(spark, progress):
            done = compaction.run()
    return CompactResult(
        compaction.chosen, compaction.left_out, done, time.monotonic() - started, is_dry=dry_run
    )


def check_compact(strategy: str | None, memory: str | None) -> None:
    """Refuse what needs no Spark to be seen."""
    _strategy(strategy)
    if memory is not None:
        read_size(memory)


def _refuse_missing(compaction: Compaction, log_dir: str) -> None:
    """A scheduled job with a misspelt topic, or with the wrong one of a broker's directories, must
    not succeed for ever."""
    here = {each.round.topic_partition.topic for each in compaction.chosen}
    here |= {each.topic_partition.topic for each in compaction.left_out if not each.is_elsewhere}
    for each in compaction.left_out:
        key = each.topic_partition
        if each.reason == NOT_HERE:
            raise JobOptionError("topic", key.topic, f"{key} is not in {log_dir}")
        if each.is_elsewhere and key.topic not in here:
            raise JobOptionError("topic", key.topic, f"{key} is not in {log_dir}: {each.reason}")


@dataclass(frozen=True)
class CompactResult:
    """What was chosen, what was left out and why, and what became of it."""

    chosen: list[ChosenRound]
    left_out: list[LeftOut]
    done: list[CompactedRound]
    seconds: float
    is_dry: bool

    columns = (
        "topic", "partition", "how", "records", "kept", "keys", "bytes", "bytes kept", "segments",
    )  # fmt: skip

    @property
    def damaged(self) -> list[LeftOut]:
        """Of what was left out, what somebody has to repair first."""
        return [each for each in self.left_out if each.is_damaged]

    @property
    def bytes_before(self) -> int:
        return sum(each.bytes_before for each in self.chosen)

    @property
    def bytes_after(self) -> int:
        return sum(each.bytes_after for each in self.done)

    def rows(self) -> list[tuple[object, ...]]:
        """One for each partition, under ``columns``."""
        if self.is_dry:
            return [
                (*each.round.topic_partition, _how(each), "", "", f"~{each.keys}",
                 each.bytes_before, "", f"{len(each.round.plan.sources)} to {each.groups}")
                for each in self.chosen
            ]  # fmt: skip
        return [
            (
                *each.chosen.round.topic_partition,
                _how(each.chosen),
                each.stats.messages_read,
                each.stats.messages_kept,
                each.stats.map_entries or f"~{each.chosen.keys}",
                each.chosen.bytes_before,
                each.bytes_after,
                f"{each.stats.segments_before} to {each.stats.segments_after}",
            )
            for each in self.done
        ]

    def to_json(self) -> dict[str, Any]:
        told_of = {each.chosen.round.topic_partition: each for each in self.done}
        partitions = []
        for chosen in self.chosen:
            row = chosen.to_json()
            done = told_of.get(chosen.round.topic_partition)
            if done is not None:
                row["stats"] = done.stats.as_dict()
            partitions.append(row)
        return {
            "dry_run": self.is_dry,
            "seconds": round(self.seconds, 3),
            "bytes_before": self.bytes_before,
            "bytes_after": None if self.is_dry else self.bytes_after,
            "partitions": partitions,
            "left_out": [
                {
                    **each.topic_partition._asdict(),
                    "reason": each.reason,
                    "is_damaged": each.is_damaged,
                }
                for each in self.left_out
            ],
        }


def _how(chosen: ChosenRound) -> str:
    if chosen.strategy is Strategy.RANGES:
        return f"{chosen.ranges} range{'s' if chosen.ranges > 1 else ''}"
    return chosen.strategy.value


def _strategy(name: str | None) -> Strategy | None:
    if name is None:
        return None
    try:
        return Strategy(name)
    except ValueError:
        raise JobOptionError("strategy", name, f"there are {', '.join(Strategy)}") from None


def _memory_bytes(spark: SparkSession, memory: str | int | None) -> int:
    """Of an executor, for the tasks that run in it at the same time."""
    if isinstance(memory, int):
        return memory
    given = memory or spark.conf.get("spark.executor.memory", _EXECUTOR_MEMORY)
    return read_size(given or _EXECUTOR_MEMORY)


def read_size(text: str) -> int:
    """Bytes, as Spark writes them: 512m, 4g."""
    found = _SIZE.fullmatch(text.lower())
    if found is None:
        raise JobOptionError("memory", text, "it is not a size such as 512m or 4g")
    return int(found["number"]) * _UNITS[found["unit"]]
