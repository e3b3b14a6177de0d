"""Rows on their way out of a task, apart by the topic that each is for, and called by number."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow
from pyarrow import compute

from stratalog.spark.sink_columns import TOPIC
from stratalog.spark.sink_errors import SinkRowError


class RowNumbers:
    """What the rows of a part of a record batch are called in their task, from 0 on."""

    def __init__(self, first: int, chosen: Any = None) -> None:
        self._first = first
        self._chosen = chosen

    def __getitem__(self, index: int) -> int:
        return self._first + (index if self._chosen is None else self._chosen[index].as_py())


class TopicPart(NamedTuple):
    topic: str
    rows: pyarrow.RecordBatch
    numbers: RowNumbers


def split_by_topic(
    batch: pyarrow.RecordBatch, topic: str | None, *, task: int, first_row: int
) -> Iterator[TopicPart]:
    """The rows of each topic, in their order; all of them are ``topic``'s if it is given."""
    everything = RowNumbers(first_row)
    if not batch.num_rows:
        return
    if topic is not None:
        yield TopicPart(topic, batch, everything)
        return
    column: Any = batch.column(TOPIC)
    if column.null_count:
        row = everything[first_null(column)]
        reason = "null topic present in the data. Use the topic option for setting a topic"
        raise SinkRowError(task, row, TOPIC, reason)
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) == 1:
        yield TopicPart(encoded.dictionary[0].as_py(), batch, everything)
        return
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        chosen = compute.indices_nonzero(compute.equal(encoded.indices, pyarrow.scalar(code)))
        yield TopicPart(name, batch.take(chosen), RowNumbers(first_row, chosen))


def first_null(column: Any) -> int:
    """Where the first null of a column is that has one."""
    return int(compute.index(column.is_null(), True).as_py())
