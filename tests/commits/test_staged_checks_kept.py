"""Staged files that keep the offsets they have: what a rewrite or a backup stages."""

import pytest
from hypothesis import given
from staging_harness import (
    DIRECTORY,
    STAGING_ID,
    batch,
    changed,
    new_disk,
    put_staged,
    topic,
)

from stratalog.errors import DiskError
from stratalog.records import SegmentScan, read_headers
from stratalog.storage.commits.checking import check_kept
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.merging import CheckedFile
from stratalog.storage.commits.staged_reading import StagedDirectory
from stratalog.testing import SimulatedFileSystem, strategies

END = 2**40


def kept(files: SimulatedFileSystem, staged: StagedFile, end_offset: int = END) -> CheckedFile:
    staging = StagedDirectory(files, DIRECTORY, STAGING_ID)
    config = topic(index_interval_bytes=64, segment_index_bytes=4_096)
    return check_kept(files, staging, staged, config, end_offset=end_offset)


@given(strategies.batch_runs(base_offset=30, gaps=True))
def test_it_is_indexed_as_recovery_would(batches: list[bytes]) -> None:
    files = new_disk()
    content = b"".join(batches)
    staged = changed(put_staged(files, content), base_offset=20)

    checked = kept(files, staged)

    scan = SegmentScan(20, 64)
    scan.feed(content)
    scan.finish()
    assert files.contents(checked.beside(".index")) == scan.offset_entries
    assert files.contents(checked.beside(".timeindex")) == scan.time_entries
    assert checked.base_offset == 20
    assert files.contents(checked.path) == content


def test_what_a_transaction_left_is_taken() -> None:
    files = new_disk()
    content = batch(
        base_offset=5, producer_id=9, producer_epoch=0, base_sequence=0, transactional=True
    )

    assert kept(files, changed(put_staged(files, content), base_offset=5)).record_count == 1


@pytest.mark.parametrize(
    ("base_offset", "end_offset", "reason"),
    [(6, END, "offset 5 where at least 6"), (0, 6, "has to end at 6"), (0, 7, None)],
)
def test_offsets_lie_between_the_base_and_the_end(
    base_offset: int, end_offset: int, reason: str | None
) -> None:
    files = new_disk()
    staged = changed(put_staged(files, batch(2, base_offset=5)), base_offset=base_offset)
    if reason is None:
        kept(files, staged, end_offset)
        return
    before = files.tree()
    with pytest.raises(StagedFileError, match=reason):
        kept(files, staged, end_offset)
    assert files.tree() == before


def test_offsets_that_go_back_are_refused() -> None:
    files = new_disk()
    staged = put_staged(files, batch(2, base_offset=5) + batch(1, base_offset=6))

    with pytest.raises(StagedFileError, match="offset 6 where at least 7"):
        kept(files, staged)


def test_every_flip_that_a_crc_covers_is_found() -> None:
    files = new_disk()
    content = batch(2, base_offset=5)
    staged = put_staged(files, content)
    for position in range(16, len(content)):
        flipped = bytearray(content)
        flipped[position] ^= 4
        files.put(f"{DIRECTORY}/.stratalog/staging/{STAGING_ID}/{staged.name}", bytes(flipped))
        with pytest.raises(StagedFileError):
            kept(files, staged)


def test_counts_are_compared() -> None:
    files = new_disk()
    content = batch(2, base_offset=5)
    assert read_headers(content)
    with pytest.raises(StagedFileError, match="2 records"):
        kept(files, changed(put_staged(files, content), record_count=1))


def test_an_operation_that_fails_leaves_only_what_was_staged() -> None:
    files = new_disk()
    staged = put_staged(files, batch(2, base_offset=5) + batch(2, base_offset=9))
    untouched = files.clone()
    began = files.operations
    expected = kept(files, staged)

    for number in range(1, files.operations - began + 1):
        failing = untouched.clone()
        failing.fail(number)
        with pytest.raises(DiskError):
            kept(failing, staged)
        assert failing.tree() == untouched.tree()
        assert kept(failing, staged) == expected
