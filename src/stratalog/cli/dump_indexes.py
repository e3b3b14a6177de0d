"""Indexes and producer snapshots as Apache Kafka's dump tool reads them.

Kafka counts every slot of an index file as an entry, also the zeros behind the last one of a
segment that was not closed, and stops a dump at the first slot, after slot 0, that names the
segment's own base offset. Lookups run over those zeros as well, so they are searched with the
same steps. A file is never created here, though Kafka's tool creates a missing index.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from stratalog.cli.dump_batches import BatchReader, DumpedBatch, DumpError, records_of
from stratalog.errors import DiskError
from stratalog.records._kernels import crc32c, search_offset_index
from stratalog.storage.files import FileSystem, read_file

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_ABORTED = struct.Struct(">bxqqqq")
_SNAPSHOT_HEADER = struct.Struct(">hIi")
_PRODUCER = struct.Struct(">qhiqiqiq")
_RELATIVE_OFFSET_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """An entry of an offset index, and the last offset of the batch it points to."""

    offset: int
    position: int
    log_offset: int


@dataclass(frozen=True, slots=True)
class TimeRow:
    """An entry of a time index; ``log_offset`` is the last offset of the batch found for it, -1
    for none, and ``log_timestamp_ms`` the largest timestamp in it, if it is the right one."""

    timestamp_ms: int
    offset: int
    log_offset: int
    log_timestamp_ms: int | None


class OffsetIndexFile:
    """All slots of an ``.index``; a missing file has none."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self.base_offset = base_offset
        self.entries = len(data) // _OFFSET_ENTRY.size
        self._data = data

    def entry(self, slot: int) -> tuple[int, int]:
        relative, position = _OFFSET_ENTRY.unpack_from(self._data, slot * _OFFSET_ENTRY.size)
        return self.base_offset + relative, position

    def lookup_position(self, offset: int) -> int:
        relative = min(offset - self.base_offset, _RELATIVE_OFFSET_MAX)
        if not self.entries or relative < 0:
            return 0
        slot = search_offset_index(self._data, self.entries, relative)
        return 0 if slot < 0 else self.entry(slot)[1]

    def check(self, path: str) -> None:
        if self.entries and self.entry(self.entries - 1)[0] < self.base_offset:
            last = self.entry(self.entries - 1)[0]
            raise DumpError(
                f"Corrupt index found, index file {path} has non-zero size but the last offset is "
                f"{last} which is less than the base offset {self.base_offset}"
            )

    def rows(self, log: BatchReader, max_message_size: int) -> Iterator[OffsetRow]:
        for slot in range(self.entries):
            offset, position = self.entry(slot)
            if slot and offset == self.base_offset:
                return
            batch = _first_batch(log, position, max_message_size)
            yield OffsetRow(offset, position, batch.last_offset)


def _first_batch(log: BatchReader, position: int, max_bytes: int) -> DumpedBatch:
    _check_position(log, position)
    end = min(position + max_bytes, log.size_bytes)
    batch = next(log.batches(position, end), None)
    if batch is None:
        raise DumpError(f"No whole batch begins at position {position} of {log.path}.")
    return batch


def _check_position(log: BatchReader, position: int) -> None:
    if not 0 <= position <= log.size_bytes:
        raise DumpError(
            f"Position {position} is outside {log.path}, which has {log.size_bytes} bytes."
        )


class TimeIndexFile:
    """All slots of a ``.timeindex``."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        self.base_offset = base_offset
        self.entries = len(data) // _TIME_ENTRY.size
        self._data = data

    def entry(self, slot: int) -> tuple[int, int]:
        timestamp_ms, relative = _TIME_ENTRY.unpack_from(self._data, slot * _TIME_ENTRY.size)
        return timestamp_ms, self.base_offset + relative

    def check(self, path: str) -> None:
        if not self.entries:
            return
        first_ms = self.entry(0)[0]
        last_ms, last_offset = self.entry(self.entries - 1)
        found = f"Corrupt time index found, time index file ({path}) has non-zero size but the last"
        if last_ms < first_ms:
            raise DumpError(
                f"{found} timestamp is {last_ms} which is less than the first timestamp {first_ms}"
            )
        if last_offset < self.base_offset:
            raise DumpError(
                f"{found} offset is {last_offset} which is less than the first offset "
                f"{self.base_offset}"
            )

    def rows(self, log: BatchReader, index: OffsetIndexFile) -> Iterator[TimeRow]:
        for slot in range(self.entries):
            timestamp_ms, offset = self.entry(slot)
            if slot and offset == self.base_offset:
                return
            batch = _batch_of(log, index, offset)
            if batch is None:
                yield TimeRow(timestamp_ms, offset, -1, None)
            elif batch.last_offset != offset:
                yield TimeRow(timestamp_ms, offset, batch.last_offset, None)
            else:
                largest = max((record.timestamp_ms for record in records_of(batch)), default=-1)
                yield TimeRow(timestamp_ms, offset, offset, largest)


def _batch_of(log: BatchReader, index: OffsetIndexFile, offset: int) -> DumpedBatch | None:
    """The first batch that ends at ``offset`` or later, from where the index says on.

    The rest of the file is walked as well: Kafka does, and stops at damage behind the batch.
    """
    position = index.lookup_position(offset)
    _check_position(log, position)
    found = log.chain().find(position, offset)
    if found is None:
        # The index does not point to a batch. What would be read there instead?
        for batch in log.batches(position, log.size_bytes):
            if found is None and batch.last_offset >= offset:
                found = batch.position
    return None if found is None or found < 0 else next(log.batches(found, log.size_bytes))


# --- aborted transactions and producers ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AbortedRow:
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_rows(path: str, data: bytes) -> Iterator[AbortedRow]:
    whole = len(data) - len(data) % _ABORTED.size
    for fields in _ABORTED.iter_unpack(data[:whole]):
        row = AbortedRow(*fields)
        if row.version > 0:
            raise DumpError(
                f"Unexpected aborted transaction version {row.version} in transaction index "
                f"{path}, current version is 0"
            )
        yield row


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """``last_offset`` is negative where no batch of the producer is remembered."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    transaction_first_offset: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + 2**31


class SnapshotError(DumpError):
    """A corrupt snapshot, which Kafka's tool reports without failing."""


def producer_rows(data: bytes) -> list[ProducerRow]:
    invalid = "Snapshot failed schema validation:"
    if len(data) < 2:
        raise SnapshotError(f"{invalid} null")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version != 1:
        raise SnapshotError(f"{invalid} Snapshot contained an unknown file version {version}")
    if len(data) < _SNAPSHOT_HEADER.size:
        raise SnapshotError(f"{invalid} null")
    _, crc, count = _SNAPSHOT_HEADER.unpack_from(data)
    left = len(data) - _SNAPSHOT_HEADER.size
    if count < 0:
        raise SnapshotError(f"{invalid} non-nullable field producerEntries was serialized as null")
    if count > left:
        raise SnapshotError(
            f"{invalid} Tried to allocate a collection of size {count}, but there are only "
            f"{left} bytes remaining."
        )
    if count * _PRODUCER.size > left:
        raise SnapshotError(f"{invalid} null")
    computed = crc32c(memoryview(data)[6:])
    if crc != computed:
        raise SnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. "
            f"Computed crc: {computed}"
        )
    entries = data[_SNAPSHOT_HEADER.size : _SNAPSHOT_HEADER.size + count * _PRODUCER.size]
    return [ProducerRow(*fields) for fields in _PRODUCER.iter_unpack(entries)]


def read_whole(files: FileSystem, path: str) -> bytes:
    """A whole file, or a sentence that says why not."""
    try:
        return read_file(files, path)
    except DiskError as error:
        raise DumpError(f"{path} cannot be read: {error.reason}.") from error
