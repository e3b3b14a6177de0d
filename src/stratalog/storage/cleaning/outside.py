"""Rounds that others do: planned by the owner of a log, worked at elsewhere, handed over.

While somebody works at a round, the owner's own cleaner leaves the log alone: it is paused under an
id, for so many seconds, which can be renewed and end by themselves. They are counted by a clock
that is never set (``steady_ms``), or a pause would outlast its time by as much as a clock was set
back. Nothing depends on a pause for safety: a commit is refused where a source has changed. It
saves both from working in vain.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stratalog.config import BrokerConfig
from stratalog.errors import LogDamagedError, StratalogError
from stratalog.storage.checkpoint import format_id
from stratalog.storage.cleaning.cleaner import LogCleaner
from stratalog.storage.cleaning.planning import CleaningPlan
from stratalog.storage.cleaning.round_json import OutsideRound
from stratalog.storage.cleaning.rounds import RoundPlan, plan_log, plan_round
from stratalog.storage.commits.replacing import describe_segment
from stratalog.storage.directory import LogDirectory
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log

SECONDS_MAX = 86_400.0


NOT_HERE = "it is not here, or its directory is offline"
_ELSEWHERE = "it is in the log directory "


@dataclass(slots=True)
class _Lease:
    until_ms: int
    keys: set[TopicPartition] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A partition that is not compacted, and why; ``is_damaged``: until somebody repairs it."""

    topic_partition: TopicPartition
    reason: str
    is_damaged: bool = False

    @classmethod
    def elsewhere(cls, key: TopicPartition, log_dir: str) -> "LeftOut":
        """Files are staged and put in place in one log directory at a time."""
        return cls(key, f"{_ELSEWHERE}{log_dir}, and one log directory is compacted at a time")

    @property
    def is_elsewhere(self) -> bool:
        return self.reason.startswith(_ELSEWHERE)


class OutsideRounds:
    """On the owner's thread. ``cleaner`` gives the owner's own, if it has one."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        directories: Iterable[LogDirectory],
        cleaner: Callable[[], LogCleaner | None],
    ) -> None:
        self._config = config
        self._directories = list(directories)
        self._cleaner = cleaner
        self._leases: dict[str, _Lease] = {}

    def begin(self, lease_id: str, *, seconds: float, steady_ms: int) -> None:
        """Rounds are ``add``-ed under this id from now on; an earlier pause of it is over."""
        self.end(steady_ms)
        self.release(lease_id)
        self._leases[lease_id] = _Lease(_until_ms(steady_ms, seconds))

    def add(
        self,
        lease_id: str,
        key: TopicPartition,
        *,
        now_ms: int,
        is_forced: bool,
        log_dir: str | None = None,
    ) -> OutsideRound | LeftOut:
        """What is to be done in this log, which nobody else cleans from now on; ``log_dir`` is
        where it has to lie, if that matters."""
        found = self._plan(key, now_ms, is_forced=is_forced, log_dir=log_dir)
        lease = self._leases.get(lease_id)
        if lease is not None and not isinstance(found, LeftOut):
            lease.keys.add(key)
            self._pause(key)
        return found

    def _plan(
        self, key: TopicPartition, now_ms: int, *, is_forced: bool, log_dir: str | None
    ) -> OutsideRound | LeftOut:
        if any(key in lease.keys for lease in self._leases.values()):
            return LeftOut(key, "another compaction is at work there")
        directory, log = self._find(key)
        if directory is None or log is None:
            return LeftOut(key, NOT_HERE)
        if log_dir is not None and not is_same_directory(directory.path, log_dir):
            return LeftOut.elsewhere(key, directory.path)
        if not log.config.compact:
            return LeftOut(key, "it is not compacted: its cleanup.policy is delete")
        if log.is_held:
            return LeftOut(key, "it is held: nobody has told its configs; see 'stratalog topic'")
        try:
            plan = plan_log(log, directory.cleaner_offset(key), now_ms)
            if reason := _why_not(plan, is_forced=is_forced):
                return LeftOut(key, reason)
            return self._describe(log, plan_round(log, plan, now_ms=now_ms))
        except StratalogError as error:
            return LeftOut(key, str(error), isinstance(error, LogDamagedError))

    def _describe(self, log: Log, plan: RoundPlan) -> OutsideRound:
        config = self._config()
        return OutsideRound(
            plan=plan,
            segments=tuple(
                describe_segment(log.segments.at(source.base_offset)) for source in plan.sources
            ),
            topic_id="" if log.topic_id is None else format_id(log.topic_id),
            hash_name=config.log_cleaner_hash,
            load_factor=config.log_cleaner_io_buffer_load_factor,
        )

    def _find(self, key: TopicPartition) -> tuple[LogDirectory | None, Log | None]:
        for directory in self._directories:
            if directory.is_online and key in directory.logs:
                return directory, directory.logs[key]
        return None, None

    def renew(self, lease_id: str, *, seconds: float, steady_ms: int) -> bool:
        """False: it is over, and the owner may have cleaned there since."""
        self.end(steady_ms)
        lease = self._leases.get(lease_id)
        if lease is not None:
            lease.until_ms = max(lease.until_ms, _until_ms(steady_ms, seconds))
        return lease is not None

    def release(self, lease_id: str) -> bool:
        lease = self._leases.pop(lease_id, None)
        for key in set() if lease is None else lease.keys:
            self._resume(key)
        return lease is not None

    def end(self, steady_ms: int) -> None:
        """Let go of what is over."""
        over = [each for each, lease in self._leases.items() if lease.until_ms <= steady_ms]
        for lease_id in over:
            self.release(lease_id)

    def status(self, *, ahead_ms: int) -> Mapping[str, Mapping[str, Any]]:
        """With the end of each in the time of day, which is ``ahead_ms`` of the steady one."""
        return {
            lease_id: {
                "until_ms": lease.until_ms + ahead_ms,
                "partitions": sorted(map(str, lease.keys)),
            }
            for lease_id, lease in self._leases.items()
        }

    def _pause(self, key: TopicPartition) -> None:
        cleaner = self._cleaner()
        if cleaner is not None:
            cleaner.abort_and_pause(key)

    def _resume(self, key: TopicPartition) -> None:
        cleaner = self._cleaner()
        if cleaner is not None:
            cleaner.resume(key)


def wanted_keys(
    hosted: Iterable[TopicPartition], topics: Sequence[str], partitions: Sequence[int] | None
) -> list[TopicPartition]:
    """Those of ``hosted`` that somebody asks for, and those that are asked for and are not there,
    to be told of."""
    known = sorted(key for key in hosted if key.topic in topics)
    if partitions is not None:
        asked = [TopicPartition(topic, each) for topic in topics for each in partitions]
    else:
        found = {key.topic for key in known}
        asked = [*known, *(TopicPartition(topic, 0) for topic in topics if topic not in found)]
    return list(dict.fromkeys(asked))  # who names one twice means it once


def is_same_directory(path: str, other: str) -> bool:
    """Whatever it is called: links and mounts have names of their own."""
    try:
        return path == other or os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def _until_ms(steady_ms: int, seconds: float) -> int:
    return steady_ms + int(min(max(seconds, 0.0), SECONDS_MAX) * 1000)


def _why_not(plan: CleaningPlan, *, is_forced: bool) -> str:
    if not plan.cleanable_bytes or plan.first_dirty_offset >= plan.first_uncleanable_offset:
        return "nothing is dirty in its closed segments"
    if not is_forced and not plan.is_eligible:
        return plan.reasons[-1]
    return ""
