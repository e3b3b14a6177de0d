"""The codecs of Apache Kafka: ids, levels, and the framing each has inside a batch.

========  ==  ================================================================================
codec     id  framing written (what is read is wider, and is what Kafka's own readers accept)
========  ==  ================================================================================
gzip      1   one RFC 1952 member; further members are read, other trailing bytes are ignored
snappy    2   xerial stream: ``82 SNAPPY 00``, i32 version 1, i32 compatible 1, then
              (i32 length, raw block) for each 32 KiB; a payload without that header is one block
lz4       3   LZ4 frame ``04 22 4D 18 60 40 82`` with independent 64 KiB blocks, no checksums
zstd      4   zstd frames, with or without their content size; only in v2 batches
========  ==  ================================================================================

The rule here: what is decompressed comes from outside, so nothing is sized by what it declares.
``decompress`` never produces more than ``limit_bytes`` and raises ``RecordTooLargeError`` when
there would be more; bytes that are not what their codec says raise ``CorruptBatchError``.
"""

import struct
import zlib
from collections.abc import Callable
from enum import IntEnum

import cramjam
from typing_extensions import Buffer

from stratalog.errors import (
    ConfigError,
    CorruptBatchError,
    RecordTooLargeError,
    UnsupportedCompressionError,
)
from stratalog.records._kernels import uninitialized, xxh32


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_name(cls, name: str) -> "Codec":
        """The codec of ``compression.type``, where no compression is called ``uncompressed``."""
        if name == "uncompressed":
            return cls.NONE
        try:
            return cls[name.upper()] if name == name.lower() else cls[name]
        except KeyError:
            raise ConfigError(
                "compression.type", name, "must be one of none, gzip, snappy, lz4, zstd"
            ) from None

    @classmethod
    def of(cls, codec_id: int) -> "Codec":
        """The codec with that id, or ``UnsupportedCompressionError`` for 5, 6 and 7."""
        try:
            return cls(codec_id)
        except ValueError:
            raise UnsupportedCompressionError(codec_id, "no such codec in Kafka") from None

    @property
    def config_name(self) -> str:
        """The name of the codec in Kafka's tools and configs."""
        return self.name.lower()


# Kafka's own defaults and bounds: compression.gzip.level, compression.lz4.level, and so on.
DEFAULT_LEVELS = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
LEVEL_BOUNDS = {Codec.GZIP: (1, 9), Codec.LZ4: (1, 17), Codec.ZSTD: (-131072, 22)}

# What a caller gets who has no limit of its own: no batch that Kafka stores exceeds 2 GiB.
NO_LIMIT_BYTES = 2**31 - 1

_LZ4_FAST_LEVEL = 9
_LZ4_HC_LEVEL_MAX = 12  # liblz4 has no more; lz4-java counts up to 17
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_DESCRIPTOR = b"\x60\x40"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED = 1 << 31
_LZ4_RATIO_MAX = 255  # one more byte of input lengthens a match by at most 255

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_SNAPPY_RATIO_MAX = 32  # a copy of 64 bytes takes three

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK_MAX_BYTES = 128 * 1024

_BE_I32 = struct.Struct(">i")
_LE_U32 = struct.Struct("<I")


def check_level(codec: Codec, level: int | None) -> int | None:
    """The level to use; ``ConfigError`` if it is outside what Kafka allows for the codec."""
    if level is None or codec not in LEVEL_BOUNDS:
        return DEFAULT_LEVELS.get(codec)
    lowest, highest = LEVEL_BOUNDS[codec]
    is_default_gzip = codec is Codec.GZIP and level == -1
    if not (lowest <= level <= highest or is_default_gzip):
        rule = f"must be in [{lowest}, {highest}]"
        raise ConfigError(f"compression.{codec.config_name}.level", level, rule)
    return level


def compress(
    codec: Codec, data: Buffer, level: int | None = None, *, magic: int = 2
) -> bytes | bytearray:
    """``data`` in the framing of ``codec``, as Kafka's writers frame it in a batch of ``magic``."""
    level = check_level(codec, level)
    view = memoryview(data).cast("B")
    match codec:
        case Codec.NONE:
            return bytes(view)
        case Codec.GZIP:
            return zlib.compress(view, -1 if level is None else level, wbits=31)
        case Codec.SNAPPY:
            return _compress_xerial(view)
        case Codec.LZ4:
            return _compress_lz4(view, level, magic)
        case Codec.ZSTD:
            _refuse_legacy_zstd(magic)
            return bytes(cramjam.zstd.compress(view, level=level))


def decompress(
    codec_id: int, data: Buffer, *, limit_bytes: int = NO_LIMIT_BYTES, magic: int = 2
) -> bytes | bytearray | memoryview:
    """What ``data`` holds, never more than ``limit_bytes``; see the module's own text."""
    view = memoryview(data).cast("B")
    codec = Codec.of(codec_id)
    if codec is Codec.NONE:
        if len(view) > limit_bytes:
            raise RecordTooLargeError("an uncompressed batch", len(view), limit_bytes)
        return view
    if codec is Codec.ZSTD:
        _refuse_legacy_zstd(magic)
    try:
        return _READERS[codec](view, limit_bytes, magic)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise CorruptBatchError(f"{codec.config_name}: {error}") from None


def _refuse_legacy_zstd(magic: int) -> None:
    if magic < 2:
        raise UnsupportedCompressionError(Codec.ZSTD, f"not allowed in message format v{magic}")


def _too_large(limit_bytes: int) -> RecordTooLargeError:
    # How much there would be is not known without decompressing it: at least one byte more.
    return RecordTooLargeError("a decompressed batch", limit_bytes + 1, limit_bytes)


# --- gzip ------------------------------------------------------------------------------------


def _decompress_gzip(data: memoryview, limit_bytes: int, magic: int) -> bytes:
    parts: list[bytes] = []
    total_bytes = 0
    rest: Buffer = data
    while True:
        member = zlib.decompressobj(wbits=31)
        part = member.decompress(rest, limit_bytes - total_bytes + 1)
        total_bytes += len(part)
        if total_bytes > limit_bytes:
            raise _too_large(limit_bytes)
        if not member.eof:
            raise CorruptBatchError("gzip: the member is not complete")
        parts.append(part)
        rest = member.unused_data
        if not rest.startswith(b"\x1f\x8b\x08"):
            return part if len(parts) == 1 else b"".join(parts)


# --- snappy ----------------------------------------------------------------------------------


def _compress_xerial(data: memoryview) -> bytes:
    parts: list[Buffer] = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES])
        parts += (_BE_I32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit_bytes: int, magic: int) -> bytearray:
    if len(data) < len(_XERIAL_HEADER) or data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        blocks = [data]
    else:
        blocks = _xerial_blocks(data)

    # Every block names its size, so the sum is known before anything is allocated.
    total_bytes = sum(map(_snappy_block_bytes, blocks))
    if total_bytes > limit_bytes:
        raise RecordTooLargeError("a decompressed batch", total_bytes, limit_bytes)
    result = uninitialized(total_bytes)
    room = memoryview(result)
    position = 0
    for block in blocks:
        position += cramjam.snappy.decompress_raw_into(block, room[position:])
    if position != total_bytes:
        raise CorruptBatchError(f"snappy: {position} bytes where blocks declare {total_bytes}")
    return result


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    blocks = []
    at = _after_xerial_header(data, 0)
    while len(data) - at >= 4:  # like xerial, which takes fewer than four bytes for the end
        (length,) = _BE_I32.unpack_from(data, at)
        if data[at : at + 4] == _XERIAL_MAGIC[:4]:
            # Streams one after the other: the next one begins with a header of its own.
            if len(data) - at < len(_XERIAL_HEADER):
                raise CorruptBatchError("snappy: the header of a concatenated stream is cut")
            at = _after_xerial_header(data, at)
            continue
        if not 0 <= length <= len(data) - at - 4:
            raise CorruptBatchError(f"snappy: a block of {length} bytes does not fit")
        blocks.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return blocks


def _after_xerial_header(data: memoryview, at: int) -> int:
    (version,) = _BE_I32.unpack_from(data, at + len(_XERIAL_MAGIC))
    if data[at : at + len(_XERIAL_MAGIC)] != _XERIAL_MAGIC or version < 1:
        raise CorruptBatchError("snappy: not a xerial stream that can be read")
    return at + len(_XERIAL_HEADER)


def _snappy_block_bytes(block: memoryview) -> int:
    declared: int = cramjam.snappy.decompress_raw_len(block)
    if declared > len(block) * _SNAPPY_RATIO_MAX:
        raise CorruptBatchError(f"snappy: {len(block)} bytes cannot hold {declared}")
    return declared


# --- lz4 -------------------------------------------------------------------------------------


def _compress_lz4(data: memoryview, level: int | None, magic: int) -> bytes:
    # Clients of v0 messages hashed the magic bytes too, and v0 readers may expect just that.
    hashed = _LZ4_MAGIC + _LZ4_DESCRIPTOR if magic == 0 else _LZ4_DESCRIPTOR
    checksum = bytes([xxh32(hashed) >> 8 & 0xFF])
    parts: list[Buffer] = [_LZ4_MAGIC, _LZ4_DESCRIPTOR, checksum]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = _compress_lz4_block(block, level)
        if len(packed) < len(block):
            parts += (_LE_U32.pack(len(packed)), packed)
        else:
            parts += (_LE_U32.pack(len(block) | _LZ4_STORED), block)
    parts.append(bytes(4))
    return b"".join(parts)


def _compress_lz4_block(block: memoryview, level: int | None) -> bytes:
    if level is None or level == _LZ4_FAST_LEVEL:
        packed = cramjam.lz4.compress_block(block, store_size=False)
    else:
        packed = cramjam.lz4.compress_block(
            block,
            mode="high_compression",
            compression=min(level, _LZ4_HC_LEVEL_MAX),
            store_size=False,
        )
    return bytes(packed)


def _decompress_lz4(data: memoryview, limit_bytes: int, magic: int) -> bytearray:
    at, block_max_bytes = _read_lz4_descriptor(data, magic)
    blocks = _lz4_blocks(data, at, block_max_bytes)

    most_bytes = sum(
        len(block) if is_stored else min(block_max_bytes, len(block) * _LZ4_RATIO_MAX)
        for block, is_stored in blocks
    )
    # Room for one block past the limit, so that a block too many is never taken for a bad one.
    result = uninitialized(min(most_bytes, limit_bytes + block_max_bytes))
    with memoryview(result) as room:
        position = 0
        for block, is_stored in blocks:
            if is_stored:
                end = position + len(block)
                if end <= limit_bytes:
                    room[position:end] = block
                position = end
            else:
                with room[position : position + block_max_bytes] as target:
                    position += cramjam.lz4.decompress_block_into(block, target)
            if position > limit_bytes:
                raise _too_large(limit_bytes)
    del result[position:]
    return result


def _read_lz4_descriptor(data: memoryview, magic: int) -> tuple[int, int]:
    """Where blocks begin, and the most bytes that one of them holds."""
    if len(data) < 7 or data[:4] != _LZ4_MAGIC:
        raise CorruptBatchError("lz4: no frame begins here")
    flags, block_descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or not flags & 0x20:
        raise CorruptBatchError(f"lz4: frame flags {flags:#04x} are not supported by Kafka")
    size_code = block_descriptor >> 4
    if block_descriptor & 0x0F or not 4 <= size_code <= 7:
        raise CorruptBatchError(f"lz4: block descriptor {block_descriptor:#04x} is not valid")

    end = 14 if flags & 0x08 else 6  # eight bytes of content size, which nobody needs
    if len(data) <= end:
        raise CorruptBatchError("lz4: the frame descriptor is cut")
    # The first lz4 clients got this byte wrong, so v0 readers never look at it.
    if magic > 0 and xxh32(data[4:end]) >> 8 & 0xFF != data[end]:
        raise CorruptBatchError("lz4: the checksum of the frame descriptor does not match")
    return end + 1, 1 << (8 + 2 * size_code)


def _lz4_blocks(data: memoryview, at: int, block_max_bytes: int) -> list[tuple[memoryview, bool]]:
    """Each block and whether it is stored as it is; what follows the frame is not read."""
    has_checksums, has_content_checksum = data[4] & 0x10 != 0, data[4] & 0x04 != 0
    blocks: list[tuple[memoryview, bool]] = []
    while True:
        if len(data) - at < 4:
            raise CorruptBatchError("lz4: the frame has no end mark")
        (word,) = _LE_U32.unpack_from(data, at)
        size_bytes = word & ~_LZ4_STORED
        at += 4
        if size_bytes == 0:
            # Kafka reads the checksum of the contents and does not compare it.
            if has_content_checksum and len(data) - at < 4:
                raise CorruptBatchError("lz4: the checksum of the contents is cut")
            return blocks
        end = at + size_bytes
        if size_bytes > block_max_bytes or end + 4 * has_checksums > len(data):
            raise CorruptBatchError(f"lz4: a block of {size_bytes} bytes does not fit")
        block = data[at:end]
        if has_checksums:
            if _LE_U32.unpack_from(data, end)[0] != xxh32(block):
                raise CorruptBatchError("lz4: the checksum of a block does not match")
            end += 4
        blocks.append((block, bool(word & _LZ4_STORED)))
        at = end


# --- zstd ------------------------------------------------------------------------------------


def _decompress_zstd(data: memoryview, limit_bytes: int, magic: int) -> bytearray:
    most_bytes = _zstd_most_bytes(data, limit_bytes)
    result = uninitialized(min(most_bytes, limit_bytes))
    try:
        size_bytes = cramjam.zstd.decompress_into(data, result)
    except cramjam.DecompressionError as error:
        # The library says no more than this when its output is full.
        if most_bytes > limit_bytes and "whole buffer" in str(error):
            raise _too_large(limit_bytes) from None
        raise
    del result[size_bytes:]
    return result


def _zstd_most_bytes(data: memoryview, limit_bytes: int) -> int:
    """No fewer bytes than the frames of ``data`` hold; more than the limit if they may.

    Streaming writers (zstd-jni among them) leave the content size out, but every block says how
    long it is, and none yields more than 128 KiB.
    """
    at = most_bytes = 0
    while at < len(data) and most_bytes <= limit_bytes:
        if len(data) - at < 8:
            raise CorruptBatchError("zstd: a frame is cut")
        (frame_magic,) = _LE_U32.unpack_from(data, at)
        if frame_magic & ~0xF == _ZSTD_SKIPPABLE:
            at += 8 + _LE_U32.unpack_from(data, at + 4)[0]
            continue
        if frame_magic != _ZSTD_MAGIC:
            raise CorruptBatchError("zstd: no frame begins here")
        at, frame_bytes = _walk_zstd_frame(data, at + 4, limit_bytes - most_bytes)
        most_bytes += frame_bytes
    return most_bytes


def _walk_zstd_frame(data: memoryview, at: int, limit_bytes: int) -> tuple[int, int]:
    """The end of the frame whose descriptor is at ``at``, and the most bytes that it yields."""
    descriptor = data[at]
    is_single_segment = bool(descriptor & 0x20)
    size_code = descriptor >> 6
    size_field_bytes = (1 if is_single_segment else 0) if size_code == 0 else 1 << size_code
    dictionary_id_bytes = (0, 1, 2, 4)[descriptor & 3]
    size_at = at + 1 + (not is_single_segment) + dictionary_id_bytes
    at = size_at + size_field_bytes
    if size_field_bytes:
        content_bytes = int.from_bytes(data[size_at:at], "little")
        content_bytes += 256 if size_field_bytes == 2 else 0
        if content_bytes > limit_bytes:
            return at, content_bytes

    most_bytes = 0
    while most_bytes <= limit_bytes:
        header = int.from_bytes(data[at : at + 3], "little")
        size_bytes = header >> 3
        is_rle, is_compressed = header & 6 == 2, header & 6 == 4
        most_bytes += _ZSTD_BLOCK_MAX_BYTES if is_compressed else size_bytes
        at += 3 + (1 if is_rle else size_bytes)
        if at > len(data):
            raise CorruptBatchError("zstd: a block is cut")
        if header & 1:
            at += 4 if descriptor & 4 else 0  # the checksum, which the library verifies
            return at, min(most_bytes, content_bytes) if size_field_bytes else most_bytes
    return at, most_bytes


_READERS: dict[Codec, Callable[[memoryview, int, int], bytes | bytearray]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
