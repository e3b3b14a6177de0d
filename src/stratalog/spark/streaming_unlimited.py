"""The streaming source for a Spark that sets no limits: before 4.2.

Such a Spark asks ``latestOffset()`` without a word of where the batch begins, and takes the first
answer for the end of a query with Trigger.AvailableNow. So a batch is always all that is there,
and options that would make it less are refused: a query that ended early would seem to be done.

    AvailableNow: latestOffset, then initialOffset or the checkpoint's partitions(start, end)
    else:         those first, then latestOffset

All before the end of the batch that was last planned has been processed when Spark asks again.
"""

import time
from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from stratalog.clock import Clock
from stratalog.scans.errors import ScanOptionError
from stratalog.spark.admission import offsets_to_json
from stratalog.spark.options import SourceOptions
from stratalog.spark.plain import plainly
from stratalog.spark.polling import Sleep
from stratalog.spark.streaming import Json, StratalogStreamReader


class UnlimitedStreamReader(StratalogStreamReader):
    """Reads a log directory as a stream whose batches take all that is there."""

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        *,
        clock: Clock | None = None,
        sleep: Sleep = time.sleep,
    ) -> None:
        _check_unlimited(options)
        super().__init__(options, schema, clock=clock, sleep=sleep)
        self._position: Json | None = None  # until Spark has said where the query begins

    def initialOffset(self) -> Json:
        self._position = super().initialOffset()
        return self._position

    @plainly
    def latestOffset(self) -> Json:  # type: ignore[override]
        if self._position is None:
            spans = self._watch.latest()
            ends = {each: span.end_offset for each, span in spans.items()}
            return offsets_to_json(ends, self._watch.topic_ids)
        return super().latestOffset(self._position, self.getDefaultReadLimit())

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        self._position = end
        return super().partitions(start, end)


def _check_unlimited(options: SourceOptions) -> None:
    given = {
        "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
        "minOffsetsPerTrigger": options.min_offsets_per_trigger,
        "maxBytesPerTrigger": options.max_bytes_per_trigger,
    }
    for name, limit in given.items():
        if limit is not None:
            raise ScanOptionError(
                name, str(limit), "a stream has no limits on this Spark; they need 4.2 or newer"
            )
