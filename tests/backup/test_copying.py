"""Walking batches in pieces of any size, as files are read; and copying segments to a store."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from backup_worlds import store_at
from hypothesis import given
from hypothesis import strategies as st

from stratalog.records import Record, build_batch
from stratalog.storage.backup.copying import BatchWalk, Copier, SegmentToCopy, known_segments
from stratalog.storage.backup.errors import BackupError
from stratalog.storage.backup.manifest import SourceFile, StoredSegment
from stratalog.storage.files import OsFileSystem

Sizes = st.lists(st.integers(0, 300), min_size=1, max_size=8)


def log_of(sizes: list[int]) -> bytes:
    return b"".join(
        build_batch([Record(None, bytes(size), (), 10 * number)], base_offset=number)
        for number, size in enumerate(sizes)
    )


@given(sizes=Sizes, cuts=st.lists(st.integers(0, 3000)))
def test_pieces_of_any_size_tell_the_same_as_the_whole(sizes: list[int], cuts: list[int]) -> None:
    log = log_of(sizes)
    walk = BatchWalk(0, all_headers=True)
    places = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})

    found = [header for start, end in pairwise(places) for header in walk.feed(log[start:end])]

    assert [header.base_offset for header in found] == list(range(len(sizes)))
    assert found[0].position == 0
    assert (walk.fault, walk.scan.next_offset) == ("", len(sizes))


@given(sizes=Sizes, cut=st.integers(1, 60), flipped=st.booleans())
def test_what_is_cut_or_flipped_is_told_where_it_is(
    sizes: list[int], cut: int, flipped: bool
) -> None:
    log = bytearray(log_of(sizes))
    last = len(log_of(sizes[:-1]))
    if flipped:
        log[-1] ^= 1
    walk = BatchWalk(0)
    for start in range(0, len(log), 50):
        walk.feed(log[start : min(start + 50, len(log) - (0 if flipped else cut))])

    assert walk.fault
    assert walk.scan.position == last


# --- segments -----------------------------------------------------------------------------------


def listed(path: Path, size_bytes: int, *, more_bytes: int = 0) -> SegmentToCopy:
    """The segment in ``path``, of which so much is wanted and so much more was listed."""
    return SegmentToCopy(
        base_offset=0,
        end_offset=9,
        size_bytes=size_bytes,
        source=SourceFile(inode=1, size_bytes=size_bytes + more_bytes, modified_ns=2),
        open_log=lambda: OsFileSystem().open(str(path), writable=False),
        read_indexes=lambda: {".index": b"of the whole file"},
    )


def copied(
    tmp_path: Path, wanted: SegmentToCopy, known: Iterable[StoredSegment] = ()
) -> StoredSegment:
    store = store_at(tmp_path / "store")
    run = store.begin()
    try:
        copier = Copier(store, run, known=known_segments({"orders-0": tuple(known)}))
        found = copier.copy_segment("orders-0", wanted)
        run.settle()
        return found
    finally:
        run.close()


def test_a_segment_that_its_owner_cuts_while_it_is_copied_is_refused(tmp_path: Path) -> None:
    log = log_of([5, 5])
    (tmp_path / "0.log").write_bytes(log)
    with pytest.raises(BackupError, match="its owner has cut it"):
        copied(tmp_path, listed(tmp_path / "0.log", len(log) + 1))


def test_the_beginning_of_a_segment_has_no_indexes_since_they_are_of_the_whole(
    tmp_path: Path,
) -> None:
    log = log_of([5, 5])
    (tmp_path / "0.log").write_bytes(log)
    whole = copied(tmp_path, listed(tmp_path / "0.log", len(log)))
    part = copied(tmp_path, listed(tmp_path / "0.log", len(log_of([5])), more_bytes=9))
    assert (set(whole.files), set(part.files)) == ({".log", ".index"}, {".log"})
    assert (whole.next_offset, part.next_offset) == (2, 1)


def test_a_segment_that_was_copied_without_indexes_gets_them_and_is_not_read_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(log_of([5, 5]))
    closed = listed(path, path.stat().st_size)
    active = copied(tmp_path, replace(closed, read_indexes=dict))
    path.unlink()

    known = copied(tmp_path, closed, [active])

    assert (set(active.files), set(known.files)) == ({".log"}, {".log", ".index"})
    assert known.log == active.log


def test_a_segment_that_was_damaged_is_read_again_and_a_sound_one_is_not(tmp_path: Path) -> None:
    sound = log_of([5, 5])
    path = tmp_path / "0.log"
    wanted = listed(path, len(sound))
    path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    first = copied(tmp_path, wanted)
    path.write_bytes(sound)  # mended in place, by somebody who kept its times
    second = copied(tmp_path, wanted, [first])
    path.unlink()
    assert (bool(first.damage), second.damage) == (True, "")
    assert copied(tmp_path, wanted, [second]) == second
