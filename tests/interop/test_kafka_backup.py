"""Apache Kafka's logs are backed up while it runs, restored, and opened by it again."""

import shutil
from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from consuming import consume

from stratalog.handover.backing_up import BackupOptions, back_up
from stratalog.handover.restoring import restore_directory
from stratalog.storage.backup.choosing import choose_backup
from stratalog.storage.backup.restore_plan import plan_restore
from stratalog.storage.backup.store import LocalBackupStore
from stratalog.storage.files import OsFileSystem

pytestmark = pytest.mark.interop

COUNT = 40


def filled(broker: KafkaBroker) -> None:
    address = {"bootstrap.servers": broker.bootstrap_server}
    configs = {"segment.bytes": "1048576", "retention.ms": "-1"}
    wanted = NewTopic("orders", 1, 1, config=configs)
    admin = AdminClient(address)  # kept: it answers nothing once it is gone
    for future in admin.create_topics([wanted]).values():
        future.result()
    producer = Producer({**address, "enable.idempotence": True, "linger.ms": 0})
    for number in range(COUNT):
        producer.produce("orders", b"%d" % number + b"." * 200_000, key=b"k%d" % (number % 7))
        producer.flush()


def test_kafka_opens_what_was_backed_up_beside_it_and_restored(
    kafka: KafkaDistribution, tmp_path: Path
) -> None:
    store = LocalBackupStore(OsFileSystem(), str(tmp_path / "backups"))
    first = KafkaBroker(kafka, tmp_path / "first")
    with first:
        filled(first)
        live = back_up(str(first.log_dir), store)
    back_up(str(first.log_dir), store, BackupOptions(verify=True))
    before = {path.name: path.read_bytes() for path in first.partition_dir("orders").glob("*.log")}

    second = KafkaBroker(kafka, tmp_path / "second")
    (tmp_path / "second").mkdir()
    restore_directory(
        store, plan_restore(store, choose_backup(store).manifest), str(second.log_dir)
    )
    # It is told to be the same controller, whose port its configuration names.
    second.port, second._controller_port = first.port, first._controller_port
    with second:
        found = consume(second.bootstrap_server, ["orders"])["orders"]

    assert [each.offset for each in found] == list(range(COUNT))
    assert live.manifest.topics[0].configs == {"segment.bytes": "1048576", "retention.ms": "-1"}
    assert any(each.end_offset < COUNT for _, each in live.manifest.partitions)
    after = {path.name: path.read_bytes() for path in second.partition_dir("orders").glob("*.log")}
    assert after == before
    shutil.rmtree(tmp_path)
