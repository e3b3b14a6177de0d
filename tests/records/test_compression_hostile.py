"""Bytes from outside: whatever they are, memory stays bounded and the error is one of ours."""

import contextlib
import struct
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CorruptBatchError, RecordTooLargeError, UnsupportedCompressionError
from stratalog.records.compression import Codec, compress, decompress

COMPRESSED = st.sampled_from([Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])

CHANGES = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), max_size=4)


def zstd_run(size_bytes: int) -> bytes:
    """A frame of zeros without a content size: four bytes for each 128 KiB."""
    blocks = size_bytes // 2**17
    headers = [2**17 << 3 | 1 << 1 | (i == blocks - 1) for i in range(blocks)]
    body = b"".join(header.to_bytes(3, "little") + b"\0" for header in headers)
    return struct.pack("<IBB", 0xFD2FB528, 0, 0x38) + body


@given(st.binary(min_size=1, max_size=400), st.integers(1, 400), COMPRESSED)
def test_one_byte_over_the_limit_is_refused(data: bytes, times: int, codec: Codec) -> None:
    packed = compress(codec, data * times)

    with pytest.raises(RecordTooLargeError):
        decompress(codec, packed, limit_bytes=len(data) * times - 1)


@given(st.binary(max_size=300), COMPRESSED, CHANGES, st.integers(0, 400), st.sampled_from([0, 2]))
def test_damaged_bytes_never_raise_anything_else(
    data: bytes, codec: Codec, changes: list[tuple[int, int]], cut: int, magic: int
) -> None:
    packed = bytearray(compress(codec, data * 3))
    for at, byte in changes:
        packed[at % len(packed)] = byte
    del packed[max(len(packed) - cut, 1) :]

    with contextlib.suppress(CorruptBatchError, RecordTooLargeError, UnsupportedCompressionError):
        assert len(decompress(codec, packed, limit_bytes=5_000, magic=magic)) <= 5_000


@given(st.binary(max_size=200), COMPRESSED)
def test_arbitrary_bytes_never_raise_anything_else(packed: bytes, codec: Codec) -> None:
    with contextlib.suppress(CorruptBatchError, RecordTooLargeError):
        assert len(decompress(codec, packed, limit_bytes=5_000)) <= 5_000


def test_a_gibibyte_of_zeros_in_32_kilobytes_is_refused_at_the_limit() -> None:
    bomb = zstd_run(2**30)

    assert len(bomb) < 33_000
    with pytest.raises(RecordTooLargeError):
        decompress(Codec.ZSTD, bomb, limit_bytes=2**20)


def test_a_declared_content_size_allocates_nothing() -> None:
    frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 2**62) + b"\x01\x00\x00"

    with pytest.raises((CorruptBatchError, RecordTooLargeError)):
        decompress(Codec.ZSTD, frame, limit_bytes=2**20)


def test_refusing_a_bomb_of_any_codec_takes_little_memory() -> None:
    """In a process that may not have more than 192 MiB beyond what importing took."""
    script = """
        import resource
        from stratalog.errors import RecordTooLargeError
        from stratalog.records.compression import Codec, compress, decompress
        from test_compression_hostile import zstd_run

        zeros = bytes(2**26)
        bombs = {codec: compress(codec, zeros) for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)}
        bombs[Codec.ZSTD] = zstd_run(2**30)
        del zeros
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 3 * 2**26
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for codec, bomb in bombs.items():
            many = {Codec.GZIP: 40, Codec.LZ4: 1, Codec.SNAPPY: 1, Codec.ZSTD: 1}[codec]
            try:
                decompress(codec, bytes(bomb) * many, limit_bytes=2**22)
            except RecordTooLargeError:
                print(codec.name)
    """
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert result.stdout.split() == ["GZIP", "SNAPPY", "LZ4", "ZSTD"]
