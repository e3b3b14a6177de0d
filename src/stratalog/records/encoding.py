"""Rows of Arrow columns to v2 batches: how a load writes a log.

The rule: no Python per record. A compiled encoder (``_produce.pxi``) walks the rows once, puts each
at the end of its partition's open batch, and hands over the batches that are full.

===========  =====================================================================================
column       what becomes of it
===========  =====================================================================================
value        the record's value; null is a tombstone. The only column that has to be there
key          the record's key; null is none
headers      a list of (key, value); null, like an empty list, is none. A value may be null
timestamp    the record's timestamp, rounded down to milliseconds; null is the time of writing
===========  =====================================================================================

Within a partition, records have the order of their rows. A batch ends before the record that would
make it larger than ``batch_bytes``, before compression; a record that is larger alone is a batch of
its own, and is not compressed if the topic would take it only so. What is refused is what Kafka's
producer refuses (a timestamp before 1970, a header without a key), what no batch can hold, and what
the topic does not take, a timestamp too far from the time of writing among it: ``InvalidRowError``
names the row. The same rows with the same settings always give the same bytes.

Batches are those of a producer without an id: base offset 0, no leader epoch, CreateTime. Their
offsets are given to them by whoever writes them to a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stratalog.errors import InvalidRowError
from stratalog.records._kernels import RowEncoder, seal_batch
from stratalog.records.arrow_rows import (
    binary_column,
    header_columns,
    partition_column,
    timestamp_column,
)
from stratalog.records.builder import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from stratalog.records.compression import NO_LIMIT_BYTES, Codec, check_level, compress

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Buffer

BATCH_BYTES = 256 * 1024
MEMORY_BYTES = 64 * 1024 * 1024
NO_LIMIT_MS = 2**63 - 1

_HEADER_BYTES = 61
# What the framing of a codec adds, whatever it holds, is less.
_FRAME_BYTES = 64
_FullBatch = tuple[int, "Buffer", int, int, int, int]


class EncodedBatch(NamedTuple):
    """One whole batch, to be appended to one partition."""

    partition: int
    batch: Buffer
    record_count: int


class BatchEncoder:
    """Gathers rows into batches, for ``partitions`` logs at a time.

    ``memory_bytes`` bounds what all open batches hold: beyond it all of them are closed, however
    small. One encoder is for one thread. After an error it is of no more use.
    """

    def __init__(
        self,
        partitions: int,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        batch_bytes: int = BATCH_BYTES,
        max_message_bytes: int = NO_LIMIT_BYTES,
        compacted: bool = False,
        memory_bytes: int = MEMORY_BYTES,
        before_max_ms: int = NO_LIMIT_MS,
        after_max_ms: int = NO_LIMIT_MS,
    ) -> None:
        self._codec = codec
        self._before_max_ms = before_max_ms
        self._after_max_ms = after_max_ms
        self._level = check_level(codec, level)
        self._max_message_bytes = max_message_bytes
        self._encoder = RowEncoder(
            partitions,
            # A batch that is larger than the topic takes is refused for its only record's sake.
            batch_bytes=max(1, min(batch_bytes, _compressible_bytes(max_message_bytes))),
            memory_bytes=memory_bytes,
            compressed=codec is not Codec.NONE,
            needs_keys=compacted,
        )

    def __repr__(self) -> str:
        return f"<BatchEncoder {self.rows} rows, {self.open_bytes} bytes not handed over>"

    @property
    def rows(self) -> int:
        """How many were taken so far."""
        return self._encoder.rows

    @property
    def open_bytes(self) -> int:
        """Of the batches that are not handed over yet."""
        return self._encoder.open_bytes

    def add(
        self, rows: pyarrow.RecordBatch, partitions: pyarrow.Array[Any], *, now_ms: int
    ) -> list[EncodedBatch]:
        """The batches that became full with these rows; ``partitions`` has a number for each."""
        names = rows.schema.names
        timestamp, ticks_a_ms = (
            timestamp_column(rows.column("timestamp")) if "timestamp" in names else (None, 1)
        )
        return self._finish(
            self._encoder.add(
                partition_column(partitions),
                binary_column(rows.column("key"), "key") if "key" in names else None,
                binary_column(rows.column("value"), "value"),
                timestamp,
                header_columns(rows.column("headers")) if "headers" in names else None,
                now_ms=now_ms,
                ticks_a_ms=ticks_a_ms,
                earliest_ms=max(now_ms - self._before_max_ms, 0),
                latest_ms=min(now_ms + self._after_max_ms, NO_LIMIT_MS),
            )
        )

    def flush(self) -> list[EncodedBatch]:
        """The batches that are open, by partition; there are none afterwards."""
        return self._finish(self._encoder.flush())

    def _finish(self, full: list[_FullBatch]) -> list[EncodedBatch]:
        finished = []
        for each in full:
            partition, batch, record_count = each[:3]
            if self._codec is not Codec.NONE:
                batch = self._compressed(each)
            size_bytes = memoryview(batch).nbytes
            if size_bytes > self._max_message_bytes:
                raise InvalidRowError(each[5], "value", self._too_large(size_bytes))
            finished.append(EncodedBatch(partition, batch, record_count))
        return finished

    def _compressed(self, full: _FullBatch) -> bytearray:
        compressed = self._sealed(full, self._codec)
        if memoryview(full[1]).nbytes <= self._max_message_bytes < len(compressed):
            return self._sealed(full, Codec.NONE)
        return compressed

    def _sealed(self, full: _FullBatch, codec: Codec) -> bytearray:
        _, batch, record_count, base_timestamp_ms, max_timestamp_ms, _ = full
        records = memoryview(batch)[_HEADER_BYTES:]
        return seal_batch(
            compress(codec, records, self._level),
            base_offset=0,
            last_offset_delta=record_count - 1,
            record_count=record_count,
            attributes=codec,
            base_timestamp_ms=base_timestamp_ms,
            max_timestamp_ms=max_timestamp_ms,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            partition_leader_epoch=NO_LEADER_EPOCH,
        )

    def _too_large(self, size_bytes: int) -> str:
        return (
            f"the record makes a batch of {size_bytes} bytes, more than the "
            f"{self._max_message_bytes} that max.message.bytes and segment.bytes allow"
        )


def _compressible_bytes(max_message_bytes: int) -> int:
    """How large a batch may be that is to fit in any codec, here and where its topic's owner
    compresses it: what does not compress grows, by a frame and in snappy by one byte in 65."""
    return max_message_bytes - max_message_bytes // 64 - _FRAME_BYTES
