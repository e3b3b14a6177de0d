"""The smallest timestamps, as validation, a glance at a follower's batches and a scan tell them."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Codec,
    ProduceRules,
    Record,
    TimeRangeScan,
    TimestampType,
    build_batch,
    min_timestamp,
    overlapping_ranges,
    read_headers,
    validate_produced,
)
from stratalog.testing.legacy import legacy_message_set
from stratalog.testing.strategies import START_MS, codecs, record_lists
from stratalog.testing.time_ranges import timestamps_of

UNKNOWN = -(2**63)
NOTHING = 2**63 - 1
ANYTHING = ProduceRules(after_max_ms=2**62)

spans = st.tuples(
    st.integers(START_MS - 60, START_MS + 60), st.integers(START_MS - 60, START_MS + 60)
)


def timed(timestamps: Sequence[int], **options: object) -> bytes:
    return build_batch([Record(b"k", b"v", (), each) for each in timestamps], **options)  # type: ignore[arg-type]


def validated(batch: bytes, rules: ProduceRules = ANYTHING) -> int:
    return validate_produced(
        batch, rules, first_offset=0, leader_epoch=0, now_ms=START_MS
    ).min_timestamp_ms


def as_longs(column: bytes) -> list[int]:
    return memoryview(column).cast("q").tolist()


# --- what a leader learns -----------------------------------------------------------------------


@given(rows=record_lists(), codec=codecs, target=st.one_of(st.none(), codecs))
def test_validation_tells_the_smallest_timestamp_also_where_deltas_are_negative(
    rows: list[Record], codec: Codec, target: Codec | None
) -> None:
    rules = ProduceRules(after_max_ms=2**62, codec=target)
    expected = min(row.timestamp_ms for row in rows)
    assert validated(build_batch(rows, codec=codec), rules) == expected


def test_with_log_append_time_it_is_the_clock() -> None:
    batch = timed([START_MS - 5, START_MS - 9])
    assert validated(batch, ProduceRules(log_append_time=True)) == START_MS
    compressed = ProduceRules(log_append_time=True, codec=Codec.LZ4)
    assert validated(batch, compressed) == START_MS


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_stored_with_the_timestamps_they_had(magic: int) -> None:
    rows = [(b"k", b"v", START_MS), (b"k", b"v", START_MS - 7), (b"k", b"v", START_MS + 3)]
    expected = -1 if magic == 0 else START_MS - 7
    assert validated(legacy_message_set(rows, magic=magic)) == expected


# --- what a follower learns ---------------------------------------------------------------------


@given(st.lists(record_lists(), min_size=1, max_size=4))
def test_uncompressed_batches_tell_their_smallest_timestamp(runs: list[list[Record]]) -> None:
    data = b"".join(build_batch(rows) for rows in runs)
    assert min_timestamp(data) == min(row.timestamp_ms for rows in runs for row in rows)


def test_compressed_batches_are_not_opened_to_learn_it() -> None:
    plain, packed = timed([START_MS]), timed([START_MS - 3], codec=Codec.ZSTD)
    assert min_timestamp(plain + packed) == UNKNOWN
    appended = timed(
        [START_MS - 3],
        codec=Codec.ZSTD,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time_ms=START_MS + 2,
    )
    assert min_timestamp(appended) == START_MS + 2
    rows = [(b"k", b"v", START_MS), (b"k", b"v", START_MS - 1)]
    assert min_timestamp(legacy_message_set(rows, magic=1)) == START_MS - 1
    assert min_timestamp(legacy_message_set(rows, magic=1, codec=Codec.GZIP)) == UNKNOWN


def test_a_header_that_tells_too_little_is_not_asked_at_all() -> None:
    batch = bytearray(timed([START_MS, START_MS + 50]))
    batch[35:43] = (START_MS + 49).to_bytes(8, "big")
    assert min_timestamp(bytes(batch)) == UNKNOWN


def test_half_a_batch_and_garbage_have_an_unknown_minimum_and_nothing_has_none() -> None:
    batch = timed([START_MS])
    for cut in range(1, len(batch)):
        assert min_timestamp(batch[:cut]) == UNKNOWN
    assert min_timestamp(batch + b"\xff" * 70) == UNKNOWN
    assert min_timestamp(b"") == NOTHING


# --- what a scan learns -------------------------------------------------------------------------


def stored(draw: st.DrawFn) -> list[bytes]:
    """Batches of every format, codec and kind of timestamp, in one log."""
    batches, offset = [], 0
    for _ in range(draw(st.integers(1, 8))):
        rows = draw(record_lists())
        kind = draw(st.sampled_from(("v2", "v2", "append time", "magic 1", "magic 0", "empty")))
        codec = draw(codecs)
        if kind.startswith("magic"):
            magic = int(kind[-1])
            if magic < 2 and codec is Codec.ZSTD:
                codec = Codec.NONE
            old = [(row.key, row.value, row.timestamp_ms) for row in rows]
            batch = legacy_message_set(old, magic=magic, base_offset=offset, codec=codec)
        elif kind == "append time":
            batch = build_batch(
                rows,
                base_offset=offset,
                codec=codec,
                timestamp_type=TimestampType.LOG_APPEND_TIME,
                log_append_time_ms=draw(st.integers(START_MS - 50, START_MS + 50)),
            )
        elif kind == "empty":
            batch = build_batch([], base_offset=offset, last_offset_delta=0)
        else:
            batch = build_batch(rows, base_offset=offset, codec=codec)
        batches.append(batch)
        offset = read_headers(batch)[-1].next_offset
    return batches


stored_batches = st.composite(stored)()


@given(stored_batches, st.integers(1, 600), spans)
def test_a_scan_finds_exactly_the_range_of_every_run_and_no_record_is_passed_over(
    batches: list[bytes], range_bytes: int, span: tuple[int, int]
) -> None:
    scan = TimeRangeScan(range_bytes)
    data = b"".join(batches)
    assert scan.feed(data, 0) == len(data) == scan.covered_bytes
    positions, minima, maxima = (as_longs(column) for column in scan.finish())
    ends = [*positions[1:], len(data)]
    starts = {header.position for header in read_headers(data)}
    assert positions[0] == 0
    assert set(positions) <= starts
    kept = overlapping_ranges(*scan.finish(), len(data), *span, 0, len(data))
    for start, end, low, high in zip(positions, ends, minima, maxima, strict=True):
        found = timestamps_of(data[start:end])
        assert (low, high) == (min(found, default=NOTHING), max(found, default=UNKNOWN))
        assert end - start >= range_bytes or end == len(data)
        if any(span[0] <= each <= span[1] for each in found):
            assert any(a <= start and end <= b for a, b in kept)


def test_a_scan_goes_on_in_pieces_and_stops_at_damage() -> None:
    batches = [timed([START_MS + n], base_offset=n) for n in range(5)]
    size = len(batches[0])
    scan = TimeRangeScan(1)
    assert scan.feed(b"".join(batches[:2]) + batches[2][:30], 0) == 2 * size
    broken = bytearray(b"".join(batches[2:]))
    broken[size + 65] ^= 1
    with pytest.raises(CorruptBatchError):
        scan.feed(bytes(broken), 2 * size)
    assert scan.covered_bytes == 3 * size
    assert (scan.last_position, scan.last_offset) == (2 * size, 2)
    assert as_longs(scan.finish()[1]) == [START_MS, START_MS + 1, START_MS + 2]
    with pytest.raises(ValueError, match="does not follow"):
        scan.feed(batches[0], 0)
    with pytest.raises(ValueError, match="ranges of 0 bytes"):
        TimeRangeScan(0)


# --- which ranges a span of time meets ----------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20), st.integers(0, 20)), max_size=12),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(0, 70),
    st.integers(0, 70),
)
def test_overlapping_ranges_are_those_of_a_plain_walk_over_the_bytes(
    ranges: list[tuple[int, int, int]], low: int, high: int, start: int, end: int
) -> None:
    positions, minima, maxima, covered = [], [], [], 0
    meets: dict[int, bool] = {}
    for size, minimum, maximum in ranges:
        positions.append(covered)
        minima.append(minimum)
        maxima.append(maximum)
        for byte in range(covered, covered + size):
            meets[byte] = minimum <= high and maximum >= low
        covered += size
    found = overlapping_ranges(
        *(_column(each) for each in (positions, minima, maxima)),
        covered,
        low,
        high,
        start,
        end,
    )
    expected = {byte for byte in range(start, end) if meets.get(byte, True)}
    assert {byte for a, b in found for byte in range(a, b)} == expected
    assert all(a < b for a, b in found)
    assert all(first[1] < second[0] for first, second in itertools.pairwise(found))


def _column(numbers: list[int]) -> bytes:
    column = memoryview(bytearray(8 * len(numbers))).cast("q")
    for slot, number in enumerate(numbers):
        column[slot] = number
    return column.tobytes()


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        overlapping_ranges(bytes(8), bytes(16), bytes(8), 10, 0, 1, 0, 10)
