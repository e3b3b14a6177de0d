"""Control batches: the one record inside them that ends a transaction, or steers a quorum.

    key      i16 version, i16 type
    value    i16 version, i32 coordinator epoch        (of an end-of-transaction marker)

A control batch has attribute bit 5, holds exactly one record and takes one offset. The marker of a
transaction is transactional too and carries the producer id and epoch it ends, with no sequence.
Versions above 0 are read as version 0, as Kafka does; a negative one is corrupt.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from typing_extensions import Buffer

from stratalog.errors import CorruptBatchError
from stratalog.records._kernels import first_record, read_header
from stratalog.records.builder import NO_LEADER_EPOCH, Record, build_batch
from stratalog.records.compression import Codec, decompress

# A control record has a fixed, tiny size; this is far above what any type of it needs.
CONTROL_BATCH_MAX_BYTES = 1 << 20

_KEY = struct.Struct(">hh")
_END_TRANSACTION_VALUE = struct.Struct(">hi")
_HEADER_BYTES = 61


class ControlType(IntEnum):
    """What a control record says; types 2 to 6 only occur in the metadata log."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def _missing_(cls, value: object) -> "ControlType":
        return cls.UNKNOWN

    @property
    def ends_transaction(self) -> bool:
        return self in (ControlType.ABORT, ControlType.COMMIT)


class ControlRecord(NamedTuple):
    """A control record read; ``coordinator_epoch`` is -1 for all but transaction markers."""

    type: ControlType
    coordinator_epoch: int = -1


def build_end_transaction_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The batch that a transaction coordinator has written to end a transaction."""
    control_type = ControlType.COMMIT if commit else ControlType.ABORT
    record = Record(
        _KEY.pack(0, control_type),
        _END_TRANSACTION_VALUE.pack(0, coordinator_epoch),
        timestamp_ms=timestamp_ms,
    )
    return build_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def parse_control_record(key: bytes | None, value: bytes | None) -> ControlRecord:
    """Read the key and value of a control record, or raise ``CorruptBatchError``."""
    version, type_id = _unpack(_KEY, key, "key")
    _check_version(version, "key")
    control_type = ControlType(type_id)
    if not control_type.ends_transaction:
        return ControlRecord(control_type)
    version, coordinator_epoch = _unpack(_END_TRANSACTION_VALUE, value, "value")
    _check_version(version, "value")
    return ControlRecord(control_type, coordinator_epoch)


def read_control_batch(batch: Buffer) -> ControlRecord | None:
    """The record of a whole control batch; ``None`` if compaction has removed it."""
    header = read_header(batch)
    if header is None or header.size_bytes > memoryview(batch).nbytes or not header.is_control:
        raise CorruptBatchError("it is not a whole control batch")
    body: Buffer = memoryview(batch)[_HEADER_BYTES : header.size_bytes]
    if header.codec_id != Codec.NONE:
        body = decompress(header.codec_id, body, limit_bytes=CONTROL_BATCH_MAX_BYTES)
    record = first_record(body, header.record_count)
    return None if record is None else parse_control_record(*record)


def _unpack(layout: struct.Struct, data: bytes | None, what: str) -> tuple[int, int]:
    if data is None or len(data) < layout.size:
        size_bytes = 0 if data is None else len(data)
        raise CorruptBatchError(
            f"a control record's {what} has {size_bytes} bytes and needs {layout.size}"
        )
    first, second = layout.unpack_from(data)
    return int(first), int(second)


def _check_version(version: int, what: str) -> None:
    if version < 0:
        raise CorruptBatchError(f"a control record's {what} has version {version}")
