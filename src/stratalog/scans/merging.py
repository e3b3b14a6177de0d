"""Small record batches put together: a task of many small partitions would else return as many.

Whoever takes them pays for each record batch, whatever it holds. Large ones pass through untouched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stratalog.errors import StratalogError

if TYPE_CHECKING:
    import pyarrow

ENOUGH_ROWS = 4096
ENOUGH_BYTES = 1 << 20


def merge_small(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The same rows in the same order; what is held comes before an error does, too."""
    held: list[pyarrow.RecordBatch] = []
    rows = size_bytes = 0
    try:
        for batch in batches:
            is_large = _is_enough(batch.num_rows, batch.nbytes)
            if not is_large:
                held.append(batch)
                rows += batch.num_rows
                size_bytes += batch.nbytes
            if is_large or _is_enough(rows, size_bytes):
                yield from _merged(held)
                held, rows, size_bytes = [], 0, 0
            if is_large:
                yield batch
    except StratalogError:
        yield from _merged(held)
        raise
    yield from _merged(held)


def _is_enough(rows: int, size_bytes: int) -> bool:
    return rows >= ENOUGH_ROWS or size_bytes >= ENOUGH_BYTES


def _merged(held: list[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow as pa

    if len(held) == 1:
        yield held[0]
    elif held:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()
