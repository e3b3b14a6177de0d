"""Codecs in Kafka's framing: what is written, and all that is read."""

import gzip
import struct
from random import Random

import cramjam
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import ConfigError, CorruptBatchError, UnsupportedCompressionError
from stratalog.records._kernels import xxh32
from stratalog.records.compression import (
    DEFAULT_LEVELS,
    LEVEL_BOUNDS,
    Codec,
    compress,
    decompress,
)

COMPRESSED = st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
LEGACY = st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4])

# Runs make blocks that compress, random bytes blocks that do not; both cross block boundaries.
DATA = st.lists(
    st.one_of(
        st.binary(max_size=200),
        st.builds(lambda part, times: part * times, st.binary(max_size=9), st.integers(0, 12_000)),
        st.integers(0, 99).map(lambda seed: Random(seed).randbytes(40_000)),
    ),
    max_size=4,
).map(b"".join)

XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
LZ4_MAGIC = b"\x04\x22\x4d\x18"


def lz4_frame(
    blocks: list[bytes],
    *,
    flags: int = 0x60,
    descriptor: int = 0x40,
    content_size: bytes = b"",
    tail: bytes = b"",
) -> bytes:
    """A frame of stored blocks; block checksums are added where the flags announce them."""
    header = bytes([flags, descriptor]) + content_size
    frame = LZ4_MAGIC + header + bytes([xxh32(header) >> 8 & 0xFF])
    for block in blocks:
        frame += struct.pack("<I", len(block) | 1 << 31) + block
        frame += struct.pack("<I", xxh32(block)) if flags & 0x10 else b""
    return frame + bytes(4) + tail


@given(DATA, st.sampled_from(Codec))
def test_what_is_compressed_decompresses_to_itself(data: bytes, codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, data), limit_bytes=len(data))) == data


@given(DATA, LEGACY, st.sampled_from([0, 1]))
def test_legacy_messages_round_trip_too(data: bytes, codec: Codec, magic: int) -> None:
    packed = compress(codec, data, magic=magic)

    assert bytes(decompress(codec, packed, limit_bytes=len(data), magic=magic)) == data


@given(DATA, st.sampled_from([Codec.GZIP, Codec.LZ4, Codec.ZSTD]), st.data())
def test_every_level_that_kafka_allows_round_trips(
    data: bytes, codec: Codec, draw: st.DataObject
) -> None:
    lowest, highest = LEVEL_BOUNDS[codec]
    level = draw.draw(st.sampled_from([lowest, highest, DEFAULT_LEVELS[codec], 2]))

    assert bytes(decompress(codec, compress(codec, data, level), limit_bytes=len(data))) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [(Codec.GZIP, 0), (Codec.GZIP, 10), (Codec.LZ4, 0), (Codec.LZ4, 18), (Codec.ZSTD, 23)],
)
def test_a_level_outside_kafkas_bounds_is_refused(codec: Codec, level: int) -> None:
    with pytest.raises(ConfigError, match="level"):
        compress(codec, b"data", level)


def test_codecs_have_kafkas_names_and_ids() -> None:
    names = ["none", "gzip", "snappy", "lz4", "zstd"]

    assert [Codec.from_name(name) for name in names] == [0, 1, 2, 3, 4]
    assert [codec.config_name for codec in Codec] == names
    assert Codec.from_name("uncompressed") is Codec.NONE
    with pytest.raises(ConfigError, match="brotli"):
        Codec.from_name("brotli")


@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_a_codec_that_kafka_does_not_define_is_refused(codec_id: int) -> None:
    with pytest.raises(UnsupportedCompressionError):
        decompress(codec_id, b"data")


def test_zstd_is_not_allowed_in_legacy_messages() -> None:
    with pytest.raises(UnsupportedCompressionError):
        decompress(Codec.ZSTD, compress(Codec.ZSTD, b"data"), magic=1)
    with pytest.raises(UnsupportedCompressionError):
        compress(Codec.ZSTD, b"data", magic=0)


# --- other implementations of the same codecs ---


@given(DATA)
def test_the_standard_library_reads_and_writes_the_same_gzip(data: bytes) -> None:
    assert gzip.decompress(compress(Codec.GZIP, data)) == data
    assert bytes(decompress(Codec.GZIP, gzip.compress(data))) == data


@given(DATA)
def test_arrow_reads_and_writes_the_same_zstd(data: bytes) -> None:
    packed = compress(Codec.ZSTD, data)

    assert pa.decompress(packed, len(data), codec="zstd", asbytes=True) == data
    assert bytes(decompress(Codec.ZSTD, pa.compress(data, codec="zstd", asbytes=True))) == data


@given(DATA)
def test_arrow_reads_the_same_lz4_frames(data: bytes) -> None:
    packed = compress(Codec.LZ4, data)

    assert pa.decompress(packed, len(data), codec="lz4", asbytes=True) == data


@given(DATA)
def test_arrow_reads_the_blocks_of_a_xerial_stream(data: bytes) -> None:
    packed = compress(Codec.SNAPPY, data)
    at, blocks = len(XERIAL), []
    while at < len(packed):
        (length,) = struct.unpack_from(">i", packed, at)
        size = min(32_768, len(data) - 32_768 * len(blocks))
        block = packed[at + 4 : at + 4 + length]
        blocks.append(pa.decompress(block, size, codec="snappy", asbytes=True))
        at += 4 + length

    assert packed.startswith(XERIAL)
    assert b"".join(blocks) == data


# --- gzip and zstd ---


@given(DATA, DATA)
def test_gzip_members_are_read_one_after_the_other_up_to_what_is_none(
    one: bytes, two: bytes
) -> None:
    packed = gzip.compress(one) + gzip.compress(two) + b"no member"

    assert bytes(decompress(Codec.GZIP, packed, limit_bytes=len(one + two))) == one + two


@given(DATA, DATA)
def test_zstd_frames_without_size_and_several_of_them_are_read(one: bytes, two: bytes) -> None:
    frames = b""
    for data in (one, two):
        stream = cramjam.zstd.Compressor(3)
        stream.compress(data)
        frames += bytes(stream.finish())
    skippable = struct.pack("<II", 0x184D2A57, 3) + b"any"

    packed = skippable + frames + skippable
    assert bytes(decompress(Codec.ZSTD, packed, limit_bytes=len(one + two))) == one + two


# --- snappy ---


@given(DATA)
def test_a_payload_without_xerial_header_is_one_raw_block(data: bytes) -> None:
    raw = bytes(cramjam.snappy.compress_raw(data))

    assert bytes(decompress(Codec.SNAPPY, raw, limit_bytes=len(data))) == data


@given(DATA, DATA)
def test_concatenated_xerial_streams_are_one_stream(one: bytes, two: bytes) -> None:
    packed = compress(Codec.SNAPPY, one) + compress(Codec.SNAPPY, two) + b"\x00\x00"

    assert bytes(decompress(Codec.SNAPPY, packed)) == one + two


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        XERIAL[:8] + struct.pack(">ii", 0, 1),
        XERIAL + struct.pack(">i", 9) + b"short",
        XERIAL + struct.pack(">i", -1),
        XERIAL + XERIAL[:12],
        XERIAL + XERIAL[:4] + bytes(12),
        b"\xff\xff\xff\xff\x0f",
    ],
    ids=["empty", "version", "cut", "negative", "cut header", "other header", "declares 4 GiB"],
)
def test_snappy_that_kafka_does_not_read_is_corrupt(packed: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(Codec.SNAPPY, packed)


# --- lz4 ---


def test_lz4_frames_have_the_bytes_that_kafka_writes() -> None:
    incompressible = Random(7).randbytes(70_000)
    packed = compress(Codec.LZ4, incompressible)

    assert packed == lz4_frame([incompressible[:65_536], incompressible[65_536:]])
    assert packed[:7] == LZ4_MAGIC + b"\x60\x40\x82"
    assert compress(Codec.LZ4, b"", magic=0) == LZ4_MAGIC + b"\x60\x40\x1a" + bytes(4)


def test_only_readers_of_magic_0_forgive_the_wrong_descriptor_checksum() -> None:
    packed = compress(Codec.LZ4, b"data" * 9, magic=0)

    assert bytes(decompress(Codec.LZ4, packed, magic=0)) == b"data" * 9
    with pytest.raises(CorruptBatchError, match="descriptor"):
        decompress(Codec.LZ4, packed, magic=1)


@pytest.mark.parametrize(
    "frame",
    [
        lz4_frame([b"one", b"two"], flags=0x68, content_size=bytes(8)),
        lz4_frame([b"one", b"two"], flags=0x70),
        lz4_frame([b"one", b"two"], flags=0x64, tail=b"any!"),
        lz4_frame([b"one", b"two"], descriptor=0x70),
        lz4_frame([b"one", b"two"], tail=b"whatever follows"),
    ],
    ids=["content size", "block checksums", "content checksum", "4 MiB blocks", "trailing bytes"],
)
def test_lz4_frames_that_kafka_reads_are_read(frame: bytes) -> None:
    assert bytes(decompress(Codec.LZ4, frame)) == b"onetwo"


@pytest.mark.parametrize(
    "frame",
    [
        lz4_frame([b"one"], flags=0x40),
        lz4_frame([b"one"], flags=0xA0),
        lz4_frame([b"one"], flags=0x61),
        lz4_frame([b"one"], flags=0x62),
        lz4_frame([b"one"], descriptor=0x30),
        lz4_frame([b"one"], descriptor=0x41),
        lz4_frame([b"one"], descriptor=0xC0),
        lz4_frame([bytes(65_537)]),
        lz4_frame([b"one"])[:-4],
        lz4_frame([b"one"])[:-6],
        lz4_frame([b"one"], flags=0x64),
        lz4_frame([b"one"], flags=0x70).replace(b"one", b"two"),
        lz4_frame([b"one"], flags=0x68, content_size=bytes(8))[:10],
        b"\x00" + lz4_frame([b"one"])[1:],
        LZ4_MAGIC,
        b"",
    ],
    ids=[
        "dependent blocks",
        "version",
        "dictionary",
        "reserved flag",
        "small blocks",
        "reserved low bits",
        "reserved high bit",
        "block too large",
        "no end mark",
        "cut block",
        "no content checksum",
        "block checksum",
        "cut descriptor",
        "magic",
        "only magic",
        "empty",
    ],
)
def test_lz4_frames_that_kafka_rejects_are_corrupt(frame: bytes) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(Codec.LZ4, frame)


def test_frames_of_dependent_blocks_are_refused_as_kafka_refuses_them() -> None:
    with pytest.raises(CorruptBatchError, match="flags"):
        decompress(Codec.LZ4, bytes(cramjam.lz4.compress(b"data" * 50_000)))
