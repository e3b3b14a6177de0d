"""Places in a segment: what an index says counts only where the batches say the same."""

import struct
from pathlib import Path

import pytest

from stratalog.records import Record, build_batch
from stratalog.scans.places import SegmentPlaces
from stratalog.storage.files import OsFileSystem
from stratalog.storage.inspection import list_segments

BASE = 100
RECORDS = 3  # a batch
TIMES = (5, 7, 9, 5, 6, 20, 8, 30)  # the largest of each batch


@pytest.fixture
def positions(tmp_path: Path) -> list[int]:
    """Where the batches of the segment begin; they hold offsets 100 to 102, 103 to 105, …"""
    content, found = b"", []
    for place, newest_ms in enumerate(TIMES):
        found.append(len(content))
        records = [Record(None, bytes(20), timestamp_ms=newest_ms - n) for n in range(RECORDS)]
        content += build_batch(records, base_offset=BASE + RECORDS * place)
    (tmp_path / f"{BASE:020d}.log").write_bytes(content)
    return found


def places_in(directory: Path) -> SegmentPlaces:
    (listed,) = list_segments(OsFileSystem(), str(directory)).segments
    return SegmentPlaces(OsFileSystem(), str(directory), listed)


def write_index(directory: Path, entries: list[tuple[int, int]]) -> None:
    content = b"".join(struct.pack(">ii", offset - BASE, at) for offset, at in entries)
    (directory / f"{BASE:020d}.index").write_bytes(content)


def write_time_index(directory: Path, entries: list[tuple[int, int]]) -> None:
    content = b"".join(struct.pack(">qi", time, offset - BASE) for time, offset in entries)
    (directory / f"{BASE:020d}.timeindex").write_bytes(content)


def last_offset(place: int) -> int:
    return BASE + RECORDS * (place + 1) - 1


def test_an_index_that_points_to_other_batches_changes_nothing(
    tmp_path: Path, positions: list[int]
) -> None:
    ends = [*positions[1:], (tmp_path / f"{BASE:020d}.log").stat().st_size]
    late = [(last_offset(place), positions[place + 2]) for place in range(len(TIMES) - 2)]
    early = [(last_offset(place + 2), positions[place]) for place in range(len(TIMES) - 2)]
    inside = [(last_offset(place), positions[place] + 7) for place in range(len(TIMES))]
    beyond = [(last_offset(place), 1 << 30) for place in range(len(TIMES))]
    for entries in (late, early, inside, beyond, []):
        write_index(tmp_path, entries)
        with places_in(tmp_path) as places:
            for place, position in enumerate(positions):
                for offset in range(last_offset(place) - RECORDS + 1, last_offset(place) + 1):
                    assert places.start_of(offset) == position
                    assert places.end_of(offset + 1) == ends[place]


def test_a_header_that_claims_too_few_offsets_is_not_passed_over(
    tmp_path: Path, positions: list[int]
) -> None:
    path = tmp_path / f"{BASE:020d}.log"
    content = bytearray(path.read_bytes())
    content[positions[3] + 26] = 0  # the last offset delta of the batch of 109 to 111 is 0 now
    path.write_bytes(content)
    with places_in(tmp_path) as places:
        assert places.start_of(110) == positions[3]


def test_a_cut_is_where_a_batch_begins_whatever_the_index_says(
    tmp_path: Path, positions: list[int]
) -> None:
    late = [(last_offset(place), positions[place + 2]) for place in range(len(TIMES) - 2)]
    for entries in ([], late, [(last_offset(n), at) for n, at in enumerate(positions)]):
        write_index(tmp_path, entries)
        with places_in(tmp_path) as places:
            for place, position in enumerate(positions[1:], start=1):
                for target in (position, position + 10):
                    found = places.boundary_before(target)
                    assert found == (BASE + RECORDS * place, position)


def test_a_time_entry_counts_only_if_its_batch_has_that_time(
    tmp_path: Path, positions: list[int]
) -> None:
    # It would say that up to the batch of 9 nothing is later than 3.
    write_time_index(tmp_path, [(3, last_offset(2))])
    with places_in(tmp_path) as places:
        assert places.skip_older(4, 0) == 0
        assert places.skip_older(7, 0) == positions[1]
        assert places.first_later(2) is None


def test_a_time_entry_counts_only_if_its_neighbours_are_in_order(
    tmp_path: Path, positions: list[int]
) -> None:
    # The first is of the batch of 5 that comes after the one of 9.
    write_time_index(tmp_path, [(5, last_offset(3)), (9, last_offset(2)), (20, last_offset(5))])
    with places_in(tmp_path) as places:
        assert places.skip_older(6, 0) == positions[1]


def test_a_true_time_index_skips_what_is_older(tmp_path: Path, positions: list[int]) -> None:
    entries = [(5, 0), (7, 1), (9, 2), (20, 5), (30, 7)]
    write_time_index(tmp_path, [(time, last_offset(place)) for time, place in entries])
    write_index(tmp_path, [(last_offset(n), at) for n, at in enumerate(positions)])
    with places_in(tmp_path) as places:
        assert places.skip_older(10, 0) == positions[5]
        assert places.skip_older(31, 0) == places.size_bytes
        later = places.first_later(9)
        assert later is not None
        assert later.position == positions[5]


def test_looking_for_a_time_ends_when_it_costs_too_much(
    tmp_path: Path, positions: list[int]
) -> None:
    with places_in(tmp_path) as places:
        assert places.skip_older(30, 0, budget_bytes=1) == positions[1]
        assert places.skip_older(30, 0, budget_bytes=positions[3]) == positions[3]


def test_zeros_behind_the_entries_of_an_index_are_none(
    tmp_path: Path, positions: list[int]
) -> None:
    write_index(tmp_path, [(last_offset(0), positions[0]), (last_offset(3), positions[3])])
    path = tmp_path / f"{BASE:020d}.index"
    path.write_bytes(path.read_bytes() + bytes(8 * 100))
    with places_in(tmp_path) as places:
        assert len(places.offset_entries) == 2
        assert places.last_hint() == positions[3]


def test_a_file_that_took_the_name_of_the_listed_one_is_not_looked_at(
    tmp_path: Path, positions: list[int]
) -> None:
    with places_in(tmp_path) as places:
        path = tmp_path / f"{BASE:020d}.log"
        content = path.read_bytes()
        path.rename(path.with_name(path.name + ".deleted"))
        path.write_bytes(content[positions[2] :])
        assert places.start_of(last_offset(4)) == positions[4]
