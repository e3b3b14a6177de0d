"""Records of Kafka's internal topics, of every type and version, decoded by both dump tools.

The records are random bytes that follow our own field lists, so a list that is wrong anywhere
makes Apache Kafka read something else than we do. Half of them are broken afterwards: both tools
have to complain in the same words. Run as a program, this file writes a small sample of them, with
what Apache Kafka says about it, to where the tests of the command line look:
``python tests/interop/test_kafka_dump_decoders.py``.
"""

import math
import os
import random
import shutil
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from apache_kafka import KafkaDistribution, ToolRun
from batches import Record, make_batch
from dumping import dump_files, our_dump
from kafka_runs import KafkaRun

from stratalog.cli.dump_state_schemas import (
    REMOTE_LOG_RECORDS,
    SHARE_KEYS,
    SHARE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
)
from stratalog.coordinator.record_schemas import (
    CONSUMER_ASSIGNMENT,
    CONSUMER_SUBSCRIPTION,
    GROUP_KEYS,
    GROUP_VALUES,
)
from stratalog.metadata.record_schemas import METADATA_RECORDS
from stratalog.records.messages import Array, Field, Message

pytestmark = pytest.mark.interop

GOLDEN = Path(__file__).resolve().parents[1] / "cli" / "golden"
LOG = "00000000000000000000.log"
# Where the locale says no more than ASCII, Java prints question marks.
UTF_8 = "-Dfile.encoding=UTF-8 -Dstdout.encoding=UTF-8"

STRINGS = (
    b"",
    b"a",
    b"consumer",
    b"topic-0",
    b'"\\/\b\t\n\f\r\x01\x1f\x7f',
    "é😀".encode(),
    b"\xc3(",
)
INTEGERS = (-2, -1, 0, 0, 1, 1, 2, 2, 3, 100)
DOUBLES = (0.0, -0.0, 1.5, 100.0, 9999999.0, 1e7, 123456789.125, 0.001, 1.25e-5, -3e300, math.inf)
SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}
INNER = {"subscription": CONSUMER_SUBSCRIPTION, "assignment": CONSUMER_ASSIGNMENT}


def unsigned(value: int) -> bytes:
    """An unsigned varint."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


class Writer:
    """Writes messages whose values chance decides."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._version = 0
        self._is_flexible = False

    def message(self, message: Message, version: int) -> bytes:
        before = self._version, self._is_flexible
        self._version, self._is_flexible = version, version >= message.flexible_since
        data = self._struct(message)
        self._version, self._is_flexible = before
        return data

    def _struct(self, message: Message) -> bytes:
        present = [f for f in message.fields if f.since <= self._version <= f.until]
        data = b"".join(self._field(f) for f in present if f.tag is None)
        if not self._is_flexible:
            return data
        tags = {f.tag: self._field(f) for f in present if f.tag is not None and self._likely(0.7)}
        if self._likely(0.1):
            tags[90] = b"of a later release"
        tagged = b"".join(
            unsigned(tag) + unsigned(len(tags[tag])) + tags[tag] for tag in sorted(tags)
        )
        return data + unsigned(len(tags)) + tagged

    def _field(self, field: Field) -> bytes:
        is_null = field.nullable and self._likely(0.3)
        if isinstance(field.kind, Message) and field.nullable:
            if field.tag is None:
                mark = b"\xff" if is_null else b"\x01"
            else:
                mark = b"\x00" if is_null else b"\x01"
            return mark if is_null else mark + self._value(field.kind, field.name)
        if is_null:
            width = 2 if field.kind == "string" else 4
            return b"\x00" if self._is_flexible else b"\xff" * width
        return self._value(field.kind, field.name)

    def _value(self, kind: str | Array | Message, name: str) -> bytes:
        if isinstance(kind, Message):
            return self._struct(kind)
        if isinstance(kind, Array):
            count = self._chance.choice((0, 1, 2))
            return self._length(count, 4) + b"".join(
                self._value(kind.item, name) for _ in range(count)
            )
        if kind == "float64":
            return struct.pack(">d", self._chance.choice(DOUBLES))
        if kind == "uuid":
            return self._chance.choice((bytes(16), self._chance.randbytes(16)))
        if kind == "string":
            text = self._chance.choice(STRINGS)
            return self._length(len(text), 2) + text
        if kind == "bytes":
            data = self._bytes(name)
            return self._length(len(data), 4) + data
        return self._integer(SIZES[kind])

    def _integer(self, size: int) -> bytes:
        if self._likely(0.2):
            return self._chance.randbytes(size)
        return (self._chance.choice(INTEGERS) % 256**size).to_bytes(size, "big")

    def _bytes(self, name: str) -> bytes:
        if name in INNER and self._likely(0.8):
            version = self._chance.randint(0, INNER[name].last_version + 1)
            return version.to_bytes(2, "big") + self.message(INNER[name], version)
        return self._chance.randbytes(self._chance.choice((0, 1, 5)))

    def _length(self, value: int, width: int) -> bytes:
        return unsigned(value + 1) if self._is_flexible else value.to_bytes(width, "big")

    def _likely(self, probability: float) -> bool:
        return self._chance.random() < probability


class Topic(NamedTuple):
    """An internal topic: the flag that decodes it, and its records by type."""

    name: str
    flag: str
    keys: Mapping[int, Message]
    values: Mapping[int, Message]


def framed(types: Mapping[int, tuple[str, Message]]) -> dict[int, Message]:
    return {kind: message for kind, (_, message) in types.items()}


TOPICS = (
    Topic("__cluster_metadata", "--cluster-metadata-decoder", {}, framed(METADATA_RECORDS)),
    Topic("__remote_log_metadata", "--remote-log-metadata-decoder", {}, framed(REMOTE_LOG_RECORDS)),
    Topic("__share_group_state", "--share-group-state-decoder", SHARE_KEYS, SHARE_VALUES),
    Topic("__consumer_offsets", "--offsets-decoder", GROUP_KEYS, GROUP_VALUES),
    Topic("__transaction_state", "--transaction-log-decoder", TRANSACTION_KEYS, TRANSACTION_VALUES),
)
names = pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)


def whole_records(topic: Topic, chance: random.Random, *, rounds: int) -> Iterator[Record]:
    """Every type in every version, and in one that is not known."""
    writer = Writer(chance)
    for _ in range(rounds):
        for kind, message in topic.values.items():
            for version in range(message.last_version + 2):
                fields = writer.message(message, version)
                if not topic.keys:
                    yield Record(None, b"\x01" + unsigned(kind) + unsigned(version) + fields)
                    continue
                key = kind.to_bytes(2, "big") + writer.message(topic.keys[kind], 0)
                is_tombstone = chance.random() < 0.1
                yield Record(key, None if is_tombstone else version.to_bytes(2, "big") + fields)


def broken(data: bytes | None, chance: random.Random) -> bytes | None:
    if data is None:
        return None
    at = chance.randrange(len(data) + 1)
    kind = chance.choice(("cut", "more", "flip", "flip", "number", "insert", "nothing"))
    if kind == "cut":
        return data[:at]
    if kind == "more":
        return data + chance.randbytes(chance.randint(1, 4))
    if kind == "flip" and at < len(data):
        return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
    if kind == "number":
        return data[:at] + chance.choice((b"\xff" * 4, b"\x7f\xff", bytes(4))) + data[at + 4 :]
    if kind == "insert":
        return data[:at] + b"\xff\xff\xff\xff\x0f" + data[at:]
    return data


def broken_records(topic: Topic, chance: random.Random, *, rounds: int) -> Iterator[Record]:
    for record in whole_records(topic, chance, rounds=rounds):
        key = record.key
        if key is not None and chance.random() < 0.3:
            key = broken(key, chance)
        yield Record(key, None if chance.random() < 0.02 else broken(record.value, chance))


def write_log(directory: Path, records: list[Record]) -> str:
    directory.mkdir(parents=True)
    (directory / LOG).write_bytes(make_batch(records))
    return f"{directory.name}/{LOG}"


def assert_alike(ours: ToolRun, kafkas: ToolRun) -> None:
    assert kafkas.stdout.count("\n| ") > 0
    assert ours.stdout.split("\n| ") == kafkas.stdout.split("\n| ")
    assert (ours.exit_code, kafkas.exit_code) == (0, 0)


@names
def test_records_of_internal_topics_are_decoded_alike(
    topic: Topic, kafka: KafkaDistribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", UTF_8)
    records = list(whole_records(topic, random.Random(1), rounds=30))
    file = write_log(tmp_path / f"{topic.name}-0", records)

    assert_alike(
        our_dump([file], topic.flag, cwd=tmp_path),
        kafka.dump_log([file], topic.flag, cwd=tmp_path),
    )


@names
def test_broken_records_of_internal_topics_are_complained_of_alike(
    topic: Topic, kafka: KafkaDistribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", UTF_8)
    records = list(broken_records(topic, random.Random(2), rounds=60))
    file = write_log(tmp_path / f"{topic.name}-0", records)

    assert_alike(
        our_dump([file], topic.flag, "--skip-record-metadata", cwd=tmp_path),
        kafka.dump_log([file], topic.flag, "--skip-record-metadata", cwd=tmp_path),
    )


def test_what_a_controller_wrote_is_decoded_alike(
    kafka: KafkaDistribution, kafka_run: KafkaRun
) -> None:
    log_dir, flag = kafka_run.clean, "--cluster-metadata-decoder"
    files = ["bootstrap.checkpoint", *dump_files(log_dir, ["__cluster_metadata"], (".log",))]

    kafkas = kafka.dump_log(files, flag, cwd=log_dir)

    assert "REGISTER_BROKER_RECORD" in kafkas.stdout
    assert_alike(our_dump(files, flag, cwd=log_dir), kafkas)


# --- a sample for test runs without Java ---------------------------------------------------------

SAMPLE_SEED = 10  # every type comes out whole at least once
REAL_METADATA = f"__cluster_metadata-0/{LOG}"


def write_golden(kafka: KafkaDistribution, name: str, *arguments: str, file: str) -> None:
    run = kafka.dump_log([file], *arguments, cwd=GOLDEN / "dirs")
    assert run.exit_code == 0
    text = f"$ {' '.join(arguments)} --files {file}\n--- exit 0\n--- stdout\n{run.stdout}"
    (GOLDEN / "dump" / f"{name}.txt").write_text(text + "--- stderr\n", encoding="utf-8")


def write_all_golden() -> None:
    os.environ["JAVA_TOOL_OPTIONS"] = UTF_8
    kafka = KafkaDistribution.resolve()
    flags = ("--cluster-metadata-decoder", "--skip-record-metadata", "--max-bytes", "1800")
    write_golden(kafka, "metadata-log-decoded", *flags, file=REAL_METADATA)
    for topic in TOPICS[:4]:
        rounds = 1 if len(topic.values) > 4 else 10 if not topic.keys else 4
        records = [
            *whole_records(topic, random.Random(SAMPLE_SEED), rounds=rounds),
            *list(broken_records(topic, random.Random(4), rounds=1))[::2],
        ]
        if topic.flag == "--remote-log-metadata-decoder":
            # It prints strings as they are, and a carriage return does not survive in a text file.
            records = [each for each in records if b"\r" not in (each.value or b"")]
        directory = GOLDEN / "dirs" / f"every-type{topic.flag.removesuffix('-decoder')[1:]}-0"
        shutil.rmtree(directory, ignore_errors=True)
        file = write_log(directory, records)
        flags = (topic.flag, "--skip-record-metadata")
        write_golden(kafka, directory.name.removesuffix("-0"), *flags, file=file)


if __name__ == "__main__":
    write_all_golden()
