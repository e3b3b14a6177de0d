"""Ranges of offsets against a snapshot: what is read and what is lost make up what was asked."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from stratalog.directories.owners import Ownership
from stratalog.scans.errors import ScanOptionError
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot
from stratalog.spark.offsets import (
    Earliest,
    Latest,
    SpecificOffsets,
    clamp_ranges,
    lost_ranges,
    resolve_ranges,
)
from stratalog.storage.inspection import SegmentTable
from stratalog.storage.layout import TopicPartition

ORDERS = TopicPartition("orders", 0)
UNCOMMITTED, COMMITTED = ScanIsolation.READ_UNCOMMITTED, ScanIsolation.READ_COMMITTED


def snapshot(start: int, stable: int, end: int) -> DirectorySnapshot:
    partition = PartitionSnapshot(ORDERS, "/data/orders-0", start, end, stable, SegmentTable([]))
    return DirectorySnapshot("/data", "", Ownership(), {ORDERS: partition})


ends = st.lists(st.integers(0, 12), min_size=3, max_size=3).map(sorted)


@given(ends, st.integers(0, 14), st.integers(0, 14), st.sampled_from(ScanIsolation))
def test_what_is_read_and_what_is_lost_make_up_what_was_asked(
    log: list[int], start: int, end: int, isolation: ScanIsolation
) -> None:
    assume(start <= end)
    asked = {ORDERS: (start, end)}
    view = snapshot(*log)

    (first, last) = clamp_ranges(asked, view, isolation)[ORDERS]
    lost = lost_ranges(asked, view, isolation)

    offsets = [*range(first, last)]
    for each in lost:
        assert each.start_offset < each.end_offset
        offsets += range(each.start_offset, each.end_offset)
    assert sorted(offsets) == list(range(start, end))
    log_end = log[1] if isolation is COMMITTED else log[2]
    assert all(log[0] <= offset < log_end for offset in range(first, last))


def test_the_latest_offset_is_the_last_stable_one_for_whoever_reads_committed() -> None:
    view = snapshot(2, 5, 9)

    assert resolve_ranges(Earliest(), Latest(), view, UNCOMMITTED) == {ORDERS: (2, 9)}
    assert resolve_ranges(Earliest(), Latest(), view, COMMITTED) == {ORDERS: (2, 5)}


def test_numbers_that_stand_for_an_end_are_resolved_and_others_are_kept() -> None:
    starting = SpecificOffsets("startingOffsets", {ORDERS: -2})
    ending = SpecificOffsets("endingOffsets", {ORDERS: -1})
    view = snapshot(2, 5, 9)
    assert resolve_ranges(starting, ending, view, UNCOMMITTED) == {ORDERS: (2, 9)}

    beyond = SpecificOffsets("endingOffsets", {ORDERS: 20})
    assert resolve_ranges(starting, beyond, view, UNCOMMITTED) == {ORDERS: (2, 20)}


def test_a_start_behind_the_end_that_it_comes_to_is_refused() -> None:
    starting = SpecificOffsets("startingOffsets", {ORDERS: 10})

    with pytest.raises(ScanOptionError, match="orders-0 would begin at 10, after its end 9"):
        resolve_ranges(starting, Latest(), snapshot(2, 5, 9), UNCOMMITTED)


def test_whoever_asks_for_holes_keeps_what_lies_below_the_start() -> None:
    asked, view = {ORDERS: (0, 20)}, snapshot(2, 5, 9)

    assert clamp_ranges(asked, view, UNCOMMITTED, only_behind=True) == {ORDERS: (0, 9)}
    (lost,) = lost_ranges(asked, view, UNCOMMITTED, only_behind=True)
    assert (lost.start_offset, lost.end_offset) == (9, 20)
