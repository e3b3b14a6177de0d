"""Batches that are small and hold much: as many zeros as their codec can hide."""

import struct

import cramjam

from stratalog.records import Codec
from stratalog.records._kernels import crc32c

GIB = 1 << 30
_SNAPPY_COPY = b"\xfe\x01\x00"  # 64 bytes again, of one byte before


def bomb(codec: Codec, size_bytes: int) -> bytes:
    """A batch whose records claim to be ``size_bytes`` of zeros."""
    return batch_of(codec, _PAYLOADS[codec](size_bytes))


def batch_of(codec: Codec, payload: bytes, record_count: int = 1) -> bytes:
    """A batch with a right checksum, whatever is in it."""
    body = struct.pack(">hiqqqhii", codec, record_count - 1, 0, 0, -1, -1, -1, record_count)
    body += payload
    head = struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c(body))
    return head + body


def _gzip(size_bytes: int) -> bytes:
    return bytes(cramjam.gzip.compress(bytes(size_bytes)))


def _snappy(size_bytes: int) -> bytes:
    """By hand: the length, one zero, and then copies of it."""
    length, value = b"", size_bytes
    while value >= 0x80:
        length += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return length + bytes((value, 0x00, 0x00)) + _SNAPPY_COPY * ((size_bytes - 1) // 64)


def _lz4(size_bytes: int) -> bytes:
    """Frames of independent blocks of 4 MiB, one after another."""
    block = bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    head = b"\x04\x22\x4d\x18\x60\x70\x73"
    blocks = (struct.pack("<I", len(block)) + block) * -(-size_bytes // (4 << 20))
    return head + blocks + bytes(4)


def _zstd(size_bytes: int) -> bytes:
    return bytes(cramjam.zstd.compress(bytes(size_bytes)))


_PAYLOADS = {Codec.GZIP: _gzip, Codec.SNAPPY: _snappy, Codec.LZ4: _lz4, Codec.ZSTD: _zstd}
