"""What ``stratalog.scan`` returns: record batches, that can be read once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from stratalog.scans.errors import ScanReadError

if TYPE_CHECKING:
    import pyarrow


class ScanReader:
    """A stream of record batches, as ``pyarrow.RecordBatchReader`` is one, and by the same calls.

    It is read once: what would find it at its end raises ``ScanReadError`` and returns no empty
    table. Libraries take it by Arrow's C stream interface: ``polars.DataFrame``,
    ``duckdb.from_arrow``, ``pyarrow.table``; ``pyarrow.RecordBatchReader.from_stream`` makes one of
    pyarrow's own of it.
    """

    def __init__(self, schema: pyarrow.Schema, batches: Iterator[pyarrow.RecordBatch]) -> None:
        import pyarrow as pa

        self._is_over = False
        self._has_failed = False
        self._is_handed_on = False
        self._reader = pa.RecordBatchReader.from_batches(schema, self._told(batches))

    def _told(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        try:
            yield from batches
        except BaseException:
            self._has_failed = True
            raise
        finally:
            self._is_over = True

    def __repr__(self) -> str:
        state = "read" if self._is_over or self._is_handed_on else "not read to its end"
        return f"<ScanReader of {', '.join(self.schema.names)}, {state}>"

    @property
    def schema(self) -> pyarrow.Schema:
        return self._reader.schema

    def read_all(self) -> pyarrow.Table:
        """What is left, as one table."""
        self._check_unread()
        return self._reader.read_all()

    def read_pandas(self, **options: Any) -> Any:
        """What is left, as a DataFrame of pandas; ``options`` are those of ``Table.to_pandas``."""
        return self.read_all().to_pandas(**options)

    def read_next_batch(self) -> pyarrow.RecordBatch:
        """The next batch; ``StopIteration`` at the end."""
        if self._is_handed_on or self._has_failed:
            self._check_unread()
        return self._reader.read_next_batch()

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        self._check_unread()
        return iter(self._reader)

    def __next__(self) -> pyarrow.RecordBatch:
        return self.read_next_batch()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._check_unread()
        self._is_handed_on = True
        reader: Any = self._reader
        return reader.__arrow_c_stream__(requested_schema)

    def cast(self, target_schema: pyarrow.Schema) -> pyarrow.RecordBatchReader:
        """What is left, with other types; this reader is read by that."""
        self._check_unread()
        self._is_handed_on = True
        return self._reader.cast(target_schema)

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _check_unread(self) -> None:
        if self._is_over or self._is_handed_on:
            raise ScanReadError
