"""A commit that restores a log: an empty one becomes the staged segments, with their own offsets.

The files keep every byte: offsets, timestamps, epochs, producers, transactions. They need not obey
a topic's produce rules, since they were appended under those of their time; each has to be a sound
segment. Indexes are made anew, and so is what aborted transactions left: from the batches, as a
recovery would. A last file of no bytes says where the log goes on, if that is behind the last
batch: offsets that were given once are not given again.

After a crash the record is enough: the files that are still in staging are renamed, the epochs and
the start of the log are written once more, and opening the log does the rest.
"""

import os
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from stratalog.errors import CorruptFileError, CorruptSegmentError, ProducerError
from stratalog.storage.checkpoint import EpochEntry, read_offsets, write_epochs, write_offsets
from stratalog.storage.commits.adopted import place_segment
from stratalog.storage.commits.checking import CheckedFile, check_kept, place_time_ranges
from stratalog.storage.commits.errors import (
    CommitBusyError,
    CommitRefusedError,
    ManifestError,
    StagedFileError,
)
from stratalog.storage.commits.identity import refuse_other
from stratalog.storage.commits.manifest import EPOCH_MAX, Manifest, PartitionManifest, StagedFile
from stratalog.storage.commits.staged_reading import StagedDirectory
from stratalog.storage.commits.work import (
    WorkRecord,
    log_sizes,
    refuse_lost,
    topic_id_of,
)
from stratalog.storage.directory import Checkpoint, LogDirectory
from stratalog.storage.epochs import LeaderEpochs
from stratalog.storage.files import FileSystem, replace_file
from stratalog.storage.handles import HandleCache
from stratalog.storage.index import NO_TIMESTAMP, TimestampOffset
from stratalog.storage.layout import (
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    RECOVERY_POINT_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TopicPartition,
    segment_file,
)
from stratalog.storage.log import Log
from stratalog.storage.ours import OwnFiles
from stratalog.storage.producers import CompletedTransaction, ProducerStates
from stratalog.storage.replay import replay
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.segment import Segment, SegmentSizes
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import encode_snapshot
from stratalog.storage.state_recovery import epochs_agree, epochs_of
from stratalog.storage.time_range_writing import remove_time_ranges
from stratalog.storage.transactions import AbortedTransaction

if TYPE_CHECKING:
    from stratalog.storage.commits.committing import LogCommits

MODE = "restore"
_OFFSET_MAX = 2**63 - 1


def staged_name(base_offset: int) -> str:
    """Of a file that becomes the segment ``base_offset``."""
    return f"{base_offset:020d}{LOG_SUFFIX}"


def place_restored(
    files: FileSystem, directory: str, staging: str, work: Mapping[str, Any]
) -> None:
    """Put in place what is still staged; again and again, until that is known to be done."""
    sizes = {each["base_offset"]: each.get("size_bytes") for each in work["files"]}
    _remove_empty(files, directory, kept=sizes)
    for base_offset, size_bytes in sorted(sizes.items()):
        staged = f"{staging}/{staged_name(base_offset)}"
        is_staged = _is_staged(files, staged, size_bytes)
        if not is_staged and not _is_placed(files, directory, base_offset, size_bytes):
            # Another of these files is no sign that the log has gone on: only what follows them is.
            refuse_lost(files, directory, staged, work["end_offset"] - 1)
            continue
        place_segment(
            files,
            directory,
            staged,
            base_offset,
            indexes=INDEX_SUFFIXES,
            is_placed=not is_staged,
        )
    entries = [EpochEntry(epoch, start_offset) for epoch, start_offset in work["epochs"]]
    write_epochs(files, f"{directory}/{LEADER_EPOCH_CHECKPOINT}", entries)
    snapshot = segment_file(directory, work["end_offset"], SNAPSHOT_SUFFIX)
    replace_file(files, snapshot, bytes.fromhex(work["producers"]))
    own = OwnFiles(files, directory)
    if work["log_start_offset"] > min(sizes, default=work["end_offset"]):
        own.note_log_start(work["log_start_offset"])
    files.sync_directory(directory)


# A record of an older version does not say how long a file is: then it is known to hold something.


def _is_staged(files: FileSystem, staged: str, size_bytes: int | None) -> bool:
    found = files.stat(staged)
    if found is not None and size_bytes not in (None, found.size_bytes):
        raise CorruptFileError(staged, "is not what was committed: it has another size")
    return found is not None


def _is_placed(files: FileSystem, directory: str, base_offset: int, size_bytes: int | None) -> bool:
    """A log that was empty may have a file of that name too."""
    found = files.stat(segment_file(directory, base_offset, LOG_SUFFIX))
    return found is not None and found.size_bytes > 0 and size_bytes in (None, found.size_bytes)


def roll_restore_forward(
    files: FileSystem, directory: str, staging: str, work: Mapping[str, Any]
) -> None:
    """The same for a log that nobody has opened: one that goes on behind its last batch needs an
    empty segment there, which opening would not make."""
    place_restored(files, directory, staging, work)
    end_offset = work["end_offset"]
    if max(log_sizes(files, directory), default=-1) < end_offset:
        files.open(segment_file(directory, end_offset, LOG_SUFFIX), create=True).close()
        files.sync_directory(directory)
    _raise_recovery_point(files, directory, TopicPartition(work["topic"], work["partition"]), work)


def _raise_recovery_point(
    files: FileSystem, directory: str, key: TopicPartition, work: Mapping[str, Any]
) -> None:
    """All of it is durable. Else a start would read the log, and find producers in it."""
    path = f"{os.path.dirname(directory)}/{RECOVERY_POINT_CHECKPOINT}"
    try:
        offsets = read_offsets(files, path)
    except CorruptFileError:
        offsets = {}
    if offsets.get(key, -1) < work["end_offset"]:
        write_offsets(files, path, {**offsets, key: work["end_offset"]})


def _remove_empty(files: FileSystem, directory: str, *, kept: Iterable[int]) -> None:
    """The segment of the log that was empty, if it has another base than those that come. What
    holds a batch is never touched: then this was done before, and appended to since."""
    sizes = log_sizes(files, directory)
    if any(sizes.values()):
        return
    for base_offset in sorted(set(sizes) - set(kept)):
        for suffix in (*INDEX_SUFFIXES, SNAPSHOT_SUFFIX, LOG_SUFFIX):
            files.unlink(segment_file(directory, base_offset, suffix), missing_ok=True)


class RestoreWork:
    """See ``work``."""

    needed_bytes = 0

    def __init__(
        self,
        commits: "LogCommits",
        directory: LogDirectory,
        log: Log,
        manifest: Manifest,
        part: PartitionManifest,
    ) -> None:
        self.log = log
        self._commits = commits
        self._directory = directory
        self._manifest = manifest
        self._part = part
        self._files = log.context.files
        self._config = log.config
        self._checked: list[CheckedFile] = []
        self._with_aborts: set[int] = set()
        self._producers = ProducerStates(expiration_ms=log.context.producer_expiration_ms)
        self._checkpoints: tuple[Checkpoint, ...] = ()
        self.end_offset = self._leader_epoch = -1
        # Of the batches and of what the manifest says about them.
        self.latest_epoch = max((epoch for epoch, _ in part.epochs), default=-1)
        self._epochs = [EpochEntry(*each) for each in part.epochs]
        self._is_paused = False
        self.record: WorkRecord = {}
        self._check_manifest()
        self._check_empty()

    @property
    def key(self) -> TopicPartition:
        return self.log.topic_partition

    def _refuse(self, reason: str) -> None:
        raise ManifestError(self._manifest.manifest_id, f"{self.key}: {reason}")

    def _check_manifest(self) -> None:
        part = self._part
        for staged in part.files:
            if staged.name != staged_name(staged.base_offset):
                self._refuse(f"{staged.name} is not called after its base offset")
        if any(b.base_offset <= a.base_offset for a, b in pairwise(part.files)):
            self._refuse("its files are not in the order of their offsets")
        if any(not staged.size_bytes for staged in part.files[:-1]):
            self._refuse("a file before the last is empty")
        if any(b[0] <= a[0] or b[1] < a[1] for a, b in pairwise(part.epochs)):
            self._refuse("its epochs are not in order")
        if part.log_start_offset < part.files[0].base_offset:
            self._refuse("it starts below its first file")

    def _check_empty(self) -> None:
        log = self.log
        if log.size_bytes:
            raise CommitRefusedError(
                f"{self.key} is not empty: it holds offsets {log.log_start_offset} to "
                f"{log.log_end_offset}. A backup is restored into an empty topic; make a new one"
            )
        if log.log_end_offset > self._part.files[0].base_offset:
            raise CommitRefusedError(
                f"{self.key} is empty, but has given offsets up to {log.log_end_offset} away, and "
                f"the backup begins at {self._part.files[0].base_offset}; make a new topic"
            )

    @property
    def _segments(self) -> tuple[StagedFile, ...]:
        return tuple(staged for staged in self._part.files if staged.size_bytes)

    @property
    def _start_offset(self) -> int:
        """Where the restored log starts: at its end if compaction has left no record, since its
        only segment begins there."""
        return self._part.log_start_offset if self._segments else self.end_offset

    # --- the steps ------------------------------------------------------------------------------

    def check(self) -> None:
        staging = StagedDirectory(self._files, self.log.directory, self._manifest.staging_id)
        files = self._part.files
        ends = [*(staged.base_offset for staged in files[1:]), _OFFSET_MAX]
        for staged, end_offset in zip(files, ends, strict=True):
            if staged.size_bytes:
                self._checked.append(
                    check_kept(
                        self._files,
                        staging,
                        staged,
                        self._config,
                        end_offset=end_offset,
                        progress=lambda _bytes: self._commits.go_on(),
                    )
                )
                self._sync(self._checked[-1].path)
        self.latest_epoch = max([self.latest_epoch, *(each.latest_epoch for each in self._checked)])
        if self.latest_epoch > EPOCH_MAX:
            raise StagedFileError(
                staging.path, -1, f"a batch has leader epoch {self.latest_epoch}: none can follow"
            )
        self._replay(staging.path)
        if self._part.log_start_offset > self.end_offset:
            self._refuse(f"it starts at {self._part.log_start_offset}, behind its end")
        staging.sync()

    def _sync(self, path: str) -> None:
        """Whoever staged it may have done so; a record in the journal needs to be sure."""
        file = self._files.open(path)
        try:
            file.sync()
        finally:
            file.close()

    def _replay(self, staging: str) -> None:
        """What the producers would be had all of it been appended here, and who aborted what."""
        handles = HandleCache()
        segments = [self._open(each, staging, handles) for each in self._checked]
        producers = self._producers
        producers.clear(self._part.log_start_offset)
        last = self._part.files[-1]
        self.end_offset = max(
            last.base_offset, segments[-1].next_offset() if segments else last.base_offset
        )
        aborted: dict[int, list[AbortedTransaction]] = {}

        def on_completed(segment: Segment, done: CompletedTransaction) -> None:
            if done.is_aborted:
                stable = producers.last_stable_offset_after(done)
                aborted.setdefault(segment.base_offset, []).append(
                    AbortedTransaction(
                        done.producer_id, done.first_offset, done.last_offset, stable
                    )
                )

        try:
            replay(
                producers,
                Segments(segments),
                end_offset=self.end_offset,
                on_completed=on_completed,
            )
            self._settle_epochs(Segments(segments))
            for segment in segments:
                # One that lies there is nobody's word for anything.
                self._files.unlink(segment.transaction_index.path, missing_ok=True)
                segment.transaction_index.rebuild(aborted.get(segment.base_offset, ()))
        except (CorruptSegmentError, ProducerError) as error:
            raise StagedFileError(staging, -1, str(error)) from error
        finally:
            for segment in segments:
                segment.discard()
        self._with_aborts = set(aborted)
        self._forget_producers()

    def _settle_epochs(self, segments: Segments) -> None:
        """As a recovery does: what the manifest says of epochs is a hint, the batches are the
        truth. They may say nothing of the last epochs, in which nothing was appended."""
        epochs, start = LeaderEpochs(self._files, "", self._epochs), self._part.log_start_offset
        last = segments.active.last_header() if len(segments) else None
        if not epochs_agree(epochs, segments, last, start, clean=False):
            epochs.replace(epochs_of(segments))
            epochs.truncate_from_start(start)
            self._epochs = list(epochs.entries)

    def _forget_producers(self) -> None:
        """Their ids were given out elsewhere, and may be given to others here, whose batches must
        not be held against theirs. Only who has a transaction open counts for readers."""
        states = [each for each in self._producers if each.transaction_first_offset is not None]
        self._producers.restore(states, self.end_offset, now_ms=0)
        # A snapshot of that is due, from which the next start goes on.
        self._producers.last_snapshot_offset = self._part.log_start_offset

    def stop(self) -> None:
        log = self.log
        if log.config is not self._config:
            raise CommitBusyError(
                f"the settings of {self.key} were changed while its files were checked; try again"
            )
        self._check_empty()
        log.pause_appends("a backup is about to be restored into it")
        self._is_paused = True
        self._leader_epoch = self._commits.leader_epoch(log)

    def settle(self) -> WorkRecord:
        for each in self._checked:
            refuse_other(self._files, each.path, each.identity)
        epochs = [
            [each.epoch, each.start_offset]
            for each in self._epochs
            if each.start_offset < self.end_offset
        ]
        if not self._segments:
            epochs = [[epoch, self.end_offset] for epoch, _ in epochs[-1:]]
        if self._leader_epoch > max((epoch for epoch, _ in epochs), default=-1):
            epochs.append([self._leader_epoch, self.end_offset])
        self.record = {
            "topic": self.key.topic,
            "partition": self.key.partition,
            "topic_id": topic_id_of(self.log),
            "mode": MODE,
            "files": [
                {"base_offset": each.base_offset, "size_bytes": each.size_bytes}
                for each in self._checked
            ],
            "epochs": epochs,
            "log_start_offset": self._start_offset,
            # As a snapshot has it: with it, a start does not go by the batches.
            "producers": encode_snapshot(self._producers).hex(),
            "first_offset": self._start_offset,
            "end_offset": self.end_offset,
        }
        return self.record

    def place(self) -> None:
        staging = StagedDirectory(self._files, self.log.directory, self._manifest.staging_id)
        place_restored(self._files, self.log.directory, staging.path, self.record)

    def apply(self) -> None:
        log = self.log
        log.resume_appends()
        self._is_paused = False
        for empty in log.segments:
            empty.discard()
            remove_time_ranges(self._files, log.directory, empty.base_offset)
            log.segments.remove(empty)
        now_ms = log.context.clock.now_ms()
        for checked in self._checked:
            log.segments.add(self._open(checked, log.directory, log.context.handles))
            reason = RollReason(RollCause.REQUESTED, "it was restored from a backup")
            log.own.note_roll(checked.base_offset, reason, now_ms)
            if checked.base_offset in self._with_aborts:
                log.own.note_aborts(checked.base_offset)
        log.segments.add(log.new_segment(self.end_offset))
        log.epochs.replace([EpochEntry(*each) for each in self.record["epochs"]])
        log.log_start_offset = self._start_offset
        log.log_end_offset = log.recovery_point = self.end_offset
        log.high_watermark = self._start_offset
        log.producers = self._producers
        log.maybe_snapshot(durable=True)
        if self._directory.logs.get(self.key) is log:
            self._checkpoints = (
                self._directory.plan_log_start_offsets(),
                self._directory.plan_recovery_points(),
            )

    def _open(self, checked: CheckedFile, directory: str, handles: HandleCache) -> Segment:
        log = self.log
        now_ms = log.context.clock.now_ms()
        segment = Segment(
            self._files,
            directory,
            checked.base_offset,
            self._config,
            handles,
            created_ms=now_ms,
            sizes=SegmentSizes(
                checked.size_bytes,
                checked.offset_index_bytes,
                checked.time_index_bytes,
                has_transaction_index=checked.base_offset in self._with_aborts,
                modified_ms=now_ms,
            ),
        )
        segment.is_settled = True
        found = TimestampOffset(NO_TIMESTAMP, checked.base_offset)
        if checked.max_timestamp_ms >= 0:
            offset = checked.base_offset + checked.offset_of_max_timestamp
            found = TimestampOffset(checked.max_timestamp_ms, offset)
        segment.adopt(size_bytes=checked.size_bytes, max_timestamp=found)
        return segment

    def complete(self) -> None:
        for checked in self._checked:
            place_time_ranges(
                self._files, checked, self.log.directory, base_offset=checked.base_offset
            )
        self._files.sync_directory(self.log.directory)
        for checkpoint in self._checkpoints:
            checkpoint.write()

    def finish(self) -> None:
        if self._directory.logs.get(self.key) is self.log:
            self._directory.note_cleaner_offset(self.key, None)

    def abandon(self) -> None:
        """What was staged stays: it may be tried again, or is swept when its lease is over."""
        if self._is_paused:
            self.log.resume_appends()
            self._is_paused = False
