"""``format("stratalog")``: what Spark makes for every load and write, and asks for readers and
writers.

A load is a snapshot: where each partition ends is settled when this object is made, and travels
with it, so that a DataFrame returns the same rows however often it runs and however the log grows.
Load again for newer data.

A table of the catalog is another matter. Spark gives its options to the source when the table is
made, and never again: a query's source is made without any. What does come back is the schema that
the source told, so the options are put into it.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from stratalog.scans.errors import ScanOptionError
from stratalog.scans.leasing import release
from stratalog.scans.snapshot import DirectorySnapshot, take_snapshot
from stratalog.spark.holding import hold_load
from stratalog.spark.options import STRATEGIES, SourceOptions
from stratalog.spark.plain import plainly
from stratalog.spark.schema import recalled_options, remember_options, source_schema
from stratalog.spark.snapshot_text import SNAPSHOT_OPTION, read_snapshot
from stratalog.spark.versions import HAS_READ_LIMITS
from stratalog.spark.workers import end_quietly, freeze_imports

# Spark's processes that find, make and ask this source all import it, and end in the same way.
end_quietly()


class StratalogDataSource(DataSource):
    """A topic's files, or several topics', as a table or a stream."""

    @plainly
    def __init__(self, options: dict[str, str]) -> None:
        freeze_imports()
        super().__init__(options)
        self._snapshot: DirectorySnapshot | None = None
        self._lease_ids: tuple[str, ...] = ()
        self._has_travelled = False
        if self._is_chosen and not self._is_table_made:
            # Spark does not say here whether a batch or a stream is meant; what is wrong with
            # either shows when a reader is asked for.
            told = SourceOptions.parse_any(self.options)
            self._lease_ids = hold_load(told)
            self._snapshot = _snapshot(told, self.options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_has_travelled": True}

    @classmethod
    def name(cls) -> str:
        return "stratalog"

    @property
    def _is_chosen(self) -> bool:
        """Whether it was said what to read: not so where a table is queried."""
        return any(name in self.options for name in STRATEGIES)

    @property
    def _is_table_made(self) -> bool:
        return "provider" in self.options

    def _given(self, schema: StructType) -> dict[str, str]:
        # A schema may have come from a table to a load of its own, which knows better.
        recalled = {} if self._is_chosen else recalled_options(schema)
        return {**recalled, **self.options}

    @plainly
    def schema(self) -> StructType:
        told = SourceOptions.parse_any(self.options)
        schema = source_schema(told)
        if self._is_table_made:
            _snapshot(told, self.options)  # What is wrong is told now, and not to every query.
            return remember_options(schema, self.options)
        return schema

    @plainly
    def reader(self, schema: StructType) -> DataSourceReader:
        from stratalog.spark.batch import StratalogReader

        given = self._given(schema)
        options = SourceOptions.parse(given, is_streaming=False)
        snapshot = self._snapshot or _snapshot(options, given)
        reader = StratalogReader(options, schema, snapshot, self._lease_ids)
        # Spark sends this object along with every task, and no task needs the snapshot.
        self._snapshot = None
        return reader

    @plainly
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from stratalog.spark.streaming import StratalogStreamReader
        from stratalog.spark.streaming_unlimited import UnlimitedStreamReader

        options = SourceOptions.parse(self._given(schema), is_streaming=True)
        # A stream holds what each of its batches reads.
        release(options.path, self._lease_ids)
        self._snapshot, self._lease_ids = None, ()
        reader = StratalogStreamReader if HAS_READ_LIMITS else UnlimitedStreamReader
        return reader(options, schema)

    @plainly
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from stratalog.spark.sink import StratalogWriter
        from stratalog.spark.sink_options import SinkOptions
        from stratalog.spark.wire_sink import WireWriter

        if overwrite:
            raise ScanOptionError("mode", "overwrite", "a log is only ever appended to; say append")
        options = SinkOptions.parse(self.options, is_streaming=False)
        return (StratalogWriter if options.is_direct else WireWriter)(options, schema)

    @plainly
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from stratalog.spark.sink_options import SinkOptions
        from stratalog.spark.stream_sink import StratalogStreamWriter
        from stratalog.spark.wire_sink import WireStreamWriter

        # ``overwrite`` is output mode complete: its rows are appended, as Spark's Kafka sink does.
        options = SinkOptions.parse(self.options, is_streaming=True)
        kind = StratalogStreamWriter if options.is_direct else WireStreamWriter
        # For a batch's tasks Spark makes this object anew; for its commit it sends one along.
        return kind(options, schema, is_planned=not self._has_travelled)


def _snapshot(options: SourceOptions, given: Mapping[str, str]) -> DirectorySnapshot:
    lowered = {name.lower(): value for name, value in given.items()}
    if SNAPSHOT_OPTION in lowered:
        return read_snapshot(lowered[SNAPSHOT_OPTION])
    return take_snapshot(options.path, options.selection, isolation=options.isolation)
