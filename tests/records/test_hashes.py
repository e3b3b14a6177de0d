"""The hashes of keys are the ones that their names say, for keys of every length."""

import hashlib
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stratalog.records._kernels import md5, siphash128

COUNTING_KEY = bytes(range(16))

# What OpenSSL 3 answers, with size 16, for the bytes 0, 1, 2, ... up to each of these lengths.
SIPHASH_ANSWERS = {
    0: "A3817F04BA25A8E66DF67214C7550293",
    1: "DA87C1D86B99AF44347659119B22FC45",
    7: "A1F1EBBED8DBC153C0B84AA61FF08239",
    8: "3B62A9BA6258F5610F83E264F31497B4",
    9: "264499060AD9BAABC47F8B02BB6D71ED",
    15: "5493E99933B0A8117E08EC0F97CFC3D9",
    16: "6EE2A4CA67B054BBFD3315BF85230577",
    63: "5150D1772F50834A503E069A973FBD7C",
    64: "1EAF077DC0D4CD3F8CAD4D383658A74B",
}


@given(st.binary(max_size=300))
def test_md5_is_that_of_the_standard_library(data: bytes) -> None:
    assert md5(data) == hashlib.md5(data).digest()


def test_md5_pads_every_length_around_its_blocks() -> None:
    data = bytes(range(256)) * 2
    for size in range(len(data)):
        assert md5(data[:size]) == hashlib.md5(data[:size]).digest()


@pytest.mark.parametrize("size", SIPHASH_ANSWERS)
def test_siphash_gives_the_answers_of_another_implementation(size: int) -> None:
    answer = siphash128(COUNTING_KEY, bytes(range(size)))
    assert answer.hex().upper() == SIPHASH_ANSWERS[size]


def test_siphash_uses_every_bit_of_its_key() -> None:
    key = bytes.fromhex("ffffffffffffffff8000000000000001")
    assert siphash128(key, b"stratalog").hex() == "6a6d0bc5277902373706ed9b40c8e6cf"
    of_keys = set()
    for bit in range(128):
        of_keys.add(siphash128((1 << bit).to_bytes(16, "little"), b"stratalog"))
    assert len(of_keys) == 128


@pytest.mark.deep
@settings(max_examples=100)
@given(st.binary(min_size=16, max_size=16), st.binary(max_size=200))
def test_siphash_agrees_with_openssl(key: bytes, data: bytes) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    options = ["-macopt", f"hexkey:{key.hex()}", "-macopt", "size:16"]
    answer = subprocess.run(
        [openssl, "mac", *options, "SIPHASH"], input=data, capture_output=True, check=True
    )
    assert siphash128(key, data).hex() == answer.stdout.decode().strip().lower()


@given(st.binary(max_size=100), st.integers(0, 9))
def test_what_is_hashed_may_lie_at_any_address(data: bytes, start: int) -> None:
    shifted = memoryview(bytes(start) + data)[start:]
    assert md5(shifted) == md5(data)
    assert siphash128(COUNTING_KEY, shifted) == siphash128(COUNTING_KEY, data)


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(17)])
def test_a_siphash_key_has_16_bytes(key: bytes) -> None:
    with pytest.raises(ValueError, match="it has 16"):
        siphash128(key, b"")


def test_what_has_no_bytes_cannot_be_hashed() -> None:
    for call in (
        lambda: md5(None),  # type: ignore[arg-type]
        lambda: siphash128(COUNTING_KEY, None),  # type: ignore[arg-type]
        lambda: siphash128(None, b""),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            call()
