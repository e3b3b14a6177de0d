"""Which transactions of a slice were aborted: what readers of committed records have to know.

The log itself tells: a transaction shares the fate of its producer's next marker. So headers are
walked from the first transactional batch of the slice on, and past its end until every transaction
in it is decided, which is soon, as transactions are short. Only where one is not, the transaction
indexes of later segments are asked instead; they are hints, so one that is garbled, or missing
where aborts are known of or no index was built yet, is made up for by walking that segment too.

Damage behind the slice can hide a marker, and the producer's next one is of another transaction. So
it is an error for who stops at damage; for who does not, what it hides counts as committed.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from stratalog.errors import CorruptBatchError, CorruptIndexError, CorruptSegmentError, DiskError
from stratalog.records._kernels import FateWalk
from stratalog.records.columns import AbortedTransaction
from stratalog.scans.slices import ScanSlice
from stratalog.scans.window import Window
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import Entry, File, FileSystem
from stratalog.storage.layout import (
    DELETED_SUFFIX,
    LEASED_DIRECTORY,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_leased_file,
    parse_segment_file,
)
from stratalog.storage.ours import OwnFiles
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.transactions import TransactionIndex

LOOK_AHEAD_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class _Later:
    """A segment that may hold the markers of transactions that begin in the slice."""

    base_offset: int
    log_path: str
    index_path: str
    offset_index_path: str
    size_bytes: int


class Fates:
    """Finds the aborted transactions of one slice."""

    def __init__(
        self,
        files: FileSystem,
        file: File,
        planned: ScanSlice,
        *,
        look_ahead_bytes: int,
        is_permissive: bool = False,
    ) -> None:
        self._files = ReadOnlyFileSystem(files)
        self._file = file
        self._planned = planned
        self._budget_bytes = look_ahead_bytes
        self._is_permissive = is_permissive
        self._walk = FateWalk()
        self._window = Window()
        self._skipped: list[_Later] = []  # of which only the index was asked

    @property
    def bytes_read(self) -> int:
        return self._window.bytes_read

    def find(self, pieces: list[tuple[int, int]]) -> list[AbortedTransaction]:
        """``pieces`` are the bytes that will be read, from the first transactional batch on."""
        for start, end in pieces:
            self._follow(self._file, start, end)
        self._walk.look_ahead()
        if not self._walk.is_decided:
            self._look_ahead()
        return self._walk.aborted

    def _follow(self, file: File, start: int, end: int) -> None:
        window = self._window
        window.begin(file, start, end)
        while not window.is_done:
            window.fill()
            position = self._walk.feed(window.view, window.position, end)
            if self._is_enough():
                return
            if position == window.position and not window.is_done:
                window.make_room()
            window.take(position - window.position)

    def _is_enough(self) -> bool:
        return self._walk.is_ahead and self._walk.is_decided

    # --- behind the slice -----------------------------------------------------------------------

    def _look_ahead(self) -> None:
        self._walk_ahead(self._file, self._planned.end_position)
        for later in self._later_segments():
            if self._walk.is_decided:
                return
            with suppress(DiskError):  # its owner has removed it since it was listed
                self._ask(later)

    def _ask(self, later: _Later) -> None:
        if self._budget_bytes > 0:
            self._budget_bytes -= later.size_bytes
            self._walk_file(later)
            return
        try:
            self._ask_index(later)
            self._skipped.append(later)
        except CorruptIndexError:
            # Indexes do not tell of commits: those in between decide before this one's markers.
            for each in (*self._skipped, later):
                self._walk_file(each)
            self._skipped.clear()

    def _walk_file(self, later: _Later) -> None:
        file = self._files.open(later.log_path)
        try:
            self._walk_ahead(file, 0)
        finally:
            file.close()

    def _walk_ahead(self, file: File, start: int) -> None:
        try:
            self._follow(file, start, file.size_bytes())
        except CorruptBatchError as error:
            # At the end of the log it is a write that is not finished.
            if not self._is_permissive and error.reason != CUT_SHORT:
                raise CorruptSegmentError(
                    file.path, error.position, error.base_offset, error.reason
                ) from error

    def _ask_index(self, later: _Later) -> None:
        exists = self._files.exists(later.index_path)
        if not exists and not self._files.exists(later.offset_index_path):
            raise CorruptIndexError(later.index_path, "it is missing, as all indexes are")
        if not exists and later.base_offset in OwnFiles(self._files, self._directory()).aborts():
            raise CorruptIndexError(later.index_path, "it is missing, and had entries")
        index = TransactionIndex(self._files, later.index_path, later.base_offset, exists=exists)
        index.sanity_check()
        self._walk.take_aborted(
            (each.producer_id, each.first_offset, each.last_offset) for each in index
        )

    def _directory(self) -> str:
        """Where the partition's files are now: its directory may have been renamed to be
        deleted."""
        directory, _, _ = self._file.path.rpartition("/")
        return directory.removesuffix(f"/{LEASED_DIRECTORY}")

    def _later_segments(self) -> Iterator[_Later]:
        """Segments that may hold offsets behind those already walked, in order.

        Compaction may have put them into a file with a lower base offset, even that of the slice;
        the walk passes over what it has seen.
        """
        found = sorted(self._segments().values(), key=lambda each: each.base_offset)
        for each, following in zip(found, [*found[1:], None], strict=True):
            is_behind = following is None or following.base_offset > self._walk.next_offset
            if is_behind and each.log_path != self._file.path:
                yield each

    def _segments(self) -> dict[int, _Later]:
        """By base offset; what is in the log counts before what was taken out of it."""
        directory = self._directory()
        leased = f"{directory}/{LEASED_DIRECTORY}"
        found: dict[int, _Later] = {}
        for entry in _entries(self._files, leased):
            kept = parse_leased_file(entry.name)
            if kept is not None and kept.kind == LOG_SUFFIX:
                found[kept.base_offset] = _later(leased, kept.base_offset, entry, "")
        plain = _entries(self._files, directory)
        for state in (DELETED_SUFFIX, ""):
            for entry in plain:
                parsed = parse_segment_file(entry.name)
                if parsed is not None and (parsed.kind, parsed.state) == (LOG_SUFFIX, state):
                    found[parsed.offset] = _later(directory, parsed.offset, entry, state)
        return found


def _later(directory: str, base_offset: int, entry: Entry, state: str) -> _Later:
    stem = entry.name.removesuffix(state).removesuffix(LOG_SUFFIX)
    return _Later(
        base_offset,
        f"{directory}/{entry.name}",
        f"{directory}/{stem}{TRANSACTION_INDEX_SUFFIX}{state}",
        f"{directory}/{stem}{OFFSET_INDEX_SUFFIX}{state}",
        entry.size_bytes,
    )


def _entries(files: FileSystem, directory: str) -> list[Entry]:
    with suppress(DiskError):
        return files.list(directory)
    return []
