"""Topics whose first segments Apache Kafka has moved to remote storage: told, never read short."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tools_fetched import ToolUnavailableError, kafka_tiered

import stratalog
from stratalog.scans.errors import TieredError
from stratalog.storage.check import CheckRun
from stratalog.storage.files import OsFileSystem
from stratalog.storage.findings import Severity

pytestmark = pytest.mark.interop

RECORDS, VALUE_BYTES = 400, 20_000
MOVED_SECONDS = 120
CONFIGS = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "remote.log.storage.manager.impl.prefix": "rsm.config.",
    "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
TOPIC = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.ms": "1000",
    "retention.ms": "-1",
}


@pytest.fixture(scope="module")
def broker(
    kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker]:
    root = tmp_path_factory.mktemp("tiered")
    try:
        plugin = kafka_tiered()
    except ToolUnavailableError as error:
        pytest.skip(str(error))
    configs = {
        **CONFIGS,
        "remote.log.storage.manager.class.path": ":".join(map(str, plugin)),
        "rsm.config.dir": str(root / "remote"),
    }
    with KafkaBroker(kafka, root / "kafka", configs) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap_server})
        admin.create_topics([NewTopic("orders", 1, config=TOPIC)])["orders"].result(60)
        producer = Producer({"bootstrap.servers": running.bootstrap_server, "linger.ms": 0})
        for number in range(RECORDS):
            producer.produce("orders", value=bytes(VALUE_BYTES), key=b"%d" % number)
        assert producer.flush(60) == 0
        yield running


def local_start(broker: KafkaBroker) -> int:
    """Waits until Kafka has moved the first segments, and deleted them here."""
    directory = broker.partition_dir("orders")
    until = time.monotonic() + MOVED_SECONDS
    while time.monotonic() < until:
        bases = sorted(int(path.stem) for path in directory.glob("*.log"))
        if bases[0] > 0 and len(bases) == 1:
            return bases[0]
        time.sleep(0.2)
    raise AssertionError(f"the first segments stay: {sorted(directory.iterdir())}")


def offsets(log_dir: Path, **options: object) -> list[int]:
    found = stratalog.scan(log_dir, "orders", columns="offset", **options).read_all()  # type: ignore[arg-type]
    return [row["offset"] for row in found.to_pylist()]


@pytest.mark.parametrize("state", ["live", "stopped"])
def test_what_kafka_keeps_in_remote_storage_is_told(broker: KafkaBroker, state: str) -> None:
    start = local_start(broker)
    if state == "stopped":
        broker.stop()

    with pytest.raises(TieredError) as caught:
        offsets(broker.log_dir)

    assert (caught.value.start_offset, caught.value.end_offset) == (0, start)
    assert offsets(broker.log_dir, start=start) == list(range(start, RECORDS))
    gaps = stratalog.scan(broker.log_dir, "orders", gaps=True).read_all().to_pylist()
    assert [(each["startOffset"], each["endOffset"], each["reason"]) for each in gaps] == [
        (0, start, "tiered")
    ]


def test_verify_finds_nothing_wrong_and_notes_what_is_tiered(broker: KafkaBroker) -> None:
    report = CheckRun(OsFileSystem(), is_live=False).check(str(broker.log_dir))

    (orders,) = [each for each in report.replicas if each.directory.endswith("/orders-0")]
    assert orders.tiered is not None
    assert orders.tiered.start_offset == 0
    assert not [each for each in report.findings if each.severity is Severity.ERROR]
