"""What the embedded store survives, and what it refuses to open or to go on with."""

import os
import pickle
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import CLUSTER_ID, WAL_SUFFIX, copy_files, memory_directory, new_store, open_store

from stratalog.config import BrokerConfig
from stratalog.errors import (
    ConfigError,
    CorruptFileError,
    DiskError,
    DiskFullError,
    InvalidUpdateVersionError,
    LogDirectoryError,
    MetadataStoreError,
    OutOfResourcesError,
    ProducerIdsExhaustedError,
    StratalogError,
    TooManyPartitionsError,
)
from stratalog.metadata import NewTopic, PartitionChange, ProducerIds, Update
from stratalog.metadata.producer_ids import PRODUCER_ID_MAX
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, list[int]]:
    """A store with some changes, the size of its write-ahead log before the last of them, and the
    epochs before and after it."""
    directory = tmp_path_factory.mktemp("torn")
    with new_store(directory) as store:
        wal = directory / f"{METADATA_FILE}{WAL_SUFFIX}"
        store.create_topic(NewTopic(name="orders", partition_count=3))
        size_bytes, before = wal.stat().st_size, store.image.epoch
        store.create_topic(NewTopic(name="payments", partition_count=30))
        copied = copy_files(directory, tmp_path_factory.mktemp("copies") / "copy")
        return copied, size_bytes, [before, store.image.epoch]


@given(data=st.data())
def test_a_change_cut_off_anywhere_is_there_whole_or_not_at_all(
    torn: tuple[Path, int, list[int]], data: st.DataObject
) -> None:
    files, before_bytes, epochs = torn
    whole_bytes = (files / f"{METADATA_FILE}{WAL_SUFFIX}").stat().st_size
    size_bytes = data.draw(st.integers(before_bytes, whole_bytes))
    with memory_directory() as memory:
        cut = copy_files(files, memory / "cut")
        os.truncate(cut / f"{METADATA_FILE}{WAL_SUFFIX}", size_bytes)
        with open_store(cut) as store:
            assert store.image.epoch == epochs[size_bytes == whole_bytes]
            assert ("payments" in store.image.topics) == (store.image.epoch == epochs[1])


WRITER = """
import sys
from pathlib import Path
from stores import new_store, open_store
from stratalog.metadata import NewTopic, ProducerIds

store = open_store(Path(sys.argv[1]))
if not store.is_initialized:
    store.initialize("cluster", 1)
ids = ProducerIds(store)
while True:
    store.create_topic(NewTopic(name=f"topic-{store.image.epoch}"))
    print(store.image.epoch, ids.next_id(), flush=True)
    ids = ProducerIds(store)
"""


def test_a_killed_owner_leaves_all_that_it_was_answered(tmp_path: Path) -> None:
    search = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    given_ids: list[int] = []
    for answers in (1, 5, 9):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": search},
        ) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(answers)]
            with pytest.raises(LogDirectoryError, match="another process"):
                open_store(tmp_path)
            writer.send_signal(signal.SIGKILL)
            lines += [line for line in writer.stdout if line.endswith("\n")]
        answered = [tuple(map(int, line.split())) for line in lines]
        given_ids += [producer_id for _, producer_id in answered]
        with open_store(tmp_path) as store:
            epoch = max(epoch for epoch, _ in answered)
            assert store.image.epoch >= epoch
            assert f"topic-{epoch - 1}" in store.image.topics
    assert len(set(given_ids)) == len(given_ids)


def test_a_commit_is_synced_before_it_is_answered(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        connection = store._connection
        assert connection is not None
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


def test_there_are_only_plain_files_at_the_top(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        store.create_topic(NewTopic(name="orders"))
        found = {file.name for file in tmp_path.iterdir() if file.is_file()}
        assert found == {METADATA_FILE, METADATA_FILE + WAL_SUFFIX}
    assert [file.name for file in tmp_path.iterdir()] == [METADATA_FILE]


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    with new_store(tmp_path), pytest.raises(LogDirectoryError):
        open_store(tmp_path)
    open_store(tmp_path).close()


def test_a_store_that_is_nobodys_says_so(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        assert not store.is_initialized
        with pytest.raises(MetadataStoreError, match="whose"):
            store.create_topic(NewTopic(name="orders"))


def test_a_store_is_initialized_once(tmp_path: Path) -> None:
    with new_store(tmp_path) as store, pytest.raises(MetadataStoreError, match=CLUSTER_ID):
        store.initialize("another", 2)


def test_a_closed_store_can_still_be_looked_at_and_not_changed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.close()
    assert store.image.cluster_id == CLUSTER_ID
    with pytest.raises(MetadataStoreError, match="closed"):
        store.create_topic(NewTopic(name="orders"))


def test_a_full_disk_refuses_a_change_and_the_next_one_may_work(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        connection = store._connection
        assert connection is not None
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        before = store.image
        with pytest.raises(DiskFullError):
            store.create_topic(NewTopic(name="orders", partition_count=5000))
        assert store.image is before
        connection.execute("PRAGMA max_page_count = 1000000")
        store.create_topic(NewTopic(name="orders", partition_count=5000))
    with open_store(tmp_path) as store:
        assert len(store.image.topic("orders").partitions) == 5000


class FailingConnection:
    """A connection whose commit fails, as on a disk that cannot be trusted any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: object) -> object:
        if statement == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return self._connection.execute(statement, *values)


class StarvedConnection(FailingConnection):
    """One whose commit finds no descriptor or no memory."""

    def __init__(self, connection: sqlite3.Connection, error: Exception) -> None:
        super().__init__(connection)
        self._error = error

    def execute(self, statement: str, *values: object) -> object:
        if statement == "COMMIT":
            raise self._error
        return self._connection.execute(statement, *values)


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    "error",
    [sqlite_error(sqlite3.SQLITE_CANTOPEN), sqlite_error(sqlite3.SQLITE_NOMEM), MemoryError()],
)
def test_what_runs_out_refuses_a_change_and_the_next_one_works(
    tmp_path: Path, error: Exception
) -> None:
    with new_store(tmp_path) as store:
        whole = store._connection
        assert whole is not None
        store._connection = StarvedConnection(whole, error)  # type: ignore[assignment]
        before = store.image
        with pytest.raises(OutOfResourcesError):
            store.create_topic(NewTopic(name="orders"))
        assert store.image is before
        store._connection = whole
        store.create_topic(NewTopic(name="orders"))
    with open_store(tmp_path) as store:
        assert store.image.topic("orders").name == "orders"


def test_after_a_failed_sync_nothing_is_changed_until_the_file_is_opened_again(
    tmp_path: Path,
) -> None:
    store = new_store(tmp_path)
    whole = store._connection
    store._connection = FailingConnection(whole)  # type: ignore[arg-type,assignment]
    before = store.image
    with pytest.raises(DiskError):
        store.create_topic(NewTopic(name="orders"))
    store._connection = whole
    with pytest.raises(MetadataStoreError, match="opened anew"):
        store.create_topic(NewTopic(name="payments"))
    assert store.image is before
    store.close()
    with open_store(tmp_path) as opened:
        opened.create_topic(NewTopic(name="payments"))


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / METADATA_FILE).write_bytes(content)
    with pytest.raises(CorruptFileError, match="not a database"):
        open_store(tmp_path)


@given(data=st.data())
def test_a_garbled_store_is_refused_or_whole(
    torn: tuple[Path, int, list[int]], data: st.DataObject
) -> None:
    """Damage is either noticed, or was nowhere that matters."""
    with memory_directory() as memory:
        garbled = copy_files(torn[0], memory / "garbled")
        with open_store(garbled) as store:
            whole = store.image
        # Closing has put everything into the one file.
        path = garbled / METADATA_FILE
        content = bytearray(path.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
            content[at] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        try:
            store = open_store(garbled)
        except StratalogError:
            return
        with store:
            assert store.image == whole


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE topics SET state = 'unheard-of'",
        "UPDATE topics SET topic_id = x'00'",
        "DELETE FROM partitions WHERE partition = 1",
        "DELETE FROM topics",
        "UPDATE partitions SET replicas = 'one'",
        "UPDATE topic_configs SET value = '7'",
        "DELETE FROM topic_configs",
        "UPDATE topics SET is_held = 1",
        "UPDATE partitions SET leader_epoch = 7 WHERE partition = 0",
        "UPDATE cluster SET next_producer_id = 0",
        "UPDATE broker_configs SET value = '7'",
        "DELETE FROM cluster",
        "INSERT INTO topic_configs VALUES (x'07', 'retention.ms', '7')",
        "PRAGMA user_version = 2",
    ],
)
def test_rows_that_no_store_writes_are_refused(tmp_path: Path, statement: str) -> None:
    with new_store(tmp_path) as store:
        configs = {"retention.ms": "604800000"}
        store.create_topic(NewTopic(name="orders", partition_count=3, configs=configs))
        store.replace_broker_configs(None, {"log.retention.ms": "604800000"})
        store.allocate_producer_ids()
    connection = sqlite3.connect(tmp_path / METADATA_FILE)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(CorruptFileError):
        open_store(tmp_path)


def test_a_directory_that_is_not_there_is_a_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        open_store(tmp_path / "nowhere")


def test_producer_ids_are_taken_one_by_one_from_blocks(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        ids = ProducerIds(store)
        epoch = store.image.epoch
        assert [ids.next_id() for _ in range(1001)] == list(range(1001))
        assert store.image.epoch == epoch + 2
    with open_store(tmp_path) as store:
        assert ProducerIds(store).next_id() == 2000


def test_producer_ids_end_before_they_repeat(tmp_path: Path) -> None:
    with new_store(tmp_path, Update(next_producer_id=PRODUCER_ID_MAX - 1500)) as store:
        assert store.allocate_producer_ids()[-1] < PRODUCER_ID_MAX
        with pytest.raises(ProducerIdsExhaustedError):
            store.allocate_producer_ids()


def test_a_change_made_for_an_older_state_of_a_partition_is_refused(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        store.create_topic(NewTopic(name="orders", replication_factor=2))
        change = PartitionChange(name="orders", partition=0, partition_epoch=0, isr=(1,))
        store.change_partitions([change])
        assert store.image.topic("orders").partition(0).isr == (1,)
        with pytest.raises(InvalidUpdateVersionError) as refused:
            store.change_partitions([change])
        assert pickle.loads(pickle.dumps(refused.value)).args == ("orders", 0, 0, 1)


def test_an_isr_is_of_replicas(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        topic = store.create_topic(NewTopic(name="orders", assignments={0: [1, 2]}))
        with pytest.raises(StratalogError, match="in sync"):
            store.change_partitions([PartitionChange(name=topic.name, partition=0, isr=(3,))])


def test_a_name_can_be_used_again_while_its_old_topic_is_being_deleted(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        old = store.create_topic(NewTopic(name="orders", configs={"retention.ms": "1"}))
        store.begin_delete(old.topic_id)
        new = store.create_topic(NewTopic(name="orders"))
        assert new.topic_id != old.topic_id
        store.finish_delete(old.topic_id)
    with open_store(tmp_path) as store:
        assert store.image.topic("orders") == new
        assert not store.image.deleting


def test_one_request_reports_on_each_of_its_topics_and_commits_once(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        wanted = [NewTopic(name=name) for name in ("a.b", "a_b", "ok", "ok", "not ok")]
        epoch = store.image.epoch
        results = [type(result).__name__ for result in store.create_topics(wanted)]
        assert results == [
            "TopicMetadata",
            "InvalidTopicError",
            "TopicMetadata",
            "TopicExistsError",
            "InvalidTopicError",
        ]
        assert store.image.epoch == epoch + 1


def test_a_request_for_too_much_creates_nothing(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        with pytest.raises(TooManyPartitionsError):
            store.create_topics([NewTopic(name=n, partition_count=5001) for n in ("a", "b")])
        assert not store.image.topics


def test_dynamic_configs_change_what_topics_and_brokers_take_for_default(tmp_path: Path) -> None:
    path = str(tmp_path / METADATA_FILE)
    with SqliteMetadataStore.open(path, broker=BrokerConfig(log_retention_ms=1)) as store:
        store.initialize(CLUSTER_ID, 1)
        store.replace_broker_configs(None, {"log.retention.ms": "2", "message.max.bytes": "7"})
        store.replace_broker_configs(1, {"log.retention.ms": "3"})
        store.replace_broker_configs(2, {"log.retention.ms": "4"})
        assert store.broker.log_retention_ms == 3
        assert store.broker.message_max_bytes == 7
        store.replace_broker_configs(1, {})
        assert store.broker.log_retention_ms == 2


def test_configs_of_a_node_and_of_all_must_agree_on_every_node(tmp_path: Path) -> None:
    """Two threads need twice the memory of one, and each of them has at least 1 MiB."""
    with new_store(tmp_path) as store:
        store.replace_broker_configs(2, {"log.cleaner.threads": "2"})
        before = store.image
        with pytest.raises(ConfigError):
            store.replace_broker_configs(None, {"log.cleaner.dedupe.buffer.size": "2000000"})
        assert store.image is before
        store.replace_broker_configs(2, {})
        store.replace_broker_configs(None, {"log.cleaner.dedupe.buffer.size": "2000000"})


@pytest.mark.parametrize(
    ("text", "garbled"),
    [
        (b"orders", b"ord\xffrs"),  # a value
        (b"TABLE cluster (", b"TABLE\xcbcluster ("),  # what SQLite quotes when it complains
    ],
)
def test_text_that_is_no_text_any_more_is_damage(
    tmp_path: Path, text: bytes, garbled: bytes
) -> None:
    with new_store(tmp_path) as store:
        store.create_topic(NewTopic(name="orders"))
    path = tmp_path / METADATA_FILE
    content = path.read_bytes()
    assert text in content
    path.write_bytes(content.replace(text, garbled))
    with pytest.raises(CorruptFileError):
        open_store(tmp_path)


def test_naming_a_leader_begins_a_new_epoch_of_that_partition_alone(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        store.create_topic(NewTopic(name="orders", assignments={0: [1, 2], 1: [2, 1]}))
        store.change_partitions([PartitionChange(name="orders", partition=0, leader=2)])
        store.change_partitions([PartitionChange(name="orders", partition=0, isr=(2,))])
    with open_store(tmp_path) as store:
        zero, one = store.image.topic("orders").partitions
        assert (zero.leader, zero.leader_epoch, zero.partition_epoch) == (2, 1, 2)
        assert (one.leader, one.leader_epoch, one.partition_epoch) == (2, 0, 0)


def test_listeners_hear_of_each_change_once_in_order_until_they_leave(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        heard: list[int] = []
        leave = store.subscribe(lambda change: heard.append(change.after.epoch))
        first = store.image.epoch
        store.allocate_producer_ids()
        store.create_topic(NewTopic(name="orders"))
        leave()
        store.allocate_producer_ids()
        assert heard == [first + 1, first + 2]


def test_a_listener_that_makes_changes_is_told_off(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        leave = store.subscribe(lambda _change: store.replace_broker_configs(None, {}))
        with pytest.raises(AssertionError, match="listener"):
            store.allocate_producer_ids()
        leave()
        store.allocate_producer_ids()
