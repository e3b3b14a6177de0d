"""What a manifest says is staged, found and read: plain files in its partition's own directory.

They are read in pieces of whole batches, each byte once; what is in the batches is for others.
"""

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stratalog.errors import CorruptBatchError, DiskError
from stratalog.records import BatchHeader, read_header, read_headers
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.identity import FileIdentity
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.staged_log import digest_of
from stratalog.storage.files import Entry, File, FileSystem
from stratalog.storage.layout import OWN_DIRECTORY, STAGING_DIRECTORY, staging_directory

# A check may rest behind each piece. Who wakes up on the core that it works on waits until then,
# for schedulers let a thread use up its slice: so where somebody does, a piece is some tenths of a
# millisecond. Where nobody does, larger ones cost less.
_SHARED_PIECE_BYTES = 256 << 10
_PIECE_BYTES = 2 << 20
_HEADER_BYTES = 61
FILE_BYTES_MAX = 2**31 - 1

# A file that cannot be had is the stager's fault, not a disk's.
_NOT_TO_BE_HAD = (errno.ENOENT, errno.EINVAL, errno.EACCES, errno.EISDIR, errno.ENXIO, errno.ELOOP)

# Whether somebody else wants to use the machine.
Progress = Callable[[int], bool]


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

    def open(self, staged: StagedFile, *, size_max: int = FILE_BYTES_MAX) -> File:
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
class Piece:
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


def read_pieces(
    file: File, size_bytes: int, *, batch_bytes_max: int, progress: Progress
) -> Iterator[Piece]:
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
            yield Piece(position, buffer, taken, headers)
            position += taken
            piece_bytes = _SHARED_PIECE_BYTES if progress(taken) else _PIECE_BYTES
            continue
        wanted = _HEADER_BYTES if first is None else first.size_bytes
        if wanted > size_bytes - position:
            raise StagedFileError(file.path, position, "it ends in the middle of a batch")
        # A length is only a number in a file: it asks for memory when the topic would allow it.
        if wanted > batch_bytes_max:
            raise StagedFileError(file.path, position, too_large(wanted, batch_bytes_max))
        assert wanted > len(view), "a whole batch would have been found"
        largest_bytes = wanted


@dataclass(slots=True)
class Tally:
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


def too_large(size_bytes: int, limit_bytes: int, as_stored: str = "") -> str:
    return (
        f"a batch of {size_bytes} bytes{as_stored}, over the {limit_bytes} that max.message.bytes "
        "and segment.bytes of the topic allow"
    )
