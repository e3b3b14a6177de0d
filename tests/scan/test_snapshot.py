"""Snapshots: which partitions there are, and where each begins and ends, whoever owns them."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modelled import ORDERS, logs

from broker_fixture import running_broker
from stratalog import Record, open_directory, scan
from stratalog.errors import CorruptSegmentError, LogDirectoryError
from stratalog.records import build_batch
from stratalog.records.control import build_end_transaction_marker
from stratalog.scans.errors import MissingTopicError, ScanOptionError
from stratalog.scans.planning import plan_scan
from stratalog.scans.reading import ScanReport
from stratalog.scans.selection import Assign, Subscribe, SubscribePattern
from stratalog.scans.slices import ScanIsolation
from stratalog.scans.snapshot import PartitionSnapshot, take_snapshot
from stratalog.scans.times import bytes_between, offset_for_timestamp, offset_within_bytes
from stratalog.storage.checkpoint import write_offsets
from stratalog.storage.files import OsFileSystem
from stratalog.storage.inspection import SegmentTable, list_segments
from stratalog.storage.layout import RECOVERY_POINT_CHECKPOINT, TopicPartition
from stratalog.storage.producers import ProducerState
from stratalog.storage.snapshots import Snapshots

SUBSCRIBE = Subscribe((ORDERS.topic,))


def batch(offset: int, **options: int | bool) -> bytes:
    records = [Record(b"k", b"v", timestamp_ms=offset + n) for n in range(3)]
    return build_batch(records, base_offset=offset, **options)  # type: ignore[arg-type]


def write_log(root: Path, *segments: bytes) -> Path:
    """Segments of whole batches of three records each, from offset 0 on."""
    directory = root / str(ORDERS)
    directory.mkdir(parents=True)
    base_offset = 0
    for content in segments:
        (directory / f"{base_offset:020d}.log").write_bytes(content)
        base_offset += 3 * (len(content) // len(batch(0)))
    return directory


def snapshot(root: Path) -> PartitionSnapshot:
    return take_snapshot(str(root), SUBSCRIBE).partitions[ORDERS]


# --- nobody owns it -----------------------------------------------------------------------------


@given(data=st.data())
def test_a_log_ends_behind_its_last_whole_batch(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log = data.draw(logs(max_batches=6))
    root = tmp_path_factory.mktemp("cut")
    last = log.segments[-1]
    path = log.write(root) / f"{last.base_offset:020d}.log"
    size = data.draw(st.integers(0, len(last.content)))
    garbage = data.draw(st.sampled_from((b"", bytes(70), b"\xff" * 70)))
    path.write_bytes(last.content[:size] + garbage)
    end_offset, position = last.base_offset, 0
    for each in last.batches:
        messages = _messages(each.content)
        for content, next_offset in messages:
            if position + len(content) > size:
                break
            position += len(content)
            end_offset = each.end_offset if next_offset is None else next_offset
        else:
            continue
        break
    found = snapshot(root)
    assert (found.high_watermark, found.end_position) == (end_offset, position)


def _messages(content: bytes) -> list[tuple[bytes, int | None]]:
    """The batches in what the model counts as one: messages of magic 0 and 1 are one each."""
    if content[16] == 2:
        return [(content, None)]
    found: list[tuple[bytes, int | None]] = []
    while content:
        size = 12 + int.from_bytes(content[8:12], "big")
        found.append((content[:size], int.from_bytes(content[:8], "big") + 1))
        content = content[size:]
    return found


def test_damage_with_batches_behind_it_is_not_the_end(tmp_path: Path) -> None:
    damaged = bytearray(batch(0) + batch(3) + batch(6))
    damaged[len(batch(0)) + 30] ^= 1
    write_log(tmp_path, bytes(damaged))
    found = snapshot(tmp_path)
    assert found.high_watermark == 9
    plan = plan_scan(take_snapshot(str(tmp_path), SUBSCRIBE))
    assert plan.bytes_kept == len(damaged)


def flushed(root: Path, recovery_point: int) -> None:
    path = f"{root}/{RECOVERY_POINT_CHECKPOINT}"
    write_offsets(OsFileSystem(), path, {ORDERS: recovery_point})


@pytest.mark.parametrize("segments", [1, 2])
def test_a_damaged_end_that_was_flushed_is_damage_and_not_the_end(
    tmp_path: Path, segments: int
) -> None:
    last = bytearray(batch(6))
    last[-2] ^= 1
    pieces = [batch(0) + batch(3), bytes(last)]
    directory = write_log(tmp_path, *(pieces if segments == 2 else [b"".join(pieces)]))
    flushed(tmp_path, 9)
    path = max(directory.glob("*.log"))
    position = path.stat().st_size - len(last)

    assert snapshot(tmp_path).high_watermark == 9
    with pytest.raises(CorruptSegmentError, match=rf"{path.name}.* position {position}\b"):
        scan(str(tmp_path), ORDERS.topic).read_all()
    report = ScanReport()
    rows = scan(str(tmp_path), ORDERS.topic, mode="permissive", report=report).read_all()
    assert rows["offset"].to_pylist() == list(range(6))
    assert report.bytes_damaged == len(last)
    gaps = scan(str(tmp_path), ORDERS.topic, mode="permissive", gaps=True).read_all().to_pylist()
    assert [(each["startOffset"], each["endOffset"], each["reason"]) for each in gaps] == [
        (6, 9, "damaged")
    ]


@pytest.mark.parametrize(
    "recovery_point",
    [6, 0],
    ids=["it was not flushed", "nobody says so"],
)
def test_a_recovery_point_makes_no_damage_of_an_interrupted_write(
    tmp_path: Path, recovery_point: int
) -> None:
    write_log(tmp_path, batch(0) + batch(3) + batch(6)[:-5])
    flushed(tmp_path, recovery_point)

    rows = scan(str(tmp_path), ORDERS.topic).read_all()

    assert rows["offset"].to_pylist() == list(range(6))


def test_the_checkpointed_start_counts_and_so_does_our_copy_of_it(tmp_path: Path) -> None:
    write_log(tmp_path, batch(0) + batch(3), batch(6))
    write_offsets(OsFileSystem(), str(tmp_path / "log-start-offset-checkpoint"), {ORDERS: 4})
    assert snapshot(tmp_path).start_offset == 4
    with open_directory(tmp_path, topics={ORDERS.topic: {}}) as made:
        made.log(*ORDERS).delete_records(5)
    (tmp_path / "log-start-offset-checkpoint").unlink()
    assert snapshot(tmp_path).start_offset == 5


def test_a_partition_without_a_segment_is_empty(tmp_path: Path) -> None:
    write_log(tmp_path)
    (tmp_path / "meta.properties").write_text("version=1\n")
    found = snapshot(tmp_path)
    assert (found.start_offset, found.high_watermark, len(found.segments)) == (0, 0, 0)
    assert plan_scan(take_snapshot(str(tmp_path), SUBSCRIBE)).tasks == ()


def test_a_snapshot_survives_pickling(tmp_path: Path) -> None:
    write_log(tmp_path, batch(0), batch(3))
    taken = take_snapshot(str(tmp_path), SUBSCRIBE)
    assert plan_scan(pickle.loads(pickle.dumps(taken))).tasks == plan_scan(taken).tasks


# --- transactions -------------------------------------------------------------------------------


def transactional(offset: int, producer_id: int) -> bytes:
    return batch(
        offset, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


def marker(offset: int, producer_id: int) -> bytes:
    return build_end_transaction_marker(
        commit=True,
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=1,
        base_offset=offset,
    )


def test_the_last_stable_offset_is_where_the_oldest_open_transaction_began(tmp_path: Path) -> None:
    content = batch(0) + transactional(3, 7) + transactional(6, 8) + marker(9, 7)
    directory = write_log(tmp_path, content)
    assert snapshot(tmp_path).end_offset(ScanIsolation.READ_COMMITTED) == 6
    assert snapshot(tmp_path).end_offset(ScanIsolation.READ_UNCOMMITTED) == 10
    (directory / f"{0:020d}.log").write_bytes(content + marker(10, 8))
    assert snapshot(tmp_path).last_stable_offset == 11


@pytest.mark.parametrize(
    ("isolation", "end_offset"), [("read_committed", 6), ("read_uncommitted", 9)]
)
def test_a_scan_of_committed_records_ends_where_the_oldest_open_transaction_began(
    tmp_path: Path, isolation: str, end_offset: int
) -> None:
    directory = write_log(
        tmp_path, batch(0) + transactional(3, 7) + transactional(6, 8) + marker(9, 7)
    )
    found = scan(directory, isolation=isolation, columns="offset").read_all()
    assert found["offset"].to_pylist() == list(range(end_offset))


def test_a_snapshot_of_the_producers_tells_of_transactions_before_it(tmp_path: Path) -> None:
    directory = write_log(tmp_path, transactional(0, 7), batch(3))
    snapshots = Snapshots(OsFileSystem(), str(directory))
    # It says that the transaction began at 2, which nothing else does: it is it that was asked.
    snapshots.write(3, [ProducerState(7, 0, transaction_first_offset=2)], durable=False)
    assert snapshot(tmp_path).last_stable_offset == 2
    path = Path(snapshots.path(3))
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert snapshot(tmp_path).last_stable_offset == 0


# --- somebody owns it ---------------------------------------------------------------------------

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def somebody_else(root: Path) -> Iterator[int]:
    command = [sys.executable, "-c", _HOLD, str(root / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"")


def test_under_a_live_kafka_a_log_ends_at_the_checkpointed_high_watermark(tmp_path: Path) -> None:
    write_log(tmp_path, batch(0) + batch(3) + transactional(6, 7))
    path = str(tmp_path / "replication-offset-checkpoint")
    write_offsets(OsFileSystem(), path, {ORDERS: 3})
    with somebody_else(tmp_path) as pid:
        taken = take_snapshot(str(tmp_path), SUBSCRIBE)
        found = taken.partitions[ORDERS]
        assert (taken.owner.kind, taken.owner.pid) == ("kafka", pid)
        assert (found.high_watermark, found.last_stable_offset) == (3, 3)
        assert not found.is_end_exact
        plan = plan_scan(taken)
        assert plan.bytes_kept == len(batch(0))
        assert "below an answered DeleteRecords may still be returned" in plan.notes[0]
        write_offsets(OsFileSystem(), path, {ORDERS: 9})
        assert snapshot(tmp_path).last_stable_offset == 6
        write_offsets(OsFileSystem(), path, {})
        assert snapshot(tmp_path).high_watermark == 0
    assert snapshot(tmp_path).high_watermark == 9
    assert snapshot(tmp_path).is_end_exact
    assert plan_scan(take_snapshot(str(tmp_path), SUBSCRIBE)).notes == ()


def test_an_owner_file_of_somebody_else_makes_nobody_ours(tmp_path: Path) -> None:
    write_log(tmp_path, batch(0))
    owner = {"pid": os.getpid(), "admin": "http://127.0.0.1:1", "token": "t"}
    (tmp_path / ".stratalog-owner").write_text(json.dumps(owner))
    with somebody_else(tmp_path):
        assert take_snapshot(str(tmp_path), SUBSCRIBE).owner.kind == "kafka"
    assert take_snapshot(str(tmp_path), SUBSCRIBE).owner.kind == "none"


def test_our_broker_is_asked_where_its_logs_end(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        made.create(*ORDERS).append([Record(b"k", b"v")] * 5)
    with running_broker(tmp_path) as running:
        log = running.broker.services.logs.get(ORDERS)  # type: ignore[attr-defined]
        taken = take_snapshot(str(tmp_path), SUBSCRIBE)
        assert taken.owner.kind == "stratalog"
        found = taken.partitions[ORDERS]
        assert (found.start_offset, found.high_watermark) == (0, log.high_watermark)
        assert found.is_end_exact
        assert len(found.segments) == 1
        ends = take_snapshot(str(tmp_path), SUBSCRIBE, with_segments=False).partitions[ORDERS]
        assert ends.high_watermark == found.high_watermark
        assert not len(ends.segments)


def test_what_this_process_has_appended_is_there(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        made.create(*ORDERS).append([Record(b"k", b"v")] * 5)
        taken = take_snapshot(str(tmp_path), SUBSCRIBE)
        assert taken.owner.is_here
        assert taken.partitions[ORDERS].high_watermark == 5
        made.log(*ORDERS).append([Record(b"k", b"v")])  # the lock is still held


# --- what is named ------------------------------------------------------------------------------


def test_topics_are_chosen_by_name_by_pattern_or_one_by_one(tmp_path: Path) -> None:
    with open_directory(tmp_path, create=True) as made:
        for topic, number in (("a", 0), ("a", 1), ("ab", 0), ("__consumer_offsets", 0)):
            made.create(topic, number)
    (tmp_path / "a-2.0123456789abcdef0123456789abcdef-delete").mkdir()
    (tmp_path / "a-3.0123456789abcdef0123456789abcdef-stray").mkdir()
    path = str(tmp_path)

    def chosen(selection: Subscribe | SubscribePattern | Assign) -> list[str]:
        return [str(key) for key in take_snapshot(path, selection).partitions]

    assert chosen(Subscribe(("a",))) == ["a-0", "a-1"]
    assert chosen(SubscribePattern("b")) == ["ab-0"]
    assert chosen(SubscribePattern("")) == ["a-0", "a-1", "ab-0"]
    assert chosen(SubscribePattern("zzz")) == []
    assert chosen(Assign({"a": (1,), "ab": (0,)})) == ["a-1", "ab-0"]
    assert chosen(Subscribe(("__consumer_offsets",))) == ["__consumer_offsets-0"]
    with pytest.raises(MissingTopicError, match="holds no topic 'c'; check the name"):
        chosen(Subscribe(("a", "c")))
    with pytest.raises(MissingTopicError, match="no partition 2 of topic 'a'"):
        chosen(Assign({"a": (1, 2)}))
    with pytest.raises(ScanOptionError, match="no regular expression"):
        chosen(SubscribePattern("("))


def test_one_copied_partition_is_a_snapshot_too(tmp_path: Path) -> None:
    directory = write_log(tmp_path, batch(0))
    assert snapshot(directory).high_watermark == 3
    assert take_snapshot(str(directory), SUBSCRIBE).path == str(tmp_path)


def test_a_path_that_is_no_log_directory_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="neither a log directory nor a replica's"):
        take_snapshot(str(tmp_path), SUBSCRIBE)
    with pytest.raises(LogDirectoryError, match="does not exist"):
        take_snapshot(str(tmp_path / "no"), SUBSCRIBE)
    (tmp_path / "file").write_text("")
    with pytest.raises(LogDirectoryError, match="is not a directory"):
        take_snapshot(str(tmp_path / "file"), SUBSCRIBE)


def test_a_cleaning_that_was_interrupted_between_its_renames_is_told_of(tmp_path: Path) -> None:
    directory = write_log(tmp_path, batch(0), batch(3))
    (directory / f"{0:020d}.log").rename(directory / f"{0:020d}.log.swap")
    with pytest.raises(LogDirectoryError, match="a cleaning was interrupted"):
        take_snapshot(str(tmp_path), SUBSCRIBE)


def test_a_listing_holds_what_is_called_like_a_segment_and_nothing_else(tmp_path: Path) -> None:
    names = ("00000000000000000007.log", "00000000000000000003.log", "3.log", "x" * 20 + ".log")
    for name in (*names, "99999999999999999999.log", "00000000000000000003.log.deleted"):
        (tmp_path / name).write_bytes(b"xy")
    (tmp_path / "00000000000000000009.log").mkdir()
    (tmp_path / "00000000000000000007.snapshot").write_bytes(b"")
    listing = list_segments(OsFileSystem(), str(tmp_path))
    assert [each.base_offset for each in listing.segments] == [3, 7]
    inode = (tmp_path / "00000000000000000003.log").stat().st_ino
    assert (listing.segments[0].size_bytes, listing.segments[0].inode) == (2, inode)
    assert listing.snapshots == (7,)
    assert [listing.segments.floor(offset) for offset in (0, 3, 6, 7, 9)] == [-1, 0, 0, 1, 1]
    assert not len(SegmentTable([]))


# --- offsets by time and by bytes ---------------------------------------------------------------


@given(data=st.data())
def test_the_offset_for_a_time_is_the_first_record_that_is_not_older(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    log = data.draw(logs())
    root = tmp_path_factory.mktemp("times")
    log.write(root)
    found = snapshot(root)
    # Apache Kafka counts the records of markers too.
    rows = log.rows
    for timestamp_ms in {row.timestamp_ms + n for row in rows for n in (0, 1)}:
        expected = [row.offset for row in rows if row.timestamp_ms >= timestamp_ms]
        assert offset_for_timestamp(found, timestamp_ms) == min(expected, default=None)


def test_where_damage_hides_the_answer_it_is_where_the_damage_begins(tmp_path: Path) -> None:
    damaged = bytearray(batch(0) + batch(3) + batch(6))
    damaged[len(batch(0)) + 8] ^= 0x7F  # its size
    write_log(tmp_path, bytes(damaged), batch(9))
    assert offset_for_timestamp(snapshot(tmp_path), 7) == 3
    assert offset_for_timestamp(snapshot(tmp_path), 1) == 1


def test_a_budget_of_bytes_ends_where_a_batch_begins(tmp_path: Path) -> None:
    size = len(batch(0))
    write_log(tmp_path, batch(0) + batch(3) + batch(6), batch(9) + batch(12))
    found = snapshot(tmp_path)

    def within(start: int, max_bytes: int, end: int = 15) -> int:
        return offset_within_bytes(found, start, end, max_bytes)

    assert [within(0, n * size) for n in (0, 1, 2, 3, 4, 5)] == [3, 3, 6, 9, 12, 15]
    assert within(0, 2 * size - 1) == 3
    assert within(4, 2 * size) == 9
    assert within(4, 1) == 6
    assert within(9, 1) == 12
    assert within(0, 100 * size, end=7) == 7
    assert within(6, size, end=7) == 7
    assert bytes_between(found, 0, 15) == 5 * size
    assert bytes_between(found, 4, 10) == 3 * size
    assert bytes_between(found, 3, 6) == size
    assert bytes_between(found, 6, 6) == 0


def test_partitions_are_known_by_topic_and_number(tmp_path: Path) -> None:
    write_log(tmp_path, batch(0))
    assert list(take_snapshot(str(tmp_path), SUBSCRIBE).partitions) == [TopicPartition(*ORDERS)]
