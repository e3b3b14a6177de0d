"""v2 batches written and walked in the plainest way, owing nothing to the code under test.

    i64 base offset | i32 length | i32 leader epoch | i8 magic | u32 crc | i16 attributes
    i32 last offset delta | i64 base timestamp | i64 max timestamp
    i64 producer id | i16 producer epoch | i32 base sequence | i32 count | records

The length counts what follows it; the CRC-32C covers everything from the attributes on, so base
offset and leader epoch can change without it.
"""

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cramjam
import crc32c

HEADER = struct.Struct(">qiibIhiqqqhii")
AFTER_CRC = 21
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
TRANSACTIONAL, CONTROL = 0x10, 0x20


class Record(NamedTuple):
    """One record of a produced batch."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 1_700_000_000_000
    headers: Sequence[tuple[str, bytes | None]] = ()


class Header(NamedTuple):
    """The fields of a stored batch, as they lie in its header."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def is_control(self) -> bool:
        """Whether the broker wrote this batch to end a transaction."""
        return bool(self.attributes & CONTROL)


def make_batch(
    records: Sequence[Record],
    *,
    codec: int = NONE,
    producer: tuple[int, int] = (-1, -1),
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """The bytes a producer would send: base offset 0, no leader epoch."""
    base_timestamp_ms = records[0].timestamp_ms
    body = b"".join(_record(each, at, base_timestamp_ms) for at, each in enumerate(records))
    body = _compress(codec, body)
    tail = struct.pack(
        ">hiqqqhii",
        codec | (TRANSACTIONAL if transactional else 0),
        len(records) - 1,
        base_timestamp_ms,
        max(each.timestamp_ms for each in records),
        *producer,
        base_sequence,
        len(records),
    )
    crc = crc32c.crc32c(tail + body)
    return struct.pack(">qiibI", 0, 9 + len(tail) + len(body), -1, 2, crc) + tail + body


def walk(data: bytes) -> Iterator[tuple[Header, bytes]]:
    """Every whole batch of a ``.log`` file."""
    at = 0
    while len(data) - at >= HEADER.size:
        header = Header(*HEADER.unpack_from(data, at))
        end = at + 12 + header.length
        if header.length <= 0 or end > len(data):
            return
        yield header, data[at:end]
        at = end


def as_produced(stored: bytes) -> bytes:
    """A stored batch as it was before the broker gave it an offset and a leader epoch."""
    return struct.pack(">q", 0) + stored[8:12] + struct.pack(">i", -1) + stored[16:]


def _record(record: Record, offset_delta: int, base_timestamp_ms: int) -> bytes:
    body = b"\0" + _varint(record.timestamp_ms - base_timestamp_ms) + _varint(offset_delta)
    body += _sized(record.key) + _sized(record.value) + _varint(len(record.headers))
    for name, value in record.headers:
        body += _sized(name.encode()) + _sized(value)
    return _varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _compress(codec: int, data: bytes) -> bytes:
    if codec == GZIP:
        gzip = zlib.compressobj(6, zlib.DEFLATED, 31)
        return gzip.compress(data) + gzip.flush()
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(data))
        return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block
    if codec == LZ4:
        # One independent block per 64 KiB, no checksums but the header's own.
        pieces = [data[at : at + 65536] for at in range(0, len(data), 65536)]
        return b"\x04\x22\x4d\x18\x60\x40\x82" + b"".join(map(_lz4_block, pieces)) + bytes(4)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def _lz4_block(piece: bytes) -> bytes:
    packed = bytes(cramjam.lz4.compress_block(piece, store_size=False))
    if len(packed) >= len(piece):
        return struct.pack("<I", len(piece) | 0x80000000) + piece
    return struct.pack("<I", len(packed)) + packed
