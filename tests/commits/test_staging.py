"""Staged files as tasks write them."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staging_harness import (
    DIRECTORY,
    LOG_DIR,
    STAGING_ID,
    batch,
    new_disk,
    stage,
    staged_path,
    stamped,
)

from open_files import open_files_in
from stratalog.errors import DiskError, DiskFullError
from stratalog.records import read_headers
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.staged_log import StagedLogWriter
from stratalog.storage.commits.staging import staging_directory
from stratalog.storage.files import OsFileSystem
from stratalog.testing import strategies


@given(st.lists(strategies.batches(), max_size=12), st.integers(100, 3_000))
def test_what_is_staged_is_what_was_appended_with_offsets_from_0_in_each_file(
    batches: list[bytes], segment_bytes: int
) -> None:
    files = new_disk()

    staged = stage(files, batches, segment_bytes=segment_bytes)

    left = list(batches)
    for number, each in enumerate(staged):
        assert each.name == f"00000-0-{number:05d}.log"
        content = files.contents(staged_path(each.name))
        headers = read_headers(content)
        mine, left = left[: len(headers)], left[len(headers) :]
        assert content == stamped(mine)
        assert each.size_bytes == len(content)
        assert each.record_count == headers[-1].next_offset
        assert each.size_bytes <= segment_bytes or len(headers) == 1
    assert left == []


def test_a_file_is_as_full_as_segment_bytes_allows() -> None:
    files = new_disk()
    each = batch()

    staged = stage(files, [each] * 10, segment_bytes=3 * len(each))

    assert [one.record_count for one in staged] == [3, 3, 3, 1]


def test_a_file_gets_no_more_records_than_an_index_can_count() -> None:
    files = new_disk()
    many = bytearray(batch())
    many[23:27] = (2**30 - 1).to_bytes(4, "big")  # last offset delta
    many[57:61] = (2**30).to_bytes(4, "big")  # record count

    staged = stage(files, [bytes(many)] * 3)

    assert [each.record_count for each in staged] == [2**30] * 3


@given(st.lists(strategies.batches(), min_size=1, max_size=6), st.data())
def test_it_does_not_matter_how_batches_are_handed_over(
    batches: list[bytes], data: st.DataObject
) -> None:
    one, other = new_disk(), new_disk()
    cut = data.draw(st.integers(0, len(batches)))

    apart = stage(one, batches)
    together = stage(other, [b"".join(batches[:cut]), b"".join(batches[cut:])])

    assert apart == together
    assert one.tree(DIRECTORY) == other.tree(DIRECTORY)


@given(st.lists(strategies.batches() | st.none(), max_size=10), st.integers(100, 3_000))
def test_a_writer_that_rests_in_between_writes_the_same(
    steps: list[bytes | None], segment_bytes: int
) -> None:
    one, other = new_disk(), new_disk()
    writer = StagedLogWriter(
        one, staging_directory(DIRECTORY, STAGING_ID), "00000-0", segment_bytes=segment_bytes
    )
    for each in steps:
        if each is None:
            writer.rest()
        else:
            writer.append(each)

    batches = [each for each in steps if each is not None]
    assert writer.finish() == stage(other, batches, segment_bytes=segment_bytes)
    assert one.tree(DIRECTORY) == other.tree(DIRECTORY)
    assert all(one.is_synced(f"{DIRECTORY}/{each}") for each in one.tree(DIRECTORY))


def test_a_writer_that_rests_holds_no_descriptor(tmp_path: Path) -> None:
    writers = []
    for number in range(20):
        (tmp_path / f"orders-{number}").mkdir()
        directory = staging_directory(f"{tmp_path}/orders-{number}", STAGING_ID)
        writer = StagedLogWriter(OsFileSystem(), directory, "00000-0", segment_bytes=1_000)
        writer.append(batch())
        assert open_files_in(tmp_path) > 0
        writer.rest()
        writers.append(writer)

    assert open_files_in(tmp_path) == 0
    assert sum(len(each.finish()) for each in writers) == 20


def test_a_file_that_was_swept_while_its_writer_rested_is_not_begun_anew() -> None:
    files = new_disk()
    writer = StagedLogWriter(
        files, staging_directory(DIRECTORY, STAGING_ID), "00000-0", segment_bytes=1_000
    )
    writer.append(batch())
    writer.rest()
    files.unlink(staged_path("00000-0-00000.log"))
    writer.append(batch())

    with pytest.raises(DiskError, match="No such file"):
        writer.finish()


def test_finished_files_survive_the_loss_of_power() -> None:
    files = new_disk()

    staged = stage(files, [batch()] * 4, segment_bytes=200)

    assert len(staged) > 1
    assert all(files.is_synced(staged_path(each.name)) for each in staged)


def test_a_task_without_batches_leaves_nothing() -> None:
    files = new_disk()

    assert stage(files, []) == ()
    assert files.list(DIRECTORY) == []


@pytest.mark.parametrize("piece", [batch()[:-1], batch() + b"x", b"x", batch()[:40]])
def test_part_of_a_batch_is_refused(piece: bytes) -> None:
    with pytest.raises(StagedFileError, match=r"part of a batch") as caught:
        stage(new_disk(), [piece])

    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_bytes_that_are_no_batch_are_refused() -> None:
    with pytest.raises(StagedFileError, match="magic"):
        stage(new_disk(), [bytes(8) + (60).to_bytes(4, "big") + b"\x09" * 60])


def test_what_is_discarded_is_gone_also_when_the_disk_was_full() -> None:
    files = new_disk()
    files.capacity_bytes = 8 << 10
    writer = StagedLogWriter(
        files, staging_directory(DIRECTORY, STAGING_ID), "00000-0", segment_bytes=1_000
    )

    several = b"".join([batch(value_bytes=600)] * 100)
    with pytest.raises(DiskFullError):
        writer.append(several)
    writer.discard()

    assert files.tree(LOG_DIR) == {}


def test_an_attempt_with_the_same_name_begins_anew() -> None:
    files = new_disk()
    stage(files, [batch(), batch(5)])

    staged = stage(files, [batch()])

    assert files.contents(staged_path(staged[0].name)) == stamped([batch()])


def test_nothing_is_made_where_there_is_no_partition() -> None:
    files = new_disk()

    with pytest.raises(Exception, match="mkdir"):
        stage(files, [batch()], directory="/logs/gone-0")
    assert not files.exists("/logs/gone-0")


def test_a_writer_knows_how_much_it_was_given() -> None:
    writer = StagedLogWriter(
        new_disk(), staging_directory(DIRECTORY, STAGING_ID), "00000-0", segment_bytes=200
    )
    for _ in range(5):
        writer.append(batch())

    assert writer.size_bytes == 5 * len(batch())
    assert sum(each.size_bytes for each in writer.finish()) == writer.size_bytes
