"""Message sets of magic 0 and 1, which old brokers left behind: read alike, indexed alike."""

from pathlib import Path

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from batches import make_batch
from consuming import Consumed, consume
from dumping import DUMPS, dump_files, our_dump
from kafka_runs import copy_tree
from reading import read_all
from replaying import contents, difference, open_partition
from scenarios import START_MS, filler

from stratalog.config import TopicConfig
from stratalog.records import Codec
from stratalog.testing.legacy import legacy_message_set

pytestmark = pytest.mark.interop

TOPIC = "old"
CONFIGS = {"index.interval.bytes": "300", "segment.index.bytes": "65536"}
CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


def old_log() -> bytes:
    """Both formats under each codec that they know, with gaps, and a batch of today at the end."""
    records = [(b"k%d" % at, b"value %d " % at * 9, START_MS + at) for at in range(5)]
    records += [(None, b"no key", START_MS), (b"tombstone", None, START_MS + 9)]
    data, offset = b"", 0
    for magic in (0, 1):
        for codec in CODECS:
            data += legacy_message_set(records, magic=magic, base_offset=offset, codec=codec)
            offset += len(records)
            data += legacy_message_set(
                records[:3], magic=magic, base_offset=offset, codec=codec, offset_deltas=(1, 4, 6)
            )
            offset += 7
    for codec in CODECS:
        data += legacy_message_set(
            records, magic=1, base_offset=offset, codec=codec, log_append_time_ms=START_MS + 99
        )
        offset += len(records)
    last = make_batch([filler(1), filler(2)])
    return data + offset.to_bytes(8, "big") + last[8:12] + bytes(4) + last[16:]


@pytest.fixture(scope="module")
def old(
    kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Consumed]]:
    """A partition that Kafka indexed after an unclean start, and what a client read from it."""
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("old"))
    with broker, broker.connect() as connection:
        connection.create_topic(TOPIC, CONFIGS)
    (broker.log_dir / ".kafka_cleanshutdown").unlink()
    log = broker.partition_dir(TOPIC) / f"{0:020d}.log"
    log.write_bytes(old_log())
    with broker:
        consumed = consume(broker.bootstrap_server, [TOPIC])[TOPIC]
    return broker.log_dir, consumed


def test_we_read_old_formats_as_a_client_of_kafka_does(
    old: tuple[Path, list[Consumed]], tmp_path: Path
) -> None:
    log_dir, consumed = old
    copy_tree(log_dir / f"{TOPIC}-0", tmp_path / f"{TOPIC}-0")

    with open_partition(tmp_path / f"{TOPIC}-0", TopicConfig.from_properties(CONFIGS)) as log:
        assert read_all(log) == consumed
    assert len(consumed) == 8 * 10 + 4 * 7 + 2


def test_old_formats_are_indexed_as_kafka_indexes_them(
    old: tuple[Path, list[Consumed]], tmp_path: Path
) -> None:
    log_dir, _ = old
    ours = tmp_path / f"{TOPIC}-0"
    ours.mkdir()
    (ours / f"{0:020d}.log").write_bytes(old_log())

    config = TopicConfig.from_properties(CONFIGS)
    with open_partition(ours, config, clean=False) as log:
        log.close()

    indexes = {f"{0:020d}.index", f"{0:020d}.timeindex"}
    left = {name: data for name, data in contents(ours).items() if name in indexes}
    right = contents(log_dir / f"{TOPIC}-0")
    assert difference(left, {name: right[name] for name in indexes}) == []


@pytest.mark.parametrize("kind", ["shallow", "deep", "data", "verify"])
def test_old_formats_are_dumped_alike(
    kind: str, kafka: KafkaDistribution, old: tuple[Path, list[Consumed]]
) -> None:
    log_dir, _ = old
    dump = DUMPS[kind]
    files = dump_files(log_dir, [TOPIC], dump.suffixes)

    ours = our_dump(files, *dump.flags, cwd=log_dir)
    kafkas = kafka.dump_log(files, *dump.flags, cwd=log_dir)

    assert ours.stdout.splitlines() == kafkas.stdout.splitlines()
    assert sorted(ours.stderr.splitlines()) == sorted(kafkas.stderr.splitlines())
    assert (ours.exit_code, kafkas.exit_code) == (0, 0)
