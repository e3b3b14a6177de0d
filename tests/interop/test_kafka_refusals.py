"""Produced batches that Apache Kafka stores or refuses: we store the same bytes, refuse the same.

Every case is sent to a broker and given to our own validation with the same settings and offset.
"""

import random
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import crc32c
import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from batches import AFTER_CRC, GZIP, HEADER, LZ4, SNAPPY, ZSTD, Header, Record, make_batch
from replaying import stored_batches
from scenarios import START_MS, filler
from wire import WireError

from stratalog.config import TopicConfig
from stratalog.errors import (
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    StratalogError,
    UnsupportedCompressionError,
)
from stratalog.records import SegmentScan, validate_produced
from stratalog.storage.appending import produce_rules

pytestmark = pytest.mark.interop

ERROR_CODES: Mapping[type[StratalogError], int] = {
    CorruptBatchError: 2,
    RecordTooLargeError: 10,
    InvalidTimestampError: 32,
    InvalidRecordError: 87,
    UnsupportedCompressionError: 76,
}

UNKNOWN_SERVER_ERROR = -1

FOREVER = {
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
TOPICS: Mapping[str, Mapping[str, str]] = {
    "plain": FOREVER,
    "compacted": {"cleanup.policy": "compact", **FOREVER},
    "append-time": {"message.timestamp.type": "LogAppendTime", **FOREVER},
    "recent": {
        "message.timestamp.before.max.ms": "3600000",
        "message.timestamp.after.max.ms": "3600000",
    },
    "small": {"max.message.bytes": "500", **FOREVER},
    "stored-plain": {"compression.type": "uncompressed", **FOREVER},
}


def sealed(batch: bytes, **changes: int) -> bytes:
    """The batch with some header fields changed and a CRC that says so."""
    header = Header(*HEADER.unpack_from(batch))._replace(**changes)
    data = bytearray(HEADER.pack(*header) + batch[HEADER.size :])
    if "crc" not in changes:
        struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[AFTER_CRC:])))
    return bytes(data)


ONE = make_batch([filler(1)])
THREE = make_batch([filler(1), filler(2), filler(3)])
KEYLESS = [filler(1), Record(None, b"v"), filler(2), Record(None, b"w")]


@dataclass(frozen=True, slots=True)
class Case:
    """One batch, sent to one topic."""

    topic: str
    batch: bytes


def packed(records: list[Record]) -> dict[str, bytes]:
    """The records under every codec."""
    codecs = {"none": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
    return {name: make_batch(records, codec=codec) for name, codec in codecs.items()}


CASES: dict[str, Case] = {
    "a good batch": Case("plain", THREE),
    "a wrong crc": Case("plain", sealed(THREE, crc=1)),
    "a count too high": Case("plain", sealed(THREE, count=4)),
    "a count too low": Case("plain", sealed(THREE, count=2)),
    "a count and delta too high": Case("plain", sealed(THREE, count=4, last_offset_delta=3)),
    "a count and delta too low": Case("plain", sealed(THREE, count=2, last_offset_delta=1)),
    "no records": Case("plain", sealed(ONE[: HEADER.size], count=0, length=49)),
    "a negative count": Case("plain", sealed(ONE, count=-1)),
    "a negative delta": Case("plain", sealed(ONE, last_offset_delta=-1)),
    "a delta too high": Case("plain", sealed(ONE, last_offset_delta=5)),
    "a base offset": Case("plain", sealed(ONE, base_offset=7)),
    "a leader epoch": Case("plain", sealed(ONE, partition_leader_epoch=7)),
    "a control batch": Case("plain", sealed(ONE, attributes=0x20)),
    "a control batch of a producer": Case(
        "plain", sealed(ONE, attributes=0x20, producer_id=1, producer_epoch=0, base_sequence=0)
    ),
    "a producer without a sequence": Case(
        "plain", sealed(ONE, producer_id=1, producer_epoch=0, base_sequence=-1)
    ),
    "the append time bit": Case("plain", sealed(ONE, attributes=0x08)),
    "the append time bit where it is the rule": Case("append-time", sealed(ONE, attributes=0x08)),
    "the delete horizon bit": Case("plain", sealed(ONE, attributes=0x40)),
    "unknown attribute bits": Case("plain", sealed(ONE, attributes=0x80)),
    "a codec that does not exist": Case("plain", sealed(ONE, attributes=5)),
    "a wrong max timestamp": Case("plain", sealed(THREE, max_timestamp_ms=START_MS + 5)),
    "a max timestamp of none": Case("plain", sealed(THREE, max_timestamp_ms=-1)),
    "no timestamps": Case("plain", make_batch([Record(b"k", b"v", -1)])),
    "a record cut short": Case("plain", sealed(ONE[:-3], length=len(ONE) - 15)),
    "a record too long": Case("plain", sealed(ONE + b"xyz", length=len(ONE) - 9)),
    "two batches": Case("plain", ONE + ONE),
    "half a batch behind": Case("plain", ONE + ONE[:70]),
    "half a batch": Case("plain", ONE[:-5]),
    "an unknown magic": Case("plain", sealed(ONE, magic=3)),
    "too old": Case("recent", make_batch([Record(b"k", b"v", START_MS)])),
    "too old among new": Case("recent", make_batch([Record(b"k", b"v", -1), filler(1)])),
    "too far ahead": Case("recent", make_batch([Record(b"k", b"v", 2**62)])),
    "too large": Case("small", make_batch([Record(b"k", b"v" * 600)])),
    "large but packed small": Case("small", make_batch([Record(b"k", b"v" * 600)], codec=GZIP)),
}
CASES |= {
    f"{topic} {name} {codec}": Case(topic, batch)
    for topic in ("plain", "compacted", "append-time", "stored-plain")
    for name, records in {"keys": [filler(n) for n in range(9)], "no keys": KEYLESS}.items()
    for codec, batch in packed(records).items()
}
CASES |= {
    f"{what} {codec}": Case("plain", change(batch))
    for codec, batch in packed([filler(n) for n in range(5)]).items()
    if codec != "none"
    for what, change in {
        "a count too low": lambda batch: sealed(batch, count=4, last_offset_delta=3),
        "a count too high": lambda batch: sealed(batch, count=6, last_offset_delta=5),
        "a wrong max timestamp": lambda batch: sealed(batch, max_timestamp_ms=START_MS + 7),
    }.items()
}


def mutants(count: int) -> list[Case]:
    """Batches with a few bytes changed behind the producer fields, most with a right CRC."""
    chance = random.Random(20)
    records = [filler(number, size=30) for number in range(5)]
    odd = [Record(None, None, 5), Record(b"k", b"", START_MS, [("h", b"1"), ("", None)])]
    originals = [*packed(records).values(), *packed(odd).values()]
    return [_mutant(chance, chance.choice(originals)) for _ in range(count)]


def _mutant(chance: random.Random, original: bytes) -> Case:
    data = bytearray(original)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(HEADER.size, len(data))
        kind = chance.random()
        if kind < 0.7:
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif kind < 0.85:
            del data[at : at + chance.choice((1, 2, 5))]
        else:
            data[at:at] = chance.randbytes(chance.choice((1, 2, 5)))
        if len(data) <= HEADER.size:
            break
    topic = chance.choice(("plain", "compacted", "append-time", "stored-plain"))
    return Case(topic, sealed(bytes(data), length=len(data) - 12))


MUTANTS = {f"mutant {number}": case for number, case in enumerate(mutants(400))}

# Kafka answers these with UNKNOWN_SERVER_ERROR, or stores what no client can read; we refuse them
# as what they are. See the documented differences from Apache Kafka.
DIFFERENT: Mapping[str, type[StratalogError]] = {
    "a codec that does not exist": UnsupportedCompressionError,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a batch: stored where and how, or refused with an error code."""

    error_code: int
    base_offset: int = -1
    log_append_time_ms: int = -1


@pytest.fixture(scope="module")
def verdicts(
    kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Verdict], Path]:
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("refusals"))
    found: dict[str, Verdict] = {}
    with broker, broker.connect() as connection:
        for topic, configs in TOPICS.items():
            connection.create_topic(topic, configs)
        for name, case in (CASES | MUTANTS).items():
            try:
                answer = connection.produce(case.topic, case.batch)
                found[name] = Verdict(0, answer.base_offset, answer.log_append_time_ms)
            except WireError as error:
                found[name] = Verdict(error.code)
    return found, broker.log_dir


def our_verdict(case: Case, first_offset: int, now_ms: int) -> tuple[int, bytes]:
    rules = produce_rules(TopicConfig.from_properties(TOPICS[case.topic]))
    try:
        produced = validate_produced(
            case.batch, rules, first_offset=first_offset, leader_epoch=0, now_ms=now_ms
        )
    except StratalogError as error:
        return ERROR_CODES[type(error)], b""
    return 0, b"".join(bytes(buffer) for buffer in produced.buffers)


def now_ms_of(verdict: Verdict) -> int:
    at_append = verdict.log_append_time_ms
    return at_append if at_append >= 0 else time.time_ns() // 1_000_000


def kept_by_kafka(log_dir: Path, topic: str) -> dict[int, bytes]:
    return {header.base_offset: batch for header, batch in stored_batches(log_dir / f"{topic}-0")}


@pytest.mark.parametrize("name", CASES)
def test_a_produced_batch_is_judged_as_kafka_judges_it(
    name: str, verdicts: tuple[dict[str, Verdict], Path]
) -> None:
    found, log_dir = verdicts
    kafkas, case = found[name], CASES[name]

    error_code, stored = our_verdict(case, max(kafkas.base_offset, 0), now_ms_of(kafkas))

    if name in DIFFERENT:
        assert error_code == ERROR_CODES[DIFFERENT[name]]
        assert kafkas.error_code == UNKNOWN_SERVER_ERROR
        return
    assert error_code == kafkas.error_code
    if not error_code:
        assert stored == kept_by_kafka(log_dir, case.topic)[kafkas.base_offset]


def counts_from_zero(batch: bytes) -> bool:
    """Whether each record has the offset that it says. Kafka does not look at the offsets in a
    batch that is not compressed; we store the same records with offsets of their own."""
    scan = SegmentScan(0, 1 << 30)
    scan.feed(batch)
    return not scan.misnumbered_count


def test_no_garbled_batch_is_stored_that_kafka_refuses_or_stored_differently(
    verdicts: tuple[dict[str, Verdict], Path],
) -> None:
    found, log_dir = verdicts
    kept = {topic: kept_by_kafka(log_dir, topic) for topic in TOPICS}
    stored_by_both = 0
    for name, case in MUTANTS.items():
        kafkas = found[name]
        error_code, stored = our_verdict(case, max(kafkas.base_offset, 0), now_ms_of(kafkas))
        if error_code:
            continue
        kafkas_batch = kept[case.topic].get(kafkas.base_offset, b"")
        assert counts_from_zero(stored), name
        # Kafka rewrites a header's key as text, with this where it is none; we keep its bytes.
        if "\ufffd".encode() not in kafkas_batch and counts_from_zero(kafkas_batch):
            assert stored == kafkas_batch, name
            stored_by_both += 1
    assert 10 < stored_by_both < len(MUTANTS) - 10


def test_a_garbled_batch_that_kafka_stores_is_refused_only_if_it_is_compressed(
    verdicts: tuple[dict[str, Verdict], Path],
) -> None:
    # Kafka skips keys and values of a compressed batch that it keeps as it is, and so stores
    # records whose lengths contradict each other; we refuse what no client could read.
    found, _ = verdicts
    for name, case in MUTANTS.items():
        kafkas = found[name]
        error_code, _ = our_verdict(case, max(kafkas.base_offset, 0), now_ms_of(kafkas))
        if error_code and not kafkas.error_code:
            assert Header(*HEADER.unpack_from(case.batch)).attributes & 7, name
