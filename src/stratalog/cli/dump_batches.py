"""Batches and records of a ``.log`` as Apache Kafka's dump tool sees them: what it tolerates too.

The engine's kernels refuse a batch that contradicts itself. A dump must go on and show it, marked
``isvalid: false``, so it reads headers on its own and with Kafka's few conditions: a size of at
least 14, and a whole batch before the end. Only for people who look; nothing here is fast.

The formats are those of ``records``: 61 bytes of header and varint records for magic 2, and one
message a batch before that, whose value holds the inner messages if it is compressed.
"""

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from stratalog.errors import CorruptBatchError, StratalogError
from stratalog.records._kernels import crc32c
from stratalog.records.compression import decompress
from stratalog.storage.files import File

SEQUENCE_MAX = 2**31 - 1
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
NO_TIMESTAMP_TYPE = "NoTimestampType"

_LOG_OVERHEAD = 12
_UP_TO_MAGIC = 17
_SMALLEST_SIZE = 14
_WINDOW_BYTES = 1 << 20
_DECOMPRESSED_MAX_BYTES = 1 << 28

_PREFIX = struct.Struct(">qiib")
_V2 = struct.Struct(">qiibIhiqqqhii")
_LEGACY = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")


class DumpError(StratalogError):
    """Where Apache Kafka's tool stops with a stack trace: one sentence, and exit code 1."""


class DumpedRecord(NamedTuple):
    """``crc`` and ``is_valid`` are told of messages before magic 2 only."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    sequence: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()
    is_valid: bool = True
    crc: int = -1


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """One batch, believed as far as its own size; ``data`` is all its bytes."""

    position: int
    data: bytes
    base_offset: int
    last_offset: int
    magic: int
    crc: int
    attributes: int
    timestamp_ms: int
    base_timestamp_ms: int = -1
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_offset_delta: int = 0
    record_count: int = -1

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    @property
    def codec(self) -> str:
        codec_id = self.attributes & 7
        if codec_id >= len(CODEC_NAMES):
            raise DumpError(f"position {self.position}: there is no compression codec {codec_id}")
        return CODEC_NAMES[codec_id]

    @property
    def timestamp_type(self) -> str:
        return NO_TIMESTAMP_TYPE if self.magic == 0 else TIMESTAMP_TYPES[self.attributes >> 3 & 1]

    @property
    def last_sequence(self) -> int:
        return _sequence(self.base_sequence, self.last_offset_delta)

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x20)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp_ms if self.magic >= 2 and self.attributes & 0x40 else None

    @property
    def is_valid(self) -> bool:
        if self.magic >= 2:
            covered = memoryview(self.data)[21:]
            return self.size_bytes >= _V2.size and crc32c(covered) == self.crc
        return zlib.crc32(memoryview(self.data)[16:]) == self.crc


def _sequence(base_sequence: int, delta: int) -> int:
    if base_sequence < 0:
        return -1
    # Sequences go on at 0 after the largest.
    return (base_sequence + delta) % (SEQUENCE_MAX + 1)


class BatchChain(NamedTuple):
    """The batches of a whole file, in their order."""

    positions: list[int]
    last_offsets: list[int]

    def find(self, position: int, offset: int) -> int | None:
        """Where the first batch from ``position`` on begins that ends at ``offset`` or later.

        -1 if there is none; ``None`` if no batch begins at ``position``.
        """
        slot = bisect_left(self.positions, position)
        if slot == len(self.positions) or self.positions[slot] != position:
            return None
        # Offsets of a damaged file may go back: only a walk is sure to find the first.
        for at in range(slot, len(self.positions)):
            if self.last_offsets[at] >= offset:
                return self.positions[at]
        return -1


class BatchReader:
    """Reads batches of an open ``.log`` one after the other, a window of bytes at a time."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.path = file.path
        self.size_bytes = file.size_bytes()
        self._window = b""
        self._window_start = 0
        self._chain: BatchChain | None = None

    def batches(self, start: int, end: int) -> Iterator[DumpedBatch]:
        """Those that lie wholly in ``[start, end)``, until one does not."""
        position = start
        while position < end - _UP_TO_MAGIC:
            batch = self._batch(position, end)
            if batch is None:
                return
            yield batch
            position += batch.size_bytes

    def chain(self) -> "BatchChain":
        """Where all batches of the file begin and end, walked once."""
        if self._chain is None:
            chain = BatchChain([], [])
            for batch in self.batches(0, self.size_bytes):
                chain.positions.append(batch.position)
                chain.last_offsets.append(batch.last_offset)
            self._chain = chain
        return self._chain

    def _batch(self, position: int, end: int) -> DumpedBatch | None:
        _, size, _, magic = _PREFIX.unpack(self._read(position, _PREFIX.size))
        if size < _SMALLEST_SIZE:
            raise DumpError(
                f"Found record size {size} smaller than minimum record overhead "
                f"({_SMALLEST_SIZE}) at position {position} in file {self.path}."
            )
        if position > end - _LOG_OVERHEAD - size:
            return None
        data = self._read(position, _LOG_OVERHEAD + size)
        if magic >= 2:
            # A batch smaller than its own header: the fields are what follows it in the file.
            header = data if len(data) >= _V2.size else self._read(position, _V2.size)
            return self._v2(position, data, header)
        return _legacy(position, data)

    def _v2(self, position: int, data: bytes, header: bytes) -> DumpedBatch:
        if len(header) < _V2.size:
            raise DumpError(f"The batch at position {position} of {self.path} ends in its header.")
        (
            base_offset,
            _,
            leader_epoch,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp_ms,
            max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = _V2.unpack_from(header)
        return DumpedBatch(
            position=position,
            data=data,
            base_offset=base_offset,
            last_offset=base_offset + last_offset_delta,
            magic=magic,
            crc=crc,
            attributes=attributes,
            timestamp_ms=max_timestamp_ms,
            base_timestamp_ms=base_timestamp_ms,
            leader_epoch=leader_epoch,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            last_offset_delta=last_offset_delta,
            record_count=record_count,
        )

    def _read(self, position: int, size: int) -> bytes:
        at = position - self._window_start
        if at < 0 or at + size > len(self._window):
            self._window = self._file.read_at(position, max(size, _WINDOW_BYTES))
            self._window_start, at = position, 0
        return self._window[at : at + size]


def _legacy(position: int, data: bytes) -> DumpedBatch:
    offset, _, crc, magic, attributes = _LEGACY.unpack_from(data)
    timestamp_ms = -1
    if magic == 1 and len(data) >= _LEGACY.size + _TIMESTAMP.size:
        (timestamp_ms,) = _TIMESTAMP.unpack_from(data, _LEGACY.size)
    return DumpedBatch(position, data, offset, offset, magic, crc, attributes, timestamp_ms)


def records_of(batch: DumpedBatch) -> Iterator[DumpedRecord]:
    """The records, one by one, so that those before a broken one are still seen."""
    try:
        yield from _v2_records(batch) if batch.magic >= 2 else _messages(batch)
    except (CorruptBatchError, IndexError, struct.error) as error:
        reason = error.reason if isinstance(error, CorruptBatchError) else "they end too early"
        raise DumpError(
            f"The records of the batch at position {batch.position} "
            f"(base offset {batch.base_offset}) cannot be read: {reason}."
        ) from error


# --- magic 2 ---------------------------------------------------------------------------------


def _v2_records(batch: DumpedBatch) -> Iterator[DumpedRecord]:
    if batch.record_count == 0:
        return
    body = batch.data[_V2.size :]
    if batch.codec != "none":
        limit = _DECOMPRESSED_MAX_BYTES
        body = bytes(decompress(batch.attributes & 7, body, limit_bytes=limit))
    fields = _Fields(body)
    for _ in range(batch.record_count):
        yield _v2_record(batch, fields)
    if fields.at != len(body):
        raise CorruptBatchError(f"{len(body) - fields.at} bytes are left behind the last record")


def _v2_record(batch: DumpedBatch, fields: "_Fields") -> DumpedRecord:
    size = fields.varint()
    start = fields.at
    fields.skip(1)  # attributes, unused
    timestamp_ms = batch.base_timestamp_ms + fields.varint()
    offset_delta = fields.varint()
    key = fields.nullable_bytes()
    value = fields.nullable_bytes()
    header_count = fields.varint()
    if header_count < 0:
        raise CorruptBatchError(f"a record has {header_count} headers")
    headers = []
    for _ in range(header_count):
        name = fields.nullable_bytes()
        if name is None:
            raise CorruptBatchError("a header has no key")
        headers.append((name.decode(errors="replace"), fields.nullable_bytes()))
    if fields.at - start != size:
        raise CorruptBatchError(f"a record of {size} bytes holds {fields.at - start}")
    return DumpedRecord(
        offset=batch.base_offset + offset_delta,
        timestamp_ms=batch.timestamp_ms if batch.attributes & 8 else timestamp_ms,
        key=key,
        value=value,
        sequence=_sequence(batch.base_sequence, offset_delta),
        headers=tuple(headers),
    )


class _Fields:
    """A cursor over the varints and byte strings of a batch's body."""

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def skip(self, count: int) -> None:
        self.at += count

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise CorruptBatchError("a number has more than 10 bytes")

    def nullable_bytes(self) -> bytes | None:
        size = self.varint()
        if size < 0:
            return None
        start, self.at = self.at, self.at + size
        if self.at > len(self._data):
            raise CorruptBatchError(f"a field of {size} bytes runs past the end")
        return self._data[start : self.at]


# --- magic 0 and 1 ---------------------------------------------------------------------------


def _messages(batch: DumpedBatch) -> Iterator[DumpedRecord]:
    outer = _message(batch.data)
    if batch.codec == "none":
        yield outer
        return
    limit = _DECOMPRESSED_MAX_BYTES
    content = bytes(
        decompress(batch.attributes & 7, outer.value or b"", limit_bytes=limit, magic=batch.magic)
    )
    inner = list(_message_set(content))
    # Magic 1 counts inner offsets from 0; the wrapper carries the last one.
    shift = batch.last_offset - inner[-1].offset if inner and batch.magic == 1 else 0
    is_append_time = batch.timestamp_type == TIMESTAMP_TYPES[1]
    for message in inner:
        timestamp_ms = batch.timestamp_ms if is_append_time else message.timestamp_ms
        yield message._replace(offset=message.offset + shift, timestamp_ms=timestamp_ms)


def _message_set(content: bytes) -> Iterator[DumpedRecord]:
    at = 0
    while at < len(content):
        (size,) = _LENGTH.unpack_from(content, at + 8)
        end = at + _LOG_OVERHEAD + size
        if size < _SMALLEST_SIZE or end > len(content):
            raise CorruptBatchError(f"an inner message of {size} bytes does not fit")
        yield _message(content[at:end])
        at = end


def _message(data: bytes) -> DumpedRecord:
    batch = _legacy(0, data)
    at = _LEGACY.size + (_TIMESTAMP.size if batch.magic == 1 else 0)
    key, at = _nullable_field(data, at)
    value, _ = _nullable_field(data, at)
    return DumpedRecord(
        batch.base_offset, batch.timestamp_ms, key, value, is_valid=batch.is_valid, crc=batch.crc
    )


def _nullable_field(data: bytes, at: int) -> tuple[bytes | None, int]:
    (size,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if size < 0:
        return None, at
    if at + size > len(data):
        raise CorruptBatchError(f"a field of {size} bytes runs past the end")
    return data[at : at + size], at + size
