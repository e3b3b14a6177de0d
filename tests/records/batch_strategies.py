"""Records, batches and legacy messages to test with, and strategies that draw them."""

import struct
import zlib
from collections.abc import Sequence

from hypothesis import strategies as st

from stratalog.records import Codec, Record, TimestampType, build_batch
from stratalog.records._kernels import crc32c

TIMESTAMPS_MS = st.integers(-1, 2**45)

HEADERS = st.lists(
    st.tuples(st.text(max_size=4), st.none() | st.binary(max_size=6)), max_size=3
).map(tuple)

RECORDS = st.builds(
    Record,
    key=st.none() | st.binary(max_size=12),
    value=st.none() | st.binary(max_size=200),
    headers=HEADERS,
    timestamp_ms=TIMESTAMPS_MS,
)

BATCHES = st.builds(
    build_batch,
    st.lists(RECORDS, min_size=1, max_size=6),
    base_offset=st.integers(0, 2**40),
    codec=st.sampled_from(Codec),
    timestamp_type=st.sampled_from(TimestampType),
    producer_id=st.integers(-1, 2**40),
    producer_epoch=st.integers(-1, 2**15 - 1),
    base_sequence=st.integers(-1, 2**31 - 1),
    transactional=st.booleans(),
    control=st.booleans(),
    leader_epoch=st.integers(-1, 2**31 - 1),
)

# Of messages before record batches: key, value and timestamp, and the codecs there were.
LEGACY_RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=9),
        st.none() | st.binary(max_size=40),
        st.integers(-1, 2**40),
    ),
    min_size=1,
    max_size=6,
)
LEGACY_CODECS = st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])


def lay_out(
    rows: Sequence[tuple[Sequence[Record], int, int]], *, base_offset: int = 0, **batch_options: int
) -> list[bytes]:
    """Batches with growing offsets from (records, offsets left out before it, leader epoch)."""
    batches = []
    offset = base_offset
    for records, gap, leader_epoch in rows:
        offset += gap
        batches.append(
            build_batch(records, base_offset=offset, leader_epoch=leader_epoch, **batch_options)
        )
        offset += max(len(records), 1)
    return batches


BATCH_ROWS = st.lists(
    st.tuples(st.lists(RECORDS, min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 2)),
    max_size=12,
)


def legacy_message(
    magic: int,
    offset: int = 9,
    *,
    attributes: int = 0,
    timestamp_ms: int = 5,
    value: bytes = b"value",
) -> bytes:
    content = struct.pack(">bb", magic, attributes)
    content += struct.pack(">q", timestamp_ms) if magic == 1 else b""
    content += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, len(content) + 4, zlib.crc32(content)) + content


def changed(batch: bytes, at: int, layout: str, value: int) -> bytes:
    copy = bytearray(batch)
    struct.pack_into(layout, copy, at, value)
    return bytes(copy)


def resealed(batch: bytes, at: int, layout: str, value: int) -> bytes:
    """A v2 batch with a changed field whose CRC is right again."""
    copy = bytearray(changed(batch, at, layout, value))
    struct.pack_into(">I", copy, 17, crc32c(memoryview(copy)[21:]))
    return bytes(copy)


def resealed_message(message: bytes, at: int, layout: str, value: int) -> bytes:
    """A legacy message with a changed field whose CRC is right again."""
    copy = bytearray(changed(message, at, layout, value))
    struct.pack_into(">I", copy, 12, zlib.crc32(memoryview(copy)[16:]))
    return bytes(copy)


def misnumbered(deltas: Sequence[int], keys: str = "abab", *, base_offset: int = 0) -> bytes:
    """As Apache Kafka stores them uncompressed: records that say offsets which may be anything."""
    records = [
        Record(keys[number % len(keys)].encode(), b"%d" % number, (), 9)
        for number in range(len(deltas))
    ]
    return build_batch(
        records,
        base_offset=base_offset,
        offset_deltas=list(deltas),
        last_offset_delta=len(deltas) - 1,
    )


# -1, the same twice, swapped, far outside of the batch: what is sound is among them.
ANY_DELTAS = st.lists(
    st.integers(-2, 5) | st.sampled_from((2**31 - 1, -(2**31))), min_size=1, max_size=5
)
