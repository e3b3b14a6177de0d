"""Staged files that become segments of a log, as they are.

Their batches get the offsets behind the log's end, and the leader's epoch: two fields of each
header, outside of its CRC. Everything else of a file stays, and so do its indexes, whose entries
are relative. Then they are renamed to the names of segments. An active segment that was empty has
the name of the first of them, and is replaced by it.

Names are given behind the journal's record, which stands for them until they are durable. So are
offsets, unless the log still ends where it did when the files were checked: then each has them from
that time, since nobody looks at them before the record is written. Appends wait for neither.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from stratalog.errors import CorruptFileError
from stratalog.storage.commits.checking import CheckedFile, place_time_ranges, rebase, rebase_file
from stratalog.storage.commits.identity import identify, refuse_other
from stratalog.storage.commits.work import refuse_lost, sync_file
from stratalog.storage.files import File, FileSystem, begin_sync
from stratalog.storage.index import NO_TIMESTAMP, TimestampOffset
from stratalog.storage.layout import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    segment_file,
)
from stratalog.storage.log import Log
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.storage.segment import Segment, SegmentSizes
from stratalog.storage.time_range_writing import remove_time_ranges

if TYPE_CHECKING:
    from stratalog.storage.commits.committing import Gate

MODE = "adopt"

# So much of a file is given to the disk at a time.
_WRITTEN_OUT_BYTES = 4 << 20

# Of a load, which aborts nothing.
_INDEXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


def place_adopted(files: FileSystem, directory: str, staging: str, work: Mapping[str, Any]) -> None:
    """Give the files their offsets, and their names if they are still in staging."""
    for each in work["files"]:
        staged, base_offset = f"{staging}/{each['name']}", each["base_offset"]
        placed = segment_file(directory, base_offset, LOG_SUFFIX)
        path = staged if files.exists(staged) else placed
        found = files.stat(path)
        if path == staged and found is not None and found.size_bytes != each["size_bytes"]:
            raise CorruptFileError(staged, "is not what was committed: it has another size")
        # What has another size was cleaned since, and what is not there was deleted.
        if found is None or found.size_bytes != each["size_bytes"]:
            refuse_lost(files, directory, staged, base_offset)
            continue
        rebase_file(files, path, base_offset=base_offset, leader_epoch=work["leader_epoch"])
        place_segment(files, directory, staged, base_offset, is_placed=path == placed)
    files.sync_directory(directory)


def place_segment(
    files: FileSystem,
    directory: str,
    staged: str,
    base_offset: int,
    *,
    indexes: tuple[str, ...] = _INDEXES,
    is_placed: bool = False,
) -> None:
    """Rename the staged ``.log``, and its indexes, to the segment ``base_offset``. A crash can come
    between any two of them: the ``.log`` may be placed already (``is_placed``), and an index that
    is not staged is in its place too, or was never there."""
    # The log last: once it is in its place, so is what lies beside it.
    for suffix in (*indexes, LOG_SUFFIX):
        source = staged.removesuffix(LOG_SUFFIX) + suffix
        is_there = not is_placed if suffix == LOG_SUFFIX else files.exists(source)
        if is_there:
            files.rename(source, segment_file(directory, base_offset, suffix))


def _write_out(size_bytes: int, pause: Callable[[], bool], file: File) -> None:
    """Offsets were written all over a file. Synced at once, they would keep the disk from those
    whose acknowledgements wait for it: so, as long as there are any, little by little, and the sync
    finds less to do."""
    for position in range(0, size_bytes, _WRITTEN_OUT_BYTES):
        if pause():
            begin_sync(file, position, _WRITTEN_OUT_BYTES, is_waited_for=True)


class OffsetsAhead:
    """Gives files that were checked, one after the other, the offsets that they are going to have
    if nothing is appended to their log until then.

    That is for the log's owner to say when appends are stopped; what any other thread sees of the
    log's end is a guess. Where it was wrong all files are given theirs again, while appends wait.

    Nothing is written once the commit was given up or the directories were let go of, since the
    files may be somebody else's by then: both wait for a file that is being written.
    """

    def __init__(
        self, log: Log, leader_epoch: int, pause: Callable[[], bool], gate: "Gate"
    ) -> None:
        self._log = log
        self._pause = pause
        self._gate = gate
        self._first_offset = self._next_offset = log.log_end_offset
        self._leader_epoch = leader_epoch
        self._writing = threading.Lock()
        self._is_given_up = False
        # Whether any file was written to, perhaps in vain.
        self.has_written = False

    def give(self, checked: CheckedFile) -> CheckedFile:
        """The file as it is then."""
        if self._is_given_up or self._log.log_end_offset != self._first_offset:
            self._is_given_up = True
            return checked
        is_begun = not self._pause()
        files = self._log.context.files
        with self._gate.passed(), self._writing:
            if self._is_given_up:
                return checked
            refuse_other(files, checked.path, checked.identity)
            self.has_written = True
            base_offset = self._next_offset
            self._next_offset += checked.record_count
            rebase(
                files,
                checked,
                base_offset=base_offset,
                leader_epoch=self._leader_epoch,
                is_synced=False,
                is_begun=is_begun,
            )
            return replace(checked, identity=identify(files, checked.path))

    def give_up(self) -> None:
        with self._writing:
            self._is_given_up = True

    @property
    def given(self) -> tuple[int, int] | None:
        """The first offset and the epoch that all files have, or None if they have not."""
        return None if self._is_given_up else (self._first_offset, self._leader_epoch)


class AdoptedFiles:
    """What ``work`` describes, of ``append`` with files large enough. See ``AppendWork``."""

    needed_bytes = 0

    def __init__(
        self, log: Log, checked: Iterable[CheckedFile], staging: str, ahead: OffsetsAhead
    ) -> None:
        self._log = log
        self._files = log.context.files
        self._checked = tuple(checked)
        self._staging = staging
        # From which offset on the files have theirs, and with which epoch, if all have any.
        self._given = ahead.given
        self._is_written = ahead.has_written
        # Whether all that was written is durable.
        self._is_synced = False
        self._first_offset = self._leader_epoch = -1
        self.record: dict[str, Any] = {}

    @property
    def record_count(self) -> int:
        return sum(each.record_count for each in self._checked)

    def sync_staged(self, pause: Callable[[], bool]) -> None:
        """Whoever wrote them has synced them. This is cheap then, unless they were given offsets,
        and all that can be asked of somebody who was never seen."""
        for checked in self._checked:
            self._sync(checked.path, checked, pause)
        self._is_synced = True

    def _sync(self, path: str, checked: CheckedFile, pause: Callable[[], bool]) -> None:
        if self._is_written:
            sync_file(self._files, path, before=partial(_write_out, checked.size_bytes, pause))
        else:
            sync_file(self._files, path)

    def _bases(self) -> Iterable[tuple[CheckedFile, int]]:
        base_offset = self._first_offset
        for checked in self._checked:
            yield checked, base_offset
            base_offset += checked.record_count

    def stop(self) -> None:
        """The log's own segments are as they are; which one is replaced is seen by its name."""

    def settle(self, first_offset: int, leader_epoch: int) -> dict[str, Any]:
        for checked in self._checked:
            refuse_other(self._files, checked.path, checked.identity)
        self._first_offset, self._leader_epoch = first_offset, leader_epoch
        self.record = {
            "mode": MODE,
            "leader_epoch": leader_epoch,
            "files": [
                {
                    "name": checked.name,
                    "base_offset": base_offset,
                    "size_bytes": checked.size_bytes,
                }
                for checked, base_offset in self._bases()
            ],
        }
        return self.record

    def place(self) -> None:
        self._give_offsets()
        for checked, base_offset in self._bases():
            place_segment(self._files, self._log.directory, checked.path, base_offset)

    def _give_offsets(self) -> None:
        wanted = self._first_offset, self._leader_epoch
        if self._given == wanted:
            return
        self._is_written, self._is_synced = True, False
        for checked, base_offset in self._bases():
            rebase(
                self._files,
                checked,
                base_offset=base_offset,
                leader_epoch=self._leader_epoch,
                is_synced=False,
            )
        self._given = wanted

    def apply(self) -> None:
        log = self._log
        now_ms = log.context.clock.now_ms()
        self._leave_active()
        for checked, base_offset in self._bases():
            log.segments.add(self._open(checked, base_offset, now_ms))
            log.own.note_roll(
                base_offset,
                RollReason(RollCause.REQUESTED, f"{checked.size_bytes} bytes were committed"),
                now_ms,
            )
        end_offset = self._first_offset + self.record_count
        log.segments.add(log.new_segment(end_offset))
        log.log_end_offset = end_offset
        log.producers.map_end_offset = end_offset
        log.maybe_snapshot(durable=False)
        # The journal's record stands for names and offsets until they are durable.
        log.recovery_point = end_offset

    def _leave_active(self) -> None:
        log = self._log
        active = log.segments.active
        if active.base_offset == self._first_offset:
            assert active.size_bytes == 0, f"{active} holds batches behind the log's end"
            active.discard()
            remove_time_ranges(self._files, log.directory, active.base_offset)
            log.segments.remove(active)
        else:
            active.become_inactive()
            log.producers.map_end_offset = self._first_offset
            log.maybe_snapshot(durable=False)

    def _open(self, checked: CheckedFile, base_offset: int, now_ms: int) -> Segment:
        log = self._log
        segment = Segment(
            self._files,
            log.directory,
            base_offset,
            log.config,
            log.context.handles,
            created_ms=now_ms,
            sizes=SegmentSizes(
                checked.size_bytes,
                checked.offset_index_bytes,
                checked.time_index_bytes,
                modified_ms=now_ms,
            ),
        )
        segment.is_settled = True
        found = TimestampOffset(NO_TIMESTAMP, base_offset)
        if checked.max_timestamp_ms >= 0:
            offset = base_offset + checked.offset_of_max_timestamp
            found = TimestampOffset(checked.max_timestamp_ms, offset)
        segment.adopt(size_bytes=checked.size_bytes, max_timestamp=found)
        return segment

    def sync_placed(self, pause: Callable[[], bool]) -> None:
        directory = self._log.directory
        if not self._is_synced:
            for checked, base_offset in self._bases():
                self._sync(segment_file(directory, base_offset, LOG_SUFFIX), checked, pause)
        self._files.sync_directory(directory)

    def complete(self) -> None:
        for checked, base_offset in self._bases():
            place_time_ranges(self._files, checked, self._log.directory, base_offset=base_offset)

    def finish(self) -> None:
        """There is nothing left to note."""
