"""What a streaming query has done in this run: rows, batches, and how far it came.

Spark keeps the reports of the last batches only, so they are fetched while the query runs. They do
not say where a query without a checkpoint began, so that is looked up before; and by themselves
they count the rows that were read, not those that were left to be written, so these are observed.
"""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stratalog.errors import StratalogError
from stratalog.scans.snapshot import take_snapshot
from stratalog.spark.admission import offsets_from_json, offsets_to_json
from stratalog.spark.offsets import resolve_starts
from stratalog.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WAIT_S = 0.5
_OBSERVED = "stratalog"

# By topic and partition, which is text in JSON.
Positions = dict[str, dict[str, int]]


def observed(frame: "DataFrame") -> "DataFrame":
    """The same rows, counted in each batch where they leave ``frame``."""
    from pyspark.sql import functions as F

    return frame.observe(_OBSERVED, F.count(F.lit(1)).alias("rows"))


def initial_positions(options: SourceOptions) -> Positions | None:
    """Where a query begins that has no checkpoint; None if that cannot be seen from here, as over
    Spark Connect. Left out are partitions that it begins at their moving end: of them the first
    batch takes nothing, so that its end tells."""
    try:
        taken = take_snapshot(options.path, options.selection, isolation=options.isolation)
        starts = resolve_starts(options.starting, taken, options.isolation)
    except StratalogError:
        return None  # what is wrong with the query is told by itself
    if not options.is_start_moving:
        return offsets_to_json(starts)
    ends = {each: found.end_offset(options.isolation) for each, found in taken.partitions.items()}
    return offsets_to_json({each: at for each, at in starts.items() if at != ends[each]})


@dataclass(slots=True)
class StreamTotals:
    """``offsets``: by topic and partition, where the run began and ended, the end exclusive."""

    initial: Positions | None = None
    rows: int = 0
    batches: int = 0
    starts: Positions = field(default_factory=dict)
    ends: Positions = field(default_factory=dict)
    _last_batch: int = -1

    def take(self, query: Any) -> None:
        for report in query.recentProgress:
            batch_id = int(report.batchId)
            # Its attributes are text, which only newer Sparks write as JSON.
            said = [json.loads(source.json) for source in report.sources]
            ends = [_offsets(each["endOffset"]) or {} for each in said]
            starts = [
                self._begun(end) if (start := _offsets(each["startOffset"])) is None else start
                for each, end in zip(said, ends, strict=True)
            ]
            # Idle triggers report the batch that is to come, which has not moved.
            if batch_id <= self._last_batch or starts == ends:
                continue
            self._last_batch = batch_id
            self.rows += _rows_written(report)
            self.batches += 1
            for start, end in zip(starts, ends, strict=True):
                _merge(self.starts, start, is_first_kept=True)
                _merge(self.ends, end, is_first_kept=False)

    def _begun(self, ends: Positions) -> Positions:
        """Where the first batch of all began, of which Spark says only the end."""
        if self.initial is None:
            return {topic: dict.fromkeys(found, 0) for topic, found in ends.items()}
        return {
            topic: {each: self.initial.get(topic, {}).get(each, end) for each, end in found.items()}
            for topic, found in ends.items()
        }

    @property
    def offsets(self) -> dict[str, dict[int, tuple[int, int]]]:
        return {
            topic: {
                int(each): (start, end)
                for each, end in ends.items()
                # A partition that was made since is read from its beginning.
                if (start := self.starts.get(topic, {}).get(each, 0)) < end
            }
            for topic, ends in self.ends.items()
        }


def follow(query: Any, initial: Positions | None) -> StreamTotals:
    """Wait for the end of ``query``; stops it if the waiting is interrupted, as by Ctrl-C."""
    totals = StreamTotals(initial)
    try:
        while not query.awaitTermination(WAIT_S):
            totals.take(query)
    except KeyboardInterrupt:
        query.stop()
    totals.take(query)
    return totals


def _rows_written(report: Any) -> int:
    """A sink that makes a plan of its own of the rows leaves nothing observed, but may count."""
    counted = report.observedMetrics.get(_OBSERVED)
    if counted is not None:
        if "values" in counted:  # over Spark Connect a row comes as what it consists of
            return int(counted["values"][0])
        return int(counted["rows"])
    told = int(report.sink.numOutputRows)
    return told if told >= 0 else int(report.numInputRows)


def _merge(into: Positions, found: Positions, *, is_first_kept: bool) -> None:
    for topic, partitions in found.items():
        known = into.setdefault(topic, {})
        into[topic] = {**partitions, **known} if is_first_kept else {**known, **partitions}


def _offsets(said: Any) -> Positions | None:
    """A position as the source writes it: JSON, in a text of its own where a server passes it on;
    or ``null`` before there is one."""
    found: Positions | None = json.loads(said) if isinstance(said, str) else said
    return None if found is None else offsets_to_json(offsets_from_json(found))
