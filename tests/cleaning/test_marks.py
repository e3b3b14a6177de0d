"""Marks of a cleaning: what they cost, and that each is written once."""

import random
from array import array
from pathlib import Path

import pytest
from cleaning_steps import Append, Roll, RowSpec
from cleaning_world import World
from hypothesis import given
from hypothesis import strategies as st
from outside_rounds import effort, hold_staging, plan_outside, two_sides

from stratalog.records import OffsetMap, SupersededRuns, mark_offsets
from stratalog.storage.cleaning.key_estimate import estimate_round
from stratalog.storage.cleaning.marks import (
    Marks,
    Span,
    block_bits,
    block_count,
    block_span,
    decide,
    span_of,
)
from stratalog.storage.cleaning.outside_work import mark_blocks
from stratalog.storage.cleaning.round_json import OutsideRound
from stratalog.storage.files import OsFileSystem

offsets = st.integers(0, 5000)
spans = st.tuples(offsets, offsets).map(lambda pair: Span.around(min(pair), max(pair)))


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def test_marks_of_offsets_that_nobody_marks_cost_no_memory(tmp_path: Path) -> None:
    span = Span.around(0, 8 * (200 << 20))
    before = resident_bytes()
    marks = Marks(span)
    marks.supersede(array("q", [7, 10**9]))
    path = marks.write(OsFileSystem(), str(tmp_path / "marks"))
    offset_map = OffsetMap(24 * 64)
    decide(OsFileSystem(), [path], span, offset_map)
    assert resident_bytes() - before < 40 << 20
    assert Path(path).stat().st_blocks * 512 < 8 << 20


@given(st.lists(offsets, max_size=50), spans)
def test_only_offsets_of_a_span_are_marked_in_it(marked: list[int], span: Span) -> None:
    bits = bytearray(span.size_bytes)
    mark_offsets(array("q", marked), bits, span.first_offset, span.end_offset)
    found = int.from_bytes(bits, "little")
    expected = {each for each in marked if span.first_offset <= each < span.end_offset}
    assert found == sum(1 << (each - span.first_offset) for each in expected)


def test_bits_that_lie_outside_their_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="2 bytes for 17 offsets"):
        mark_offsets(b"", bytearray(2), 0, 17)
    with pytest.raises(ValueError, match="offsets from 8 to 0"):
        mark_offsets(b"", bytearray(2), 8, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 100), st.booleans()),
        unique_by=lambda row: row[1],
    ),
    st.integers(1, 5),
)
def test_of_each_run_all_is_superseded_below_the_last_that_a_map_was_told_of(
    rows: list[tuple[int, int, bool]], size: int
) -> None:
    columns = sorted((key, -offset, told) for key, offset, told in rows)
    runs, found = SupersededRuns(), array("q")
    for start in range(0, len(columns), size):
        part = columns[start : start + size]
        keys = array("q", [key for key, _, _ in part])
        places = array("q", [-2 * offset + told for _, offset, told in part])
        found.frombytes(runs.feed(keys, keys, places))
    assert set(found) == {
        offset
        for key, offset, _ in rows
        if any(k == key and told and offset < other for k, other, told in rows)
    }


@given(st.integers(0, 2**50), st.integers(1, 2**50))
def test_blocks_part_all_offsets_and_are_not_too_many(first_offset: int, offsets: int) -> None:
    span = Span.around(first_offset, first_offset + offsets)
    bits = block_bits(span)
    first, last = span.first_offset >> bits, (span.end_offset - 1) >> bits
    assert block_count(span) == last - first + 1 <= 4097
    assert block_span(span, first).first_offset == span.first_offset
    assert block_span(span, last).end_offset == span.end_offset
    if first < last:
        assert block_span(span, first).end_offset == block_span(span, first + 1).first_offset


def test_each_mark_is_written_once_to_the_file_of_its_block() -> None:
    round_ = wide_round()
    span = span_of(round_.plan)
    bits = block_bits(span)
    dice = random.Random(1)
    marked = [dice.randrange(span.end_offset) for _ in range(200)]
    columns = [
        (sorted({each >> bits for each in part}), array("q", part))
        for part in (marked[:70], marked[70:])
    ]
    paths = mark_blocks(round_, columns, effort("blocks"))
    assert len(paths) == len({each >> bits for each in marked}) > 3
    files = round_.plan.files
    written = 0
    for path in paths:
        file = files.open(path, writable=False)
        written += int.from_bytes(file.read_at(0, file.size_bytes()), "little").bit_count()
        file.close()
    assert written == len(set(marked))


def wide_round() -> OutsideRound:
    """Few records, far from each other."""
    rows = tuple(RowSpec(key) for key in range(5))
    world = World()
    for _ in range(4):
        world.run([Append(rows, gap=3 << 24), Roll()])
    _, theirs = two_sides(world)
    round_ = plan_outside(theirs, 0)
    assert isinstance(round_, OutsideRound)
    hold_staging(theirs)
    return round_


def test_of_many_small_segments_all_records_are_estimated_and_not_only_those_sampled() -> None:
    world = World()
    for number in range(100):
        rows = tuple(RowSpec(5 * number + each) for each in range(5))
        world.run([Append(rows), Roll()])
    _, theirs = two_sides(world)
    round_ = plan_outside(theirs, 0)
    assert isinstance(round_, OutsideRound)
    assert len(round_.plan.dirty) >= 100
    estimate = estimate_round(round_.plan)
    assert estimate.records == 500
    assert 400 <= estimate.keys <= 500


def test_offsets_that_compaction_took_away_are_not_estimated_to_be_records() -> None:
    plan = wide_round().plan
    assert plan.upper_bound_offset > 100_000_000
    assert estimate_round(plan).records == 20
