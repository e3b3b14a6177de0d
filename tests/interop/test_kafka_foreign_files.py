"""What we leave in a log directory must never stop Apache Kafka from starting on it."""

from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution, KafkaFailedError
from batches import make_batch
from consuming import consume
from scenarios import filler

pytestmark = pytest.mark.interop


@pytest.fixture
def broker(kafka: KafkaDistribution, tmp_path: Path) -> KafkaBroker:
    broker = KafkaBroker(kafka, tmp_path / "broker")
    with broker, broker.connect() as connection:
        connection.create_topic("kept", {})
        connection.produce("kept", make_batch([filler(1), filler(2)]))
    return broker


def leave_our_files(broker: KafkaBroker) -> None:
    ours = broker.partition_dir("kept") / ".stratalog"
    for inner in ("staging/0123", "leases", "side-cars"):
        (ours / inner).mkdir(parents=True)
    (ours / "staging" / "0123" / "00000000000000000000.log").write_bytes(b"staged")
    (ours / "leases" / "1.json").write_text("{}")
    (broker.log_dir / ".stratalog-owner").write_text('{"pid": 1}')
    (broker.log_dir / ".stratalog-journal").write_bytes(bytes(100))


@pytest.mark.parametrize("unclean", [False, True], ids=["after a clean stop", "after a crash"])
def test_kafka_starts_and_serves_a_directory_that_holds_our_files(
    broker: KafkaBroker, unclean: bool
) -> None:
    leave_our_files(broker)
    if unclean:
        (broker.log_dir / ".kafka_cleanshutdown").unlink()

    with broker:
        assert [each.offset for each in consume(broker.bootstrap_server, ["kept"])["kept"]] == [
            0,
            1,
        ]
        with broker.connect() as connection:
            assert connection.produce("kept", make_batch([filler(3)])).base_offset == 2

    assert (broker.log_dir / ".stratalog-journal").read_bytes() == bytes(100)
    assert (broker.partition_dir("kept") / ".stratalog" / "leases" / "1.json").exists()


def test_a_foreign_directory_at_the_top_level_is_what_would_stop_kafka(broker: KafkaBroker) -> None:
    (broker.log_dir / ".stratalog").mkdir()

    with pytest.raises(KafkaFailedError, match=r"\.stratalog"):
        broker.start()
