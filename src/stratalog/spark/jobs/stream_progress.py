"""What a streaming query has done in this run: rows, batches, and how far it came.

Spark keeps the reports of the last batches only, so they are fetched while the query runs.
"""

import json
from dataclasses import dataclass, field
from typing import Any

WAIT_S = 0.5


@dataclass(slots=True)
class StreamTotals:
    """``offsets``: by topic and partition, where the run began and ended, the end exclusive."""

    rows: int = 0
    batches: int = 0
    starts: dict[str, dict[str, int]] = field(default_factory=dict)
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    _last_batch: int = -1

    def take(self, query: Any) -> None:
        for report in query.recentProgress:
            batch_id, rows = int(report.batchId), int(report.numInputRows)
            # Idle triggers report the batch that is to come, without rows.
            if batch_id <= self._last_batch or not rows:
                continue
            self._last_batch = batch_id
            self.rows += rows
            self.batches += 1
            for source in report.sources:
                # Its attributes are text, which only newer Sparks write as JSON.
                said = json.loads(source.json)
                _merge(self.starts, _offsets(said["startOffset"]), is_first_kept=True)
                _merge(self.ends, _offsets(said["endOffset"]), is_first_kept=False)

    @property
    def offsets(self) -> dict[str, dict[int, tuple[int, int]]]:
        return {
            topic: {
                int(each): (self.starts.get(topic, {}).get(each, 0), end)
                for each, end in ends.items()
            }
            for topic, ends in self.ends.items()
        }


def follow(query: Any) -> StreamTotals:
    """Wait for the end of ``query``; stops it if the waiting is interrupted, as by Ctrl-C."""
    totals = StreamTotals()
    try:
        while not query.awaitTermination(WAIT_S):
            totals.take(query)
    except KeyboardInterrupt:
        query.stop()
    totals.take(query)
    return totals


def _merge(
    into: dict[str, dict[str, int]], found: dict[str, dict[str, int]], *, is_first_kept: bool
) -> None:
    for topic, partitions in found.items():
        known = into.setdefault(topic, {})
        into[topic] = {**partitions, **known} if is_first_kept else {**known, **partitions}


def _offsets(said: Any) -> dict[str, dict[str, int]]:
    """A position as the source writes it: JSON, in a text of its own where a server passes it on;
    or ``null`` before there is one."""
    found = json.loads(said) if isinstance(said, str) else said
    return found or {}
