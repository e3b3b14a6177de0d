"""Scenarios of the data path: produce, fetch, the offsets of a log, producer ids."""

import struct
import zlib

from recorded_requests import Talk, ends, every

from stratalog.protocol.api import ApiKey
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from stratalog.protocol.messages.init_producer_id import InitProducerIdRequest
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from stratalog.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from stratalog.records.builder import Record, build_batch
from stratalog.records.compression import Codec

START_MS = 1_700_000_000_000
NO_ID = bytes(16)
UNKNOWN_ID = bytes(range(1, 17))

_MAGIC_AT, _CRC_AT, _COUNT_AT = 16, 17, 57


def batch(*values: bytes, key: bytes | None = b"k", at_ms: int = START_MS, **kind) -> bytes:
    """A batch of records, a millisecond apart."""
    rows = [Record(key, value, timestamp_ms=at_ms + i) for i, value in enumerate(values)]
    return build_batch(rows, **kind)


PLAIN = batch(b"one", b"two", b"three")


def to(
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    topic_id: bytes = NO_ID,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request to append to one partition."""
    data = TopicProduceData(topic, topic_id, [PartitionProduceData(partition, records)])
    return ProduceRequest(transactional_id, acks, 10_000, [data])


def produce(talk: Talk) -> None:
    """Every version, with each acks, and what is unknown or not allowed."""
    topic_id = talk.have_topic("produce", 2)
    talk.ask_every("acks all", to("produce", PLAIN, topic_id=topic_id))
    talk.ask_every("acks one", to("produce", PLAIN, topic_id=topic_id, acks=1))
    for version in every(ApiKey.PRODUCE):
        no_acks = to("produce", PLAIN, topic_id=topic_id, acks=0)
        talk.ask_without_answer("acks none", version, no_acks)
    talk.ask_every("acks two", to("produce", PLAIN, topic_id=topic_id, acks=2))
    talk.ask_ends("acks of 32767", to("produce", PLAIN, topic_id=topic_id, acks=32_767))
    talk.ask_every("unknown topic", to("produce-unknown", PLAIN, topic_id=UNKNOWN_ID))
    talk.ask_every("unknown partition", to("produce", PLAIN, partition=2, topic_id=topic_id))
    talk.ask_ends("negative partition", to("produce", PLAIN, partition=-1, topic_id=topic_id))
    talk.ask_ends("no topic id", to("produce", PLAIN), since=13)
    talk.ask_ends("empty topic name", to("", PLAIN))
    talk.ask_ends("a name no topic can have", to("produce!", PLAIN, topic_id=UNKNOWN_ID))
    talk.ask_ends("nothing", ProduceRequest(None, -1, 10_000, []))
    nothing_of = ProduceRequest(None, -1, 10_000, [TopicProduceData("produce", topic_id, [])])
    talk.ask_ends("no partitions", nothing_of)
    for version in (3, 12, 13):
        talk.ask_without_answer(
            "acks none to an unknown partition",
            version,
            to("produce", PLAIN, partition=7, topic_id=topic_id, acks=0),
        )
        talk.ask_without_answer(
            "acks none of a corrupt batch",
            version,
            to("produce", _damaged(PLAIN), topic_id=topic_id, acks=0),
        )
    both = [PartitionProduceData(0, PLAIN), PartitionProduceData(7, PLAIN)]
    both += [PartitionProduceData(1, _damaged(PLAIN))]
    mixed = ProduceRequest(None, -1, 10_000, [TopicProduceData("produce", topic_id, both)])
    talk.ask_ends("some partitions fail", mixed)
    twice = [PartitionProduceData(0, PLAIN), PartitionProduceData(0, PLAIN)]
    again = ProduceRequest(None, -1, 10_000, [TopicProduceData("produce", topic_id, twice)])
    talk.ask_ends("one partition twice", again)


def _damaged(encoded: bytes) -> bytes:
    return encoded[:-1] + bytes([encoded[-1] ^ 0xFF])


def _with(encoded: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(encoded)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


def _message(magic: int) -> bytes:
    """One message of an old format, as producers of those days sent it."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", START_MS) if magic else b"")
    body += struct.pack(">i", 1) + b"k" + struct.pack(">i", 1) + b"v"
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message


def produce_records(talk: Talk) -> None:
    """What may be in the records of a produce request, in the lowest version and the highest."""
    topic_id = talk.have_topic("produce-records")

    def ask(step: str, records: bytes | None) -> None:
        talk.ask_ends(step, to("produce-records", records, topic_id=topic_id))

    null = to("produce-records", None, topic_id=topic_id)
    talk.ask_in_vain("null records", ends(ApiKey.PRODUCE), null)
    ask("empty records", b"")
    ask("a wrong crc", _damaged(PLAIN))
    ask("half a batch", PLAIN[:40])
    ask("a batch cut short", PLAIN[:-1])
    ask("bytes after the batch", PLAIN + b"\0\0\0")
    ask("two batches", PLAIN + PLAIN)
    ask("no records in a batch", build_batch([]))
    ask("a length below its own header", _with(PLAIN, 8, ">i", 10))
    ask("a negative length", _with(PLAIN, 8, ">i", -1))
    ask("magic 3", _with(PLAIN, _MAGIC_AT, ">b", 3))
    ask("magic 1", _message(1))
    ask("magic 0", _message(0))
    ask("a base offset of its own", batch(b"x", base_offset=77))
    ask("a control batch", batch(b"\0\0\0\0\0\0", key=b"\0\0\0\1", control=True))
    ask("no key", batch(b"x", key=None))
    ask("headers", build_batch([Record(b"k", b"v", [("h", b"1"), ("h", None)], START_MS)]))
    ask("no timestamp", batch(b"x", at_ms=-1))
    for codec in Codec:
        name = f"produce-records-{codec.name.lower()}"
        topic_id = talk.have_topic(name)
        packed = batch(b"x" * 100, b"y" * 100, codec=codec)
        request = to(name, packed, topic_id=topic_id)
        talk.ask_every(f"compressed with {codec.name.lower()}", request)


def produce_rules(talk: Talk) -> None:
    """The topic's own rules, and those of the broker's topics."""
    compacted = talk.have_topic("produce-rules-compacted", cleanup_policy="compact")
    small = talk.have_topic("produce-rules-small", max_message_bytes="200")
    appended = talk.have_topic("produce-rules-append", message_timestamp_type="LogAppendTime")
    replicas = talk.have_topic("produce-rules-replicas", min_insync_replicas="2")
    recent = talk.have_topic(
        "produce-rules-recent",
        message_timestamp_before_max_ms="3600000",
        message_timestamp_after_max_ms="3600000",
    )
    keyless = batch(b"x", b"y", key=None)
    talk.ask_every("no key", to("produce-rules-compacted", keyless, topic_id=compacted))
    for codec in (Codec.GZIP, Codec.ZSTD):
        packed = batch(b"x" * 5000, b"y", key=None, codec=codec)
        request = to("produce-rules-compacted", packed, topic_id=compacted)
        talk.ask_ends(f"no key, compressed with {codec.name.lower()}", request, since=7)
    talk.ask_every("too large", to("produce-rules-small", batch(b"x" * 200), topic_id=small))
    talk.ask_ends("not too large", to("produce-rules-small", batch(b"x"), topic_id=small))
    talk.ask_every("append time", to("produce-rules-append", PLAIN, topic_id=appended))
    talk.ask_every("too old", to("produce-rules-recent", PLAIN, topic_id=recent))
    future = batch(b"x", at_ms=START_MS * 2)
    talk.ask_ends("too new", to("produce-rules-recent", future, topic_id=recent))
    talk.ask_every("too few replicas", to("produce-rules-replicas", PLAIN, topic_id=replicas))
    alone = to("produce-rules-replicas", PLAIN, topic_id=replicas, acks=1)
    talk.ask_ends("too few replicas, acks one", alone)
    talk.have_coordinator("produce-rules")
    offsets = MetadataRequest([MetadataRequestTopic(name="__consumer_offsets")], False)
    internal_id = bytes(talk.have(offsets).topics[0].topic_id)
    talk.ask_every("internal topic", to("__consumer_offsets", PLAIN, topic_id=internal_id))


def idempotence(talk: Talk) -> None:
    """Producer ids, and batches that count."""
    talk.have_topic("idempotence")
    asked = InitProducerIdRequest(None, 60_000)
    talk.have_until(asked, lambda answer: answer.error_code == 0)
    ids = talk.ask_every("no transaction", asked)
    producer_id = ids.producer_id
    talk.ask_ends("an empty transactional id", InitProducerIdRequest("", 60_000))
    talk.ask_ends("no timeout", InitProducerIdRequest(None, 0))
    for name, known, epoch in (
        ("an id and an epoch", producer_id, 0),
        ("an id, no epoch", producer_id, -1),
        ("an epoch, no id", -1, 3),
    ):
        talk.ask_ends(name, InitProducerIdRequest(None, 60_000, known, epoch), since=3)

    def ask(step: str, sequence: int, *, epoch: int = 0, producer: int = producer_id) -> None:
        counted = batch(
            b"a", b"b", producer_id=producer, producer_epoch=epoch, base_sequence=sequence
        )
        talk.ask(step, 12, to("idempotence", counted))

    talk.ask_ends("a transaction", InitProducerIdRequest("transaction", 60_000))
    inside = to("idempotence", PLAIN, transactional_id="transaction")
    talk.ask_versions("of a transaction, records are not", (3, 12), inside)
    ask("first", 0)
    ask("second", 2)
    ask("second again", 2)
    ask("first again", 0)
    ask("a gap", 6)
    for sequence in (4, 6, 8, 10):
        ask(f"sequence {sequence}", sequence)
    ask("too old to be known as a duplicate", 0)
    ask("overlapping the last", 11)
    ask("a newer epoch not from zero", 5, epoch=1)
    ask("a newer epoch", 0, epoch=1)
    ask("the older epoch", 12)
    ask("an unknown producer not from zero", 7, producer=producer_id + 1000)
    ask("a producer without sequence", -1, producer=producer_id + 1001)
    ask("a negative epoch", 0, epoch=-1, producer=producer_id + 1002)


def list_offsets(talk: Talk) -> None:
    """By time and by name, in every version."""
    talk.have_topic("list-offsets")
    talk.have_topic("list-offsets-empty")
    late = batch(b"late", at_ms=START_MS + 5000)
    between = batch(b"a", b"b", at_ms=START_MS + 1000)
    talk.have_records("list-offsets", PLAIN, late, between)

    def ask(step: str, timestamp: int, *, since: int = 0, epoch: int = -1, **place) -> None:
        talk.ask_every(step, _at(timestamp, epoch=epoch, **place), since)

    ask("latest", -1)
    ask("earliest", -2)
    ask("largest timestamp", -3)
    ask("earliest local", -4)
    ask("latest tiered", -5)
    ask("earliest pending upload", -6)
    ask("no such word", -7)
    ask("at the first", START_MS)
    ask("inside a batch", START_MS + 2)
    ask("between", START_MS + 900)
    ask("after all", START_MS + 6000)
    ask("before all", 0)
    ask("latest of committed", -1, isolation=1)
    ask("unknown topic", -1, topic="list-offsets-unknown")
    ask("unknown partition", -1, partition=3)
    ask("negative partition", -1, partition=-1)
    for name, word in (("latest", -1), ("earliest", -2), ("largest timestamp", -3)):
        talk.ask_ends(f"{name} of nothing", _at(word, topic="list-offsets-empty"))
    talk.ask_ends("a time of nothing", _at(START_MS, topic="list-offsets-empty"))
    ask("epoch of the leader", -1, epoch=0, since=4)
    ask("epoch of the future", -1, epoch=9, since=4)
    talk.ask_ends("as a replica", _at(-1)._replace(replica_id=talk.node_id))
    talk.ask_ends("as a replica that is not", _at(-1)._replace(replica_id=99))
    talk.ask_ends("as a debugger", _at(-1)._replace(replica_id=-2))
    two = [ListOffsetsPartition(0, -1, -1), ListOffsetsPartition(0, -1, -2)]
    talk.ask_ends(
        "one partition twice", ListOffsetsRequest(-1, 0, [ListOffsetsTopic("list-offsets", two)])
    )
    talk.ask_ends("nothing", ListOffsetsRequest(-1, 0, []))
    talk.ask_ends("isolation of 5", _at(-1, isolation=5), since=2)


def _at(
    timestamp: int,
    *,
    topic: str = "list-offsets",
    partition: int = 0,
    epoch: int = -1,
    isolation: int = 0,
) -> ListOffsetsRequest:
    asked = ListOffsetsTopic(topic, [ListOffsetsPartition(partition, epoch, timestamp)])
    return ListOffsetsRequest(-1, isolation, [asked], 10_000)


def leader_epochs(talk: Talk) -> None:
    """Where epochs end."""
    talk.have_topic("leader-epochs")
    talk.have_records("leader-epochs", PLAIN)

    def ask(step: str, epoch: int, current: int = -1, topic: str = "leader-epochs", part: int = 0):
        place = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(part, current, epoch)])
        talk.ask_every(step, OffsetForLeaderEpochRequest(-1, [place]))

    ask("the latest", 0)
    ask("the latest, current known", 0, 0)
    ask("one to come", 1)
    ask("none", -1)
    ask("below none", -2)
    ask("current to come", 0, 3)
    ask("unknown topic", 0, topic="leader-epochs-unknown")
    ask("unknown partition", 0, part=5)
    ask("negative partition", 0, part=-1)
    talk.ask_ends("nothing", OffsetForLeaderEpochRequest(-1, []))


def delete_records(talk: Talk) -> None:
    """The start of a log moves up, never down, never over its end."""
    talk.have_topic("delete-records")
    talk.have_topic("delete-records-compacted", cleanup_policy="compact")
    talk.have_records("delete-records", *[PLAIN] * 8)
    talk.have_records("delete-records-compacted", PLAIN)
    talk.have_coordinator("delete-records")

    def ask(step: str, offset: int, topic: str = "delete-records", partition: int = 0) -> None:
        place = DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])
        talk.ask_every(step, DeleteRecordsRequest([place], 10_000))

    ask("to zero", 0)
    ask("into a batch", 4)
    ask("back", 2)
    ask("beyond the end", 25)
    ask("below zero", -2)
    ask("unknown topic", 1, topic="delete-records-unknown")
    ask("unknown partition", 1, partition=2)
    ask("compacted topic", 1, topic="delete-records-compacted")
    ask("internal topic", 0, topic="__consumer_offsets")
    for word in (-2, -1, START_MS):
        talk.ask(f"after it, time {word}", 7, _at(word, topic="delete-records"))
    ask("to the end", -1)
    for word in (-2, -1, START_MS):
        talk.ask(f"after all, time {word}", 7, _at(word, topic="delete-records"))
    two = [DeleteRecordsPartition(0, 1), DeleteRecordsPartition(0, 24)]
    twice = DeleteRecordsRequest([DeleteRecordsTopic("delete-records", two)], 10_000)
    talk.ask_ends("one partition twice", twice)
    talk.ask_ends("nothing", DeleteRecordsRequest([], 10_000))


SCENARIOS = {
    "produce": produce,
    "produce-records": produce_records,
    "produce-rules": produce_rules,
    "idempotence": idempotence,
    "list-offsets": list_offsets,
    "leader-epochs": leader_epochs,
    "delete-records": delete_records,
}
