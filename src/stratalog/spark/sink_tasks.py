"""A task of a write: rows of Arrow to staged batches, one file or a few for each partition.

Rows keep their order within a partition of the topic. A file is named by task and attempt, so that
two attempts of one task, which may run at the same time, never meet; which of them counts is for
Spark to say. A task that fails takes what it has staged with it.
"""

import errno
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from typing import Any

import pyarrow
from pyarrow import compute

from stratalog.clock import Clock, SystemClock
from stratalog.errors import DiskError, InvalidRowError
from stratalog.records.encoding import BatchEncoder, EncodedBatch
from stratalog.records.partitioner import Partitioner
from stratalog.scans.errors import WrongDirectoryError
from stratalog.scans.opening import check_log_directory
from stratalog.spark.sink_columns import KEY, PARTITION, TOPIC, VALUE
from stratalog.spark.sink_errors import SinkError, SinkRowError, StagingLostError
from stratalog.spark.sink_plan import SinkPlan, SinkTopic, StagedRows, TaskPlace
from stratalog.spark.sink_rows import RowNumbers, split_by_topic
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.staged_log import StagedLogWriter
from stratalog.storage.commits.staging import (
    hold_staging,
    open_staging,
    release_unused_staging,
    renew_staging,
    staging_directory,
    staging_until_ms,
)
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition

# More record batches than this are never in batches that are not finished: only for messages.
ADDED_MAX = 1000

# A writer that is awake has a file open, and up to 1 MiB that waits to be written.
AWAKE_MAX = 64
# What the open batches of all topics may hold together; beyond it the largest are closed.
OPEN_BYTES_MAX = 64 << 20


def stage_rows(
    rows: Iterable[pyarrow.RecordBatch],
    plan: SinkPlan,
    place: TaskPlace,
    files: FileSystem,
    clock: Clock | None = None,
) -> StagedRows:
    """Everything in ``rows``, staged and durable."""
    task = _Task(plan, place, files, clock or SystemClock())
    with task.held():
        try:
            for batch in rows:
                task.add(batch)
            return task.finish()
        except DiskError as error:
            task.discard()
            task.check_there(error)
            raise
        except BaseException:
            task.discard()
            raise


class _Task:
    def __init__(self, plan: SinkPlan, place: TaskPlace, files: FileSystem, clock: Clock) -> None:
        self._plan = plan
        self._place = place
        self._files = files
        self._clock = clock
        self._topics: dict[str, _TopicRows] = {}
        self._awake = _Awake()
        self._row_count = 0
        self._open_bytes = 0
        self._has_opened = False
        self._is_lost = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """The staging's lease is renewed when the task begins and while it runs, also while it
        waits for rows: of very many tasks in a row, none may have any for long."""
        self._renew()
        over = threading.Event()
        renewal = threading.Thread(target=self._renew_until, args=(over,), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            over.set()
            renewal.join()

    def _renew_until(self, over: threading.Event) -> None:
        while not self._is_lost and not over.wait(self._plan.staging_seconds / 3):
            self._renew()

    def _renew(self) -> None:
        """Hold what this task or others have staged. What nobody has opened yet is not lost."""
        plan = self._plan
        was_opened = plan.is_opened or self._has_opened  # as it was before it is looked for
        with suppress(DiskError):  # there are two more times before it is over
            is_held = renew_staging(
                self._files, plan.path, plan.staging_id, plan.staging_seconds, self._clock
            )
            self._is_lost = was_opened and not is_held

    def add(self, batch: pyarrow.RecordBatch) -> None:
        if self._is_lost:
            raise self._lost()
        for part in split_by_topic(
            batch, self._plan.topic, task=self._place.task, first_row=self._row_count
        ):
            topic = self._topic(part.topic, part.numbers)
            before = topic.open_bytes
            topic.add(part.rows, part.numbers, self._clock.now_ms())
            self._open_bytes += topic.open_bytes - before
            if self._open_bytes > OPEN_BYTES_MAX:
                self._close_largest()
        self._row_count += batch.num_rows

    def _close_largest(self) -> None:
        """Close open batches, however small, until there is room for many more rows."""
        for each in sorted(self._topics.values(), key=lambda each: each.open_bytes, reverse=True):
            self._open_bytes -= each.open_bytes
            each.close_batches()
            if self._open_bytes <= OPEN_BYTES_MAX // 2:
                return

    def _lost(self) -> StagingLostError:
        return StagingLostError(self._plan.path, self._plan.staging_id, self._plan.staging_seconds)

    def _check_held(self) -> None:
        if staging_until_ms(self._files, self._plan.path, self._plan.staging_id) is None:
            raise self._lost()

    def finish(self) -> StagedRows:
        staged: dict[TopicPartition, tuple[StagedFile, ...]] = {}
        for each in self._topics.values():
            staged.update(each.finish())
        return StagedRows(
            staging_id=self._plan.staging_id,
            place=self._place,
            files=staged,
            topic_ids={name: self._plan.topics[name].topic_id for name in self._topics},
        )

    def discard(self) -> None:
        """The last to go takes the lease along, if it was opened by tasks: no driver knows of it
        where none of them has told anything."""
        for each in self._topics.values():
            each.discard()
        if self._has_opened:
            with suppress(DiskError):
                release_unused_staging(self._files, self._plan.path, self._plan.staging_id)

    def check_there(self, error: DiskError) -> None:
        """Whether it is the partition that is gone, where a file was not found."""
        if error.errno != errno.ENOENT:
            return
        for gone in (each for topic in self._topics.values() for each in topic.gone()):
            raise SinkError(
                f"{gone} is no longer in {self._plan.path}: its topic was deleted, or it was "
                "moved, while rows were written to it. Nothing was written"
            ) from error

    def _topic(self, name: str, row_numbers: RowNumbers) -> "_TopicRows":
        known = self._topics.get(name)
        if known is not None:
            return known
        plan = self._plan
        if name not in plan.topics:
            reason = plan.refused.get(
                name, f"there is no topic {name!r} in {plan.path}; create it first"
            )
            raise SinkRowError(self._place.task, row_numbers[0], TOPIC, reason)
        if not self._topics:
            self._check_staging()
        topic = plan.topics[name]
        self._topics[name] = _TopicRows(
            topic, plan, self._place, self._files, self._awake, self._writer
        )
        return self._topics[name]

    def _check_staging(self) -> None:
        plan = self._plan
        try:
            check_log_directory(self._files, plan.path, plan.directory_id)
        except WrongDirectoryError as error:
            raise SinkError(
                f"{error.path} on host {error.host} is not the log directory that the driver "
                f"writes to: {error.reason}. Every host that runs tasks has to see it there"
            ) from None
        if plan.is_opened and not hold_staging(
            self._files, plan.path, plan.staging_id, plan.staging_seconds, self._clock
        ):
            raise self._lost()

    def _writer(self, topic: SinkTopic, partition: int) -> StagedLogWriter:
        """For the first batch of a partition. What tasks open themselves is opened when there is
        something to stage: whoever holds rows alone is not in the way of one that fails."""
        plan = self._plan
        if not plan.is_opened and not self._has_opened:
            open_staging(
                self._files,
                plan.path,
                holder=plan.holder,
                seconds=plan.staging_seconds,
                clock=self._clock,
                staging_id=plan.staging_id,
            )
            self._has_opened = True
        return StagedLogWriter(
            self._files,
            staging_directory(topic.directories[partition], plan.staging_id),
            f"{self._place.task:05d}-{self._place.attempt}",
            segment_bytes=topic.segment_bytes,
            check_held=self._check_held,
        )


class _Awake:
    """The writers that hold files and memory: of very many, those that were used last."""

    def __init__(self) -> None:
        self._writers: OrderedDict[StagedLogWriter, None] = OrderedDict()

    def use(self, writer: StagedLogWriter) -> None:
        self._writers[writer] = None
        self._writers.move_to_end(writer)
        if len(self._writers) > AWAKE_MAX:
            self._writers.popitem(last=False)[0].rest()


def _seed(plan: SinkPlan, place: TaskPlace, topic: SinkTopic) -> int:
    """Of where rows without a key go: where the task's first attempt put them, when it is run
    again, and somewhere else in every write, or small ones would all choose the same."""
    told = f"{plan.staging_id}/{place.task}/{topic.name}"
    return int.from_bytes(blake2b(told.encode(), digest_size=8).digest(), "big")


class _TopicRows:
    """Rows of one topic, on their way through the encoder to a writer for each partition."""

    def __init__(
        self,
        topic: SinkTopic,
        plan: SinkPlan,
        place: TaskPlace,
        files: FileSystem,
        awake: _Awake,
        new_writer: Callable[[SinkTopic, int], StagedLogWriter],
    ) -> None:
        self._topic = topic
        self._plan = plan
        self._place = place
        self._files = files
        self._awake = awake
        self._new_writer = new_writer
        self._writers: dict[int, StagedLogWriter] = {}
        # Rows that are in batches not finished: the encoder's count of the first, and their names.
        self._added: deque[tuple[int, RowNumbers]] = deque(maxlen=ADDED_MAX)
        self._partitioner = Partitioner(
            topic.partition_count, seed=_seed(plan, place, topic), run_bytes=plan.batch_bytes
        )
        self._encoder = BatchEncoder(
            topic.partition_count,
            codec=plan.codec,
            level=plan.level,
            batch_bytes=plan.batch_bytes,
            # The owner takes no batch that is larger than a segment, either.
            max_message_bytes=min(topic.max_message_bytes, topic.segment_bytes),
            compacted=topic.is_compacted,
            before_max_ms=topic.before_max_ms,
            after_max_ms=topic.after_max_ms,
            memory_bytes=OPEN_BYTES_MAX,
        )

    def add(self, rows: pyarrow.RecordBatch, numbers: RowNumbers, now_ms: int) -> None:
        columns = self._plan.columns
        keys = rows.column(KEY) if KEY in columns else None
        given = rows.column(PARTITION) if PARTITION in columns else None
        # Partitioner and encoder both count the rows that they have seen.
        first = self._encoder.rows
        self._added.append((first, numbers))
        with self._named():
            try:
                partitions = self._partitioner.assign(keys, rows.column(VALUE), given)
            except InvalidRowError as error:
                raise self._out_of_range(error, given, error.row - first) from None
            self._check_directories(partitions, numbers)
            self._write(self._encoder.add(rows.select(self._encoded), partitions, now_ms=now_ms))

    def _out_of_range(self, error: InvalidRowError, given: Any, index: int) -> InvalidRowError:
        if given is None:
            return error
        count = self._topic.partition_count
        reason = f"there is no partition {given[index]}: the topic has {count}, 0 to {count - 1}"
        return InvalidRowError(error.row, PARTITION, reason)

    @property
    def _encoded(self) -> list[str]:
        return [name for name in self._plan.columns if name not in (TOPIC, PARTITION)]

    @property
    def open_bytes(self) -> int:
        return self._encoder.open_bytes

    def close_batches(self) -> None:
        with self._named():
            self._write(self._encoder.flush())
        self._added.clear()

    def finish(self) -> dict[TopicPartition, tuple[StagedFile, ...]]:
        self.close_batches()
        return {
            TopicPartition(self._topic.name, partition): writer.finish()
            for partition, writer in sorted(self._writers.items())
        }

    def discard(self) -> None:
        for writer in self._writers.values():
            writer.discard()

    def gone(self) -> Iterator[TopicPartition]:
        """The partitions written to whose directories are not there any more."""
        for partition in self._writers:
            if not self._files.exists(self._topic.directories[partition]):
                yield TopicPartition(self._topic.name, partition)

    def _write(self, encoded: Iterable[EncodedBatch]) -> None:
        for each in encoded:
            writer = self._writers.get(each.partition) or self._open(each.partition)
            self._awake.use(writer)
            writer.append(each.batch)

    def _open(self, partition: int) -> StagedLogWriter:
        writer = self._writers[partition] = self._new_writer(self._topic, partition)
        return writer

    def _check_directories(self, partitions: Any, numbers: RowNumbers) -> None:
        topic = self._topic
        if len(topic.directories) == topic.partition_count:
            return
        for partition in compute.unique(partitions).to_pylist():
            if partition not in topic.directories:
                row = numbers[compute.index(partitions, partition).as_py()]
                where = f"is not in {self._plan.path}, or is offline"
                raise self._wrong(row, PARTITION, f"partition {partition} {where}")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What is found wrong with a row, told by the number that the row has in its task."""
        try:
            yield
        except InvalidRowError as error:
            row = error.row
            for first, numbers in reversed(self._added):
                if first <= error.row:
                    row = numbers[error.row - first]
                    break
            raise self._wrong(row, error.field, error.reason) from None

    def _wrong(self, row: int, column: str, reason: str) -> SinkRowError:
        return SinkRowError(self._place.task, row, column, f"{reason} (topic {self._topic.name})")
