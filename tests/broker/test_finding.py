"""What is read of log directories before they are anybody's."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stratalog.broker import finding
from stratalog.broker.finding import survey_directory
from stratalog.directories.controller_log import read_controller
from stratalog.directories.found_directory import find_directory
from stratalog.errors import AdoptionError
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import OsFileSystem
from stratalog.storage.producers import ProducerState
from stratalog.storage.snapshots import encode_snapshot
from stratalog.testing import SimulatedFileSystem

LOG = "/data/orders-0/00000000000000000000.log"


def batch(offset: int, producer_id: int, size: int, epoch: int = 3) -> bytes:
    return build_batch(
        [Record(b"k", b"v" * size, (), 1)],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        leader_epoch=epoch,
    )


def disk(*batches: bytes, **files: bytes) -> LogDirectory:
    made = SimulatedFileSystem()
    for path in ("/data", "/data/orders-0"):
        made.make_directory(path)
    made.put(LOG, b"".join(batches))
    for name, content in files.items():
        made.put(f"/data/orders-0/{name.replace('__', '-').replace('_', '.')}", content)
    return LogDirectory(made, "/data")


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that batches are larger than chunks and chunks end inside batches."""
    monkeypatch.setattr(finding, "_CHUNK_BYTES", 300)
    monkeypatch.setattr(finding, "_OVERLAP_BYTES", 200)


BATCHES = st.lists(st.tuples(st.integers(-1, 10**9), st.integers(0, 900)), max_size=12)


@pytest.mark.usefixtures("small_chunks")
@given(made=BATCHES)
def test_the_largest_producer_id_is_found_wherever_chunks_end(made: list[tuple[int, int]]) -> None:
    batches = [batch(offset, *each) for offset, each in enumerate(made)]
    notes: list[str] = []
    found = survey_directory(disk(*batches), notes)
    assert found.producer_id_max == max((each[0] for each in made), default=-1)
    assert found.replicas[0].leader_epoch == (3 if made else -1)
    assert notes == []


@pytest.mark.usefixtures("small_chunks")
@settings(max_examples=100)
@given(made=BATCHES.filter(bool), data=st.data())
def test_damage_hides_at_most_the_batch_it_is_in_and_never_makes_an_id_up(
    made: list[tuple[int, int]], data: Any
) -> None:
    # Batches of at most the overlap are found again behind damage.
    batches = [batch(offset, each, size % 100) for offset, (each, size) in enumerate(made)]
    whole = b"".join(batches)
    at = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[at] ^= data.draw(st.integers(1, 255))
    hit = next(
        slot
        for slot, header in enumerate(read_headers(whole))
        if header.position <= at < header.position + header.size_bytes
    )
    ids = [each for each, _ in made]
    found = survey_directory(disk(bytes(broken)), []).producer_id_max
    assert found in (max(ids), max([-1, *ids[:hit], *ids[hit + 1 :]]))


@pytest.mark.usefixtures("small_chunks")
def test_a_batch_larger_than_a_chunk_is_not_believed_without_its_crc() -> None:
    large = bytearray(batch(0, 7, 2_000))
    large[44] ^= 0x40  # in the producer id
    notes: list[str] = []
    found = survey_directory(disk(bytes(large), batch(1, 5, 10)), notes)
    assert found.producer_id_max == 5
    assert "its CRC is wrong" in notes[0]


def test_the_largest_of_all_partitions_counts() -> None:
    directory = disk(batch(0, 7, 10))
    directory.files.make_directory("/data/orders-1")
    directory.files.make_directory("/data/orders-2")
    directory.files.put("/data/orders-1/00000000000000000000.log", batch(0, 9, 1))  # type: ignore[attr-defined]
    assert survey_directory(directory, []).producer_id_max == 9


def test_an_interrupted_write_at_the_end_is_passed_over() -> None:
    notes: list[str] = []
    torn = batch(1, 900, 500)[:-40]
    assert survey_directory(disk(batch(0, 7, 10), torn), notes).producer_id_max == 7
    assert len(notes) == 1


def test_ids_in_snapshots_count_and_a_corrupt_one_is_a_note() -> None:
    good = encode_snapshot([ProducerState(4_000, 0, 0, 0, None), ProducerState(5, 0, 0, 0, None)])
    notes: list[str] = []
    directory = disk(
        **{"00000000000000000001_snapshot": good, "00000000000000000002_snapshot": b"garbled"}
    )
    assert survey_directory(directory, notes).producer_id_max == 4_000
    assert len(notes) == 1
    assert "00000000000000000002.snapshot" in notes[0]


def test_the_file_tells_the_leader_epoch_and_batches_only_without_it() -> None:
    known = b"0\n2\n1 0\n5 1\n"
    batches = [batch(0, -1, 5, epoch=2_000_000)]
    found = survey_directory(disk(*batches, leader__epoch__checkpoint=known), [])
    assert found.replicas[0].leader_epoch == 5
    for lost in (b"", b"garbled"):
        found = survey_directory(disk(*batches, leader__epoch__checkpoint=lost), [])
        assert found.replicas[0].leader_epoch == 2_000_000


def test_a_garbled_topic_id_leaves_the_name() -> None:
    (replica,) = find_directory(disk(partition_metadata=b"what?")).replicas
    assert (replica.topic, replica.partition, replica.topic_id) == ("orders", 0, None)


def test_two_logs_of_controllers_are_refused(tmp_path: Path) -> None:
    directories = []
    for name in "ab":
        (tmp_path / name / "__cluster_metadata-0").mkdir(parents=True)
        directories.append(LogDirectory(OsFileSystem(), str(tmp_path / name)))
    with pytest.raises(AdoptionError, match="two logs of a controller"):
        read_controller(directories)
    assert read_controller(directories[:1]) is None
