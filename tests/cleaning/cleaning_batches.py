"""Batches as the steps of a history ask for them: their bytes, and what the model knows of them.

A record's value names its offset: no two are the same, and a record that moved would be noticed.
"""

from dataclasses import dataclass
from typing import Any

from cleaning_model import Batch, Marker, Row, Transaction
from cleaning_steps import Append, End

from stratalog.records import (
    Codec,
    Record,
    TimestampType,
    build_batch,
    build_end_transaction_marker,
)
from stratalog.testing.legacy import legacy_message_set


@dataclass
class Producer:
    """What the model knows of a producer."""

    epoch: int = 0
    sequence: int = 0
    data_offset: int | None = None
    last_timestamp_ms: int = 0
    transaction: Transaction | None = None
    first_offset: int = -1


def make_rows(step: Append, base_offset: int, now_ms: int) -> list[Row]:
    rows = []
    offset = base_offset
    for number, spec in enumerate(step.rows):
        offset += (spec.gap if step.magic == 2 or step.codec else 0) if number else 0
        value = None if spec.is_tombstone else b"%d" % offset + b"." * spec.value_bytes
        headers = (("at", b"%d" % offset), ("none", None)) if spec.has_headers else ()
        rows.append(
            Row(
                offset,
                -1 if step.magic == 0 else now_ms - spec.age_ms,
                None if spec.key is None else b"key %d" % spec.key,
                value,
                headers if step.magic == 2 else (),
            )
        )
        offset += 1
    return rows


def produced_batch(
    step: Append, rows: list[Row], known: Producer | None, base_offset: int, now_ms: int
) -> Batch:
    append_time_ms = now_ms if step.log_append_time else None
    transaction = None if known is None else known.transaction
    identity: dict[str, Any] = {} if known is None else _identity(step.producer, known)
    stored = build_batch(
        [Record(row.key, row.value, row.headers, row.timestamp_ms) for row in rows],
        base_offset=base_offset,
        codec=step.codec,
        timestamp_type=TimestampType(step.log_append_time),
        log_append_time_ms=append_time_ms,
        transactional=transaction is not None,
        leader_epoch=0,
        offset_deltas=[row.offset - base_offset for row in rows],
        **identity,
    )
    if append_time_ms is not None:
        rows = [row._replace(timestamp_ms=append_time_ms) for row in rows]
    return Batch(
        tuple(rows),
        base_offset,
        rows[-1].offset,
        max(row.timestamp_ms for row in rows),
        codec=step.codec,
        is_log_append_time=step.log_append_time,
        leader_epoch=0,
        is_transactional=transaction is not None,
        transaction=transaction,
        stored=stored,
        **identity,
    )


def _identity(producer_id: int, known: Producer) -> dict[str, Any]:
    return {
        "producer_id": producer_id,
        "producer_epoch": known.epoch,
        "base_sequence": known.sequence,
    }


def legacy_batches(step: Append, rows: list[Row], now_ms: int) -> list[Batch]:
    """A batch for each message, or one for all of them if they are compressed."""
    append_time_ms = now_ms if step.log_append_time and step.magic == 1 else None
    codec = Codec.GZIP if step.codec is Codec.ZSTD else step.codec
    runs = [rows] if codec is not Codec.NONE else [[row] for row in rows]
    return [_legacy_batch(step.magic, run, codec, append_time_ms) for run in runs]


def _legacy_batch(magic: int, rows: list[Row], codec: Codec, append_time_ms: int | None) -> Batch:
    stored = legacy_message_set(
        [(row.key, row.value, row.timestamp_ms) for row in rows],
        magic=magic,
        base_offset=rows[0].offset,
        codec=codec,
        offset_deltas=[row.offset - rows[0].offset for row in rows],
        log_append_time_ms=append_time_ms,
    )
    if append_time_ms is not None:
        rows = [row._replace(timestamp_ms=append_time_ms) for row in rows]
    return Batch(
        tuple(rows),
        rows[0].offset,
        rows[-1].offset,
        max(row.timestamp_ms for row in rows),
        magic=magic,
        codec=codec,
        is_log_append_time=append_time_ms is not None,
        stored=stored,
    )


def marker_batch(step: End, known: Producer, offset: int, now_ms: int) -> Batch:
    stored = build_end_transaction_marker(
        commit=step.commit,
        producer_id=step.producer,
        producer_epoch=known.epoch,
        coordinator_epoch=0,
        timestamp_ms=now_ms,
        base_offset=offset,
        leader_epoch=0,
    )
    key = b"\0\0\0\1" if step.commit else b"\0\0\0\0"
    return Batch(
        (Row(offset, now_ms, key, bytes(6)),),
        offset,
        offset,
        now_ms,
        producer_id=step.producer,
        producer_epoch=known.epoch,
        leader_epoch=0,
        is_transactional=True,
        is_control=True,
        marker=Marker.COMMIT if step.commit else Marker.ABORT,
        transaction=known.transaction,
        stored=stored,
    )
