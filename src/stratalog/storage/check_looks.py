"""Looking at a replica until what is found counts; no part of this can change anything.

A directory may be in use. Its owner can be in the middle of a write, a roll or a swap at any
moment, so what is found there counts only if it is found again: a replica that seems to be in
trouble is looked at a second and a third time, and what all looks agree on is kept. Without an
owner one look is enough.

The segments of the first look may have been read elsewhere: a process that has read some of them
hands over the facts, and whoever has all of them puts them in a row.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator

from stratalog.errors import CorruptFileError, DiskError
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
from stratalog.storage.inspection import list_replica
from stratalog.storage.layout import (
    LOG_START_CHECKPOINT,
    OFFSET_CHECKPOINTS,
    TopicPartition,
    parse_replica_directory,
)

# Looks at a replica that is in use and seems to be in trouble.
LOOKS = 3
# Long enough for an owner to finish the write that was seen half done.
LOOK_AGAIN_AFTER_S = 0.1

# By partition and name of the checkpoint file, what was checkpointed.
Offsets = dict[TopicPartition, dict[str, int]]


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
    ) -> None:
        """``wait`` is called between two looks, so that what was being written can be finished."""
        self._files = files
        self._is_live = is_live
        self._submit = submit
        self._progress = progress
        self._wait = wait

    def begin(
        self, directory: str, offsets: dict[str, int], *, known: Iterable[SegmentFacts] = ()
    ) -> ReplicaCheck:
        """The first look; segments that are ``known`` were read by somebody else just now."""
        look = self._look(directory, offsets, known=known)
        look.start(self._submit)
        return look

    def settle(self, directory: str, offsets: dict[str, int], look: ReplicaCheck) -> ReplicaReport:
        report = look.finish()
        for _ in range(LOOKS - 1 if self._is_live else 0):
            if not report.findings:
                break
            self._wait()
            # The checkpointed offsets of the first look still hold: a log's end only moves on.
            again = self._look(directory, offsets, kept=report.segments)
            again.start(self._submit)
            found = again.finish()
            seen = {finding.identity for finding in report.findings}
            found.findings = [each for each in found.findings if each.identity in seen]
            report = found
        return report

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
        )


def check_segments(
    files: FileSystem, directory: str, base_offsets: Collection[int]
) -> Iterator[SegmentFacts]:
    """Some segments of a replica, for ``ReplicaLooks.begin``; those that have gone are left out."""
    for segment, check in segment_checks(files, list_replica(files, directory)):
        if segment.base_offset in base_offsets:
            yield check().run()


def partition_of(directory: str) -> TopicPartition:
    name = os.path.basename(os.path.realpath(directory))
    return parse_replica_directory(name).topic_partition


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
