"""Producer state on disk: ``<offset>.snapshot`` files.

    2 bytes version (1)   4 CRC-32C of all that follows   4 number of entries, then each:
    8 producer id   2 epoch   4 last sequence   8 last offset   4 offset delta   8 timestamp
    4 coordinator epoch   8 first offset of the open transaction, or -1

The number in the name is the offset up to which the state counts. Only the last batch of each
producer is kept. Snapshots are hints: a corrupt one is passed over for an older one, and the log
is replayed from there.
"""

import struct
from collections.abc import Iterable

from stratalog.errors import CorruptFileError
from stratalog.records._kernels import crc32c
from stratalog.storage.files import Entry, FileSystem, make_way, read_file
from stratalog.storage.layout import (
    SNAPSHOT_SUFFIX,
    base_offset_of,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.producers import ProducerBatch, ProducerState

_VERSION = 1
_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


def encode_snapshot(states: Iterable[ProducerState]) -> bytes:
    ordered = _hash_map_order(list(states))
    body = _COUNT.pack(len(ordered)) + b"".join(_encode_entry(state) for state in ordered)
    return _HEADER.pack(_VERSION, crc32c(body)) + body


def _encode_entry(state: ProducerState) -> bytes:
    last = state.batches[-1] if state.batches else ProducerBatch(-1, -1, 0, -1)
    first_offset = state.transaction_first_offset
    return _ENTRY.pack(
        state.producer_id,
        state.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        state.last_timestamp_ms,
        state.coordinator_epoch,
        -1 if first_offset is None else first_offset,
    )


def _hash_map_order(states: list[ProducerState]) -> list[ProducerState]:
    # The format fixes no order. Apache Kafka writes the order of its hash map, and so do we: the
    # same appends then give the same bytes, which makes the two easy to compare.
    buckets = 16
    while len(states) > buckets * 3 // 4:
        buckets *= 2

    def bucket(state: ProducerState) -> int:
        value = state.producer_id & 0xFFFFFFFFFFFFFFFF
        folded = (value ^ (value >> 32)) & 0xFFFFFFFF
        return (folded ^ (folded >> 16)) & (buckets - 1)

    return sorted(states, key=bucket)


def decode_snapshot(path: str, data: bytes) -> list[ProducerState]:
    smallest = _HEADER.size + _COUNT.size
    if len(data) < smallest:
        raise CorruptFileError(path, f"{len(data)} bytes are too few for a producer snapshot")
    version, crc = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptFileError(path, f"snapshot version {version}; only {_VERSION} is known")
    if crc != crc32c(memoryview(data)[_HEADER.size :]):
        raise CorruptFileError(path, "the snapshot's CRC does not match its bytes")
    (count,) = _COUNT.unpack_from(data, _HEADER.size)
    if count < 0 or smallest + count * _ENTRY.size > len(data):
        raise CorruptFileError(path, f"{count} entries do not fit {len(data)} bytes")
    entries = data[smallest : smallest + count * _ENTRY.size]
    return [_decode_entry(fields) for fields in _ENTRY.iter_unpack(entries)]


def _decode_entry(fields: tuple[int, ...]) -> ProducerState:
    producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator, first = fields
    state = ProducerState(
        producer_id, epoch, coordinator, timestamp_ms, None if first < 0 else first
    )
    if offset >= 0:
        state.batches.append(ProducerBatch(sequence, offset, delta, timestamp_ms))
    return state


class Snapshots:
    """The snapshot files of one replica's directory, by offset."""

    def __init__(self, files: FileSystem, directory: str, offsets: Iterable[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self._offsets = set(offsets)
        self._unsynced: set[int] = set()

    @classmethod
    def load(
        cls, files: FileSystem, directory: str, entries: Iterable[Entry] | None = None
    ) -> "Snapshots":
        """Those in ``directory``, of which the caller may have a listing already."""
        listed = files.list(directory) if entries is None else entries
        found = (each.name for each in listed if each.is_file)
        names = (parse_segment_file(name) for name in found if name.endswith(SNAPSHOT_SUFFIX))
        offsets = [n.offset for n in names if n and n.kind == SNAPSHOT_SUFFIX and not n.state]
        return cls(files, directory, offsets)

    @property
    def offsets(self) -> list[int]:
        return sorted(self._offsets)

    def path(self, offset: int) -> str:
        return segment_file(self._directory, offset, SNAPSHOT_SUFFIX)

    def write(self, offset: int, states: Iterable[ProducerState], *, durable: bool) -> None:
        path = self.path(offset)
        # Kafka writes over an older file without cutting it, and a longer old tail would then
        # fall under the new CRC.
        make_way(self._files, path)
        self._offsets.discard(offset)
        file = self._files.open(path, create=True)
        try:
            file.write_at(0, [encode_snapshot(states)])
            if durable:
                file.sync()
        finally:
            file.close()
        self._offsets.add(offset)
        if not durable:
            self._unsynced.add(offset)

    @property
    def is_sync_due(self) -> bool:
        return bool(self._unsynced)

    def take_unsynced(self) -> list[str]:
        """Those that ``write`` left to be synced by the next flush, which takes them on."""
        paths = [self.path(offset) for offset in sorted(self._unsynced & self._offsets)]
        self._unsynced.clear()
        return paths

    def sync_again(self, paths: Iterable[str]) -> None:
        """The flush that took these on did not get to them; the next one does."""
        self._unsynced |= {base_offset_of(path) for path in paths} & self._offsets

    def read_newest(self, *, at_most: int) -> tuple[int, list[ProducerState]] | None:
        """The newest readable snapshot; the corrupt ones passed on the way are removed."""
        for offset in sorted(self._offsets, reverse=True):
            if offset > at_most:
                continue
            path = self.path(offset)
            try:
                return offset, decode_snapshot(path, read_file(self._files, path))
            except CorruptFileError:
                self.remove(offset)
        return None

    def remove(self, offset: int) -> None:
        self._files.unlink(self.path(offset), missing_ok=True)
        self._offsets.discard(offset)

    def forget(self, offset: int) -> bool:
        """Stop counting a snapshot whose file somebody else is renaming."""
        if offset not in self._offsets:
            return False
        self._offsets.discard(offset)
        return True

    def remove_outside(self, start_offset: int, end_offset: int) -> None:
        """Remove those at or below ``start_offset`` and those above ``end_offset``."""
        for offset in self.offsets:
            if offset <= start_offset or offset > end_offset:
                self.remove(offset)

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Keep those that belong to a segment, and the newest one if none is newer."""
        bases = set(base_offsets)
        strays = [offset for offset in self.offsets if offset not in bases]
        newest = max(bases, default=0)
        if strays and strays[-1] >= newest:
            strays.pop()
        for offset in strays:
            self.remove(offset)
