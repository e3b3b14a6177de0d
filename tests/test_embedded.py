"""Logs from Python without a broker: what is appended comes back, whatever happens in between."""

import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stratalog
from left_directories import leave
from stratalog import LogsDirectory, PartitionLog, Record
from stratalog.errors import (
    ConfigError,
    CorruptSegmentError,
    InvalidRecordError,
    LogClosedError,
    LogDamagedError,
    LogDirectoryError,
    LogExistsError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    TopicNameError,
    UnknownLogError,
)
from stratalog.records import Codec, build_batch, read_headers
from stratalog.records.columns import StoredRecord
from stratalog.storage.checkpoint import write_topic_id
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import PARTITION_METADATA
from stratalog.storage.reading import Isolation

GOLDEN = Path(__file__).parent / "interop" / "golden" / "kafka.tar.xz"
TRANSACTIONS = "transactions-rolled-0"

SMALL_SEGMENTS = {"internal.segment.bytes": "700", "index.interval.bytes": "100"}
ANYTHING = st.none() | st.binary(max_size=20)
TIMES = st.integers(min_value=0, max_value=100)

headers = st.lists(st.tuples(st.text(max_size=5), ANYTHING), max_size=2)
records = st.builds(Record, ANYTHING, ANYTHING, headers, TIMES)
codecs = st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"])
appends = st.tuples(st.lists(records, min_size=1, max_size=6), codecs)


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogsDirectory]:
    with stratalog.open_directory(tmp_path / "data", create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def new_logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[PartitionLog]]:
    """A new log of small segments at every step, all of them in one directory."""
    path = tmp_path_factory.mktemp("embedded") / "data"
    with stratalog.open_directory(path, create=True) as opened:
        yield (opened.create("orders", number, config=SMALL_SEGMENTS) for number in count())


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A new directory's path at every step: a property is tried many times."""
    root = tmp_path_factory.mktemp("embedded")
    return (root / str(number) for number in count())


def record(number: int, timestamp_ms: int = 1000) -> Record:
    return Record(b"key %d" % number, b"value %d" % number, timestamp_ms=timestamp_ms)


def fill(log: PartitionLog, offsets: Iterable[int]) -> None:
    for offset in offsets:
        log.append([record(offset, 1000 * offset)])


def as_stored(offset: int, row: Record) -> StoredRecord:
    return StoredRecord(offset, row.timestamp_ms, 0, row.key, row.value, tuple(row.headers))


def open_small(path: Path, *, create: bool = False) -> LogsDirectory:
    return stratalog.open_directory(path, create=create, topics={"orders": SMALL_SEGMENTS})


# --- appending and reading -----------------------------------------------------------------------


# Every life of a directory syncs some twenty files: fewer examples than usual.
@settings(max_examples=max(settings().max_examples // 4, 10))
@given(st.lists(st.lists(appends, max_size=4), min_size=1, max_size=3))
def test_what_was_appended_comes_back_in_order_in_every_life_of_the_directory(
    places: Iterator[Path], lives: list[list[tuple[list[Record], str]]]
) -> None:
    path = next(places)
    rows: list[Record] = []
    for number, life in enumerate(lives):
        with open_small(path, create=number == 0) as logs:
            log = logs.create("orders") if number == 0 else logs.log("orders")
            for batch, codec in life:
                appended = log.append(batch, codec=codec)
                assert (appended.first_offset, log.end_offset) == (
                    len(rows),
                    len(rows) + len(batch),
                )
                rows += batch
            stored = [as_stored(offset, row) for offset, row in enumerate(rows)]
            assert list(log.records()) == stored
            for start in {0, len(rows) // 2, len(rows)}:
                assert list(log.records(start)) == stored[start:]
                columns = log.to_arrow(start).to_pydict()
                assert columns["offset"] == list(range(start, len(rows)))
                assert columns["key"] == [row.key for row in rows[start:]]
                assert columns["value"] == [row.value for row in rows[start:]]
            assert logs.check() == []
    assert stratalog.check(str(path)) == []


@given(st.lists(appends, min_size=1, max_size=8), st.data())
def test_find_gives_the_first_record_that_is_not_older(
    new_logs: Iterator[PartitionLog],
    batches: list[tuple[list[Record], str]],
    data: st.DataObject,
) -> None:
    log = next(new_logs)
    for batch, codec in batches:
        log.append_batch(build_batch(batch, codec=Codec.from_name(codec)), flush=False)
    log.flush()
    times = [row.timestamp_ms for batch, _ in batches for row in batch]
    start = data.draw(st.integers(0, len(times)), "log start")
    log.delete_records(start)
    for target in range(101):
        late = [n for n, time in enumerate(times) if n >= start and time >= target]
        assert log.find(timestamp_ms=target) == (late[0] if late else None)


def test_a_copy_made_right_after_an_append_has_all_that_was_appended(
    logs: LogsDirectory, tmp_path: Path
) -> None:
    log = logs.create("orders")
    fill(log, range(5))
    shutil.copytree(logs.path, tmp_path / "copy")

    with stratalog.open_directory(tmp_path / "copy") as copied:
        assert [each.offset for each in copied.log("orders").records()] == list(range(5))


def test_an_append_without_a_flush_is_seen_after_the_next_one(logs: LogsDirectory) -> None:
    log = logs.create("orders")
    log.append_batch(build_batch([record(0)]), flush=False)
    log.append_batch(build_batch([record(1)]), flush=False)

    assert (list(log.records()), log.end_offset) == ([], 2)
    log.append([record(2)])
    assert [each.offset for each in log.records()] == [0, 1, 2]


def test_what_was_not_flushed_is_seen_when_the_directory_was_closed_and_opened(
    tmp_path: Path,
) -> None:
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        logs.create("orders").append_batch(build_batch([record(0)]), flush=False)

    with stratalog.open_directory(tmp_path / "data") as logs:
        assert [each.offset for each in logs.log("orders").records()] == [0]


def test_a_batch_larger_than_one_read_comes_back_whole(tmp_path: Path) -> None:
    large = {"orders": {"max.message.bytes": "5000000"}}
    with stratalog.open_directory(tmp_path / "data", create=True, topics=large) as logs:
        log = logs.create("orders")
        log.append([Record(b"k", b"v" * 3_000_000, timestamp_ms=1)])
        log.append([record(1)])

        assert [len(each.value or b"") for each in log.records()] == [3_000_000, 7]
        assert log.to_arrow().num_rows == 2


def test_a_batch_that_is_refused_leaves_the_log_as_it_was(logs: LogsDirectory) -> None:
    log = logs.create("orders", config={"max.message.bytes": "300", "cleanup.policy": "compact"})
    log.append([record(0)])
    for refused, error in (
        ([], InvalidRecordError),
        ([Record(None, b"no key")], InvalidRecordError),
        ([Record(b"k", b"v" * 400)], RecordTooLargeError),
    ):
        with pytest.raises(error):
            log.append(refused)

    assert [each.offset for each in log.records()] == [0]
    with pytest.raises(ConfigError):
        log.append([record(1)], codec="brotli")


@pytest.mark.parametrize("offset", [-1, 4, 2**62])
def test_a_read_outside_the_log_says_what_the_log_holds(logs: LogsDirectory, offset: int) -> None:
    log = logs.create("orders")
    fill(log, range(3))

    for read in (lambda: list(log.records(offset)), lambda: log.to_arrow(offset)):
        with pytest.raises(OffsetOutOfRangeError) as raised:
            read()
        assert (raised.value.log_start_offset, raised.value.log_end_offset) == (0, 3)


def test_a_read_at_the_end_is_empty_and_has_the_columns_that_were_asked_for(
    logs: LogsDirectory,
) -> None:
    log = logs.create("orders")
    fill(log, range(3))

    assert list(log.records(3)) == []
    assert log.to_arrow(3, columns=("codec", "offset")).column_names == ["codec", "offset"]


def test_an_open_transaction_ends_a_read_of_committed_data(logs: LogsDirectory) -> None:
    log = logs.create("orders")
    log.append([record(0)])
    log.append_batch(
        build_batch(
            [record(1)], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
        )
    )

    assert [each.offset for each in log.records()] == [0, 1]
    committed = log.read(0, isolation=Isolation.TXN_COMMITTED)
    assert committed.whole_batches().next_offset == 1


def test_control_records_of_a_log_that_kafka_wrote_are_left_out(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN) as archive:
        inside = [each for each in archive if each.name.startswith(f"clean/{TRANSACTIONS}/")]
        archive.extractall(tmp_path, inside, filter="data")
    with stratalog.open_directory(tmp_path / "clean") as logs:
        ((topic, partition),) = logs.partitions()
        log = logs.log(topic, partition)
        batches = b"".join(file.read_bytes() for file in sorted(tmp_path.rglob("*.log")))
        data = [header for header in read_headers(batches) if not header.is_control]
        offsets = [n for header in data for n in range(header.base_offset, header.next_offset)]

        assert 0 < len(offsets) < log.end_offset
        assert [each.offset for each in log.records()] == offsets
        assert log.to_arrow()["offset"].to_pylist() == offsets


# --- several logs --------------------------------------------------------------------------------


def test_an_append_goes_on_in_the_leader_epoch_that_kafka_left(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN) as archive:
        archive.extractall(tmp_path, filter="data")
    checkpoint = tmp_path / "clean" / TRANSACTIONS / "leader-epoch-checkpoint"
    before = checkpoint.read_text()
    newest = int(before.splitlines()[-1].split()[0])
    assert newest > 0

    with stratalog.open_directory(tmp_path / "clean") as logs:
        log = logs.log(TRANSACTIONS.removesuffix("-0"))
        appended = log.append([record(1)])
        (header,) = read_headers(log.read(appended.first_offset).records.read())

    assert header.partition_leader_epoch == newest
    assert checkpoint.read_text() == before


def test_logs_are_made_listed_and_deleted_by_topic_and_partition(logs: LogsDirectory) -> None:
    for topic, partition in (("orders", 10), ("orders", 2), ("clicks", 0)):
        fill(logs.create(topic, partition), range(partition))
    assert logs.partitions() == [("clicks", 0), ("orders", 2), ("orders", 10)]
    assert logs.log("orders", 10).end_offset == 10

    logs.delete("orders", 2)

    assert logs.partitions() == [("clicks", 0), ("orders", 10)]
    with pytest.raises(UnknownLogError):
        logs.log("orders", 2)
    assert logs.create("orders", 2).end_offset == 0


def test_a_log_is_made_once_and_under_a_name_that_kafka_allows(logs: LogsDirectory) -> None:
    logs.create("orders")

    with pytest.raises(LogExistsError):
        logs.create("orders")
    for topic, partition in (("no/slash", 0), ("", 0), ("orders", -1)):
        with pytest.raises(TopicNameError):
            logs.create(topic, partition)


def test_settings_of_a_topic_hold_for_it_alone(tmp_path: Path) -> None:
    with open_small(tmp_path / "data", create=True) as logs:
        for topic in ("orders", "clicks"):
            fill(logs.create(topic), range(30))

    assert len(list(tmp_path.glob("data/orders-0/*.log"))) > 1
    assert len(list(tmp_path.glob("data/clicks-0/*.log"))) == 1


def test_a_setting_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    for wrong in ({"config": {"log.sizes": "1"}}, {"topics": {"orders": {"sizes": "1"}}}):
        with pytest.raises(ConfigError):
            stratalog.open_directory(tmp_path / "data", create=True, **wrong)
    with pytest.raises(ConfigError):
        stratalog.open_directory(tmp_path, config={"log.dirs": "elsewhere"})


def test_records_that_were_deleted_stay_deleted(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        log = logs.create("orders")
        fill(log, range(10))

        assert log.delete_records(4) == 4
        assert log.delete_records(2) == 4
        with pytest.raises(OffsetOutOfRangeError):
            log.delete_records(11)
        with pytest.raises(OffsetOutOfRangeError):
            list(log.records(3))

    with stratalog.open_directory(tmp_path / "data") as logs:
        log = logs.log("orders")
        assert (log.start_offset, [each.offset for each in log.records()]) == (
            4,
            list(range(4, 10)),
        )


def test_a_copy_made_right_after_a_deletion_has_nothing_that_was_deleted(
    logs: LogsDirectory, tmp_path: Path
) -> None:
    log = logs.create("orders")
    fill(log, range(5))
    log.delete_records(3)
    shutil.copytree(logs.path, tmp_path / "copy")

    with stratalog.open_directory(tmp_path / "copy") as copied:
        assert [each.offset for each in copied.log("orders").records()] == [3, 4]


def test_maintaining_writes_the_checkpoints_that_are_due(tmp_path: Path) -> None:
    at_once = {"log.initial.task.delay.ms": "0"}
    with stratalog.open_directory(tmp_path / "data", create=True, config=at_once) as logs:
        log = logs.create("orders", config={"retention.ms": "-1"})
        fill(log, range(10))
        log.delete_records(4)

        assert "kafka-log-start-offset-checkpoint" in logs.maintain()

        text = (tmp_path / "data" / "log-start-offset-checkpoint").read_text()
        assert text == "0\n1\norders 0 4\n"


def test_what_is_old_goes_only_from_topics_whose_settings_are_known(tmp_path: Path) -> None:
    at_once = {"log.initial.task.delay.ms": "0"}
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        for topic in ("orders", "clicks"):
            fill(logs.create(topic), range(10))

    named = {"orders": {"retention.ms": "1000"}}
    with stratalog.open_directory(tmp_path / "data", config=at_once, topics=named) as logs:
        orders, clicks = logs.log("orders"), logs.log("clicks")
        assert logs.held_topics == ["clicks"]
        assert "kafka-log-retention" in logs.maintain()
        assert (orders.start_offset, clicks.start_offset) == (10, 0)


def test_what_a_broker_has_left_of_a_topics_settings_counts_below_what_is_named(
    tmp_path: Path,
) -> None:
    forever = {"retention.ms": "-1"}
    topics = {"kept": forever, "named": forever, "old": {}}
    leave(tmp_path, topics, server={"log.retention.ms": "9"})
    at_once = {"log.initial.task.delay.ms": "0"}

    with stratalog.open_directory(tmp_path, topics={"named": {}}) as logs:
        assert logs.held_topics == []
    with stratalog.open_directory(tmp_path, config=at_once, topics={"named": {}}) as logs:
        logs.maintain()
        starts = {name: logs.log(name).start_offset for name, _ in logs.partitions()}

    assert starts == {"kept": 0, "named": 0, "old": 3}


def test_settings_of_another_topic_of_that_name_are_not_a_topics_own(tmp_path: Path) -> None:
    leave(tmp_path, {"orders": {"retention.ms": "9"}, "clicks": {"retention.ms": "9"}})
    write_topic_id(OsFileSystem(), str(tmp_path / "orders-0" / PARTITION_METADATA), uuid.uuid4())

    with stratalog.open_directory(tmp_path, config={"log.initial.task.delay.ms": "0"}) as logs:
        assert logs.held_topics == ["orders"]
        logs.maintain()
        starts = {name: logs.log(name).start_offset for name, _ in logs.partitions()}

    assert starts == {"orders": 0, "clicks": 3}


def test_settings_that_are_named_later_count_from_then_on(tmp_path: Path) -> None:
    at_once = {"log.initial.task.delay.ms": "0"}
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        fill(logs.create("orders"), range(10))

    with stratalog.open_directory(tmp_path / "data", config=at_once) as logs:
        fill(logs.create("orders", 1), range(10))
        assert logs.held_topics == ["orders"]
        logs.configure("orders", {"retention.ms": "1000"})
        assert logs.held_topics == []
        logs.maintain()
        assert [logs.log("orders", number).start_offset for number in (0, 1)] == [10, 10]


def test_a_new_partition_of_a_topic_that_is_held_is_held_too(tmp_path: Path) -> None:
    at_once = {"log.initial.task.delay.ms": "0"}
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        logs.create("orders")

    with stratalog.open_directory(tmp_path / "data", config=at_once) as logs:
        log = logs.create("orders", 1)
        fill(log, range(10))
        logs.maintain()
        assert log.start_offset == 0


def test_a_topic_that_is_made_anew_is_kept_by_what_it_is_made_with(tmp_path: Path) -> None:
    at_once = {"log.initial.task.delay.ms": "0"}
    with stratalog.open_directory(tmp_path / "data", create=True, config=at_once) as logs:
        fill(logs.create("orders"), range(10))
        fill(logs.create("clicks", config={"retention.ms": "-1"}), range(10))
        logs.create("clicks", 1)
        assert logs.held_topics == []
        logs.maintain()
        assert (logs.log("orders").start_offset, logs.log("clicks").start_offset) == (10, 0)


def test_a_directorys_name_may_have_a_comma(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "a,b", create=True) as logs:
        logs.create("orders")

    assert [path.name for path in tmp_path.iterdir()] == ["a,b"]


# --- owning a directory --------------------------------------------------------------------------


def test_a_directory_that_is_not_there_is_made_only_if_asked(tmp_path: Path) -> None:
    with pytest.raises(LogDirectoryError, match="create=True"):
        stratalog.open_directory(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(LogDirectoryError):
        stratalog.open_directory(tmp_path / "file", create=True)


def test_a_directory_has_one_owner_until_it_is_closed(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "data", create=True):
        with pytest.raises(LogDirectoryError, match="locked"):
            stratalog.open_directory(tmp_path / "data")
        opening = f"import stratalog; stratalog.open_directory({str(tmp_path / 'data')!r})"
        other = subprocess.run(
            [sys.executable, "-c", opening], capture_output=True, text=True, check=False
        )
        assert "is locked by process" in other.stderr

    stratalog.open_directory(tmp_path / "data").close()


def test_an_error_inside_closes_the_directory_cleanly(tmp_path: Path) -> None:
    opened = []

    def fail_inside() -> None:
        with stratalog.open_directory(tmp_path / "data", create=True) as logs:
            opened.append(logs.create("orders"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()

    (log,) = opened
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with pytest.raises(LogClosedError):
        log.append([record(1)])
    with pytest.raises(LogClosedError):
        list(log.records())


def test_a_log_that_cannot_be_opened_leaves_the_others_alone(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        for topic in ("orders", "clicks"):
            fill(logs.create(topic), range(3))
    (tmp_path / "data" / "log-start-offset-checkpoint").write_text("0\n1\norders 0 99\n")

    with stratalog.open_directory(tmp_path / "data") as logs:
        assert logs.partitions() == [("clicks", 0)]
        with pytest.raises(UnknownLogError, match="starts at 99"):
            logs.log("orders")


def test_a_damaged_log_is_read_up_to_the_damage_and_takes_no_appends(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "data", create=True) as logs:
        fill(logs.create("orders"), range(4))
    file = tmp_path / "data" / "orders-0" / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    data[-2] ^= 0xFF
    file.write_bytes(data)

    with stratalog.open_directory(tmp_path / "data") as logs:
        log = logs.log("orders")
        read = log.records()
        assert [next(read).offset for _ in range(3)] == [0, 1, 2]
        with pytest.raises(CorruptSegmentError):
            next(read)
        with pytest.raises(LogDamagedError):
            log.append([record(4)])
        assert [finding.offset for finding in logs.check()] == [3]


# --- the package ---------------------------------------------------------------------------------


def test_every_public_name_is_there() -> None:
    for name in stratalog.__all__:
        assert getattr(stratalog, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = stratalog.no_such_name


def test_importing_the_package_imports_nothing_else() -> None:
    looking = "import sys, stratalog; print([n for n in sys.modules if n.startswith('stratalog')])"
    done = subprocess.run(
        [sys.executable, "-c", looking], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "['stratalog']"


def test_whoever_opens_a_directory_is_told_how_far_it_has_come(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "d", create=True) as logs:
        for partition in range(3):
            logs.create("orders", partition).append([Record(b"k", b"v", timestamp_ms=1)])
    (tmp_path / "d" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "d" / "recovery-point-offset-checkpoint").unlink()
    seen: list[tuple[int, int]] = []

    stratalog.open_directory(
        tmp_path / "d", show_progress=lambda p: seen.append((p.logs_done, p.bytes_scanned))
    ).close()

    assert seen == sorted(seen)
    assert seen[-1][0] == 3
    assert seen[-1][1] > 0
