"""The filter of compaction, one record at a time: what tests compare the kernel with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from batch_strategies import resealed
from cleaning_strategies import NOW_MS, feed_in_pieces, feed_whole

from stratalog.records import (
    BatchHeader,
    Codec,
    Record,
    TimestampType,
    build_batch,
    read_headers,
)
from stratalog.records._kernels import CleanedTransactions, OffsetMap, RecordFilter
from stratalog.records.columns import StoredRecord, decode_records

RETENTION_MS = 1000
FAR = 2**62


@dataclass
class PlainFilter:
    keys: Mapping[bytes, int]
    latest_offset: int
    now_ms: int = NOW_MS
    retention_ms: int = RETENTION_MS
    upper_bound_offset: int = FAR
    retain_legacy_deletes: bool = True
    output: bytes = b""
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            (
                "messages_read",
                "messages_kept",
                "batches_read",
                "batches_kept",
                "superseded",
                "null_keys",
                "tombstones_expired",
                "tombstones_kept",
                "horizons_set",
            ),
            0,
        )
    )

    def feed(self, log: bytes) -> None:
        for header in read_headers(log):
            stored = log[header.position : header.position + header.size_bytes]
            self.output += self._kept(stored, header)

    def _kept(self, stored: bytes, header: BatchHeader) -> bytes:
        rows = decode_records(stored)
        kept = [row for row in rows if self._is_kept(row, header)]
        self._count(messages_read=len(rows), messages_kept=len(kept), batches_read=1)
        if not kept and header.next_offset != self.upper_bound_offset:
            return b""
        tombstones = sum(row.value is None for row in kept)
        horizon_ms = header.delete_horizon_ms
        self._count(batches_kept=1, tombstones_kept=tombstones)
        if tombstones and horizon_ms is None:
            horizon_ms = self.now_ms + self.retention_ms
            self._count(horizons_set=1)
        elif header.magic == 2 and kept and len(kept) == len(rows):
            return stored
        return rebuilt(header, kept, horizon_ms)

    def _is_kept(self, row: StoredRecord, header: BatchHeader) -> bool:
        if row.offset > self.latest_offset:
            return True
        if row.key is None:
            self._count(null_keys=1)
            return False
        if row.offset < self.keys.get(row.key, -1):
            self._count(superseded=1)
            return False
        horizon_ms = header.delete_horizon_ms
        if header.magic < 2:
            retains = self.retain_legacy_deletes
        else:
            retains = horizon_ms is None or self.now_ms < horizon_ms
        if row.value is None and not retains:
            self._count(tombstones_expired=1)
            return False
        return True

    def _count(self, **more: int) -> None:
        for name, count in more.items():
            self.counts[name] += count


def rebuilt(header: BatchHeader, rows: Sequence[StoredRecord], horizon_ms: int | None) -> bytes:
    base = header.base_offset if header.magic == 2 else rows[0].offset
    last = header.last_offset if header.magic == 2 else rows[-1].offset
    append_time = TimestampType.LOG_APPEND_TIME if header.is_log_append_time else None
    batch = build_batch(
        [Record(row.key, row.value, row.headers, row.timestamp_ms) for row in rows],
        base_offset=base,
        codec=Codec(header.codec_id),
        timestamp_type=append_time or TimestampType.CREATE_TIME,
        log_append_time_ms=header.max_timestamp_ms if append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        leader_epoch=header.partition_leader_epoch,
        delete_horizon_ms=horizon_ms if rows else None,
        offset_deltas=[row.offset - base for row in rows],
        last_offset_delta=last - base,
    )
    return batch if rows else resealed(batch, 35, ">q", header.max_timestamp_ms)


def make_filter(
    offsets: OffsetMap, transactions: CleanedTransactions | None = None, **settings: int
) -> RecordFilter:
    chosen = {
        "now_ms": NOW_MS,
        "delete_retention_ms": RETENTION_MS,
        "upper_bound_offset": FAR,
        **settings,
    }
    return RecordFilter(offsets, transactions or CleanedTransactions(), **chosen)


def output_of(records: RecordFilter, log: bytes, cuts: Sequence[int] | None = None) -> bytes:
    kept = bytearray()
    if cuts is None:
        feed_whole(records, log)
        kept += memoryview(records)
    else:
        taken = feed_in_pieces(records, log, cuts, lambda: kept.extend(memoryview(records)))
        assert taken == len(log)
    return bytes(kept)


def map_of(keys: Mapping[bytes, int], latest_offset: int) -> OffsetMap:
    offsets = OffsetMap(1 << 13)
    for key, offset in keys.items():
        offsets.put(key, offset)
    offsets.raise_latest_offset(latest_offset)
    return offsets
