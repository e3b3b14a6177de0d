"""Each side reads what the other compressed: small batches, and ones of many codec blocks."""

import random
from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from batches import make_batch
from consuming import Consumed, consume
from reading import read_all
from replaying import open_partition, stored_batches
from scenarios import filler

from stratalog.config import TopicConfig
from stratalog.records import Codec, Record, build_batch

pytestmark = pytest.mark.interop

CODECS = ("gzip", "snappy", "lz4", "zstd")
LIMITS = {"max.message.bytes": "10000000"}


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


RECORDS = {
    "one": [Record(b"k", b"v", timestamp_ms=1_000)],
    "many": [
        Record(b"%d" % at, b"value %d " % at * 20, [("h", b"x")], 1_000 + at) for at in range(2_000)
    ],
    "noise": [Record(None, noise(90_000 + at), timestamp_ms=1_000 + at) for at in range(3)],
    "mixed": [Record(noise(40), bytes(70_000) + noise(70_000), timestamp_ms=5)],
}


@pytest.fixture(scope="module")
def served(
    kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, list[Consumed]], Path]:
    """What a client read: of our batches as sent, and of plain ones that Kafka compressed."""
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("codecs"))
    topics = [*(f"sent-{codec}" for codec in CODECS), *(f"stored-{codec}" for codec in CODECS)]
    with broker, broker.connect() as connection:
        for codec in CODECS:
            connection.create_topic(f"sent-{codec}", LIMITS)
            connection.create_topic(f"stored-{codec}", {"compression.type": codec, **LIMITS})
            for records in RECORDS.values():
                ours = build_batch(records, codec=Codec.from_name(codec))
                connection.produce(f"sent-{codec}", ours)
                connection.produce(f"stored-{codec}", build_batch(records))
        consumed = consume(broker.bootstrap_server, topics)
    return consumed, broker.log_dir


def sent() -> list[tuple[bytes | None, bytes | None, int]]:
    return [(each.key, each.value, each.timestamp_ms) for kind in RECORDS.values() for each in kind]


def fields(records: list[Consumed]) -> list[tuple[bytes | None, bytes | None, int]]:
    return [(each.key, each.value, each.timestamp_ms) for each in records]


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_and_its_clients_read_what_we_compressed(
    codec: str, served: tuple[dict[str, list[Consumed]], Path]
) -> None:
    consumed, log_dir = served

    assert fields(consumed[f"sent-{codec}"]) == sent()
    stored = [header for header, _ in stored_batches(log_dir / f"sent-{codec}-0")]
    assert {header.attributes & 7 for header in stored} == {Codec.from_name(codec)}


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_what_kafka_compressed(
    codec: str, served: tuple[dict[str, list[Consumed]], Path]
) -> None:
    consumed, log_dir = served

    with open_partition(log_dir / f"stored-{codec}-0", TopicConfig()) as log:
        assert read_all(log) == consumed[f"stored-{codec}"]
    assert fields(consumed[f"stored-{codec}"]) == sent()


@pytest.mark.parametrize("codec", CODECS)
def test_what_we_compress_for_a_topic_differs_from_kafkas_in_compressed_bytes_only(
    codec: str, served: tuple[dict[str, list[Consumed]], Path], tmp_path: Path
) -> None:
    consumed, log_dir = served
    config = TopicConfig.from_properties(
        {"compression.type": codec, "message.timestamp.before.max.ms": str(2**63 - 1), **LIMITS}
    )

    ours = tmp_path / f"stored-{codec}-0"
    ours.mkdir()
    with open_partition(ours, config) as log:
        for records in RECORDS.values():
            log.append_as_leader(build_batch(records), leader_epoch=0)
        log.flush()
        assert read_all(log) == consumed[f"stored-{codec}"]

    def headers(directory: Path) -> list[tuple[int, ...]]:
        return [header._replace(length=0, crc=0) for header, _ in stored_batches(directory)]

    assert headers(ours) == headers(log_dir / f"stored-{codec}-0")


def test_a_batch_of_another_codec_than_the_topics_is_compressed_anew_by_both(
    kafka: KafkaDistribution, tmp_path: Path
) -> None:
    broker = KafkaBroker(kafka, tmp_path / "broker")
    batches = [make_batch([filler(at) for at in range(20)], codec=codec) for codec in range(5)]
    with broker, broker.connect() as connection:
        connection.create_topic("to-zstd", {"compression.type": "zstd", **LIMITS})
        for batch in batches:
            connection.produce("to-zstd", batch)
        consumed = consume(broker.bootstrap_server, ["to-zstd"])["to-zstd"]

    ours = tmp_path / "to-zstd-0"
    ours.mkdir()
    config = {"compression.type": "zstd", "message.timestamp.before.max.ms": str(2**63 - 1)}
    with open_partition(ours, TopicConfig.from_properties(config)) as log:
        for batch in batches:
            log.append_as_leader(batch, leader_epoch=0)
        assert read_all(log) == consumed
    assert {header.attributes & 7 for header, _ in stored_batches(ours)} == {Codec.ZSTD}
