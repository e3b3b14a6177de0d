"""Finding the next valid batch after damage: exact, whatever lies before it."""

import random
import struct
import time

import pytest
from batch_strategies import BATCHES, legacy_message
from hypothesis import given
from hypothesis import strategies as st

from stratalog.records import Record, build_batch, check_crc, find_valid_batch

EVERY_OFFSET = (0, 2**62)


@given(st.binary(max_size=200), BATCHES, st.binary(max_size=50))
def test_the_batch_behind_any_garbage_is_found(before: bytes, batch: bytes, after: bytes) -> None:
    assert find_valid_batch(before + batch + after, 0, 0, *EVERY_OFFSET) == len(before)


@given(BATCHES, st.integers(1, 100))
def test_a_batch_that_is_cut_or_begins_before_the_start_is_not_found(
    batch: bytes, cut: int
) -> None:
    assert find_valid_batch(batch[:-cut], 0, 0, *EVERY_OFFSET) == -1
    assert find_valid_batch(batch, cut, 0, *EVERY_OFFSET) == -1


@pytest.mark.parametrize("magic", [0, 1])
def test_legacy_messages_are_found_too(magic: int) -> None:
    garbage = bytes(random.Random(magic).randbytes(99))
    message = legacy_message(magic, 6)
    wrapper = legacy_message(magic, 6, attributes=1)

    assert find_valid_batch(garbage + message, 0, 0, 6, 6) == len(garbage)
    assert find_valid_batch(garbage + wrapper, 0, 0, 6, 6) == len(garbage)


@pytest.mark.parametrize(("low", "high", "found"), [(40, 40, 0), (41, 99, -1), (0, 39, -1)])
def test_only_offsets_that_are_asked_for_count(low: int, high: int, found: int) -> None:
    batch = build_batch([Record(b"k", b"v")], base_offset=40)

    assert find_valid_batch(batch, 0, 0, low, high) == found


def test_a_batch_beyond_the_largest_position_of_a_segment_is_not_found() -> None:
    batch = build_batch([Record(b"k", b"v")])
    last_position = 2**31 - 1 - len(batch)

    assert find_valid_batch(batch, 0, last_position, *EVERY_OFFSET) == 0
    assert find_valid_batch(batch, 0, last_position + 1, *EVERY_OFFSET) == -1


def hostile(size_bytes: int, claimed_bytes: int, magic: int) -> bytes:
    """A plausible header every 61 bytes, each of a batch that takes in all that follows it."""
    header = struct.pack(">qiIb", 1, claimed_bytes, 0, magic) + bytes(44)
    return header * (size_bytes // len(header))


@pytest.mark.parametrize("magic", [1, 2])
def test_the_last_batch_is_found_behind_bytes_that_claim_to_be_large_batches(magic: int) -> None:
    before = hostile(300_000, 100_000, magic)
    batch = build_batch([Record(b"k", bytes(20_000))], base_offset=5)
    log = before + batch + bytes(100_000)

    assert find_valid_batch(log, 0, 0, 1, 9) == len(before)


@pytest.mark.parametrize("magic", [1, 2])
def test_a_batch_found_late_is_found_by_the_crcs_of_prefixes(magic: int) -> None:
    large = legacy_message(1, 5, value=random.Random(3).randbytes(90_000))
    if magic == 2:
        large = build_batch([Record(None, large)], base_offset=5)
    before = hostile(700_001, 600_000, magic)
    log = before + large + bytes(600_000)

    assert check_crc(large)
    assert find_valid_batch(log, 0, 0, 1, 9) == len(before)


def test_hostile_bytes_cost_time_in_proportion_to_their_size() -> None:
    """Not to what they claim: direct CRCs would read 1 MiB at each of 68 000 places, 256 times
    what they read where each claims 4 KiB."""

    def seconds(claimed_bytes: int) -> float:
        log = hostile(4 << 20, claimed_bytes, 2)
        started = time.thread_time()  # of this thread alone, whatever else the machine does
        assert find_valid_batch(log, 0, 0, 0, 9) == -1
        return time.thread_time() - started

    assert seconds(1 << 20) < 10 * seconds(4 << 10)
