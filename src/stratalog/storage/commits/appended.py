"""Staged batches that are written behind the last one of a log's active segment.

The journal's record says where: the segment, the position, and the batch that lies before. So the
bytes can be put there again, and again, until they are known to be durable: whatever a crash left
of them, half a batch or sectors of a later one. The staged file stays as it is; offsets and epoch
are given on the way.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stratalog.errors import CorruptBatchError, CorruptFileError
from stratalog.records import BatchHeader, min_timestamp, read_header, read_headers
from stratalog.storage.commits.checking import CheckedFile
from stratalog.storage.commits.identity import refuse_other
from stratalog.storage.commits.work import has_gone_on, refuse_cut, refuse_lost, sync_file
from stratalog.storage.files import File, FileSystem
from stratalog.storage.flushing import FlushTask
from stratalog.storage.layout import LOG_SUFFIX, segment_file
from stratalog.storage.log import Log
from stratalog.storage.rolling import plan_roll

MODE = "append"

_PIECE_BYTES = 1 << 20
_HEADER_BYTES = 61
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = 12


def place_appended(
    files: FileSystem,
    directory: str,
    staging: str,
    work: Mapping[str, Any],
    *,
    is_synced: bool = True,
    seen: Callable[[int, bytearray], None] = lambda _position, _batches: None,
) -> None:
    """Put the bytes where the record says. Not where the segment has changed since: cleaned, or
    deleted. It can only after they were there, and then the log has gone on; one that has not has
    lost what lay before them. ``seen`` is shown all that is written."""
    staged = f"{staging}/{work['name']}"
    path = segment_file(directory, work["base_offset"], LOG_SUFFIX)
    if not files.exists(staged):
        found = files.stat(path)
        if found is None or found.size_bytes < work["position"] + work["size_bytes"]:
            refuse_lost(files, directory, staged, work["base_offset"])
        return
    is_new = not files.exists(path)
    if is_new and (work["position"] or has_gone_on(files, directory, work["base_offset"])):
        refuse_cut(files, directory, work["base_offset"])
        return
    file = files.open(path, create=True)
    try:
        if not _is_as_it_was(file, work):
            refuse_cut(files, directory, work["base_offset"])
            return
        for position, piece in _stamped(files, staged, work):
            file.write_at(position, [piece])
            seen(position, piece)
        if is_synced:
            file.sync()
    finally:
        file.close()
    if is_new and is_synced:
        files.sync_directory(directory)


def _is_as_it_was(file: File, work: Mapping[str, Any]) -> bool:
    """Whether the batch before is where it was when the record was written."""
    before = work["before"]
    if before is None:
        # A segment that begins with these batches, or that is still empty.
        found = _header_at(file, 0)
        return found is None or found.base_offset == work["first_offset"]
    found = _header_at(file, before["position"])
    return found is not None and (found.base_offset, found.crc) == (
        before["base_offset"],
        before["crc"],
    )


def _header_at(file: File, position: int) -> BatchHeader | None:
    try:
        return read_header(file.read_at(position, _HEADER_BYTES), 0, position)
    except CorruptBatchError:
        return None


def _stamped(
    files: FileSystem, staged: str, work: Mapping[str, Any]
) -> Iterator[tuple[int, bytearray]]:
    """The staged batches in pieces, with their offsets and epoch, and where each piece goes."""
    offset, position = work["first_offset"], work["position"]
    file = files.open(staged, writable=False)
    try:
        done, end = 0, file.size_bytes()
        while done < end:
            piece, headers = _read_batches(file, done, end)
            for header in headers:
                _BASE_OFFSET.pack_into(piece, header.position, offset)
                _LEADER_EPOCH.pack_into(
                    piece, header.position + _LEADER_EPOCH_AT, work["leader_epoch"]
                )
                offset += header.record_count
            yield position + done, piece
            done += len(piece)
    finally:
        file.close()
    if offset != work["end_offset"] or end != work["size_bytes"]:
        raise CorruptFileError(staged, "is not what was committed")


def _read_batches(file: File, position: int, end: int) -> tuple[bytearray, list[BatchHeader]]:
    size = _PIECE_BYTES
    while True:
        piece = bytearray(file.read_at(position, min(size, end - position)))
        try:
            headers = read_headers(piece, 0, check_crc=False)
        except CorruptBatchError as error:
            raise CorruptFileError(file.path, f"is not what was committed: {error}") from error
        if headers:
            del piece[headers[-1].position + headers[-1].size_bytes :]
            return piece, headers
        if position + size >= end:
            raise CorruptFileError(file.path, "is not what was committed: it ends in a batch")
        size *= 2


class AppendedBatches:
    """What ``work`` describes, of ``append`` with little to append. See ``AppendWork``."""

    def __init__(self, log: Log, checked: CheckedFile, staging: str) -> None:
        self._log = log
        self._files = log.context.files
        self._checked = checked
        self._staging = staging
        self._base_offset = self._position = 0
        self._before: dict[str, int] | None = None
        self._placed: list[tuple[list[BatchHeader], int]] = []
        self._flush: FlushTask | None = None
        self.record: dict[str, Any] = {}

    @property
    def record_count(self) -> int:
        return self._checked.record_count

    @property
    def needed_bytes(self) -> int:
        return self._checked.size_bytes

    def sync_staged(self, _pause: Callable[[], bool]) -> None:
        sync_file(self._files, self._checked.path)

    def stop(self) -> None:
        """Before appends are paused: which segment it will be, and where in it."""
        log, checked = self._log, self._checked
        reason = plan_roll(
            log.segments.active,
            log.config,
            incoming_bytes=checked.size_bytes,
            incoming_last_offset=log.log_end_offset + checked.record_count - 1,
            incoming_max_timestamp_ms=checked.max_timestamp_ms,
            now_ms=log.context.clock.now_ms(),
        )
        if reason is not None:
            log.roll(reason)
        active = log.segments.active
        active.prepare_append()
        self._base_offset, self._position = active.base_offset, active.size_bytes
        last = active.last_header()
        if last is not None:
            self._before = {
                "position": last.position,
                "base_offset": last.base_offset,
                "crc": last.crc,
            }

    def settle(self, first_offset: int, leader_epoch: int) -> dict[str, Any]:
        refuse_other(self._files, self._checked.path, self._checked.identity)
        self.record = {
            "mode": MODE,
            "name": self._checked.name,
            "size_bytes": self._checked.size_bytes,
            "base_offset": self._base_offset,
            "position": self._position,
            "before": self._before,
            "first_offset": first_offset,
            "end_offset": first_offset + self.record_count,
            "leader_epoch": leader_epoch,
        }
        return self.record

    def place(self) -> None:
        place_appended(
            self._files,
            self._log.directory,
            self._staging,
            self.record,
            is_synced=False,
            seen=self._note,
        )

    def _note(self, position: int, batches: bytearray) -> None:
        headers = read_headers(batches, position, check_crc=False)
        self._placed.append((headers, min_timestamp(batches)))

    def apply(self) -> None:
        """Count what ``place`` has written."""
        log = self._log
        active = log.segments.active
        assert (active.base_offset, active.size_bytes) == (self._base_offset, self._position), (
            f"{active} has changed while appends were paused"
        )
        for headers, min_timestamp_ms in self._placed:
            active.take_written(headers, min_timestamp_ms)
        self._placed.clear()
        log.context.directory_state.appended(self._checked.size_bytes)
        log.log_end_offset = self.record["end_offset"]
        log.producers.map_end_offset = log.log_end_offset
        self._flush = log.plan_flush()

    def sync_placed(self, _pause: Callable[[], bool]) -> None:
        if self._flush is not None:
            self._flush.run()

    def complete(self) -> None:
        """There is nothing beside the log to be written."""

    def finish(self) -> None:
        if self._flush is not None:
            self._log.complete_flush(self._flush)
