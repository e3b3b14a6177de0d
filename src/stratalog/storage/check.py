"""Checking logs: every CRC, record, index, snapshot and checkpoint, without changing anything.

``check`` is what a test calls at its end, on a directory or on a log that is open in this process.
``CheckRun`` is the same for many replicas at a time, on any number of threads.

A directory may be in use. Its owner can be in the middle of a write, a roll or a swap at any
moment, so what is found there counts only if it is found again: ``CheckRun`` looks a second and a
third time at a replica that seems to be in trouble, and keeps what all looks agree on.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from stratalog.errors import CorruptFileError, DiskError
from stratalog.storage.check_replica import (
    KnownByOwner,
    ReplicaCheck,
    ReplicaReport,
    Submit,
    at_once,
)
from stratalog.storage.check_segment import Progress, SegmentFacts
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.findings import Finding, Kind, error, in_order, warning
from stratalog.storage.inspection import Found, find_replicas
from stratalog.storage.layout import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK_FILE,
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    parse_replica_directory,
)
from stratalog.storage.log import Log
from stratalog.storage.readonly import ReadOnlyFileSystem, lock_owner

__all__ = ["CheckRun", "DirectoryReport", "Finding", "check"]

# Looks at a replica that is in use and seems to be in trouble.
LOOKS = 3
# Replicas whose segments are handed out before the first of them is waited for.
_REPLICAS_AHEAD = 64

CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)

Offsets = dict[TopicPartition, dict[str, int]]


def check(target: Log | str, files: FileSystem | None = None) -> list[Finding]:
    """All that is wrong with a log, a replica's directory or a whole log directory."""
    if isinstance(target, Log):
        return _check_log(target)
    run = CheckRun(files or OsFileSystem(), is_live=False)
    return run.check(target).findings


def _check_log(log: Log) -> list[Finding]:
    if log.is_closed or log.failure is not None:
        # Nothing in memory counts any more, and a failed disk may hold anything.
        files = ReadOnlyFileSystem(log.context.files)
        report = _look(ReplicaCheck(files, log.directory)) if log.failure is None else None
        return [] if report is None else report.findings
    owner = KnownByOwner(
        end_positions={segment.base_offset: segment.size_bytes for segment in log.segments},
        epochs=log.epochs.entries,
        producers=tuple(log.producers),
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
    )
    files = ReadOnlyFileSystem(log.context.files)
    report = _look(ReplicaCheck(files, log.directory, owner=owner))
    return in_order([*report.findings, *_check_memory(log, report)])


def _look(look: ReplicaCheck, submit: Submit = at_once) -> ReplicaReport:
    look.start(submit)
    return look.finish()


def _check_memory(log: Log, report: ReplicaReport) -> Iterable[Finding]:
    """What an open log believes, held against its files and against itself."""

    def wrong(sentence: str, offset: int = -1) -> Finding:
        return error(Kind.MEMORY, log.directory, sentence, offset=offset)

    marks = (
        ("log start offset", log.log_start_offset),
        ("last stable offset", log.last_stable_offset),
        ("high watermark", log.high_watermark),
        ("log end offset", log.log_end_offset),
    )
    for (name, low), (next_name, high) in pairwise(marks):
        if low > high:
            yield wrong(f"the {name} {low} is above the {next_name} {high}", low)
    if not log.log_start_offset <= log.recovery_point <= log.log_end_offset:
        yield wrong(f"the recovery point {log.recovery_point} is outside the log")
    on_disk = [facts.files.base_offset for facts in report.segments]
    in_memory = log.segments.base_offsets
    if on_disk != in_memory:
        yield wrong(f"segments {in_memory} are known and {on_disk} are on disk")
    if in_memory and log.log_start_offset < in_memory[0]:
        yield wrong(f"the log starts at {log.log_start_offset}, below its first segment")
    for facts in report.segments:
        if facts.size_bytes > facts.files.size_bytes:
            sentence = f"{facts.size_bytes} bytes are known and {facts.files.size_bytes} are there"
            yield error(Kind.MEMORY, facts.files.log_path, sentence)
    if report.log_end_offset > log.log_end_offset:
        yield wrong(
            f"the log ends at {log.log_end_offset}, but batches go on to {report.log_end_offset}",
            log.log_end_offset,
        )


# --- whole directories ---------------------------------------------------------------------------


@dataclass(slots=True)
class DirectoryReport:
    """What was found at one path: a log directory, or one replica."""

    path: str
    replicas: list[ReplicaReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_live: bool = False


class CheckRun:
    """Checks paths, each with all the replicas in it."""

    def __init__(
        self,
        files: FileSystem,
        *,
        is_live: bool | None = None,
        submit: Submit = at_once,
        progress: Progress | None = None,
        wait: Callable[[], None] = lambda: None,
    ) -> None:
        """``is_live`` None: asked of the directory's lock. ``wait`` is called between two looks
        at a directory in use, so that what was being written can be finished."""
        self._files = ReadOnlyFileSystem(files)
        self._is_live = is_live
        self._submit = submit
        self._progress = progress
        self._wait = wait

    def check(self, path: str) -> DirectoryReport:
        """Check what ``path`` names; raises ``LogDirectoryError`` if it names no log."""
        found = find_replicas(self._files, path)
        is_live = self._is_live
        if is_live is None:
            is_live = lock_owner(f"{found.log_directory}/{LOCK_FILE}") is not None
        report = DirectoryReport(path, is_live=is_live)
        offsets = self._read_checkpoints(found, report)
        for foreign in found.foreign:
            sentence = "is no topic-partition; Apache Kafka will not start with it there"
            report.findings.append(error(Kind.DIRECTORY, foreign, sentence))
        for replica in self._reports(found, offsets, is_live=is_live):
            report.replicas.append(replica)
            report.findings += replica.findings
        return report

    def _reports(self, found: Found, offsets: Offsets, *, is_live: bool) -> Iterator[ReplicaReport]:
        """The reports in order; some replicas ahead are already being read meanwhile."""
        ahead: deque[tuple[str, ReplicaCheck]] = deque()
        for directory in found.replicas:
            look = self._look(directory, offsets, is_live=is_live)
            look.start(self._submit)
            ahead.append((directory, look))
            if len(ahead) > _REPLICAS_AHEAD:
                yield self._settle(*ahead.popleft(), offsets, is_live=is_live)
        while ahead:
            yield self._settle(*ahead.popleft(), offsets, is_live=is_live)

    def _look(
        self,
        directory: str,
        offsets: Offsets,
        *,
        is_live: bool,
        kept: Iterable[SegmentFacts] = (),
    ) -> ReplicaCheck:
        name = os.path.basename(os.path.realpath(directory))
        return ReplicaCheck(
            self._files,
            directory,
            offsets=offsets.get(parse_replica_directory(name).topic_partition),
            is_live=is_live,
            progress=self._progress,
            kept=kept,
        )

    def _settle(
        self, directory: str, look: ReplicaCheck, offsets: Offsets, *, is_live: bool
    ) -> ReplicaReport:
        report = look.finish()
        for _ in range(LOOKS - 1 if is_live else 0):
            if not report.findings:
                break
            self._wait()
            # The checkpointed offsets of the first look still hold: a log's end only moves on.
            again = self._look(directory, offsets, is_live=is_live, kept=report.segments)
            again.start(self._submit)
            found = again.finish()
            seen = {finding.identity for finding in report.findings}
            found.findings = [each for each in found.findings if each.identity in seen]
            report = found
        return report

    def _read_checkpoints(self, found: Found, report: DirectoryReport) -> Offsets:
        """What the checkpoint files say, before anything is read that may have moved on."""
        offsets: Offsets = {}
        for name in CHECKPOINTS:
            path = f"{found.log_directory}/{name}"
            try:
                for topic_partition, offset in read_offsets(self._files, path).items():
                    offsets.setdefault(topic_partition, {})[name] = offset
            except CorruptFileError as corrupt:
                # Where a log starts is known nowhere else; the others can be found out again.
                tell = error if name == LOG_START_CHECKPOINT else warning
                report.findings.append(tell(Kind.CHECKPOINT, path, corrupt.reason))
            except DiskError as failure:
                report.findings.append(error(Kind.UNREADABLE, path, failure.reason))
        return offsets
