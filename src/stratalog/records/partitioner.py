"""Which partition a record goes to: Kafka's default partitioner, as its clients have it.

A record that names a partition goes there. One with a key goes where ``murmur2`` of the key says,
modulo the number of partitions; an empty key is a key. Records without a key are sticky: runs of
``run_bytes`` go to one partition each, chosen at random, so that they fill batches. Chance follows
from a seed: work that is done again gives the same partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stratalog.records._kernels import RowPartitioner, murmur2
from stratalog.records.arrow_rows import binary_column, partition_column
from stratalog.records.encoding import BATCH_BYTES

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Buffer

__all__ = ["Partitioner", "murmur2", "partition_of", "partition_rows"]


def partition_of(key: Buffer, partitions: int) -> int:
    """Where a record with that key goes."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class Partitioner:
    """Partitions of the rows of one topic, in their order. One is for one thread."""

    def __init__(self, partitions: int, *, seed: int, run_bytes: int = BATCH_BYTES) -> None:
        self._partitioner = RowPartitioner(
            partitions, seed=seed & 0xFFFFFFFFFFFFFFFF, run_bytes=run_bytes
        )

    def assign(
        self,
        keys: pyarrow.Array[Any] | None,
        values: pyarrow.Array[Any],
        given: pyarrow.Array[Any] | None = None,
    ) -> pyarrow.Array[Any]:
        """An int32 for each row. ``given`` holds the partitions that rows name, null for others;
        ``InvalidRowError`` for one that the topic has not."""
        import pyarrow as pa

        found = self._partitioner.assign(
            None if keys is None else binary_column(keys, "key"),
            binary_column(values, "value"),
            None if given is None else partition_column(given),
        )
        return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(found)], 0)


def partition_rows(
    keys: pyarrow.Array[Any], partitions: int, sticky_seed: int
) -> pyarrow.Array[Any]:
    """Partitions by keys alone; rows without one count as empty."""
    return Partitioner(partitions, seed=sticky_seed).assign(keys, keys)
