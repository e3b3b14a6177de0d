"""Java reads every codec as our cleaner has rewritten it: a broker, its tool, and its consumer."""

import random
from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from consuming import Consumed, consume
from reading import read_all

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Codec, Record, build_batch
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager

pytestmark = pytest.mark.interop

TOPICS = {f"cleaned-{codec.name.lower()}": codec for codec in Codec}
CONFIGS = {"cleanup.policy": "compact", "max.message.bytes": "10000000"}
START_MS = 1_700_000_000_000


def batches(topic: str) -> list[bytes]:
    """Small ones and ones of many codec blocks, each with records that later ones supersede."""
    dice = random.Random(topic)
    made = []
    for at in range(12):
        count = 2_000 if at % 4 == 3 else 5
        rows = [
            Record(
                f"{topic} {dice.randrange(4_000)}".encode(),
                None if dice.random() < 0.1 else dice.randbytes(dice.randrange(60)).hex().encode(),
                [("header", b"x" * at)] * (at % 3),
                START_MS + at,
            )
            for _ in range(count)
        ]
        made.append(build_batch(rows, codec=TOPICS[topic]))
    return made


@pytest.fixture(scope="module")
def broker(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> KafkaBroker:
    """A stopped broker whose topics we have cleaned meanwhile."""
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("cleaned"))
    with broker, broker.connect() as connection:
        for topic in TOPICS:
            connection.create_topic(topic, CONFIGS)
            for batch in batches(topic):
                connection.produce(topic, batch)
    return broker


@pytest.fixture(scope="module")
def ours(broker: KafkaBroker) -> dict[str, list[Consumed]]:
    """What we read of each topic, once it is cleaned."""
    config = TopicConfig.from_properties(CONFIGS)
    owned = BrokerConfig(log_dirs=(str(broker.log_dir),), log_cleaner_enable=False)
    manager = LogManager(owned, topic_config=lambda _topic: config)
    manager.start()
    read = {}
    for topic, codec in TOPICS.items():
        log = manager.get(TopicPartition(topic, 0))
        log.roll()
        log.append_as_leader(
            build_batch([Record(b"last", b"1", timestamp_ms=START_MS)], codec=codec),
            leader_epoch=log.epochs.latest_epoch,
        )
        log.flush()
        log.raise_high_watermark(log.log_end_offset)
        stats = clean_now(log, first_dirty_offset=0, now_ms=START_MS, map_bytes=1 << 20).stats
        assert 0 < stats.messages_kept < stats.messages_read
        read[topic] = read_all(log)
    manager.shutdown()
    return read


def test_clients_read_from_kafka_what_we_have_cleaned(
    broker: KafkaBroker, ours: dict[str, list[Consumed]]
) -> None:
    with broker:
        served = consume(broker.bootstrap_server, TOPICS)
        java = java_consumer(broker, count=sum(map(len, ours.values())))

    assert served == ours
    assert sorted(java) == sorted(line_of(each) for topic in TOPICS for each in ours[topic])


def java_consumer(broker: KafkaBroker, *, count: int) -> list[str]:
    """What the Java consumer prints of all topics: offset, key and value of each record."""
    run = broker.distribution.run_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap_server, "--include", "cleaned-.*"),
        *("--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000"),
        *("--formatter-property", "print.offset=true", "--formatter-property", "print.key=true"),
    )
    assert run.exit_code == 0, run.stderr
    return run.stdout.splitlines()


def line_of(record: Consumed) -> str:
    key, value = (each.decode() if each is not None else "null" for each in record[3:5])
    return f"Offset:{record.offset}\t{key}\t{value}"


def test_kafkas_tool_reads_every_record_of_what_we_have_cleaned(
    kafka: KafkaDistribution, broker: KafkaBroker, ours: dict[str, list[Consumed]]
) -> None:
    files = sorted(broker.log_dir.glob("cleaned-*/*.log"))

    run = kafka.dump_log(files, "--deep-iteration", "--print-data-log")

    # Offsets that are missing are all that it may find to say.
    said = [line for line in run.stderr.splitlines() if not line.startswith("  ")]
    assert run.exit_code == 0
    assert all(line.startswith("Non-consecutive offsets in") for line in said)
    assert "isvalid: false" not in run.stdout
    assert run.stdout.count("\n| offset: ") == sum(map(len, ours.values()))
    verified = kafka.dump_log(
        [each for file in files for each in file.parent.glob(f"{file.stem}.*index")],
        "--verify-index-only",
    )
    assert (verified.exit_code, verified.stderr) == (0, "")


def test_what_was_cleaned_is_compressed_as_it_was(
    broker: KafkaBroker, ours: dict[str, list[Consumed]]
) -> None:
    assert ours.keys() == TOPICS.keys()
    for topic, codec in TOPICS.items():
        first = min((broker.log_dir / f"{topic}-0").glob("*.log")).read_bytes()
        assert first[22] & 7 == codec, Path(topic)
