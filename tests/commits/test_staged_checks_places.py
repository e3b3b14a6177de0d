"""Places that are not staging, and disks that fail: nothing is taken, nothing is left behind."""

import errno
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from staging_harness import (
    DIRECTORY,
    NOW_MS,
    STAGING_ID,
    batch,
    changed,
    check,
    new_disk,
    part_of,
    stage,
    topic,
)

from stratalog.errors import DiskError, DiskFullError
from stratalog.storage.commits.checking import check_partition
from stratalog.storage.commits.errors import ManifestError, StagedFileError
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.files import OsFileSystem
from stratalog.testing import SimulatedFileSystem


@pytest.fixture
def real(tmp_path: Path) -> tuple[Path, StagedFile]:
    (tmp_path / "orders-0").mkdir()
    (staged,) = stage(OsFileSystem(), [batch()], directory=str(tmp_path / "orders-0"))
    return tmp_path / f"orders-0/.stratalog/staging/{STAGING_ID}", staged


def check_real(directory: Path, staged: StagedFile) -> None:
    check_partition(
        OsFileSystem(),
        str(directory.parents[2]),
        part_of([staged]),
        topic(),
        staging_id=STAGING_ID,
        now_ms=NOW_MS,
        append_max_bytes=0,
    )


def test_the_real_file_system_gives_the_same_answer(real: tuple[Path, StagedFile]) -> None:
    directory, staged = real
    check_real(directory, staged)

    assert (directory / "00000-0-00000.timeindex").stat().st_size == 12


def test_a_link_is_refused(real: tuple[Path, StagedFile]) -> None:
    directory, staged = real
    content = (directory / staged.name).read_bytes()
    (directory / staged.name).rename(directory.parent / "elsewhere.log")
    (directory / staged.name).symlink_to(directory.parent / "elsewhere.log")

    with pytest.raises(StagedFileError, match="a link"):
        check_real(directory, staged)
    assert (directory.parent / "elsewhere.log").read_bytes() == content


def test_a_file_with_a_second_name_is_refused(real: tuple[Path, StagedFile]) -> None:
    directory, staged = real
    (directory.parent / "elsewhere.log").hardlink_to(directory / staged.name)

    with pytest.raises(StagedFileError, match="a link"):
        check_real(directory, staged)


@pytest.mark.parametrize("level", range(3))
def test_a_directory_on_the_way_that_is_a_link_is_refused(
    real: tuple[Path, StagedFile], level: int
) -> None:
    directory, staged = real
    moved = directory if level == 0 else directory.parents[level - 1]
    moved.rename(directory.parents[3] / "elsewhere")
    moved.symlink_to(directory.parents[3] / "elsewhere")

    with pytest.raises(StagedFileError, match="it is a link"):
        check_real(directory, staged)


def test_a_pipe_a_directory_and_nothing_are_refused(real: tuple[Path, StagedFile]) -> None:
    directory, staged = real
    path = directory / staged.name
    path.unlink()
    with pytest.raises(StagedFileError, match="stage it again"):
        check_real(directory, staged)
    os.mkfifo(path)
    with pytest.raises(StagedFileError, match="not a regular file"):
        check_real(directory, staged)
    path.unlink()
    path.mkdir()
    with pytest.raises(StagedFileError, match="directory"):
        check_real(directory, staged)


def test_an_index_that_is_a_link_is_not_written_through(real: tuple[Path, StagedFile]) -> None:
    directory, staged = real
    precious = directory.parent / "precious"
    precious.write_bytes(b"kept")
    (directory / "00000-0-00000.timeindex").symlink_to(precious)

    check_real(directory, staged)

    assert precious.read_bytes() == b"kept"


def test_staging_that_was_swept_is_told_as_such() -> None:
    files = new_disk()
    staged = stage(files, [batch()])
    other = SimulatedFileSystem()
    other.make_directory("/logs")
    other.make_directory(DIRECTORY)

    with pytest.raises(StagedFileError, match="nothing was staged, or it was swept away"):
        check(other, staged)


@pytest.mark.parametrize(
    "field", [{"cleaned_to": 5}, {"log_start_offset": 5}, {"epochs": ((0, 0),)}, {"files": ()}]
)
def test_a_partition_that_says_more_than_its_files_is_refused(field: dict[str, Any]) -> None:
    files = new_disk()
    part = replace(part_of(stage(files, [batch()])), **field)

    with pytest.raises(ManifestError, match="orders-0 says more than what is appended"):
        check_partition(
            files,
            DIRECTORY,
            part,
            topic(),
            staging_id=STAGING_ID,
            now_ms=NOW_MS,
            append_max_bytes=0,
        )


@pytest.mark.parametrize("field", [{"base_offset": 4}, {"has_aborts": True}])
def test_what_only_other_kinds_of_commit_say_is_refused(field: dict[str, Any]) -> None:
    files = new_disk()
    (staged,) = stage(files, [batch()])

    with pytest.raises(ManifestError, match="of orders-0 has offsets or aborts of its own"):
        check(files, [changed(staged, **field)])


def test_a_length_asks_for_no_memory_that_the_topic_would_not_allow(
    real: tuple[Path, StagedFile],
) -> None:
    directory, staged = real
    size_bytes = 64 << 20
    claims = bytearray((directory / staged.name).read_bytes())
    claims[8:12] = (size_bytes - 12).to_bytes(4, "big")
    (directory / staged.name).write_bytes(claims)
    os.truncate(directory / staged.name, size_bytes)

    tracemalloc.start()
    try:
        with pytest.raises(StagedFileError, match="over the 4096 that"):
            check_real(directory, changed(staged, size_bytes=size_bytes))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 << 20


# --- disks that fail


def test_a_check_can_be_made_again_after_one_that_was_interrupted() -> None:
    config = topic(message_timestamp_type="LogAppendTime")
    files = new_disk()
    staged = stage(files, [batch()], [batch(2)])
    reached = []
    files.observer = lambda _operation: reached.append(files.clone())
    expected = check(files, staged, config)

    for found in reached:
        assert check(found, staged, config) == expected
        assert found.contents(expected.files[0].path) == files.contents(expected.files[0].path)


def test_a_disk_that_is_full_leaves_only_what_was_staged() -> None:
    files = new_disk()
    staged = stage(files, *([batch(value_bytes=900)] for _ in range(20)))
    before = files.tree()
    files.capacity_bytes = 24 * 4_096

    with pytest.raises(Exception, match="No space"):
        check(files, staged)
    assert files.tree() == before


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("settings", [{}, {"compression_type": "gzip"}])
def test_an_operation_that_fails_leaves_only_what_was_staged(
    error: int, settings: dict[str, str]
) -> None:
    files = new_disk()
    staged = stage(files, [batch()], [batch(2)], [batch(value_bytes=2_000)])
    untouched = files.clone()
    began = files.operations
    expected = check(files, staged, topic(**settings))
    count = files.operations - began
    assert count > 10

    for number in range(1, count + 1):
        failing = untouched.clone()
        failing.fail(number, error)
        with pytest.raises(DiskError) as caught:
            check(failing, staged, topic(**settings))
        assert isinstance(caught.value, DiskFullError) is (error == errno.ENOSPC)
        assert failing.tree() == untouched.tree()
        assert check(failing, staged, topic(**settings)) == expected
