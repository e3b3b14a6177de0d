"""Topics with everything in them that Spark may meet, the same bytes for any broker.

Batches are made by hand and sent as they are, so offsets are the same each time, and the cases can
name them. What only a broker can make (markers, a log start, compacted segments, append times) is
asked for and waited for.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from batches import Record, make_batch, walk
from confluent_kafka import Consumer, TopicPartition
from scenarios import CODECS, START_MS, filler
from wire import KafkaConnection

from stratalog.records import Codec
from stratalog.testing.legacy import legacy_message_set

WAIT_SECONDS = 120
HOUR_MS = 3_600_000

# Partitions of each topic. One of "plain" stays empty.
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (3, {}),
    "codecs": (1, {}),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime"}),
    "timed": (2, {"index.interval.bytes": "300", "segment.index.bytes": "65536"}),
    "jumbled": (1, {"index.interval.bytes": "300", "segment.ms": "1000"}),
    "txn": (2, {}),
    "compacted": (
        1,
        {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0"},
    ),
    "mixed": (2, {"internal.segment.bytes": "6000", "index.interval.bytes": "1000"}),
    "compacted.txn": (
        1,
        {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0"},
    ),
    "trimmed": (1, {}),
    "dotted.a": (1, {}),
    "dotted.b": (1, {}),
    "void": (1, {}),
    "growing": (2, {}),
}
TRANSACTIONAL = ("txn", "compacted.txn", "mixed")
OLD = "old"  # put into Kafka's directory while it is down: no broker of today writes it
PLAIN_ENDS = {0: 57, 1: 8, 2: 0}
TIMED_RECORDS = 60
TRIMMED_START, TRIMMED_END = 25, 40


def produce_all(
    connection: KafkaConnection, log_dir: Path, *, has_transactions: bool = True
) -> None:
    """Create the topics and fill them; returns when nothing about them will change any more."""
    for topic, (partitions, configs) in TOPICS.items():
        if topic in TRANSACTIONAL and not has_transactions:
            continue
        connection.create_topic(topic, configs, partitions)
    _plain(connection)
    _codecs(connection)
    _times(connection)
    if has_transactions:
        _transactions(connection, log_dir)
        _mixed(connection, log_dir)
    _compacted(connection)
    grow(connection, partition=0, count=7)
    for topic in ("trimmed", "dotted.a", "dotted.b"):
        for start in range(0, TRIMMED_END, 10):
            connection.produce(topic, make_batch([filler(start + at) for at in range(10)]))
    connection.delete_records("trimmed", TRIMMED_START)
    for topic in ("compacted", "compacted.txn") if has_transactions else ("compacted",):
        _wait_until(partial(_is_compacted, log_dir, topic), f"compaction of {topic}")


def grow(connection: KafkaConnection, *, partition: int, count: int) -> None:
    """More records of the one topic that does not stay as it is."""
    for number in range(count):
        connection.produce("growing", make_batch([filler(number)]), partition=partition)


def _plain(connection: KafkaConnection) -> None:
    """Fields null, empty and large; headers none, twice, null, empty, and in other alphabets."""
    odd = [
        Record(None, b"no key", START_MS + 5),
        Record(b"tombstone", None, START_MS + 3),
        Record(b"", b"", START_MS + 9),
        Record(None, None, START_MS - 1_000),
        Record(b"\xff\x00", b"x" * 3_000, START_MS + 20, [("a", b"1"), ("b", None), ("a", b"2")]),
        Record("clé".encode(), "größer".encode(), START_MS + 21, [("ünï", "çödé".encode())]),
        Record(b"k", b"v", START_MS + 22, [("", b"")]),
    ]
    connection.produce("plain", make_batch(odd))
    connection.produce("plain", make_batch([filler(number) for number in range(50)]))
    for number in range(PLAIN_ENDS[1]):
        headers = [(f"h{at}", b"%d" % at) for at in range(number % 3)]
        record = Record(b"p1", b"%d" % number, START_MS + number, headers)
        connection.produce("plain", make_batch([record]), partition=1)


def _codecs(connection: KafkaConnection) -> None:
    for codec in CODECS:
        many = [filler(codec * 100 + number, size=300) for number in range(40)]
        connection.produce("codecs", make_batch(many, codec=codec))
        one = Record(b"one", b"y" * 2_000, START_MS + codec, [("codec", b"%d" % codec)])
        connection.produce("codecs", make_batch([one], codec=codec))
    for codec in CODECS[:2]:
        connection.produce("stamped", make_batch([filler(at) for at in range(5)], codec=codec))


def _times(connection: KafkaConnection) -> None:
    """A record a second in turn between two partitions; and one whose clock jumps about."""
    for number in range(TIMED_RECORDS):
        record = Record(b"t", b"%d" % number * 50, START_MS + 1_000 * number)
        connection.produce("timed", make_batch([record]), partition=number % 2)
    for number in range(40):
        jump_ms = number * 7919 % 41 * 500
        records = [Record(b"j", b"z" * 150, START_MS + jump_ms + at * 90) for at in (0, 7, 3)]
        connection.produce("jumbled", make_batch(records))


def _transactions(connection: KafkaConnection, log_dir: Path) -> None:
    """Partition 0: committed, aborted, committed. Partition 1: interleaved, and one left open."""
    for at, commit in enumerate((True, False, True)):
        writer = _Writer(connection, log_dir, "txn", f"whole-{at}")
        writer.send(0, [filler(10 * at + number) for number in range(4)])
        writer.end(commit=commit)
        connection.produce("txn", make_batch([filler(at)]))
    first, second = (_Writer(connection, log_dir, "txn", name) for name in ("first", "second"))
    for at in range(3):
        first.send(1, [filler(100 + at), filler(101 + at)])
        second.send(1, [filler(200 + number) for number in range(3)], codec=4)
        connection.produce("txn", make_batch([filler(300 + at)]), partition=1)
    first.end(commit=False)
    second.end(commit=True)
    _Writer(connection, log_dir, "txn", "open").send(1, [filler(400), filler(401)])
    connection.produce("txn", make_batch([filler(500)]), partition=1)
    for at, commit in enumerate((True, False, False, True)):
        writer = _Writer(connection, log_dir, "compacted.txn", f"compacted-{at}")
        writer.send(0, [filler(at + each, every_ms=10 * HOUR_MS) for each in range(4 + at)])
        writer.end(commit=commit)
    # So much later than all others that a segment of its own begins with it.
    late = Record(b"late", b"late", START_MS + 100_000 * HOUR_MS)
    connection.produce("compacted.txn", make_batch([late]))


def _mixed(connection: KafkaConnection, log_dir: Path) -> None:
    """Many segments of batches of all kinds, of four producers at once, by a fixed seed."""
    chance = Random(20)
    writers = [_Writer(connection, log_dir, "mixed", f"mixed-{at}") for at in range(3)]
    for number in range(150):
        count, codec = chance.randint(1, 9), chance.choice(CODECS)
        start_ms = START_MS + 500 * number
        records = [filler(number + at, size=chance.randint(1, 400)) for at in range(count)]
        timed = [record._replace(timestamp_ms=start_ms + at) for at, record in enumerate(records)]
        writer = chance.choice([*writers, None])
        if writer is None:
            batch = make_batch(timed, codec=codec)
            connection.produce("mixed", batch, partition=chance.randint(0, 1))
        else:
            writer.send(chance.randint(0, 1), timed, codec=codec)
            if chance.random() < 0.2:
                writer.end(commit=chance.random() < 0.5)


class _Writer:
    """A transactional producer of one topic, in one transaction after the other."""

    def __init__(self, connection: KafkaConnection, log_dir: Path, topic: str, name: str) -> None:
        self._connection = connection
        self._log_dir = log_dir
        self._topic = topic
        self._name = name
        self._producer = connection.init_producer_id(name)
        self._sequences: dict[int, int] = {}
        self._written: set[int] = set()

    def send(self, partition: int, records: Sequence[Record], *, codec: int = 0) -> None:
        if partition not in self._written:
            self._connection.add_partition_to_txn(
                self._name, self._producer, self._topic, partition
            )
            self._written.add(partition)
        sequence = self._sequences.get(partition, 0)
        batch = make_batch(
            records,
            codec=codec,
            producer=self._producer,
            base_sequence=sequence,
            transactional=True,
        )
        self._connection.produce(
            self._topic, batch, partition=partition, transactional_id=self._name
        )
        self._sequences[partition] = sequence + len(records)

    def end(self, *, commit: bool) -> None:
        """Each partition that it wrote to has its marker when this returns."""
        before = self._marker_counts()
        self._connection.end_txn(self._name, self._producer, commit=commit)
        _wait_until(
            lambda: all(
                now > then for now, then in zip(self._marker_counts(), before, strict=True)
            ),
            "marker of a finished transaction",
        )
        self._written.clear()

    def _marker_counts(self) -> list[int]:
        directories = [self._log_dir / f"{self._topic}-{at}" for at in sorted(self._written)]
        return [
            sum(
                header.is_control
                for file in each.glob("*.log")
                for header, _ in walk(file.read_bytes())
            )
            for each in directories
        ]


def _compacted(connection: KafkaConnection) -> None:
    """A segment a batch, as each is an hour after the last; tombstones among them."""
    for number in range(6):
        at_ms = START_MS + number * HOUR_MS
        values = [None if (number + key) % 4 == 0 else b"%d" % number for key in range(5)]
        records = [Record(b"key %d" % at, value, at_ms + at) for at, value in enumerate(values)]
        only = Record(b"only in %d" % number, b"kept", at_ms + 9, [("n", b"%d" % number)])
        batch = make_batch([*records, only], codec=CODECS[number % 5])
        connection.produce("compacted", batch)


def _is_compacted(log_dir: Path, topic: str) -> bool:
    """Whether the cleaner has been everywhere but in the active segment."""
    try:
        _, _, *lines = (log_dir / "cleaner-offset-checkpoint").read_text().splitlines()
    except (FileNotFoundError, ValueError):
        return False
    active = max(int(file.stem) for file in (log_dir / f"{topic}-0").glob("*.log"))
    return active > 0 and f"{topic} 0 {active}" in lines


def await_checkpoints(log_dir: Path, bootstrap_server: str) -> None:
    """Wait until Kafka has written down where each of its logs starts and ends."""
    wanted = {f"trimmed 0 {TRIMMED_START}"}
    settings = {"bootstrap.servers": bootstrap_server, "group.id": "ends"}
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
    for topic, described in consumer.list_topics(timeout=60).topics.items():
        for partition in described.partitions:
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
            wanted.add(f"{topic} {partition} {end}")
    consumer.close()
    names = ("replication-offset-checkpoint", "log-start-offset-checkpoint")

    def is_written() -> bool:
        files = [log_dir / name for name in names if (log_dir / name).is_file()]
        return wanted <= {line for file in files for line in file.read_text().splitlines()}

    _wait_until(is_written, "checkpoints")


def _wait_until(is_so: Callable[[], bool], what: str) -> None:
    tick = threading.Event()
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"no {what} within {WAIT_SECONDS} s"
        tick.wait(0.05)


def old_log() -> bytes:
    """Magic 0 and 1 under each codec that they know, with the gaps that compaction leaves."""
    return b"".join(_old_sets())


def _old_sets() -> Iterator[bytes]:
    records = [(b"k%d" % at, b"value %d " % at * 9, START_MS + at) for at in range(5)]
    records += [(None, b"no key", START_MS), (b"tombstone", None, START_MS + 9)]
    old_codecs = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
    offset = 0
    for magic in (0, 1):
        for codec in old_codecs:
            yield legacy_message_set(records, magic=magic, base_offset=offset, codec=codec)
            yield legacy_message_set(
                records[:3],
                magic=magic,
                base_offset=offset + 7,
                codec=codec,
                offset_deltas=(1, 4, 6),
            )
            offset += 14
    for codec in old_codecs:
        yield legacy_message_set(
            records, magic=1, base_offset=offset, codec=codec, log_append_time_ms=START_MS + 99
        )
        offset += 7
