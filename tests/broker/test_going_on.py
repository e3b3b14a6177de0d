"""Leader epochs and producer ids from one start to the next: continued, and given out once."""

import shutil
from pathlib import Path

import pytest
from startup_worlds import append, create, opened, unpack_kafka

from stratalog.broker.startup import OpenedBroker
from stratalog.metadata import ProducerIds, Update
from stratalog.metadata.producer_ids import PRODUCER_ID_MIN
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore
from stratalog.storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    LEADER_EPOCH_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
)

ORDERS = TopicPartition("orders", 0)


# --- leader epochs ------------------------------------------------------------------------------


def epoch_of(broker: OpenedBroker) -> int:
    epoch = broker.store.image.topic("orders").partition(0).leader_epoch
    assert broker.logs.get(ORDERS).epochs.latest_epoch == epoch
    return epoch


def test_a_leader_epoch_goes_on_over_starts_and_is_never_below_that_of_the_log(
    tmp_path: Path,
) -> None:
    broker = opened(tmp_path)
    create(broker, "orders")
    broker.close()
    epochs = []
    for start in range(4):
        broker = opened(tmp_path)
        epochs.append(epoch_of(broker))
        if start == 1:
            broker.logs.get(ORDERS).assign_leader_epoch(50)  # as if somebody else had led meanwhile
        append(broker, ORDERS, "more")
        broker.close()
        (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()
    assert epochs == [0, 0, 50, 50]


def test_a_start_writes_no_epoch_that_the_file_of_a_log_names_already(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    create(broker, "orders")
    broker.close()
    checkpoint = tmp_path / "orders-0" / LEADER_EPOCH_CHECKPOINT
    before = checkpoint.stat().st_ino, checkpoint.stat().st_mtime_ns
    broker = opened(tmp_path)
    assert epoch_of(broker) == 0
    broker.close()
    assert (checkpoint.stat().st_ino, checkpoint.stat().st_mtime_ns) == before


def test_a_log_that_ends_below_where_it_was_read_begins_a_new_leader_epoch(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    create(broker, "orders")
    append(broker, ORDERS, "first")
    broker.close()
    segment = tmp_path / "orders-0" / f"{0:020}.log"
    before = segment.read_bytes()
    broker = opened(tmp_path)
    append(broker, ORDERS, "read, and then lost")
    log = broker.logs.get(ORDERS)
    log.flush()
    log.raise_high_watermark(2)
    broker.close()
    segment.write_bytes(before)
    for name in (CLEAN_SHUTDOWN_FILE, RECOVERY_POINT_CHECKPOINT):
        (tmp_path / name).unlink()

    broker = opened(tmp_path)
    assert epoch_of(broker) == 1
    broker.close()
    broker = opened(tmp_path)
    assert epoch_of(broker) == 1
    broker.close()


@pytest.mark.parametrize("is_flushed_on_ack", [True, False])
def test_what_was_read_before_it_was_on_disk_may_be_lost_by_a_stop_that_was_not_clean(
    tmp_path: Path, *, is_flushed_on_ack: bool
) -> None:
    broker = opened(tmp_path, log_flush_on_ack=is_flushed_on_ack)
    create(broker, "orders")
    append(broker, ORDERS, "first")
    broker.close()
    (tmp_path / CLEAN_SHUTDOWN_FILE).unlink()

    broker = opened(tmp_path, log_flush_on_ack=is_flushed_on_ack)
    assert epoch_of(broker) == (0 if is_flushed_on_ack else 1)
    broker.close()


# --- producer ids -------------------------------------------------------------------------------


def test_producer_ids_never_repeat_after_restarts_kills_and_adoption(tmp_path: Path) -> None:
    directory = tmp_path / "0"
    last = unpack_kafka(directory)["producer_id"]
    for life in range(6):
        broker = opened(directory)
        ids = ProducerIds(broker.store)
        given = [ids.next_id() for _ in range(1_500 if life == 2 else 3)]
        assert min(given) > last
        assert len(set(given)) == len(given)
        last = max(given)
        # A copy made now is what a killed process leaves; the lock is the process's own.
        copied = tmp_path / str(life + 1)
        shutil.copytree(directory, copied)
        broker.close()
        directory = copied if life % 2 else directory


def test_a_producer_id_that_only_a_log_or_a_snapshot_names_is_not_given_again(
    tmp_path: Path,
) -> None:
    broker = opened(tmp_path)
    create(broker, "orders")
    append(broker, ORDERS, "x", producer_id=777_777, producer_epoch=0, base_sequence=0)
    broker.close()
    for suffix in (".snapshot", ""):
        for file in tmp_path.glob(f"orders-0/*{suffix}") if suffix else ():
            file.unlink()
    (tmp_path / METADATA_FILE).unlink()

    broker = opened(tmp_path)
    assert ProducerIds(broker.store).next_id() > 777_777
    broker.close()


def test_a_store_that_is_an_older_copy_gives_out_no_producer_id_that_a_log_knows(
    tmp_path: Path,
) -> None:
    broker = opened(tmp_path)
    create(broker, "orders")
    copy = (tmp_path / METADATA_FILE).read_bytes()
    broker.close()
    broker = opened(tmp_path)
    given = ProducerIds(broker.store).next_id()
    append(broker, ORDERS, "x", producer_id=given, producer_epoch=0, base_sequence=0)
    broker.close()
    (tmp_path / METADATA_FILE).write_bytes(copy)

    broker = opened(tmp_path)
    assert ProducerIds(broker.store).next_id() > given
    broker.close()


def test_a_store_that_gave_out_ids_of_kafkas_goes_on_with_others(tmp_path: Path) -> None:
    broker = opened(tmp_path)
    broker.close()
    with SqliteMetadataStore.open(str(tmp_path / METADATA_FILE)) as store:
        store._commit(store.image, Update(next_producer_id=5000))

    broker = opened(tmp_path)
    assert ProducerIds(broker.store).next_id() >= PRODUCER_ID_MIN
    broker.close()
