"""What a write hands to its tasks, and what they hand back: plain values that are pickled.

Executors import this; so nothing here reaches for what changes a log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark.sql.datasource import WriterCommitMessage

from stratalog.records.compression import Codec
from stratalog.records.encoding import NO_LIMIT_MS
from stratalog.spark.sink_errors import UntoldRowsError
from stratalog.spark.sink_options import SinkOptions
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.layout import TopicPartition

M = TypeVar("M", bound=WriterCommitMessage)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTopic:
    """Where a topic's partitions lie, by number, and what a task has to know of its rules."""

    name: str
    topic_id: str
    partition_count: int
    directories: Mapping[int, str]
    max_message_bytes: int
    segment_bytes: int
    is_compacted: bool
    # How far a row's timestamp may lie before and after the time of writing.
    before_max_ms: int = NO_LIMIT_MS
    after_max_ms: int = NO_LIMIT_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPlan:
    """``columns`` are those that are written; ``topic`` is None where each row names its own.
    ``refused`` says of topics that are not among ``topics`` why nobody writes to them.
    ``directory_id`` is that of the log directory on the driver's host, empty if it has none.
    ``is_opened``: the driver has opened the staging, and gives it up when the write fails; tasks
    that go on after that find it gone. Else the first task opens it."""

    path: str
    directory_id: str
    staging_id: str
    is_opened: bool
    holder: str
    topic: str | None
    topics: Mapping[str, SinkTopic]
    refused: Mapping[str, str]
    columns: tuple[str, ...]
    codec: Codec
    level: int | None
    batch_bytes: int
    staging_seconds: int

    @classmethod
    def of(
        cls,
        options: SinkOptions,
        columns: tuple[str, ...],
        topics: Mapping[str, SinkTopic],
        *,
        refused: Mapping[str, str],
        directory_id: str,
        staging_id: str,
        is_opened: bool,
        holder: str,
    ) -> "SinkPlan":
        return cls(
            path=options.path,
            directory_id=directory_id,
            staging_id=staging_id,
            is_opened=is_opened,
            holder=holder,
            topic=options.topic,
            topics=topics,
            refused=refused,
            columns=columns,
            codec=options.codec,
            level=options.level,
            batch_bytes=options.batch_bytes,
            staging_seconds=options.staging_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlace:
    """Which task this is. ``query_id`` is empty in a batch write."""

    task: int
    attempt: int
    query_id: str = ""


@dataclass(frozen=True, kw_only=True)
class StagedRows(WriterCommitMessage):
    """What one attempt of a task has staged; all of it lies durable on the disk."""

    staging_id: str
    place: TaskPlace
    files: Mapping[TopicPartition, tuple[StagedFile, ...]] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def told_by_tasks(
    messages: Iterable[WriterCommitMessage | None], kind: type[M], batch_id: int | None = None
) -> list[M]:
    """What is to be committed: every task has told something, or its rows are lost. Only those of
    an aborted write may lack it."""
    told = []
    for task, message in enumerate(messages):
        if not isinstance(message, kind):
            raise UntoldRowsError(task, batch_id)
        told.append(message)
    return told
