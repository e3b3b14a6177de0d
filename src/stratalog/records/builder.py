"""Make a v2 batch from records: what a producer, a coordinator or a test writes.

The layout is that of ``_header.pxi``; the records are encoded, and the whole is sealed with its
CRC, by the kernels. Only what the format cannot express is refused here. What a leader demands of
a produced batch is checked where batches arrive, so that tests can build the batches it refuses.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from stratalog.records._kernels import encode_records, seal_batch
from stratalog.records.compression import Codec, compress

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

_TIMESTAMP_TYPE_SHIFT = 3
_TRANSACTIONAL = 1 << 4
_CONTROL = 1 << 5
_DELETE_HORIZON = 1 << 6


class TimestampType(IntEnum):
    """Who gave the records their timestamps: attribute bit 3 of a batch."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Record(NamedTuple):
    """One record to be written; ``None`` as value is a tombstone."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = NO_TIMESTAMP


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
    delete_horizon_ms: int | None = None,
    offset_deltas: Sequence[int] | None = None,
    last_offset_delta: int | None = None,
) -> bytes:
    """A whole batch. Offsets are consecutive unless ``offset_deltas`` names those that compaction
    left; ``last_offset_delta`` says where the batch ends if its last records are gone."""
    rows = list(records)
    timestamps = [record.timestamp_ms for record in rows]
    base_timestamp_ms = _base_timestamp_ms(timestamps, delete_horizon_ms)
    body: bytes | bytearray = encode_records(
        [record.key for record in rows],
        [record.value for record in rows],
        [record.headers for record in rows],
        timestamps,
        base_timestamp_ms,
        None if offset_deltas is None else list(offset_deltas),
    )
    if not rows:
        codec = Codec.NONE  # a batch that lost all its records is a bare header
    elif codec is not Codec.NONE:
        body = compress(codec, body, level)
    if last_offset_delta is None:
        last_offset_delta = offset_deltas[-1] if offset_deltas else max(len(rows) - 1, 0)
    max_timestamp_ms = max(timestamps, default=NO_TIMESTAMP)
    if timestamp_type is TimestampType.LOG_APPEND_TIME and log_append_time_ms is not None:
        max_timestamp_ms = log_append_time_ms
    return bytes(
        seal_batch(
            body,
            base_offset=base_offset,
            last_offset_delta=last_offset_delta,
            record_count=len(rows),
            attributes=codec
            | timestamp_type << _TIMESTAMP_TYPE_SHIFT
            | (_TRANSACTIONAL if transactional else 0)
            | (_CONTROL if control else 0)
            | (_DELETE_HORIZON if delete_horizon_ms is not None else 0),
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=max_timestamp_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            partition_leader_epoch=leader_epoch,
        )
    )


def _base_timestamp_ms(timestamps: list[int], delete_horizon_ms: int | None) -> int:
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    base_timestamp_ms = timestamps[0] if timestamps else NO_TIMESTAMP
    if base_timestamp_ms < NO_TIMESTAMP:
        raise ValueError(f"a batch that begins at timestamp {base_timestamp_ms}")
    return base_timestamp_ms
