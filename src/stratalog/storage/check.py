"""Checking logs: every CRC, record, index, snapshot and checkpoint, without changing anything.

``check`` is what a test calls at its end, on a directory or on a log that is open in this process.
``CheckRun`` is the same for many replicas at a time, on any number of threads.

A directory may be in use: see ``check_looks``.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from stratalog.storage.check_directory import ReadMetadata, check_directory
from stratalog.storage.check_looks import (
    Look,
    Offsets,
    ReplicaLooks,
    find_each,
    foreign_findings,
    read_checkpoints,
)
from stratalog.storage.check_replica import (
    KnownByOwner,
    ReplicaCheck,
    ReplicaReport,
    Submit,
    at_once,
)
from stratalog.storage.check_segment import Progress
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.findings import Finding, Kind, error, in_order
from stratalog.storage.inspection import Found, find_replicas, topic_partition_of
from stratalog.storage.layout import LOCK_FILE
from stratalog.storage.log import Log
from stratalog.storage.readonly import ReadOnlyFileSystem, lock_owner

__all__ = ["CheckRun", "DirectoryReport", "Finding", "check"]

# Replicas whose segments are handed out before the first of them is waited for.
_REPLICAS_AHEAD = 64


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
        read_metadata: ReadMetadata | None = None,
    ) -> None:
        """``is_live`` None: asked of the directory's lock. ``wait`` is called between two looks
        at a directory in use, so that what was being written can be finished. ``read_metadata``:
        see ``check_directory``."""
        self._files = ReadOnlyFileSystem(files)
        self._is_live = is_live
        self._submit = submit
        self._progress = progress
        self._wait = wait
        self._read_metadata = read_metadata

    def check(self, path: str) -> DirectoryReport:
        """Check what ``path`` names; raises ``LogDirectoryError`` if it names no log."""
        return self._check(path, find_replicas(self._files, path))

    def check_each(self, paths: Iterable[str]) -> list[DirectoryReport]:
        """The same for several paths: one that names no log is a finding, unless none does."""
        return [
            DirectoryReport(path, findings=[found])
            if isinstance(found, Finding)
            else self._check(path, found)
            for path, found in find_each(self._files, paths).items()
        ]

    def _check(self, path: str, found: Found) -> DirectoryReport:
        is_live = self._is_live
        if is_live is None:
            is_live = lock_owner(f"{found.log_directory}/{LOCK_FILE}") is not None
        report = DirectoryReport(path, is_live=is_live)
        beside = check_directory(
            self._files,
            found.log_directory,
            is_live=is_live,
            read_metadata=self._read_metadata,
            wait=self._wait,
        )
        offsets, wrong = read_checkpoints(self._files, found.log_directory)
        report.findings += [*beside.findings, *wrong, *foreign_findings(found.foreign)]
        for replica in self._reports(
            found, offsets, is_live=is_live, not_compacted=beside.not_compacted
        ):
            report.replicas.append(replica)
            report.findings += replica.findings
        return report

    def _reports(
        self, found: Found, offsets: Offsets, *, is_live: bool, not_compacted: Collection[str]
    ) -> Iterator[ReplicaReport]:
        """The reports in order; some replicas ahead are already being read meanwhile."""
        looks = ReplicaLooks(
            self._files,
            is_live=is_live,
            submit=self._submit,
            progress=self._progress,
            wait=self._wait,
            not_compacted=not_compacted,
        )
        ahead: deque[tuple[str, dict[str, int], Look]] = deque()
        for directory in found.replicas:
            known = offsets.get(topic_partition_of(directory), {})
            ahead.append((directory, known, looks.begin(directory, known)))
            if len(ahead) > _REPLICAS_AHEAD:
                yield looks.settle(*ahead.popleft())
        while ahead:
            yield looks.settle(*ahead.popleft())
