"""What retention would remove of a topic now, by the configs that it has or by others.

Nothing is removed and nobody is asked to: the same plan that a log acts on is made of its files.
"""

import os
from collections.abc import Iterable, Mapping

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.directories.known_directory import learn_directory
from stratalog.errors import ConfigError, CorruptSegmentError, DiskError, LogDirectoryError
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.stats_result import RetentionSaving
from stratalog.storage.files import OsFileSystem
from stratalog.storage.retention import RetentionPlan, plan_retention
from stratalog.storage.segment import Segment
from stratalog.storage.views import LogView, look_at

# What a retention plan looks at; the rest of a topic's configs says nothing here.
TOLD = ("cleanup.policy", "retention.ms", "retention.bytes")


class Savings:
    """``proposed`` are configs that are tried in the place of the topics' own."""

    def __init__(
        self, snapshot: DirectorySnapshot, proposed: Mapping[str, str], *, now_ms: int
    ) -> None:
        self._snapshot = snapshot
        self._now_ms = now_ms
        self._proposed = dict(proposed)
        check_proposed(self._proposed)
        known = learn_directory(OsFileSystem(), os.fspath(snapshot.path))
        self._configs = known.topic_configs()

    def now(self, topic: str) -> RetentionSaving | None:
        """By the topic's own configs; None where nobody knows them."""
        known = self._configs.of(topic)
        return self._saving(topic, known.config, {}) if known.is_known else None

    def proposed(self, topic: str) -> RetentionSaving | None:
        if not self._proposed:
            return None
        config = self._configs.of(topic, self._proposed).config
        return self._saving(topic, config, self._proposed)

    def _saving(self, topic: str, config: TopicConfig, given: Mapping[str, str]) -> RetentionSaving:
        segments = size_bytes = 0
        for each in self._partitions(topic):
            freed = _plan(each, config, self._now_ms)
            if freed is not None:
                segments += len(freed.doomed)
                size_bytes += freed.freed_bytes
        overrides = {**config.to_properties(), **given}
        told = {name: overrides[name] for name in TOLD if name in overrides}
        return RetentionSaving(told, segments, size_bytes)

    def _partitions(self, topic: str) -> Iterable[PartitionSnapshot]:
        return (each for key, each in self._snapshot.partitions.items() if key.topic == topic)


def check_proposed(proposed: Mapping[str, str]) -> None:
    """Refuse configs that are not of retention, or have no such value."""
    for name in proposed:
        if name not in TOLD:
            raise JobOptionError("proposed", name, f"expected {', '.join(TOLD)}")
    try:
        TopicConfig.from_properties(dict(proposed), broker=BrokerConfig())
    except ConfigError as error:
        raise JobOptionError("proposed", dict(proposed), str(error)) from error


def _plan(
    partition: PartitionSnapshot, config: TopicConfig, now_ms: int
) -> "RetentionPlan[Segment] | None":
    """None where the log went away, or nobody can say how old it is."""

    def ask(view: LogView) -> "RetentionPlan[Segment]":
        return plan_retention(
            view.segments,
            config=config,
            log_start_offset=partition.start_offset,
            high_watermark=partition.high_watermark,
            log_end_offset=view.log_end_offset,
            now_ms=now_ms,
        )

    try:
        return look_at(OsFileSystem(), partition.directory, config, ask)
    except (DiskError, LogDirectoryError, CorruptSegmentError):
        return None
