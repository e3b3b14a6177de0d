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

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import CorruptBatchError, DiskError, RecordError
from stratalog.records import (
    BatchHeader,
    ProducedBatches,
    SegmentScan,
    keep_batches,
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
)
from stratalog.storage.commits.staged_reading import (
    FILE_BYTES_MAX,
    Piece,
    Progress,
    StagedDirectory,
    Tally,
    read_pieces,
    too_large,
)
from stratalog.storage.files import FileSystem

__all__ = [
    "CheckedFile",
    "CheckedPartition",
    "check_kept",
    "check_partition",
    "place_time_ranges",
    "rebase",
    "rebase_file",
]

_CODEC_BITS = 0x07


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

    def _check(self, staged: StagedFile, take: Callable[[str, Piece], bool]) -> bool:
        """Whether ``take`` took all pieces: it is given one after the other."""
        file = self._staging.open(staged)
        tally = Tally()
        try:
            limit = self._batch_bytes_max
            for piece in read_pieces(
                file, staged.size_bytes, batch_bytes_max=limit, progress=self._progress
            ):
                tally.add(piece.headers)
                if not take(file.path, piece):
                    return False
        finally:
            file.close()
        tally.compare(file.path, staged)
        return True

    def _keep_piece(self, path: str, piece: Piece, maker: SegmentMaker) -> bool:
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

    def _copy_piece(self, path: str, piece: Piece) -> bool:
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

    def _kept(self, piece: Piece, offset: int) -> list[tuple[BatchHeader, int]]:
        """The first batches, as many as stay as they are, with offsets from ``offset`` on."""
        limit = min(self._config.max_message_bytes, self._segment_bytes)
        return keep_batches(
            piece.batches, self._rules, offset, NO_LEADER_EPOCH, self._now_ms, limit
        )

    def _give_prefix(self, piece: Piece, header: BatchHeader, offset: int) -> None:
        size_bytes = header.size_bytes - LOG_OVERHEAD_BYTES
        PREFIX.pack_into(piece.batch(header), 0, offset, size_bytes, NO_LEADER_EPOCH)

    def _validate(
        self, path: str, piece: Piece, header: BatchHeader, offset: int
    ) -> ProducedBatches:
        reason = _unstageable(header)
        if header.size_bytes > self._batch_bytes_max:
            reason = too_large(header.size_bytes, self._batch_bytes_max)
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
                # Compressed ones are refused by then, and others written anew, with right offsets.
                reason = _misnumbered(batch, self._config.index_interval_bytes)
        except CorruptBatchError as error:
            raise StagedFileError(path, header.position, error.reason) from error
        except RecordError as error:
            raise StagedFileError(path, header.position, str(error)) from error
        if reason is not None:
            raise StagedFileError(path, header.position, reason)
        # What is stored counts too: in the topic's codec it may be more than what was staged.
        if produced.size_bytes > self._segment_bytes:
            as_stored = " in the codec of compression.type"
            reason = too_large(produced.size_bytes, self._segment_bytes, as_stored)
            raise StagedFileError(path, header.position, reason)
        return produced


def _misnumbered(batch: Buffer, index_interval_bytes: int) -> str | None:
    """Why the offsets that a batch says of its records are not theirs, if so."""
    scan = SegmentScan(0, index_interval_bytes, no_headers=True)
    scan.feed(batch)
    return "its records do not count from 0" if scan.misnumbered_count else scan.fault


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
    tally = Tally()
    try:
        for piece in read_pieces(
            file, staged.size_bytes, batch_bytes_max=FILE_BYTES_MAX, progress=progress
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
