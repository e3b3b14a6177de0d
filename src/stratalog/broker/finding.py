"""What log directories hold, read for adoption; nothing is changed.

Beside what ``find_directory`` tells, adoption asks for the newest leader epoch and the largest
producer id, for which every batch header is read once: a chunk at a time, so that memory does not
grow with the logs. A file that cannot be read adds nothing, and a note.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from stratalog.directories.found_directory import find_directory
from stratalog.errors import CorruptBatchError, CorruptFileError
from stratalog.metadata.adoption import FoundDirectory
from stratalog.records import BatchHeader, find_valid_batch, read_header, read_headers
from stratalog.records._kernels import crc32c
from stratalog.storage.checkpoint import read_epochs
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import File, FileSystem, read_file
from stratalog.storage.inspection import list_replica
from stratalog.storage.layout import (
    LEADER_EPOCH_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    ReplicaDirectoryName,
    segment_file,
)
from stratalog.storage.snapshots import decode_snapshot

_CHUNK_BYTES = 4 << 20
# While a damaged file is searched: batches of up to the overlap are found where chunks meet.
_OVERLAP_BYTES = 2 << 20
_OFFSET_MAX = 2**63 - 1
_MAGIC = 2
_CRC_FROM = 21  # of a batch of that magic: what its CRC covers begins here


@dataclass(slots=True)
class _Seen:
    """The largest that some files name; -1 where they name none."""

    leader_epoch: int = -1
    producer_id: int = -1
    notes: list[str] = field(default_factory=list)

    def take(self, headers: Iterable[BatchHeader]) -> None:
        for header in headers:
            if header.producer_id > self.producer_id:
                self.producer_id = header.producer_id
            if header.partition_leader_epoch > self.leader_epoch:
                self.leader_epoch = header.partition_leader_epoch


def survey_directory(directory: LogDirectory, notes: list[str]) -> FoundDirectory:
    """What ``find_directory`` tells, with epochs and producer ids, for which all is read."""
    found = find_directory(directory)
    replicas, producer_id_max = [], -1
    for (path, _), replica in zip(_replicas(directory), found.replicas, strict=True):
        seen = _survey_replica(directory.files, path)
        notes += seen.notes
        producer_id_max = max(producer_id_max, seen.producer_id)
        replicas.append(replace(replica, leader_epoch=seen.leader_epoch))
    return replace(found, replicas=tuple(replicas), producer_id_max=producer_id_max)


def _replicas(directory: LogDirectory) -> list[tuple[str, ReplicaDirectoryName]]:
    return [(path, name) for path, name in directory.replicas() if not name.state]


def _survey_replica(files: FileSystem, path: str) -> _Seen:
    seen = _Seen()
    replica = list_replica(files, path)
    for offset in replica.snapshots:
        name = segment_file(path, offset, SNAPSHOT_SUFFIX)
        try:
            states = decode_snapshot(name, read_file(files, name))
        except CorruptFileError as error:
            seen.notes.append(str(error))
        else:
            seen.producer_id = max([seen.producer_id, *(each.producer_id for each in states)])
    for segment in replica.segments:
        file = files.open(segment.log_path, writable=False)
        try:
            for headers in _walk(file, segment.base_offset, seen.notes):
                seen.take(headers)
        finally:
            file.close()
    try:
        epochs = read_epochs(files, f"{path}/{LEADER_EPOCH_CHECKPOINT}")
    except CorruptFileError as error:
        seen.notes.append(str(error))
        return seen
    if epochs:
        # In a batch it lies outside the CRC, so that the file is the better witness.
        seen.leader_epoch = max(each.epoch for each in epochs)
    return seen


def _walk(file: File, base_offset: int, notes: list[str]) -> Iterator[list[BatchHeader]]:
    """Every header of a segment whose batch carries its CRC, a chunk at a time; bytes that are no
    such batch are passed over."""
    position, end = 0, file.size_bytes()
    while position < end:
        chunk = file.read_at(position, min(_CHUNK_BYTES, end - position))
        try:
            headers = read_headers(chunk, position) or _large_batch(file, chunk, position, end)
        except CorruptBatchError as error:
            headers = read_headers(memoryview(chunk)[: error.position - position], position)
            yield headers
            notes.append(f"{file.path} is damaged at byte {error.position}: {error.reason}")
            position = _next_batch(file, error.position + 1, base_offset)
            continue
        yield headers
        position = headers[-1].position + headers[-1].size_bytes


def _large_batch(file: File, chunk: bytes, position: int, end: int) -> list[BatchHeader]:
    """The one at ``position``, which is not whole in ``chunk``; read without keeping it."""
    header = read_header(chunk, 0, position)
    if header is None or position + header.size_bytes > end:
        raise CorruptBatchError("it ends before it is whole", position=position)
    if header.magic == _MAGIC:
        crc, at, stop = 0, position + _CRC_FROM, position + header.size_bytes
        while at < stop:
            part = file.read_at(at, min(_CHUNK_BYTES, stop - at))
            crc, at = crc32c(part, crc), at + len(part)
        if crc != header.crc:
            raise CorruptBatchError("its CRC is wrong", position=position)
    return [header]


def _next_batch(file: File, position: int, base_offset: int) -> int:
    """The next position that holds a whole batch with a right CRC; the end if there is none."""
    end = file.size_bytes()
    while position < end:
        chunk = file.read_at(position, min(_CHUNK_BYTES, end - position))
        at = find_valid_batch(chunk, 0, position, base_offset, _OFFSET_MAX)
        if at >= 0:
            return position + at
        if position + len(chunk) >= end:
            return end
        position += len(chunk) - _OVERLAP_BYTES
    return end
