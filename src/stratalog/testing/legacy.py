"""A writer of message sets of magic 0 and 1, for tests: the engine itself only reads them.

    offset i64 | size i32 | crc u32 | magic i8 | attributes i8 | timestamp i64 (magic 1 only)
    keyLength i32, key | valueLength i32, value      (-1 is null)

The CRC is that of zlib, from the magic byte to the end. A compressed message has no key, and its
value are whole messages: with their own offsets in magic 0, counted from the first in magic 1.
"""

import struct
import zlib
from collections.abc import Sequence

from stratalog.records.compression import Codec, compress

_LOG_APPEND_TIME = 8


def legacy_message(
    key: bytes | None,
    value: bytes | None,
    *,
    offset: int,
    magic: int,
    timestamp_ms: int = -1,
    attributes: int = 0,
) -> bytes:
    """One message, compressed or not as ``value`` and ``attributes`` say."""
    timestamp = struct.pack(">q", timestamp_ms) if magic == 1 else b""
    body = struct.pack(">bb", magic, attributes) + timestamp + _sized(key) + _sized(value)
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def legacy_message_set(
    records: Sequence[tuple[bytes | None, bytes | None, int]],
    *,
    magic: int,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    offset_deltas: Sequence[int] | None = None,
    log_append_time_ms: int | None = None,
) -> bytes:
    """A message for each (key, value, timestamp), in one compressed message if ``codec`` says so.

    ``offset_deltas`` are those that compaction left; ``log_append_time_ms`` makes the messages
    (or the wrapper alone, as Kafka does) LogAppendTime.
    """
    deltas = range(len(records)) if offset_deltas is None else offset_deltas
    is_compressed = codec is not Codec.NONE
    inner_base = 0 if is_compressed and magic == 1 else base_offset
    appended = 0 if log_append_time_ms is None or magic == 0 else _LOG_APPEND_TIME
    messages = b"".join(
        legacy_message(
            key,
            value,
            offset=inner_base + delta,
            magic=magic,
            timestamp_ms=_timestamp(timestamp_ms, log_append_time_ms, is_compressed),
            attributes=0 if is_compressed else appended,
        )
        for delta, (key, value, timestamp_ms) in zip(deltas, records, strict=True)
    )
    if not is_compressed:
        return messages
    newest_ms = max(timestamp_ms for _, _, timestamp_ms in records)
    return legacy_message(
        None,
        bytes(compress(codec, messages, magic=magic)),
        offset=base_offset + deltas[-1],
        magic=magic,
        timestamp_ms=_timestamp(newest_ms, log_append_time_ms, False),
        attributes=codec | appended,
    )


def _timestamp(timestamp_ms: int, log_append_time_ms: int | None, is_inner: bool) -> int:
    if log_append_time_ms is None or is_inner:
        return timestamp_ms
    return log_append_time_ms


def _sized(field: bytes | None) -> bytes:
    return struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
