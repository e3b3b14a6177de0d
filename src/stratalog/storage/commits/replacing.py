"""A commit that replaces segments: what a compaction elsewhere made of them takes their place.

The log must be what the compaction has read: each source segment has the size, the last offset and
the last CRC that it had then. Meanwhile its own cleaner does nothing here, nor does retention of a
compacted log. Once the journal has the record, the files go to ``.swap`` in the partition's
directory, and from there on it is the cleaner's protocol (``cleaning.swap``, ``sweep``): readers
with a lease keep the old files, and a crash ends with the new ones.

A crash in the middle leaves ``cleaner-offset-checkpoint`` as it was: the next cleaning looks at
the same records once more, and finds little to do.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from typing_extensions import Buffer

from stratalog.config import TopicConfig
from stratalog.errors import (
    CleaningAbortedError,
    CorruptBatchError,
    CorruptIndexError,
    CorruptSegmentError,
    DiskError,
    OutOfResourcesError,
    SegmentOffsetOverflowError,
)
from stratalog.records import read_headers
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.cleaning.swap import swap_in
from stratalog.storage.commits.errors import (
    CommitRefusedError,
    ManifestError,
    SourceChangedError,
    StagedFileError,
)
from stratalog.storage.commits.identity import identify, refuse_other
from stratalog.storage.commits.kept_digest import kept_digest
from stratalog.storage.commits.manifest import (
    CommitKind,
    Manifest,
    PartitionManifest,
    Replacement,
    SourceSegment,
)
from stratalog.storage.commits.staged_reading import StagedDirectory
from stratalog.storage.commits.work import topic_id_of
from stratalog.storage.files import File, FileSystem
from stratalog.storage.layout import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    TopicPartition,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.segment import Segment
from stratalog.storage.transactions import AbortedTransaction, TransactionIndex

if TYPE_CHECKING:
    from stratalog.storage.cleaning.cleaner import LogCleaner
    from stratalog.storage.commits.committing import LogCommits
    from stratalog.storage.directory import LogDirectory
    from stratalog.storage.log import Log

MODE = "replace"
_PIECE_BYTES = 1 << 20


def describe_segment(segment: Segment) -> SourceSegment:
    """What tells whether a closed segment is still the same."""
    last = segment.last_header()
    return SourceSegment(
        base_offset=segment.base_offset,
        size_bytes=segment.size_bytes,
        last_offset=-1 if last is None else last.last_offset,
        last_crc=0 if last is None else last.crc,
    )


class StagedReplacement(CleanedSegment):
    """A staged file that becomes a segment: read once, with its indexes made on the way."""

    checks_crc = True

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        staging: StagedDirectory,
        replacement: Replacement,
        config: TopicConfig,
    ) -> None:
        self.replacement = replacement
        self._staging = staging
        self._identity = staging.identity(replacement.file)
        super().__init__(files, directory, replacement.file.base_offset, config)

    @property
    def sources(self) -> list[int]:
        return [each.base_offset for each in self.replacement.sources]

    def path(self, suffix: str, state: str = CLEANED_SUFFIX) -> str:
        if state == CLEANED_SUFFIX:
            return f"{self._staging.path}/{self.replacement.file.stem}{suffix}"
        return super().path(suffix, state)

    def _open_log(self) -> File:
        staged = self.replacement.file
        if staged.size_bytes:
            return self._staging.open(staged)
        file = self._files.open(self.path(LOG_SUFFIX), writable=False)
        if file.size_bytes():
            raise StagedFileError(file.path, 0, "it has bytes, and the manifest says it has none")
        return file

    def _write_log(self, position: int, batches: Buffer) -> None:
        """It is where it belongs already."""

    def check(self, aborted: set[AbortedTransaction], end_offset: int, modified_ms: int) -> None:
        """Read all of it; ``StagedFileError`` if it is not what it should be."""
        staged = self.replacement.file
        digest = record_count = 0
        try:
            for piece in self._pieces():
                headers = read_headers(piece, 0, check_crc=False)
                digest = kept_digest(headers, digest)
                record_count += sum(header.record_count for header in headers)
                if headers and headers[-1].last_offset >= end_offset:
                    reason = f"it reaches beyond offset {end_offset}, where the next segment begins"
                    raise StagedFileError(self._log.path, headers[-1].position, reason)
                self.append(piece)
        except (CorruptBatchError, CorruptSegmentError, SegmentOffsetOverflowError) as error:
            position = getattr(error, "position", -1)
            raise StagedFileError(self._log.path, position, str(error)) from error
        if record_count != staged.record_count or f"{digest:08x}" != staged.digest:
            reason = (
                f"{record_count} records with the digest {digest:08x}, and the manifest says "
                f"{staged.record_count} with {staged.digest}"
            )
            raise StagedFileError(self._log.path, -1, reason)
        if staged.has_aborts or self._files.exists(self.path(TRANSACTION_INDEX_SUFFIX)):
            self._take_aborted(aborted)
        self.refuse_other()
        self.finish(modified_ms)
        self._identity = identify(self._files, self.path(LOG_SUFFIX))  # it has another age now

    def _pieces(self) -> Iterator[memoryview]:
        position, wanted, end = 0, _PIECE_BYTES, self.replacement.file.size_bytes
        while position < end:
            piece = self._log.read_at(position, min(wanted, end - position))
            headers = read_headers(piece, 0, check_crc=False)
            if headers:
                taken = headers[-1].position + headers[-1].size_bytes
                yield memoryview(piece)[:taken]
                position, wanted = position + taken, _PIECE_BYTES
            elif position + len(piece) >= end:
                raise StagedFileError(self._log.path, position, "it ends in the middle of a batch")
            else:
                wanted *= 2

    def _take_aborted(self, known: set[AbortedTransaction]) -> None:
        path = self.path(TRANSACTION_INDEX_SUFFIX)
        found: list[AbortedTransaction] = []
        if self._files.exists(path):
            try:
                found = list(TransactionIndex(self._files, path, self.base_offset, exists=True))
            except CorruptIndexError as error:
                raise StagedFileError(path, -1, str(error)) from error
        is_told = self.replacement.file.has_aborts
        if not found or not is_told or not known.issuperset(found):
            raise StagedFileError(path, -1, "it names transactions that its sources do not")
        self.add_aborted(found)

    def refuse_other(self) -> None:
        """Whether it is still the file that was checked."""
        refuse_other(self._files, self.path(LOG_SUFFIX), self._identity)

    def discard(self) -> None:
        """What was staged stays: it can be handed over again."""
        with suppress(DiskError):
            self._files.unlink(self._time_ranges_path(), missing_ok=True)

    def describe(self) -> dict[str, Any]:
        """For the journal."""
        return {
            "base_offset": self.base_offset,
            "stem": self.replacement.file.stem,
            "suffixes": list(self.suffixes),
        }


class ReplacedSegments:
    """The work of such a commit in one partition; see ``PartitionWork``."""

    needed_bytes = 0

    def __init__(
        self,
        directory: "LogDirectory",
        log: "Log",
        manifest: Manifest,
        part: PartitionManifest,
        cleaner: "LogCleaner | None",
    ) -> None:
        self.key: TopicPartition = log.topic_partition
        self.log = log
        self._directory = directory
        self._manifest = manifest
        self._part = part
        self._cleaner = cleaner
        self._is_paused = False
        self._write: Callable[[], None] = lambda: None
        self._made: list[StagedReplacement] = []
        self._truncation_count = log.truncation_count
        self._refuse_kept()
        self._ends = self._check_sources()
        first = part.groups[0].sources[0].base_offset
        self.offsets = (first, self._ends[-1])
        if not first <= part.cleaned_to <= self._ends[-1]:
            raise ManifestError(
                manifest.manifest_id,
                f"{self.key} would be clean up to {part.cleaned_to}, which it does not rewrite",
            )
        # Kept for the check, which runs elsewhere, while everything here can still be asked.
        self._ages = [
            log.segments.at(group.sources[-1].base_offset).modified_ms() for group in part.groups
        ]
        self._aborted = {each for segment in log.segments for each in segment.transaction_index}

    def _refuse_kept(self) -> None:
        """A topic's policy may change as long as its staged files are read."""
        if not self.log.config.compact:
            raise CommitRefusedError(f"{self.key} is not compacted: its cleanup.policy has changed")

    def _check_sources(self) -> list[int]:
        """That they are in the log, as they were, one after the other; where each group ends."""
        segments = {segment.base_offset: segment for segment in self.log.segments}
        bases = list(segments)
        ends: list[int] = []
        group_ends: list[int] = []
        for group in self._part.groups:
            if group.file.base_offset != group.sources[0].base_offset:
                self._refuse(f"{group.file.name} does not begin where its sources do")
            for source in group.sources:
                base_offset = source.base_offset
                segment = segments.get(base_offset)
                if segment is None or segment is self.log.segments.active:
                    raise SourceChangedError(
                        f"{self.key}: segment {base_offset} is not there any more, or not closed"
                    )
                if ends and base_offset != ends[-1]:
                    self._refuse(f"segment {base_offset} does not follow the one before it")
                if describe_segment(segment) != source:
                    raise SourceChangedError(
                        f"{self.key}: segment {base_offset} is not what it was when it was read; "
                        "nothing was replaced, and the compaction can be run again"
                    )
                ends.append(bases[bases.index(base_offset) + 1])
            group_ends.append(ends[-1])
        return group_ends

    def _refuse(self, reason: str) -> None:
        raise ManifestError(self._manifest.manifest_id, f"{self.key}: {reason}")

    # --- the steps ------------------------------------------------------------------------------

    def check(self) -> None:
        log, files = self.log, self.log.context.files
        if self._cleaner is not None:
            self._cleaner.abort_and_pause(self.key)
            self._is_paused = True
        staging = StagedDirectory(files, log.directory, self._manifest.staging_id)
        for group, end_offset, modified_ms in zip(
            self._part.groups, self._ends, self._ages, strict=True
        ):
            made = StagedReplacement(files, log.directory, staging, group, log.config)
            self._made.append(made)
            made.check(self._aborted, end_offset, modified_ms)
        staging.sync()

    def stop(self) -> None:
        log = self.log
        self._refuse_kept()
        if log.truncation_count != self._truncation_count:
            raise SourceChangedError(f"{self.key} was truncated meanwhile")
        if log.is_closed or log.failure is not None:
            raise CommitRefusedError(f"{self.key} cannot be changed: {log.failure or 'closed'}")
        if self._check_sources() != self._ends:
            raise SourceChangedError(f"{self.key}: other segments follow its sources now")

    def settle(self) -> dict[str, Any]:
        for made in self._made:
            made.refuse_other()
        return {
            "topic": self.key.topic,
            "partition": self.key.partition,
            "mode": MODE,
            "topic_id": topic_id_of(self.log),
            "groups": [made.describe() for made in self._made],
            "first_offset": self.offsets[0],
            "end_offset": self.offsets[1],
        }

    def place(self) -> None:
        """Names change with the log, in ``apply``."""

    def apply(self) -> None:
        is_clean = True
        for made in self._made:
            try:
                swap_in(
                    self.log,
                    made,
                    made.sources,
                    truncation_count=self._truncation_count,
                    may_take_back=False,
                )
            except CleaningAbortedError:
                # Only who deletes records of a log, or the log itself, can have been here since.
                is_clean = False
        if is_clean:
            self._write = self._directory.plan_cleaner_offset(self.key, self._part.cleaned_to)

    def complete(self) -> None:
        self.log.context.files.sync_directory(self.log.directory)
        with suppress(OutOfResourcesError):  # it is written with the next change
            self._write()

    def finish(self) -> None:
        self._resume()

    def abandon(self) -> None:
        for made in self._made:
            made.discard()
        self._resume()

    def _resume(self) -> None:
        if self._cleaner is not None and self._is_paused:
            self._is_paused = False
            self._cleaner.resume(self.key)


def make_replacement(
    commits: "LogCommits",
    directory: "LogDirectory",
    log: "Log",
    manifest: Manifest,
    part: PartitionManifest,
) -> ReplacedSegments:
    assert manifest.kind is CommitKind.REPLACE
    return ReplacedSegments(directory, log, manifest, part, commits.manager.cleaner)


# --- after a crash ----------------------------------------------------------------------------


def roll_replacement_forward(
    files: FileSystem, directory: str, staging_path: str, work: Mapping[str, Any]
) -> None:
    """Offer what is still staged to the sweep, which does the rest; nothing is left of a cleaning
    that ran when the owner was stopped, which would make the sweep undo it."""
    for entry in files.list(directory):
        parsed = None if not entry.is_file else parse_segment_file(entry.name)
        if parsed is not None and parsed.state == CLEANED_SUFFIX:
            files.unlink(f"{directory}/{entry.name}")
    for group in work["groups"]:
        base_offset = int(group["base_offset"])
        plain = segment_file(directory, base_offset, LOG_SUFFIX)
        if not files.exists(plain) and not files.exists(plain + SWAP_SUFFIX):
            continue  # its sources were deleted after all
        for suffix in group["suffixes"]:
            staged = f"{staging_path}/{group['stem']}{suffix}"
            if suffix in SEGMENT_SUFFIXES and files.exists(staged):
                files.rename(staged, segment_file(directory, base_offset, suffix) + SWAP_SUFFIX)
    files.sync_directory(directory)
