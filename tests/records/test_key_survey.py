"""A survey counts exactly what can be counted, and keys within a percent or two."""

import pytest
from batch_strategies import resealed
from cleaning_strategies import LOGS, feed_in_pieces, feed_whole
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CorruptBatchError
from stratalog.records import (
    Codec,
    Record,
    build_batch,
    build_end_transaction_marker,
    read_headers,
)
from stratalog.records._kernels import KeySurvey
from stratalog.records.columns import decode_records

COUNTS = (
    "batches",
    "records",
    "control_batches",
    "header_only_batches",
    "null_keys",
    "tombstones",
    "tombstones_with_horizon",
    "earliest_horizon_ms",
    "latest_horizon_ms",
)


def plain_counts(log: bytes) -> dict[str, int]:
    headers = read_headers(log)
    horizons: list[int] = []
    rows = []
    for header in headers:
        stored = log[header.position : header.position + header.size_bytes]
        found = [] if header.is_control else decode_records(stored)
        rows += found
        if header.delete_horizon_ms is not None:
            horizons += [header.delete_horizon_ms for row in found if row.value is None]
    return {
        "batches": len(headers),
        "records": len(rows),
        "control_batches": sum(header.is_control for header in headers),
        "header_only_batches": sum(header.record_count == 0 for header in headers),
        "null_keys": sum(row.key is None for row in rows),
        "tombstones": sum(row.value is None for row in rows),
        "tombstones_with_horizon": len(horizons),
        "earliest_horizon_ms": min(horizons, default=-1),
        "latest_horizon_ms": max(horizons, default=-1),
    }


@given(LOGS, st.integers(0, 20), st.none() | st.lists(st.integers(1, 300), min_size=1, max_size=6))
def test_what_is_counted_is_what_is_there(
    log: bytes, first_dirty_offset: int, cuts: list[int] | None
) -> None:
    survey = KeySurvey(first_dirty_offset)
    if cuts is None:
        feed_whole(survey, log)
    else:
        assert feed_in_pieces(survey, log, cuts) == len(log)
    assert {name: getattr(survey, name) for name in COUNTS} == plain_counts(log)
    dirty = (row for row in decode_records(log) if row.offset >= first_dirty_offset)
    keys = {row.key for row in dirty} - {None}
    # As few as these are told exactly, but for some that share a register.
    assert len(keys) - 4 <= survey.estimated_keys <= len(keys)


@pytest.mark.parametrize("count", [0, 1, 1000, 30_000, 45_000, 120_000])
def test_keys_are_estimated_within_a_few_percent_however_often_they_occur(count: int) -> None:
    survey = KeySurvey()
    for _ in range(2):
        for start in range(0, count, 10_000):
            keys = range(start, min(start + 10_000, count))
            rows = [Record(b"%d" % each, b"") for each in keys]
            survey.feed(build_batch(rows, base_offset=start), 0)
    # The standard error is 0.8 percent, and it is the hash's secret key that draws.
    assert abs(survey.estimated_keys - count) <= 0.05 * count
    assert survey.records == 2 * count


def test_markers_are_counted_and_not_looked_into() -> None:
    marker = build_end_transaction_marker(
        commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1
    )
    survey = KeySurvey()
    survey.feed(marker + build_batch([]), 0)
    assert (survey.control_batches, survey.header_only_batches, survey.records) == (1, 1, 0)
    assert survey.estimated_keys == 0


def test_batches_may_come_in_any_order() -> None:
    first = build_batch([Record(b"a", None)], delete_horizon_ms=9)
    second = build_batch([Record(b"b", None)], base_offset=1, delete_horizon_ms=4)
    survey = KeySurvey()
    survey.feed(second, 1000)
    survey.feed(first, 0)
    assert (survey.batches, survey.estimated_keys) == (2, 2)
    assert (survey.earliest_horizon_ms, survey.latest_horizon_ms) == (4, 9)


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_is_damaged_is_refused_and_those_before_it_count(codec: Codec) -> None:
    good = build_batch([Record(b"a", b"1"), Record(b"b", b"2")], codec=codec)
    survey = KeySurvey()
    with pytest.raises(CorruptBatchError) as caught:
        survey.feed(good + resealed(good, 57, ">i", 3), 40)
    assert caught.value.position == 40 + len(good)
    with pytest.raises(CorruptBatchError, match="CRC"):
        survey.feed(good[:-1] + b"\xee", 0)
    assert survey.estimated_keys == 2
