"""Looking at a replica until what is found counts; no part of this can change anything.

A directory may be in use. Its owner can be in the middle of a write, a roll or a swap at any
moment, so what is found there counts only if it is found again: a replica that seems to be in
trouble is looked at a second and a third time, and what all looks agree on is kept. Without an
owner one look is enough.

There may be thousands of replicas: one that cannot be looked at, whatever the reason, is a finding
about itself and never the end of the others.

The segments of the first look may have been read elsewhere: a process that has read some of them
hands over the facts, and whoever has all of them puts them in a row.
"""

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stratalog.errors import CorruptFileError, DiskError, StorageError, StratalogError
from stratalog.storage.check_replica import (
    ReplicaCheck,
    ReplicaReport,
    Submit,
    at_once,
    segment_checks,
)
from stratalog.storage.check_segment import Progress, SegmentFacts
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.files import FileSystem
from stratalog.storage.findings import Finding, Kind, error, warning
from stratalog.storage.inspection import Found, find_replicas, list_replica, topic_partition_of
from stratalog.storage.layout import (
    LOG_START_CHECKPOINT,
    OFFSET_CHECKPOINTS,
    TopicPartition,
)

# Looks at a replica that is in use and seems to be in trouble.
LOOKS = 3
# Long enough for an owner to finish the write that was seen half done.
LOOK_AGAIN_AFTER_S = 0.1

# By partition and name of the checkpoint file, what was checkpointed.
Offsets = dict[TopicPartition, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Look:
    """One look that has begun; ``failure`` is what ended it at once."""

    check: ReplicaCheck
    failure: Exception | None = None


class ReplicaLooks:
    """``begin`` hands out the segments of a replica, ``settle`` waits for them and decides."""

    def __init__(
        self,
        files: FileSystem,
        *,
        is_live: bool,
        submit: Submit = at_once,
        progress: Progress | None = None,
        wait: Callable[[], None] = lambda: None,
        not_compacted: Collection[str] = (),
    ) -> None:
        """``wait`` is called between two looks, so that what was being written can be finished;
        ``not_compacted``: topics of which that is known."""
        self._files = files
        self._is_live = is_live
        self._submit = submit
        self._progress = progress
        self._wait = wait
        self._not_compacted = not_compacted

    def begin(
        self, directory: str, offsets: dict[str, int], *, known: Iterable[SegmentFacts] = ()
    ) -> Look:
        """The first look; segments that are ``known`` were read by somebody else just now."""
        return self._start(self._look(directory, offsets, known=known))

    def settle(self, directory: str, offsets: dict[str, int], look: Look) -> ReplicaReport:
        report = _finish(directory, look)
        for _ in range(LOOKS - 1 if self._is_live else 0):
            if not report.findings:
                break
            self._wait()
            # The checkpointed offsets of the first look still hold: a log's end only moves on.
            again = self._start(self._look(directory, offsets, kept=report.segments))
            found = _finish(directory, again)
            seen = {finding.identity for finding in report.findings}
            found.findings = [each for each in found.findings if each.identity in seen]
            report = found
        return report

    def _start(self, check: ReplicaCheck) -> Look:
        try:
            check.start(self._submit)
        except Exception as failure:  # noqa: BLE001 - a mistake of ours, too, is told as a finding
            return Look(check, failure)
        return Look(check)

    def _look(
        self,
        directory: str,
        offsets: dict[str, int],
        *,
        kept: Iterable[SegmentFacts] = (),
        known: Iterable[SegmentFacts] = (),
    ) -> ReplicaCheck:
        return ReplicaCheck(
            self._files,
            directory,
            offsets=offsets,
            is_live=self._is_live,
            progress=self._progress,
            kept=kept,
            known=known,
            may_be_compacted=topic_partition_of(directory).topic not in self._not_compacted,
        )


def _finish(directory: str, look: Look) -> ReplicaReport:
    if look.failure is not None:
        return unread_report(directory, look.failure)
    try:
        return look.check.finish()
    except Exception as failure:  # noqa: BLE001 - as above
        return unread_report(directory, failure)


def unread_report(directory: str, failure: Exception) -> ReplicaReport:
    """Of a replica that could not be looked at."""
    if isinstance(failure, DiskError):
        finding = error(Kind.UNREADABLE, failure.path, f"cannot be read: {failure.reason}")
        return ReplicaReport(directory, findings=[finding])
    sentence = f"could not be looked at: {type(failure).__name__}: {failure}"
    if not isinstance(failure, StratalogError | OSError):
        # A mistake of ours: whoever is to mend it needs the place.
        *_, frame = traceback.extract_tb(failure.__traceback__)
        sentence += f" ({Path(frame.filename).name}, line {frame.lineno})"
    return ReplicaReport(directory, findings=[error(Kind.UNREADABLE, directory, sentence)])


def check_segments(
    files: FileSystem, directory: str, base_offsets: Collection[int]
) -> Iterator[SegmentFacts]:
    """Some segments of a replica, for ``ReplicaLooks.begin``; those that have gone are left out."""
    for segment, check in segment_checks(files, list_replica(files, directory)):
        if segment.base_offset in base_offsets:
            yield check().run()


def find_each(files: FileSystem, paths: Iterable[str]) -> dict[str, Found | Finding]:
    """What each path names, or why it names no log. If none of them does there is nothing to be
    checked, and the first error is raised."""
    found: dict[str, Found | Finding] = {}
    failures = []
    for path in paths:
        try:
            found[path] = find_replicas(files, path)
        except StorageError as failure:
            failures.append(failure)
            kind = Kind.UNREADABLE if isinstance(failure, DiskError) else Kind.DIRECTORY
            found[path] = error(kind, path, str(failure))
    if failures and all(isinstance(each, Finding) for each in found.values()):
        raise failures[0]
    return found


def read_checkpoints(files: FileSystem, log_directory: str) -> tuple[Offsets, list[Finding]]:
    """What the checkpoint files say, to be read before anything that may have moved on; and what
    is wrong with them."""
    offsets: Offsets = {}
    findings = []
    for name in OFFSET_CHECKPOINTS:
        path = f"{log_directory}/{name}"
        try:
            for topic_partition, offset in read_offsets(files, path).items():
                offsets.setdefault(topic_partition, {})[name] = offset
        except CorruptFileError as corrupt:
            # Where a log starts is known nowhere else; the others can be found out again.
            tell = error if name == LOG_START_CHECKPOINT else warning
            findings.append(tell(Kind.CHECKPOINT, path, corrupt.reason))
        except DiskError as failure:
            findings.append(error(Kind.UNREADABLE, path, failure.reason))
    return offsets, findings


def foreign_findings(foreign: Iterable[str]) -> list[Finding]:
    """Directories in a log directory that no replica is called like."""
    sentence = "is no topic-partition; Apache Kafka will not start with it there"
    return [error(Kind.DIRECTORY, path, sentence) for path in foreign]
