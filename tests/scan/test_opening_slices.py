"""Finding the planned file again, wherever its owner has put it; and no other file."""

import os
import pickle
import shutil
from pathlib import Path

import pytest
from modelled import ORDERS, START_MS, Batch, ModelLog, Segment, plain

from stratalog.errors import DiskError
from stratalog.records import Record, build_batch
from stratalog.scans.errors import DataLostError, WrongDirectoryError
from stratalog.scans.opening import host_name, is_planned
from stratalog.scans.reading import read_task
from stratalog.scans.slices import FileIdentity, ScanTask
from stratalog.storage.files import Entry
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    LEASED_DIRECTORY,
    TopicPartition,
    suffixed_directory,
)

NAME = f"{0:020d}.log"


@pytest.fixture
def log() -> ModelLog:
    content = build_batch([Record(b"key", b"value", timestamp_ms=START_MS)] * 5)
    return ModelLog((Segment(0, (Batch(content, (), 0, 5),)),))


@pytest.fixture
def task(log: ModelLog, tmp_path: Path) -> ScanTask:
    return log.task(log.write(tmp_path), 1, 5)


def offsets(task: ScanTask) -> list[int]:
    return [
        offset
        for batch in read_task(task, plain(["offset"]))
        for offset in batch.column(0).to_pylist()
    ]


def directory_of(task: ScanTask) -> Path:
    return Path(task.slices[0].directory)


def test_a_segment_that_retention_took_out_is_read_until_it_is_removed(task: ScanTask) -> None:
    path = directory_of(task) / NAME
    path.rename(f"{path}.deleted")

    assert offsets(task) == [1, 2, 3, 4]


def test_a_segment_that_a_lease_keeps_is_read(task: ScanTask) -> None:
    leased = directory_of(task) / LEASED_DIRECTORY
    leased.mkdir(parents=True)
    (leased / f"{0:020d}-{5:020d}-0.log").write_bytes(b"another")
    (directory_of(task) / NAME).rename(leased / f"{0:020d}-{5:020d}-1.log")

    assert offsets(task) == [1, 2, 3, 4]


def test_a_segment_of_a_deleted_topic_is_read(task: ScanTask, tmp_path: Path) -> None:
    name = suffixed_directory(ORDERS, DELETE_DIRECTORY)
    directory_of(task).rename(tmp_path / name)

    assert offsets(task) == [1, 2, 3, 4]


def test_a_leased_segment_of_a_deleted_topic_is_read(task: ScanTask, tmp_path: Path) -> None:
    leased = directory_of(task) / LEASED_DIRECTORY
    leased.mkdir(parents=True)
    (directory_of(task) / NAME).rename(leased / f"{0:020d}-{5:020d}-0.log")
    directory_of(task).rename(tmp_path / suffixed_directory(ORDERS, DELETE_DIRECTORY))

    assert offsets(task) == [1, 2, 3, 4]


def test_a_deleted_topic_whose_long_name_was_cut_is_found(log: ModelLog, tmp_path: Path) -> None:
    long = TopicPartition("t" * 249, 3)
    (planned,) = log.task(log.write(tmp_path), 1, 5).slices
    directory_of(ScanTask((planned,), "")).rename(tmp_path / suffixed_directory(long, "-delete"))
    moved = planned._replace(topic_partition=long, directory=str(tmp_path / str(long)))

    assert offsets(ScanTask((moved,), str(tmp_path))) == [1, 2, 3, 4]


def test_another_file_of_the_same_name_is_not_read(task: ScanTask) -> None:
    path = directory_of(task) / NAME
    content = path.read_bytes()
    path.rename(f"{path}.elsewhere")
    path.write_bytes(content + content)
    with pytest.raises(DataLostError) as raised:
        offsets(task)

    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.topic_partition, error.start_offset, error.end_offset) == (ORDERS, 1, 5)
    assert host_name() in str(error)


def test_a_segment_that_is_gone_is_lost(task: ScanTask) -> None:
    (directory_of(task) / NAME).unlink()
    with pytest.raises(DataLostError):
        offsets(task)


def test_a_copy_that_kept_size_and_time_is_as_good(task: ScanTask, tmp_path: Path) -> None:
    path = directory_of(task) / NAME
    shutil.copy2(path, tmp_path / "copy")
    path.unlink()
    shutil.copy2(tmp_path / "copy", path)

    assert offsets(task) == [1, 2, 3, 4]


def test_an_equal_inode_of_an_older_file_is_chance() -> None:
    planned = FileIdentity(7, 100, 5_000)

    assert is_planned(Entry("a", False, 130, 6_000, inode=7), planned)
    assert is_planned(Entry("a", False, 90, 6_000, inode=7), planned)
    assert not is_planned(Entry("a", False, 130, 4_000, inode=7), planned)
    assert not is_planned(Entry("a", False, 100, 6_000, inode=8), planned)
    assert not is_planned(Entry("a", False, 100, 6_000), FileIdentity(0, 90, 6_000))


def test_a_file_that_may_not_be_read_is_an_error_of_its_own(task: ScanTask) -> None:
    path = directory_of(task) / NAME
    path.unlink()
    path.mkdir()  # root may read anything: this cannot be opened by anybody
    with pytest.raises(DiskError):
        offsets(task)


# --- the directory ------------------------------------------------------------------------------


def planned_for(task: ScanTask, directory_id: str) -> ScanTask:
    (planned,) = task.slices
    return ScanTask((planned._replace(directory_id=directory_id),), task.log_directory)


def test_the_directory_that_was_planned_for_is_read(task: ScanTask, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ndirectory.id=abc\n")

    assert offsets(planned_for(task, "abc")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("version=1\ndirectory.id=other\n", "directory.id is other, that of the plan abc"),
        ("version=1\n", "not set"),
        (None, "every host that runs tasks needs"),
    ],
)
def test_another_directory_at_the_same_path_is_refused_with_the_hosts_name(
    task: ScanTask, tmp_path: Path, content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "meta.properties").write_text(content)
    with pytest.raises(WrongDirectoryError, match=reason) as raised:
        offsets(planned_for(task, "abc"))

    assert raised.value.host == host_name()


def test_a_path_that_this_host_does_not_have_is_refused(task: ScanTask, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    with pytest.raises(WrongDirectoryError, match="it is not there"):
        offsets(task)


def test_a_host_is_named_by_the_address_that_spark_knows_it_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_HOSTNAME", raising=False)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert host_name() == os.uname().nodename
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.2")
    assert host_name() == f"{os.uname().nodename} (127.0.0.2)"
