"""What generated codecs share: lengths, tags, arrays of integers, and how bytes are refused.

Compact lengths are unsigned varints of the length plus one, 0 being null; a varint has at most
five bytes. A tag section is a count, then that many of (tag, size, size bytes), and whoever does
not know a tag skips its bytes. Every function takes a buffer and a position in it and trusts
neither: a read past the end raises, and nothing is allocated by a length before that length has
been compared with the bytes that are there.
"""

from collections.abc import Sequence
from struct import Struct, pack
from typing import Any, Final, TypeAlias

NO_UUID: Final = bytes(16)
"""The zero id, which means that there is none."""

STRING_BYTES_MAX: Final = 0x7FFF

Readable: TypeAlias = bytes | memoryview

Records: TypeAlias = Any
"""Batches inside a message: a view when decoded; to send, anything that ``len`` measures, which
the encoder puts into its list of buffers as it is, so that a slice of a file is not read."""


class Malformed(Exception):
    """Bytes that are not the message they should be; becomes a ProtocolError with its context."""


# --- reading ---------------------------------------------------------------------------------


def read_varint(buffer: Readable, position: int) -> tuple[int, int]:
    """An unsigned varint of 32 bits, and the position after it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise Malformed("a varint has more than 32 bits")
            return value, position
    raise Malformed("a varint has more than 5 bytes")


long_length = read_varint


def long_string_length(buffer: Readable, position: int) -> tuple[int, int]:
    """A compact string's length that did not fit one byte, bounded as Kafka bounds strings."""
    length, position = read_varint(buffer, position)
    if length - 1 > STRING_BYTES_MAX:
        raise Malformed(f"a string of {length - 1} bytes, over the limit of {STRING_BYTES_MAX}")
    return length, position


def tag_count(buffer: Readable, position: int) -> tuple[int, int]:
    """How many tagged fields follow; each takes two bytes at least."""
    count, position = read_varint(buffer, position)
    if count * 2 > len(buffer) - position:
        raise too_many("tagged fields", count, position, len(buffer))
    return count, position


def tag_head(buffer: Readable, position: int) -> tuple[int, int, int]:
    """A tag's number, where its bytes begin, and where they end."""
    tag, position = read_varint(buffer, position)
    size, position = read_varint(buffer, position)
    end = position + size
    if end > len(buffer):
        raise too_long(f"tagged field {tag}", size, position, len(buffer))
    return tag, position, end


def skip_tags(buffer: Readable, position: int) -> int:
    """The position after a tag section of which no tag is known."""
    count, position = tag_count(buffer, position)
    for _ in range(count):
        _, _, position = tag_head(buffer, position)
    return position


# Arrays of this few integers, replicas for one, skip making and looking up a format.
_FEW: Final = 9
UNPACK_INT32S: Final = tuple(Struct(f">{count}i").unpack_from for count in range(_FEW))


# --- writing ---------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """``value`` as an unsigned varint."""
    # The sizes of records, of which a fetch response has many, mostly take two or three bytes.
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80,)) + varint(value >> 7)


_PACK_INT32S: Final = tuple(Struct(f">{count}i").pack for count in range(_FEW))


def pack_int32s(values: Sequence[int]) -> bytes:
    count = len(values)
    return _PACK_INT32S[count](*values) if count < _FEW else pack(f">{count}i", *values)


# --- refusing --------------------------------------------------------------------------------


def null_field(name: str) -> Malformed:
    return Malformed(f"{name} is null")


def too_long(name: str, size_bytes: int, position: int, end: int) -> Malformed:
    return Malformed(f"{name} claims {size_bytes} bytes where {end - position} are left")


def too_many(name: str, count: int, position: int, end: int) -> Malformed:
    return Malformed(f"{name} claims {count} elements where {end - position} bytes are left")


def tag_of_another_size(tag: int, position: int, end: int) -> Malformed:
    return Malformed(f"tagged field {tag} ends {position - end:+} bytes from where it says")


def string_too_long(name: str, size_bytes: int) -> Malformed:
    return Malformed(f"{name} has {size_bytes} bytes, over the limit of {STRING_BYTES_MAX}")
