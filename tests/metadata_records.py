"""A controller's log for the tests: records written by their schemas, in batches and snapshots."""

import base64
import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from stratalog.metadata.record_schemas import METADATA_RECORDS
from stratalog.records import Record, build_batch
from stratalog.records.control import ControlType
from stratalog.records.messages import Array, Field, Message

KINDS = {name: kind for kind, (name, _) in METADATA_RECORDS.items()}
NO_OP = bytes((1, KINDS["NO_OP_RECORD"], 0, 0))
_NUMBERS = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q"}


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _value(kind: "str | Array | Message", value: Any) -> bytes:
    if isinstance(kind, Message):
        return _struct(kind, value, kind.last_version)
    if isinstance(kind, Array):
        return _unsigned(len(value) + 1) + b"".join(_value(kind.item, each) for each in value)
    if kind in _NUMBERS:
        return struct.pack(_NUMBERS[kind], value)
    if kind == "uuid":
        return bytes(value.bytes)
    assert kind == "string", kind
    if value is None:
        return b"\0"
    return _unsigned(len(value.encode()) + 1) + value.encode()


def _struct(message: Message, values: Mapping[str, Any], version: int) -> bytes:
    def is_there(field: Field) -> bool:
        return field.since <= version <= field.until

    fields = [field for field in message.fields if is_there(field)]
    out = b"".join(_value(f.kind, values[f.name]) for f in fields if f.tag is None)
    tagged = sorted(
        (f.tag, _value(f.kind, values[f.name]))
        for f in fields
        if f.tag is not None and f.name in values
    )
    out += _unsigned(len(tagged))
    for tag, data in tagged:
        out += _unsigned(tag) + _unsigned(len(data)) + data
    return out


def record(kind_name: str, /, *, version: int | None = None, **values: Any) -> bytes:
    """The bytes of one record, in its newest version unless another is asked for."""
    kind = KINDS[f"{kind_name}_RECORD"]
    message = METADATA_RECORDS[kind][1]
    number = message.last_version if version is None else version
    return bytes((1, kind, number)) + _struct(message, values, number)


def topic(name: str, topic_id: uuid.UUID) -> bytes:
    return record("TOPIC", name=name, topicId=topic_id)


def partition(
    topic_id: uuid.UUID,
    number: int,
    replicas: Sequence[int] = (1,),
    *,
    leader_epoch: int = 0,
    directories: Sequence[uuid.UUID] = (),
) -> bytes:
    return record(
        "PARTITION",
        partitionId=number,
        topicId=topic_id,
        replicas=replicas,
        isr=replicas,
        removingReplicas=(),
        addingReplicas=(),
        leader=replicas[0],
        leaderEpoch=leader_epoch,
        partitionEpoch=leader_epoch,
        directories=directories or [uuid.UUID(int=0)] * len(replicas),
    )


def config(resource: str, name: str, value: str | None, *, resource_type: int = 2) -> bytes:
    return record(
        "CONFIG", resourceType=resource_type, resourceName=resource, name=name, value=value
    )


def log_of(values: Sequence[bytes], *, base_offset: int = 0, batch_records: int = 3) -> bytes:
    """Batches with these records, one offset after the other."""
    batches = []
    for at in range(0, len(values), batch_records):
        rows = [Record(None, value, (), 0) for value in values[at : at + batch_records]]
        batches.append(build_batch(rows, base_offset=base_offset + at))
    return b"".join(batches)


def control(kind: ControlType, offset: int) -> bytes:
    key = struct.pack(">hh", 0, kind)
    return build_batch([Record(key, b"\0\0\0", (), 0)], base_offset=offset, control=True)


def snapshot_of(values: Sequence[bytes], *, is_whole: bool = True) -> bytes:
    footer = control(ControlType.SNAPSHOT_FOOTER, len(values) + 1) if is_whole else b""
    header = control(ControlType.SNAPSHOT_HEADER, 0)
    return header + log_of(values, base_offset=1) + footer


def text_of(topic_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
