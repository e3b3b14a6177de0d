"""Logs as a cleaner meets them, and ways to feed them to a walk over batches."""

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from stratalog.records import Codec, Record, TimestampType, build_batch, compress

NOW_MS = 2**40

TINY_KEYS = st.sampled_from([b"", *(b"%d" % number for number in range(60))])
FEW_KEYS = st.none() | st.sampled_from([b"", b"a", b"b", b"c", b"d" * 20, b"e", b"f", b"g"])

KEYED_RECORDS = st.builds(
    Record,
    key=FEW_KEYS | TINY_KEYS,
    value=st.none() | st.binary(max_size=30),
    headers=st.just(()) | st.just((("h", b"x"), ("", None))),
    timestamp_ms=st.integers(-1, 2**42),
)


def message(
    magic: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    attributes: int = 0,
    timestamp_ms: int = 5,
) -> bytes:
    """One message of magic 0 or 1."""
    content = struct.pack(">bB", magic, attributes)
    content += struct.pack(">q", timestamp_ms) if magic == 1 else b""
    for part in (key, value):
        content += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def wrapper(magic: int, codec: Codec, offsets: Sequence[int], records: Sequence[Record]) -> bytes:
    """A compressed message around ``records`` at these offsets."""
    base = offsets[0] if magic == 1 else 0
    inner = b"".join(
        message(magic, offset - base, record.key, record.value, timestamp_ms=record.timestamp_ms)
        for offset, record in zip(offsets, records, strict=True)
    )
    packed = bytes(compress(codec, inner, magic=magic))
    return message(magic, offsets[-1], None, packed, attributes=codec)


def v2_batch(draw: st.DrawFn, base_offset: int, records: list[Record]) -> tuple[bytes, int]:
    deltas: list[int] = []
    for _ in records:
        deltas.append((deltas[-1] + 1 if deltas else 0) + draw(st.sampled_from((0, 0, 0, 1, 3))))
    last = deltas[-1] + draw(st.integers(0, 2))
    is_append_time = draw(st.sampled_from((False, False, True)))
    batch = build_batch(
        records,
        base_offset=base_offset,
        offset_deltas=deltas,
        last_offset_delta=last,
        codec=draw(st.sampled_from((Codec.NONE, Codec.NONE, *Codec))),
        delete_horizon_ms=draw(st.sampled_from((None, None, 0, NOW_MS, NOW_MS + 1, 2**41))),
        timestamp_type=TimestampType(is_append_time),
        log_append_time_ms=77 if is_append_time else None,
    )
    return batch, base_offset + last


def legacy_batch(draw: st.DrawFn, offset: int, records: list[Record]) -> tuple[bytes, int]:
    magic = draw(st.sampled_from((0, 1)))
    codec = draw(st.sampled_from((Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)))
    if codec is Codec.NONE:
        key, value = records[0].key, records[0].value
        return message(magic, offset, key, value), offset
    offsets = [offset + each for each in range(len(records))]
    return wrapper(magic, codec, offsets, records), offsets[-1]


@st.composite
def logs(draw: st.DrawFn, with_legacy: bool = True) -> bytes:
    """Batches in order, with gaps, of all formats and codecs, some without records."""
    log = b""
    offset = draw(st.integers(0, 5))
    kinds = ("v2", "v2", "v2", "empty", "legacy") if with_legacy else ("v2", "v2", "empty")
    for _ in range(draw(st.integers(0, 8))):
        records = draw(st.lists(KEYED_RECORDS, min_size=1, max_size=9))
        kind = draw(st.sampled_from(kinds))
        if kind == "empty":
            last = offset + draw(st.integers(0, 4))
            batch = build_batch([], base_offset=offset, last_offset_delta=last - offset)
        else:
            make = v2_batch if kind == "v2" else legacy_batch
            batch, last = make(draw, offset, records)
        log += batch
        offset = last + 1 + draw(st.integers(0, 2))
    return log


LOGS = logs()


def feed_whole(walk: Any, log: bytes) -> None:
    walk.feed(log, 0)


def feed_in_pieces(
    walk: Any, log: bytes, cuts: Sequence[int], took: Callable[[], object] = lambda: None
) -> int:
    """Feed so many bytes at a time, by turns, and more where no batch fits; as a buffer of exactly
    that size, which is overwritten afterwards. Returns how many bytes were taken."""
    position = turn = size = 0
    while position + size < len(log) and not getattr(walk, "is_full", False):
        size = min(max(size + cuts[turn % len(cuts)], walk.wanted_bytes), len(log) - position)
        turn += 1
        piece = bytearray(log[position : position + size])
        read = walk.feed(piece, position)
        took()
        piece[:] = b"\xff" * len(piece)
        position += read
        size = 0 if read else size
    return position
