"""What retention would remove of a topic now, by the configs that it has or by others.

Nothing is removed and nobody is asked to: the same plan that a log acts on is made of its files.
"""

import os
from collections.abc import Iterable, Mapping

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import ConfigError, CorruptSegmentError, DiskError, LogDirectoryError
from stratalog.handover.backup_facts import KnownDirectory, learn_topics
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
        for name in proposed:
            if name not in TOLD:
                raise JobOptionError("proposed", name, f"expected {', '.join(TOLD)}")
        _config(self._proposed)
        self._known = _learn(snapshot.path)

    def now(self, topic: str) -> RetentionSaving | None:
        """By the topic's own configs; None where nobody knows them."""
        configs = self._configs(topic)
        return None if configs is None else self._saving(topic, configs)

    def proposed(self, topic: str) -> RetentionSaving | None:
        if not self._proposed:
            return None
        return self._saving(topic, {**(self._configs(topic) or {}), **self._proposed})

    def _configs(self, topic: str) -> Mapping[str, str] | None:
        known = None if self._known is None else self._known.topics.get(topic)
        return None if known is None else known.configs

    def _saving(self, topic: str, configs: Mapping[str, str]) -> RetentionSaving:
        config = _config(configs)
        segments = size_bytes = 0
        for each in self._partitions(topic):
            freed = _plan(each, config, self._now_ms)
            if freed is not None:
                segments += len(freed.doomed)
                size_bytes += freed.freed_bytes
        told = {name: configs[name] for name in TOLD if name in configs}
        return RetentionSaving(told, segments, size_bytes)

    def _partitions(self, topic: str) -> Iterable[PartitionSnapshot]:
        return (each for key, each in self._snapshot.partitions.items() if key.topic == topic)


def _config(configs: Mapping[str, str]) -> TopicConfig:
    told = {name: value for name, value in configs.items() if name in TOLD}
    try:
        return TopicConfig.from_properties(told, broker=BrokerConfig())
    except ConfigError as error:
        raise JobOptionError("proposed", told, str(error)) from error


def _learn(log_dir: str) -> KnownDirectory | None:
    try:
        return learn_topics(OsFileSystem(), os.fspath(log_dir))
    except (DiskError, LogDirectoryError):
        return None


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
