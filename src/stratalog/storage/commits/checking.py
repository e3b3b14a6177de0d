"""Checking what was staged, before any of it becomes part of a log.

Nothing is believed. A staged file is a plain file in its partition's own staging directory, as long
as the manifest says, and nobody else has a name for it. Every byte of it is read once: each batch
has a right CRC and passes the rules that the topic has for producers (``validate_produced``), with
the same changes where a leader would make some: the time of the append, the topic's compression.
Then the file is written anew, and so are small ones that become one segment.

A load has no producer: a batch with a producer id, of a transaction, or of control records is
refused. Offsets and leader epochs are not looked at, since the log gives its own and no CRC covers
them: an owner that was killed in the middle of giving them leaves a mixture.

Whoever may write to the staging directory may write to the log beside it. This protects a log from
mistakes, broken disks and half-written files, not from its own user.
"""

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from stratalog.config import TopicConfig
from stratalog.errors import CorruptBatchError, DiskError, RecordError
from stratalog.records import (
    BatchHeader,
    ProducedBatches,
    SegmentScan,
    TimeRangeScan,
    keep_batches,
    read_header,
    read_headers,
    validate_produced,
)
from stratalog.storage.appending import produce_rules
from stratalog.storage.commits.errors import ManifestError, StagedFileError
from stratalog.storage.commits.identity import FileIdentity
from stratalog.storage.commits.manifest import PartitionManifest, StagedFile
from stratalog.storage.commits.merged_segments import MergedSegments
from stratalog.storage.commits.merging import (
    CheckedFile,
    FilePlan,
    SegmentMaker,
    place_time_ranges,
    plan_files,
    rebase,
    rebase_file,
)
from stratalog.storage.commits.staged_log import (
    LOG_OVERHEAD_BYTES,
    NO_LEADER_EPOCH,
    PREFIX,
    digest_of,
)
from stratalog.storage.files import Entry, File, FileSystem
from stratalog.storage.layout import OWN_DIRECTORY, STAGING_DIRECTORY, staging_directory

__all__ = [
    "CheckedFile",
    "CheckedPartition",
    "StagedDirectory",
    "check_kept",
    "check_partition",
    "place_time_ranges",
    "rebase",
    "rebase_file",
]

# A check may rest behind each piece. Who wakes up on the core that it works on waits until then,
# for schedulers let a thread use up its slice: so where somebody does, a piece is some tenths of a
# millisecond. Where nobody does, larger ones cost less.
_SHARED_PIECE_BYTES = 256 << 10
_PIECE_BYTES = 2 << 20
_HEADER_BYTES = 61
_FILE_BYTES_MAX = 2**31 - 1
_WHOLE_RANGE = 1 << 40
_CODEC_BITS = 0x07

# A file that cannot be had is the stager's fault, not a disk's.
_NOT_TO_BE_HAD = (errno.ENOENT, errno.EINVAL, errno.EACCES, errno.EISDIR, errno.ENXIO, errno.ELOOP)

# Whether somebody else wants to use the machine.
Progress = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class CheckedPartition:
    """What becomes part of one log: as segments, or else appended, in this order."""

    is_adopted: bool
    files: tuple[CheckedFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)

    @property
    def record_count(self) -> int:
        return sum(each.record_count for each in self.files)


def check_partition(
    files: FileSystem,
    directory: str,
    part: PartitionManifest,
    config: TopicConfig,
    *,
    staging_id: str,
    now_ms: int,
    append_max_bytes: int,
    is_synced: bool = True,
    progress: Progress = lambda _bytes: False,
    adopts: Callable[[CheckedFile], CheckedFile] = lambda checked: checked,
    refuse_full: Callable[[int], None] = lambda _bytes: None,
) -> CheckedPartition:
    """Check all that ``part``, which appends, has staged in the partition of ``directory``. Its
    names are durable then, unless ``is_synced`` says that somebody else sees to it. ``adopts`` is
    given each file that is to be a segment, before the next one is begun. ``refuse_full`` raises if
    there is no room for so many bytes of copies as are about to be written.

    ``StagedFileError`` or ``ManifestError`` if it may not be; nothing has changed then. What was
    staged stays as it is also where other files are made of it, but for what ``adopts`` does, so
    that this can be done again.
    """
    _refuse_other_kinds(part)
    plan = plan_files(
        part.files, segment_bytes=config.segment_size_bytes, append_max_bytes=append_max_bytes
    )
    staging = StagedDirectory(files, directory, staging_id)
    check = _PartitionCheck(
        files,
        staging,
        config,
        now_ms=now_ms,
        append_max_bytes=append_max_bytes,
        progress=progress,
        adopts=adopts,
        refuse_full=refuse_full,
    )
    try:
        checked = check.run(plan)
        if is_synced:
            staging.sync()
    except BaseException:
        check.discard()
        raise
    return checked


def _refuse_other_kinds(part: PartitionManifest) -> None:
    is_plain = (part.groups, part.cleaned_to, part.log_start_offset, part.epochs) == ((), -1, 0, ())
    if not is_plain or not part.files:
        raise ManifestError("", f"{part.topic_partition} says more than what is appended to it")
    for each in part.files:
        if each.base_offset or each.has_aborts:
            raise ManifestError(
                "", f"{each.name} of {part.topic_partition} has offsets or aborts of its own"
            )


# --- files ------------------------------------------------------------------------------------


class StagedDirectory:
    """What lies in a partition's staging directory, listed once. Links are none of it."""

    def __init__(self, files: FileSystem, directory: str, staging_id: str) -> None:
        self.path = staging_directory(directory, staging_id)
        self._files = files
        self._directory = directory
        self._refuse_links()
        self._entries = {entry.name: entry for entry in self._list(self.path)}

    def _refuse_links(self) -> None:
        # The partition's own directory holds too many names to be listed for each commit. What is
        # above a link's target is not what is above the link.
        own = f"{self._directory}/{OWN_DIRECTORY}"
        here, above = self._files.stat(self._directory), self._files.stat(f"{own}/..")
        if here is not None and above is not None and here.inode != above.inode:
            raise StagedFileError(own, -1, "it is a link")
        staging = f"{self._directory}/{STAGING_DIRECTORY}"
        for directory, path in ((own, staging), (staging, self.path)):
            for entry in self._list(directory):
                if entry.is_link and f"{directory}/{entry.name}" == path:
                    raise StagedFileError(path, -1, "it is a link")

    def _list(self, path: str) -> list[Entry]:
        try:
            return self._files.list(path)
        except DiskError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
            raise StagedFileError(
                self.path, -1, "it is not there: nothing was staged, or it was swept away"
            ) from error

    def _entry(self, staged: StagedFile) -> Entry:
        entry = self._entries.get(staged.name)
        if entry is None:
            path = f"{self.path}/{staged.name}"
            raise StagedFileError(path, -1, "it is not there; stage it again")
        return entry

    def identity(self, staged: StagedFile) -> FileIdentity:
        """As it was listed, before anything was read."""
        return FileIdentity.of(self._entry(staged))

    def open(self, staged: StagedFile, *, size_max: int = _FILE_BYTES_MAX) -> File:
        """To be read. It is as long as ``staged`` says, and nothing but a file."""
        path = f"{self.path}/{staged.name}"
        entry = self._entry(staged)
        if entry.is_link or entry.is_directory or entry.link_count > 1:
            raise StagedFileError(path, -1, "it is not a file of its own, but a link or directory")
        if not 0 < staged.size_bytes <= size_max:
            reason = f"its size is {staged.size_bytes}; a segment has from 1 to {size_max} bytes"
            raise StagedFileError(path, -1, reason)
        try:
            file = self._files.open(path, writable=False)
        except DiskError as error:
            if error.errno not in _NOT_TO_BE_HAD:
                raise
            raise StagedFileError(path, -1, error.reason) from error
        found = file.size_bytes()
        if found != staged.size_bytes:
            file.close()
            reason = f"it has {found} bytes, and the manifest says {staged.size_bytes}"
            raise StagedFileError(path, min(found, staged.size_bytes), reason)
        return file

    def sync(self) -> None:
        """Make the names durable, with those of the directories on the way here: once a journal
        tells of these files, they have to be there."""
        own = f"{self._directory}/{OWN_DIRECTORY}"
        staging = f"{self._directory}/{STAGING_DIRECTORY}"
        for path in (self.path, staging, own, self._directory):
            self._files.sync_directory(path)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some whole batches of a file, in memory that is used again for the next."""

    position: int
    buffer: bytearray
    size_bytes: int
    headers: list[BatchHeader]

    @property
    def batches(self) -> memoryview:
        return memoryview(self.buffer)[: self.size_bytes]

    def batch(self, header: BatchHeader) -> memoryview:
        start = header.position - self.position
        return memoryview(self.buffer)[start : start + header.size_bytes]


def _pieces(
    file: File, size_bytes: int, *, batch_bytes_max: int, progress: Progress
) -> Iterator[_Piece]:
    """The whole of a file that holds nothing but batches; or ``StagedFileError``. ``progress`` is
    told of each piece that was worked on."""
    buffer = bytearray()
    position = 0
    # At first, until it is known; and what the largest batch so far has asked for.
    piece_bytes, largest_bytes = _SHARED_PIECE_BYTES, 0
    while position < size_bytes:
        read_bytes = min(max(piece_bytes, largest_bytes), size_bytes - position)
        if len(buffer) < read_bytes:
            buffer = bytearray(read_bytes)
        view = memoryview(buffer)[:read_bytes]
        if file.read_into(position, view) < len(view):
            raise StagedFileError(file.path, position, "it was cut while it was read")
        try:
            headers = read_headers(view, position, check_crc=False)
            first = None if headers else read_header(view, 0, position)
        except CorruptBatchError as error:
            raise StagedFileError(file.path, error.position, error.reason) from error
        if headers:
            taken = headers[-1].position + headers[-1].size_bytes - position
            yield _Piece(position, buffer, taken, headers)
            position += taken
            piece_bytes = _SHARED_PIECE_BYTES if progress(taken) else _PIECE_BYTES
            continue
        wanted = _HEADER_BYTES if first is None else first.size_bytes
        if wanted > size_bytes - position:
            raise StagedFileError(file.path, position, "it ends in the middle of a batch")
        # A length is only a number in a file: it asks for memory when the topic would allow it.
        if wanted > batch_bytes_max:
            raise StagedFileError(file.path, position, _too_large(wanted, batch_bytes_max))
        assert wanted > len(view), "a whole batch would have been found"
        largest_bytes = wanted


@dataclass(slots=True)
class _Tally:
    """What a manifest says about a file, counted."""

    record_count: int = 0
    digest: int = 0
    latest_epoch: int = -1

    def add(self, headers: list[BatchHeader]) -> None:
        self.record_count += sum(max(each.record_count, 0) for each in headers)
        self.digest = digest_of([each.crc for each in headers], self.digest)

    def note_epochs(self, headers: list[BatchHeader]) -> None:
        self.latest_epoch = max([self.latest_epoch, *(h.partition_leader_epoch for h in headers)])

    def compare(self, path: str, staged: StagedFile) -> None:
        if self.record_count != staged.record_count:
            reason = f"{self.record_count} records, and the manifest says {staged.record_count}"
            raise StagedFileError(path, -1, reason)
        if f"{self.digest:08x}" != staged.digest:
            reason = f"its digest is {self.digest:08x}, and the manifest says {staged.digest}"
            raise StagedFileError(path, -1, reason)


# --- what is appended -------------------------------------------------------------------------


class _PartitionCheck:
    """Of one partition: goes through its groups of files, and makes what they become."""

    def __init__(
        self,
        files: FileSystem,
        staging: StagedDirectory,
        config: TopicConfig,
        *,
        now_ms: int,
        append_max_bytes: int,
        progress: Progress,
        adopts: Callable[[CheckedFile], CheckedFile],
        refuse_full: Callable[[int], None],
    ) -> None:
        self._files = files
        self._staging = staging
        self._config = config
        self._rules = produce_rules(config)
        self._now_ms = now_ms
        self._append_max_bytes = append_max_bytes
        self._progress = progress
        self._adopts = adopts
        self._segment_bytes = config.segment_size_bytes
        # Of what is staged. In the topic's codec it may be less, and have room in a segment.
        self._batch_bytes_max = config.max_message_bytes
        if self._rules.codec is None:
            self._batch_bytes_max = min(self._batch_bytes_max, self._segment_bytes)
        # Where nothing changes, files become one as it was planned. Where batches do, only what is
        # written tells what fits.
        self._is_as_planned = self._rules.codec is None and not self._rules.log_append_time
        self._makers: list[SegmentMaker] = []
        self._adopted: list[CheckedFile] = []
        self._merged = MergedSegments(
            # A name that no manifest can have.
            lambda number: self._maker(f"merged.{number:05d}.log"),
            self._adopt,
            segment_bytes=self._segment_bytes,
            refuse_full=refuse_full,
        )

    def discard(self) -> None:
        for maker in self._makers:
            maker.discard()

    def run(self, plan: FilePlan) -> CheckedPartition:
        for group in plan.groups:
            if self._is_as_planned:
                self._merged.close()
            kept = self._keep(group[0]) if len(group) == 1 else None
            if kept is None:
                for each in group:
                    self._check(each, self._copy_piece)
            elif plan.is_adopted:
                self._merged.close()
                self._adopt(kept)
            else:
                return CheckedPartition(False, (kept.finish(is_indexed=False),))
        last = self._merged.take_open()
        if last is not None:
            if not self._adopted and last.size_bytes < self._append_max_bytes:
                return CheckedPartition(False, (last.finish(is_indexed=False),))
            self._adopt(last)
        return CheckedPartition(True, tuple(self._adopted))

    def _adopt(self, maker: SegmentMaker) -> None:
        self._adopted.append(self._adopts(maker.finish()))

    def _maker(self, name: str, *, staged: FileIdentity | None = None) -> SegmentMaker:
        maker = SegmentMaker(self._files, self._staging.path, name, self._config, staged=staged)
        self._makers.append(maker)
        return maker

    def _keep(self, staged: StagedFile) -> SegmentMaker | None:
        """The file as it is, or None as soon as a batch of it has to change."""
        if self._rules.log_append_time:
            return None
        maker = self._maker(staged.name, staged=self._staging.identity(staged))
        is_kept = self._check(staged, lambda path, piece: self._keep_piece(path, piece, maker))
        return maker if is_kept else None

    def _check(self, staged: StagedFile, take: Callable[[str, _Piece], bool]) -> bool:
        """Whether ``take`` took all pieces: it is given one after the other."""
        file = self._staging.open(staged)
        tally = _Tally()
        try:
            limit = self._batch_bytes_max
            for piece in _pieces(
                file, staged.size_bytes, batch_bytes_max=limit, progress=self._progress
            ):
                tally.add(piece.headers)
                if not take(file.path, piece):
                    return False
        finally:
            file.close()
        tally.compare(file.path, staged)
        return True

    def _keep_piece(self, path: str, piece: _Piece, maker: SegmentMaker) -> bool:
        offset, position = maker.next_offset, maker.size_bytes
        kept = self._kept(piece, offset)
        for header, min_timestamp_ms in kept:
            maker.note(position, header, min_timestamp_ms)
            position += header.size_bytes
            offset = header.next_offset
        for header in piece.headers[len(kept) :]:
            produced = self._validate(path, piece, header, offset)
            if produced.rebuilt or produced.header.crc != header.crc:
                return False
            self._give_prefix(piece, header, offset)
            maker.note(position, produced.header, produced.min_timestamp_ms)
            position += produced.size_bytes
            offset += produced.header.record_count
        maker.take(piece.batches)
        return True

    def _copy_piece(self, path: str, piece: _Piece) -> bool:
        merged = self._merged
        if merged.has_room(piece.headers):
            kept = self._kept(piece, merged.next_offset)
            merged.add_kept(kept, piece.batches)
        else:
            kept = []  # they go to more than one segment
        for header in piece.headers[len(kept) :]:
            merged.add(self._validate(path, piece, header, merged.next_offset))
        merged.flush()
        return True

    def _kept(self, piece: _Piece, offset: int) -> list[tuple[BatchHeader, int]]:
        """The first batches, as many as stay as they are, with offsets from ``offset`` on."""
        limit = min(self._config.max_message_bytes, self._segment_bytes)
        return keep_batches(
            piece.batches, self._rules, offset, NO_LEADER_EPOCH, self._now_ms, limit
        )

    def _give_prefix(self, piece: _Piece, header: BatchHeader, offset: int) -> None:
        size_bytes = header.size_bytes - LOG_OVERHEAD_BYTES
        PREFIX.pack_into(piece.batch(header), 0, offset, size_bytes, NO_LEADER_EPOCH)

    def _validate(
        self, path: str, piece: _Piece, header: BatchHeader, offset: int
    ) -> ProducedBatches:
        reason = _unstageable(header)
        if header.size_bytes > self._batch_bytes_max:
            reason = _too_large(header.size_bytes, self._batch_bytes_max)
        if reason is not None:
            raise StagedFileError(path, header.position, reason)
        batch = piece.batch(header)
        # As a producer sends it: the offset that stands there means nothing.
        self._give_prefix(piece, header, 0)
        try:
            produced = validate_produced(
                batch,
                self._rules,
                first_offset=offset,
                leader_epoch=NO_LEADER_EPOCH,
                now_ms=self._now_ms,
            )
            if not header.codec_id and not produced.offsets_count_from_zero:
                # Compressed ones are refused by then. This one says what is wrong.
                TimeRangeScan(_WHOLE_RANGE, check_crc=False).feed(batch, 0)
        except CorruptBatchError as error:
            raise StagedFileError(path, header.position, error.reason) from error
        except RecordError as error:
            raise StagedFileError(path, header.position, str(error)) from error
        # What is stored counts too: in the topic's codec it may be more than what was staged.
        if produced.size_bytes > self._segment_bytes:
            as_stored = " in the codec of compression.type"
            reason = _too_large(produced.size_bytes, self._segment_bytes, as_stored)
            raise StagedFileError(path, header.position, reason)
        return produced


def _too_large(size_bytes: int, limit_bytes: int, as_stored: str = "") -> str:
    return (
        f"a batch of {size_bytes} bytes{as_stored}, over the {limit_bytes} that max.message.bytes "
        "and segment.bytes of the topic allow"
    )


def _unstageable(header: BatchHeader) -> str | None:
    """Why a batch may not be staged to be appended, whatever the topic says."""
    if header.magic < 2:
        return f"a batch of magic {header.magic}; only magic 2 can be staged"
    if header.is_control:
        return "a control batch: only a transaction coordinator writes those"
    if header.is_transactional or header.producer_id >= 0:
        return f"a batch of producer {header.producer_id}: what is loaded has no producer"
    if header.attributes & ~_CODEC_BITS:
        return f"its attributes are {header.attributes:#x}: more than a compression codec"
    if header.record_count < 1:
        return "a batch without records"
    return None


# --- what keeps its offsets -------------------------------------------------------------------


def check_kept(
    files: FileSystem,
    staging: StagedDirectory,
    staged: StagedFile,
    config: TopicConfig,
    *,
    end_offset: int,
    progress: Progress = lambda _bytes: False,
) -> CheckedFile:
    """Check a file that is going to be the segment ``staged.base_offset``, with the offsets that it
    has, all below ``end_offset``; and write its indexes.

    It may hold anything that a log may: batches of any magic, of producers and transactions.
    """
    maker = SegmentMaker(
        files,
        staging.path,
        staged.name,
        config,
        base_offset=staged.base_offset,
        staged=staging.identity(staged),
    )
    scan = SegmentScan(staged.base_offset, config.index_interval_bytes, no_headers=True)
    file = staging.open(staged)
    tally = _Tally()
    try:
        for piece in _pieces(
            file, staged.size_bytes, batch_bytes_max=_FILE_BYTES_MAX, progress=progress
        ):
            scan.feed(piece.batches)
            if scan.fault is not None:
                raise StagedFileError(file.path, scan.position, scan.fault)
            tally.add(piece.headers)
            tally.note_epochs(piece.headers)
            maker.take(piece.batches)
        tally.compare(file.path, staged)
        if scan.next_offset > end_offset:
            reason = f"it reaches to offset {scan.next_offset - 1}, and has to end at {end_offset}"
            raise StagedFileError(file.path, scan.last_position, reason)
        return replace(maker.finish(), latest_epoch=tally.latest_epoch)
    except BaseException:
        maker.discard()
        raise
    finally:
        with suppress(DiskError):
            file.close()
