"""Copying files to a store of backups: read once, summed, and their batches checked on the way.

A segment that looks as it did at an earlier backup is not even read. One that was read and has the
content of a file that the store holds is not written again.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from typing_extensions import Buffer

from stratalog.records import BatchHeader, SegmentScan
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.manifest import (
    SourceFile,
    StoredFile,
    StoredSegment,
)
from stratalog.storage.backup.store import BackupStore, StoreRun
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import File
from stratalog.storage.layout import LOG_SUFFIX

CHUNK_BYTES = 4 << 20
_HEADER_BYTES = 61
_NO_INDEX = 1 << 30  # bytes between entries: none are wanted

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentToCopy:
    """One segment, or its first ``size_bytes``. ``open_log`` gives the file that was listed, by
    whatever name it has now; ``read_indexes`` all of its index files, or none where they cannot
    be told to be of the same file. ``end_offset`` is where the next segment begins."""

    base_offset: int
    end_offset: int
    size_bytes: int
    source: SourceFile
    open_log: Callable[[], File]
    read_indexes: Callable[[], Mapping[str, bytes]]

    @property
    def is_whole(self) -> bool:
        return self.size_bytes == self.source.size_bytes


class BatchWalk:
    """The batches of a segment, from the pieces of its file in whatever sizes they come."""

    def __init__(self, base_offset: int, *, all_headers: bool = False) -> None:
        self.scan = SegmentScan(
            base_offset, _NO_INDEX, check_records=False, all_headers=all_headers
        )
        self._rest = b""
        self._wanted_bytes = 0

    def feed(self, data: Buffer) -> list[BatchHeader]:
        """Headers of batches that are whole now: those that ``SegmentScan.feed`` gives."""
        view = memoryview(data)
        headers: list[BatchHeader] = []
        while self._rest and len(view) and self.scan.fault is None:
            # Only the batch that was cut is put together; the rest is looked at where it is.
            known = len(self._rest)
            missing = self._wanted_bytes - known if self._wanted_bytes > known else _HEADER_BYTES
            headers += self._take(self._rest + bytes(view[:missing]))
            view = view[missing:]
        if not self._rest:
            headers += self._take(view)
        return headers

    def _take(self, piece: Buffer) -> list[BatchHeader]:
        if self.scan.fault is not None:
            return []
        before = self.scan.position
        headers = self.scan.feed(piece)
        self._rest = bytes(memoryview(piece)[self.scan.position - before :])
        self._wanted_bytes = self.scan.wanted_bytes
        return headers

    @property
    def fault(self) -> str:
        """What is wrong with the batch at ``scan.position``; empty if nothing is. To be asked
        when all was fed."""
        return self.scan.fault or (CUT_SHORT if self._rest else "")


def read_pieces(file: File, size_bytes: int) -> Iterator[memoryview]:
    """The first ``size_bytes`` of a file, or all there is. A piece counts until the next."""
    buffer = memoryview(bytearray(min(CHUNK_BYTES, max(size_bytes, 1))))
    position = 0
    while position < size_bytes:
        count = file.read_into(position, buffer[: min(len(buffer), size_bytes - position)])
        if count == 0:
            return
        yield buffer[:count]
        position += count


class Copier:
    """Copies to one store, in one run. ``known`` are the segments of an earlier backup, by how
    their files looked. Segments may be copied on several threads."""

    def __init__(
        self,
        store: BackupStore,
        run: StoreRun,
        *,
        known: Mapping[tuple[str, SourceFile], StoredSegment] | None = None,
        progress: Progress = lambda _bytes: None,
    ) -> None:
        self._store = store
        self._run = run
        self._known = known or {}
        self._progress = progress
        self.copied: dict[str, StoredFile] = {}
        self.read_bytes = 0
        self._guard = threading.Lock()

    def copy_segment(self, directory: str, wanted: SegmentToCopy) -> StoredSegment:
        """``directory`` is only a part of the name by which it is known again."""
        known = self._known.get((directory, wanted.source))
        if known is not None and self._is_held(known, wanted):
            self._progress(wanted.size_bytes)
            return self._with_indexes(known, wanted)
        walk, producer_id_max = BatchWalk(wanted.base_offset), -1

        def look(piece: memoryview) -> None:
            nonlocal producer_id_max
            for header in walk.feed(piece):
                producer_id_max = max(producer_id_max, header.producer_id)
            self._progress(len(piece))

        file = wanted.open_log()
        try:
            log = self._copy(file, wanted.size_bytes, look)
        finally:
            file.close()
        if log.size_bytes != wanted.size_bytes:
            raise BackupError(
                f"{file.path} ended at byte {log.size_bytes} while it was copied, where "
                f"{wanted.size_bytes} bytes were listed: its owner has cut it"
            )
        indexes = wanted.read_indexes() if wanted.is_whole else {}
        scan, damage = walk.scan, ""
        if walk.fault:
            damage = f"at byte {scan.position}: {walk.fault}"
        elif scan.next_offset > wanted.end_offset:
            # The base offset of a batch is in none of its sums.
            damage = (
                f"at its end: its batches go up to offset {scan.next_offset}, but the next segment "
                f"begins at {wanted.end_offset}"
            )
        return StoredSegment(
            base_offset=wanted.base_offset,
            next_offset=wanted.end_offset if damage else max(scan.next_offset, wanted.base_offset),
            record_count=scan.record_count,
            max_timestamp_ms=scan.max_timestamp_ms,
            producer_id_max=producer_id_max,
            files={
                LOG_SUFFIX: log,
                **{suffix: self.copy_bytes(data) for suffix, data in indexes.items()},
            },
            source=wanted.source,
            damage=damage,
        )

    def _with_indexes(self, known: StoredSegment, wanted: SegmentToCopy) -> StoredSegment:
        """A segment that was copied as the active one came without."""
        if len(known.files) > 1 or not wanted.is_whole:
            return known
        indexes = {suffix: self.copy_bytes(data) for suffix, data in wanted.read_indexes().items()}
        return replace(known, files={**known.files, **indexes})

    def _is_held(self, known: StoredSegment, wanted: SegmentToCopy) -> bool:
        return (
            known.log.size_bytes == wanted.size_bytes
            and known.next_offset <= wanted.end_offset
            and all(self._store.has(each) for each in known.files.values())
        )

    def copy_bytes(self, data: bytes) -> StoredFile:
        """A small file."""
        file = StoredFile(digest=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
        if not self._store.has(file) and file.digest not in self.copied:
            incoming = self._run.incoming()
            incoming.write(data)
            incoming.keep(file)
            self.copied[file.digest] = file
        return file

    def _copy(self, file: File, size_bytes: int, look: Callable[[memoryview], None]) -> StoredFile:
        summed = hashlib.sha256()
        incoming = self._run.incoming()
        done = 0
        try:
            for piece in read_pieces(file, size_bytes):
                summed.update(piece)
                incoming.write(piece)
                look(piece)
                done += len(piece)
        except BaseException:
            incoming.discard()
            raise
        stored = StoredFile(digest=summed.hexdigest(), size_bytes=done)
        if done != size_bytes or self._store.has(stored) or stored.digest in self.copied:
            incoming.discard()
        else:
            incoming.keep(stored)
            self.copied[stored.digest] = stored
        with self._guard:
            self.read_bytes += done
        return stored


def known_segments(
    partitions: Mapping[str, tuple[StoredSegment, ...]],
) -> dict[tuple[str, SourceFile], StoredSegment]:
    """The segments of an earlier backup, as ``Copier`` wants them: ``partitions`` by directory.
    One that was damaged is read again, since somebody may have mended it in place."""
    return {
        (directory, segment.source): segment
        for directory, segments in partitions.items()
        for segment in segments
        if not segment.damage and segment.source.inode
    }


def check_batches(store: BackupStore, stored: StoredSegment, walk: BatchWalk) -> None:
    """Refuse a segment whose batches, which ``walk`` was fed, contradict what is said of it: a log
    that was given their offsets by its name would hold others."""
    fault = walk.fault
    next_offset = max(walk.scan.next_offset, stored.base_offset)
    if not fault and next_offset != stored.next_offset:
        fault = f"its batches end at offset {next_offset}, not at {stored.next_offset}"
    if fault:
        raise BackupDamagedError(
            store.path(stored.log),
            f"it does not fit segment {stored.base_offset} of the backup's manifest: {fault}",
        )


def read_checked(
    store: BackupStore, file: StoredFile, take: Callable[[memoryview], None] = lambda _piece: None
) -> None:
    """Read a whole file of a store, hand its pieces to ``take``, and hold it against its sum."""
    source = store.open(file)
    summed, done = hashlib.sha256(), 0
    try:
        for piece in read_pieces(source, file.size_bytes):
            summed.update(piece)
            take(piece)
            done += len(piece)
    finally:
        source.close()
    if (summed.hexdigest(), done) != (file.digest, file.size_bytes):
        raise BackupDamagedError(
            store.path(file),
            "its bytes are not those that were backed up: it was changed since. If the logs still "
            "have them, remove the file and back up again, which copies it anew",
        )
