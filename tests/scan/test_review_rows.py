"""Right rows or an error where files lie, paths are odd and arguments are wrong."""

import errno
import os
import struct
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import marker

from stratalog import Record, open_directory
from stratalog.errors import CorruptSegmentError, DiskError
from stratalog.records import SegmentScan, build_batch
from stratalog.scans.api import scan
from stratalog.scans.errors import ScanOptionError
from stratalog.scans.holes import Holes
from stratalog.scans.keys import partition_of
from stratalog.scans.places import Boundary, SegmentPlaces
from stratalog.scans.planning import plan_scan
from stratalog.scans.reading import read_task
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import ReadOptions
from stratalog.scans.snapshot import take_snapshot
from stratalog.scans.splitting import _cuts, split_by_records
from stratalog.scans.where import Where
from stratalog.storage.files import OsFileSystem

BATCHES = 8
BATCH_RECORDS = 10
END_OFFSET = BATCHES * BATCH_RECORDS
START_MS = 1_700_000_000_000
# The last segment's last batch cannot be told from an interrupted write, nor can anybody tell how
# far a segment's last batch reaches; all others are followed by one that says where they end.
LAST_FOLLOWED = BATCHES - 2


def _batches() -> list[bytes]:
    return [
        build_batch(
            [
                Record(b"k", b"v", timestamp_ms=START_MS + offset)
                for offset in range(base, base + BATCH_RECORDS)
            ],
            base_offset=base,
        )
        for base in range(0, END_OFFSET, BATCH_RECORDS)
    ]


def _write_damaged(root: Path, batch: int, byte: int, mask: int, *, interval_bytes: int) -> None:
    directory = root / "orders-0"
    directory.mkdir(exist_ok=True)
    batches = _batches()
    content = bytearray(b"".join(batches))
    hints = SegmentScan(0, interval_bytes)
    hints.feed(bytes(content))
    hints.finish()
    content[sum(map(len, batches[:batch])) + byte] ^= mask
    stem = directory / f"{0:020d}"
    stem.with_suffix(".log").write_bytes(content)
    stem.with_suffix(".index").write_bytes(hints.offset_entries)
    stem.with_suffix(".timeindex").write_bytes(hints.time_entries)


def _read(root: Path, where: Where, **how: Any) -> list[int]:
    snapshot = take_snapshot(str(root), Subscribe(("orders",)))
    plan = plan_scan(snapshot, where=where, **how)
    options = ReadOptions(columns=("offset",), row_filter=where.row_filter())
    return [
        offset
        for task in plan.tasks
        for batch in read_task(task, options)
        for offset in batch.column("offset").to_pylist()
    ]


@given(st.data())
def test_a_flipped_bit_in_a_header_is_an_error_or_changes_no_row(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    root = tmp_path_factory.getbasetemp() / "flipped"
    root.mkdir(exist_ok=True)
    _write_damaged(
        root,
        data.draw(st.integers(0, LAST_FOLLOWED)),
        # Base offset, size, the last offset's delta, the largest timestamp: what plans go by.
        data.draw(st.sampled_from((*range(12), *range(23, 27), *range(35, 43)))),
        1 << data.draw(st.integers(0, 7)),
        interval_bytes=data.draw(st.sampled_from((0, 200, 1 << 30))),
    )
    first = data.draw(st.integers(0, END_OFFSET - 1))
    last = data.draw(st.integers(first, END_OFFSET - 1))
    where = data.draw(
        st.sampled_from(
            (
                Where(min_offset=first, max_offset=last),
                Where(min_timestamp_ms=START_MS + first, max_timestamp_ms=START_MS + last),
            )
        )
    )
    most = data.draw(st.none() | st.integers(1, 15))
    try:
        found = _read(root, where, max_records_per_task=most)
    except CorruptSegmentError:
        return
    assert found == list(range(first, last + 1))


@pytest.mark.parametrize("base_offset", [3, 1 << 40])
def test_a_log_does_not_end_where_its_last_indexed_batch_claims_another_offset(
    tmp_path: Path, base_offset: int
) -> None:
    mask = struct.pack(">q", base_offset ^ (END_OFFSET - BATCH_RECORDS))
    _write_damaged(tmp_path, 0, 0, 0, interval_bytes=0)
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    start = len(content) - len(_batches()[-1])
    content[start : start + 8] = bytes(a ^ b for a, b in zip(content[start:], mask, strict=False))
    path.write_bytes(content)
    # The damaged batch is the last: it counts as one that was never written.
    assert _read(tmp_path, Where()) == list(range(END_OFFSET - BATCH_RECORDS))


@pytest.mark.parametrize("bases", [(0, 0), (0, 5)], ids=["same segment", "next segment"])
def test_what_was_aborted_is_not_returned_because_its_marker_is_damaged(
    tmp_path: Path, bases: tuple[int, int]
) -> None:
    """The marker lies behind what is asked for; the producer's next one is of a commit."""
    aborted = transaction(0)
    behind = bytearray(marker(5, 7, commit=False).content)
    behind[70] ^= 0x55
    behind += transaction(6) + marker(11, 7, commit=True).content
    directory = tmp_path / "orders-3"
    directory.mkdir()
    for base, content in zip(bases, (aborted, behind), strict=True):
        with (directory / f"{base:020d}.log").open("ab") as file:
            file.write(content)
    found = scan(directory, isolation="read_committed", columns="offset", end=5)
    with pytest.raises(CorruptSegmentError):
        found.read_all()
    scan(directory, end=5).read_all()  # nothing of that is damaged


def transaction(base_offset: int) -> bytes:
    return build_batch(
        [Record(b"k", b"v", timestamp_ms=START_MS)] * 5,
        base_offset=base_offset,
        producer_id=7,
        producer_epoch=0,
        base_sequence=base_offset,
        transactional=True,
    )


# --- keys ---------------------------------------------------------------------------------------


def test_a_directory_with_some_of_the_partitions_loses_no_rows_by_their_keys(
    tmp_path: Path,
) -> None:
    """Two partitions of three: with few keys, all can be where two would put them by chance."""
    wanted = b""
    with open_directory(tmp_path, create=True) as made:
        for number in range(2):
            keys = [k for n in range(200) if partition_of(k := b"%d" % n, 3) == number]
            log = made.create("orders", number)
            log.append([Record(next(k for k in keys if partition_of(k, 2) == number), b"")])
            wanted = next(k for k in keys if partition_of(k, 2) != number)
            log.append([Record(wanted, b"")])
    assert scan(tmp_path, "orders", key=wanted).read_all().num_rows == 1


# --- gaps ---------------------------------------------------------------------------------------


@pytest.fixture
def trimmed(tmp_path: Path) -> Path:
    """Twenty records, of which the first ten are deleted."""
    with open_directory(tmp_path, create=True) as made:
        log = made.create("orders")
        for _ in range(4):
            log.append([Record(b"k", b"v", timestamp_ms=START_MS)] * 5)
        log.delete_records(10)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expired"),
    [
        ({"start": 0}, [(0, 10)]),
        ({"start": -5}, [(0, 10)]),
        ({"start": 3, "end": 7}, [(3, 7)]),
        ({"start": 0, "where": Where(min_offset=4, max_offset=6)}, [(4, 7)]),
        ({"start": 0, "where": Where(min_offset=15)}, []),
        ({"start": 12}, []),
        ({}, []),
    ],
)
def test_only_what_was_asked_for_below_the_log_start_has_expired(
    trimmed: Path, arguments: dict[str, Any], expired: list[tuple[int, int]]
) -> None:
    found = scan(trimmed, "orders", gaps=True, **arguments).read_all().to_pylist()
    assert [(row["startOffset"], row["endOffset"]) for row in found] == expired
    assert {row["reason"] for row in found} <= {"expired"}


# --- paths --------------------------------------------------------------------------------------


@pytest.fixture
def replica(tmp_path: Path) -> Path:
    root = tmp_path / "logs, ü"
    with open_directory(root, create=True) as made:
        made.create("a.b-c", 1).append([Record(b"k", b"v")] * 3)
    return root / "a.b-c-1"


def test_one_replica_is_found_however_it_is_called(
    replica: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "current").symlink_to(replica)
    monkeypatch.chdir(replica)
    for path in (replica, tmp_path / "current", ".", f"{replica}/.", os.pardir):
        found = scan(path, columns="topic").read_all()
        assert found.column("topic").to_pylist() == ["a.b-c"] * 3


def test_a_replica_that_is_to_be_deleted_is_read_only_by_its_own_name(replica: Path) -> None:
    deleted = replica.rename(replica.parent / f"a.b-c-1.{'0' * 32}-delete")
    assert scan(deleted).read_all().num_rows == 3
    assert scan(replica.parent).read_all().num_rows == 0


# --- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": 1.5},
        {"end": True},
        {"start": {"a.b-c": 1}},
        {"start": {7: 1}},
        {"where": 5},
        {"key": "text"},
        {"max_lateness": 5},
        {"max_lateness": timedelta(seconds=-1)},
    ],
    ids=str,
)
def test_a_wrong_argument_is_named(replica: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ScanOptionError) as raised:
        scan(replica, **arguments)
    assert raised.value.option in arguments


def test_large_batches_are_not_looked_at_byte_by_byte(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        log = made.create("orders")
        for _ in range(4):
            log.append([Record(None, bytes(200_000), timestamp_ms=START_MS)])
    snapshot = take_snapshot(str(tmp_path), Subscribe(("orders",)))
    (task,) = plan_scan(snapshot).tasks
    (planned,) = task.slices
    listed = snapshot.partitions[planned.topic_partition].segments[0]
    with _CountingPlaces(OsFileSystem(), planned.directory, listed) as places:
        assert [offset for offset, _ in _cuts(places, planned, 1)] == [1, 2, 3]
    assert places.looks < 10


class _CountingPlaces(SegmentPlaces):
    looks = 0

    def boundary_before(self, position: int) -> Boundary | None:
        self.looks += 1
        return super().boundary_before(position)


def test_a_disk_that_fails_while_slices_are_cut_gives_no_record_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_directory(tmp_path, create=True) as made:
        made.create("orders").append([Record(b"k", b"v")] * 9)
    snapshot = take_snapshot(str(tmp_path), Subscribe(("orders",)))
    (task,) = plan_scan(snapshot).tasks
    starts = iter([SegmentPlaces.start_of])

    def failing(places: SegmentPlaces, offset: int) -> int:
        for start_of in starts:
            return start_of(places, offset)
        raise DiskError("read", "orders-0", errno.EIO, "the disk is broken")

    monkeypatch.setattr(SegmentPlaces, "start_of", failing)
    found = list(split_by_records(OsFileSystem(), task.slices, 3, Holes(OsFileSystem())))
    assert [(each.start_offset, each.end_offset) for each in found] == [(0, 3), (3, 6), (6, 9)]


def test_no_task_can_have_less_than_one_record(replica: Path) -> None:
    snapshot = take_snapshot(str(replica), Subscribe(("a.b-c",)))
    for most in (0, -1):
        with pytest.raises(ScanOptionError, match="max_records_per_task"):
            plan_scan(snapshot, max_records_per_task=most)


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        (Where(min_timestamp_ms=2**70), 0),
        (Where(max_timestamp_ms=-(2**70)), 0),
        (Where(min_timestamp_ms=-(2**70), max_timestamp_ms=2**70), 3),
        (Where(min_offset=2**70), 0),
        (Where(max_offset=2**70, min_offset=-(2**70)), 3),
        (Where(partitions=frozenset((2**70,))), 0),
    ],
    ids=str,
)
def test_bounds_beyond_what_there_can_be_are_bounds(replica: Path, where: Where, rows: int) -> None:
    assert scan(replica, where=where, max_lateness=timedelta.max).read_all().num_rows == rows


def test_right_arguments_are_taken(replica: Path) -> None:
    found = scan(replica, start={1: 1}, max_lateness=timedelta(seconds=1), columns="offset")
    assert found.read_all().column("offset").to_pylist() == [1, 2]
