"""What the interop tests put into partitions, one topic a scenario, and a record of what was sent.

A scenario is a topic's configs and, for each life of the broker, a function that produces. It runs
against Apache Kafka through ``Recorder``, which keeps every batch as it was sent and what the
broker answered, so that our own log can be given the very same appends in the same order.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from batches import GZIP, LZ4, NONE, SNAPPY, ZSTD, Record, make_batch, walk
from wire import KafkaConnection, Produced

START_MS = 1_700_000_000_000
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)


@dataclass(slots=True)
class Recorder:
    """One topic's way into the broker; remembers what went through it."""

    topic: str
    connection: KafkaConnection
    partition_dir: Path
    produced: list[Produced]

    def send(self, batch: bytes, transactional_id: str | None = None) -> None:
        """Produce one batch and keep it."""
        answer = self.connection.produce(self.topic, batch, transactional_id=transactional_id)
        self.produced.append(answer)

    def send_records(self, *records: Record, codec: int = NONE) -> None:
        """Produce one batch that no producer id protects."""
        self.send(make_batch(records, codec=codec))

    def end(self, transactional_id: str, producer: tuple[int, int], *, commit: bool) -> None:
        """End a transaction and wait for its marker, which comes after the answer."""
        before = self._marker_count()
        self.connection.end_txn(transactional_id, producer, commit=commit)
        tick = threading.Event()
        for _ in range(300):
            if self._marker_count() > before:
                return
            tick.wait(0.05)
        raise AssertionError("the marker of a finished transaction never came")

    def _marker_count(self) -> int:
        files = self.partition_dir.glob("*.log")
        return sum(header.is_control for file in files for header, _ in walk(file.read_bytes()))


Step = Callable[[Recorder], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A topic: its configs, what each life of the broker does, and damage after the crash."""

    name: str
    lives: tuple[Step, ...]
    configs: Mapping[str, str] = field(default_factory=dict)
    damage: Callable[[Path], None] | None = None
    delete_before: int = 0  # the log start offset that the second life asks for at its end


def filler(number: int, *, size: int = 100, every_ms: int = 10, start_ms: int = START_MS) -> Record:
    """A record that says which one it is and compresses a little."""
    value = (b"value %d " % number) * (size // 8 + 1)
    return Record(b"key %d" % (number % 7), value[:size], start_ms + number * every_ms)


def plain(recorder: Recorder) -> None:
    """Records of every shape: null, empty and large fields, headers, a tombstone, old times."""
    recorder.send_records(Record(b"k", b"v"))
    recorder.send_records(
        Record(None, b"no key", START_MS + 5),
        Record(b"tombstone", None, START_MS + 3),
        Record(b"", b"", START_MS + 9),
        Record(None, None, START_MS - 1_000),
    )
    recorder.send_records(
        Record(
            b"headers",
            b"x" * 300,
            START_MS + 20,
            [("a", b"1"), ("b", None), ("", b""), ("a", b"2")],
        ),
        Record("clé".encode(), "größer".encode(), START_MS + 21, [("ünï", "çödé".encode())]),
    )
    recorder.send_records(*(filler(number) for number in range(50)))


def all_codecs(recorder: Recorder) -> None:
    """Each codec twice: a batch of many records and one of a single record."""
    for codec in CODECS:
        at = codec * 1_000
        recorder.send_records(*(filler(at + number, size=200) for number in range(40)), codec=codec)
        recorder.send_records(Record(b"one", b"y" * 2_000, START_MS + at + 999), codec=codec)


def many_batches(recorder: Recorder) -> None:
    """Enough small batches of uneven size to make index entries and, with small segments, rolls."""
    for number in range(120):
        count = 1 + number % 4
        records = (filler(number * 4 + at, size=20 + 37 * (number % 5)) for at in range(count))
        recorder.send_records(*records, codec=CODECS[number % 5] if number % 3 == 0 else NONE)


def times_out_of_order(recorder: Recorder) -> None:
    """Timestamps that jump both ways, stand still, and are missing."""
    for number in range(60):
        step_ms = (number * 7919 % 61) * 100 if number % 4 else 3_000
        recorder.send_records(Record(b"t", b"z" * 150, START_MS + step_ms))
    recorder.send_records(Record(b"no time", b"z" * 150, -1))


def no_times(recorder: Recorder) -> None:
    """Batches whose records carry no timestamp at all: the time index has nothing to hold."""
    for number in range(10):
        recorder.send_records(Record(b"n", b"%d" % number * 100, -1))


def tied_times(recorder: Recorder) -> None:
    """Runs of batches with one timestamp: the first of a run is the one that counts."""
    for number in range(30):
        recorder.send_records(Record(b"t", b"z" * 90, START_MS + number // 7 * 1_000))


def growing_times(recorder: Recorder) -> None:
    """A record every half second, for topics that roll by time."""
    for number in range(40):
        recorder.send_records(filler(number, every_ms=500))


def idempotent(recorder: Recorder) -> None:
    """Two producers with sequences of their own, a duplicate, and batches no producer owns."""
    first = recorder.connection.init_producer_id()
    second = recorder.connection.init_producer_id()
    sequences = {first: 0, second: 0}
    for number in range(24):
        producer = first if number % 3 else second
        records = [filler(number * 3 + at) for at in range(1 + number % 3)]
        batch = make_batch(records, producer=producer, base_sequence=sequences[producer])
        recorder.send(batch)
        sequences[producer] += len(records)
        if number == 7:
            recorder.send(batch)
        if number % 5 == 0:
            recorder.send_records(filler(number))


def transactions(recorder: Recorder) -> None:
    """Committed, aborted, overlapping and unfinished transactions, plain batches between them."""
    ids = [f"{recorder.topic}-{letter}" for letter in "abc"]
    producers = [recorder.connection.init_producer_id(each) for each in ids]
    sequences = [0, 0, 0]

    def write(who: int, number: int, count: int = 2) -> None:
        recorder.connection.add_partition_to_txn(ids[who], producers[who], recorder.topic)
        records = [filler(number * 2 + at) for at in range(count)]
        sequence, sequences[who] = sequences[who], sequences[who] + count
        batch = make_batch(
            records, producer=producers[who], base_sequence=sequence, transactional=True
        )
        recorder.send(batch, ids[who])

    write(0, 0)
    recorder.end(ids[0], producers[0], commit=True)
    write(0, 1)
    recorder.send_records(filler(100))
    write(0, 2)
    recorder.end(ids[0], producers[0], commit=False)
    write(1, 3)
    write(0, 4, count=3)
    recorder.end(ids[0], producers[0], commit=False)
    recorder.send_records(filler(101))
    recorder.end(ids[1], producers[1], commit=False)
    write(1, 5)
    recorder.end(ids[1], producers[1], commit=True)
    write(2, 6)
    recorder.send_records(filler(102))


def a_little(recorder: Recorder) -> None:
    """What a second life of the broker adds to a partition."""
    start_ms = START_MS + 1_000_000
    for number in range(12):
        recorder.send_records(*(filler(number * 3 + at, start_ms=start_ms) for at in range(3)))


def nothing(recorder: Recorder) -> None:
    """Leave the partition as it is."""


def torn(partition_dir: Path) -> None:
    """Half a batch at the end, as a crash of the machine leaves it."""
    log = _active(partition_dir)
    *_, (_, last) = walk(log.read_bytes())
    with log.open("ab") as file:
        file.write(last[: len(last) // 2])


def zeroed(partition_dir: Path) -> None:
    """Zeros at the end: the file's length reached the disk, its bytes did not."""
    with _active(partition_dir).open("ab") as file:
        file.write(bytes(5_000))


def garbled(partition_dir: Path) -> None:
    """One flipped bit in the last batch."""
    log = _active(partition_dir)
    data = bytearray(log.read_bytes())
    data[-5] ^= 0x10
    log.write_bytes(data)


def garbled_inside(partition_dir: Path) -> None:
    """One flipped bit in a batch of the last life. Two valid batches and a segment follow it."""
    *_, log, _last = sorted(partition_dir.glob("*.log"))
    data = bytearray(log.read_bytes())
    *_, end, _, _ = accumulate(len(batch) for _, batch in walk(bytes(data)))
    data[end - 5] ^= 0x10
    log.write_bytes(data)


def indexes_lost(partition_dir: Path) -> None:
    """Every index gone."""
    for file in partition_dir.iterdir():
        if file.suffix in {".index", ".timeindex", ".txnindex"}:
            file.unlink()


def epochs_lost(partition_dir: Path) -> None:
    """No word of which epoch wrote what, but in the batches themselves."""
    (partition_dir / "leader-epoch-checkpoint").unlink()


def _active(partition_dir: Path) -> Path:
    return max(partition_dir.glob("*.log"))


DELETION_LIFE = 1
SMALL_SEGMENTS = {"internal.segment.bytes": "3000", "index.interval.bytes": "300"}
LIVES = (many_batches, a_little, a_little)

SCENARIOS = (
    Scenario("empty", (nothing, nothing, nothing)),
    Scenario("plain", (plain, a_little, a_little)),
    Scenario("default-indexes", (plain, nothing, a_little), {"segment.index.bytes": "10485760"}),
    Scenario("codecs", (all_codecs, a_little, all_codecs)),
    Scenario(
        "append-time",
        (all_codecs, many_batches, many_batches),
        {
            "message.timestamp.type": "LogAppendTime",
            "internal.segment.bytes": "12000",
            "index.interval.bytes": "300",
        },
    ),
    Scenario(
        "uncompressed", (all_codecs, a_little, many_batches), {"compression.type": "uncompressed"}
    ),
    Scenario("rolled-by-size", (many_batches, a_little, many_batches), SMALL_SEGMENTS),
    Scenario(
        "rolled-by-time",
        (growing_times, a_little, growing_times),
        {"segment.ms": "4000", "index.interval.bytes": "200"},
    ),
    # No third life: Kafka cannot recover a full index whose segment lived through a restart, since
    # recovery makes the entry that the restart's lost counter left out, and finds no room for it.
    Scenario(
        "rolled-by-index",
        (many_batches, a_little, nothing),
        {"segment.index.bytes": "100", "index.interval.bytes": "0"},
    ),
    Scenario(
        "disordered",
        (times_out_of_order, a_little, times_out_of_order),
        {"index.interval.bytes": "400"},
    ),
    Scenario("tied", (tied_times, a_little, tied_times), {"index.interval.bytes": "300"}),
    Scenario("timeless", (no_times, no_times, no_times), {"index.interval.bytes": "200"}),
    Scenario("idempotent", (idempotent, idempotent, idempotent), SMALL_SEGMENTS),
    Scenario("transactions", (transactions, nothing, transactions)),
    Scenario("transactions-rolled", (transactions, a_little, transactions), SMALL_SEGMENTS),
    Scenario("records-deleted", LIVES, SMALL_SEGMENTS, delete_before=100),
    Scenario("torn-tail", LIVES, SMALL_SEGMENTS, torn),
    Scenario("zero-tail", LIVES, SMALL_SEGMENTS, zeroed),
    Scenario("garbled-tail", LIVES, SMALL_SEGMENTS, garbled),
    Scenario("garbled-inside", LIVES, SMALL_SEGMENTS, garbled_inside),
    Scenario("lost-epochs", LIVES, damage=epochs_lost),
    Scenario("lost-indexes", (transactions, a_little, many_batches), SMALL_SEGMENTS, indexes_lost),
)
