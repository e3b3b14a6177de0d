"""Over the wire: rows are produced to brokers, at least once.

Where the files of the brokers are not within reach, or their owner is an Apache Kafka, tasks
produce through librdkafka, idempotently: no batch is lost or doubled by a connection that breaks.
But a task that Spark runs again produces again, and nothing is undone when a write fails.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from stratalog.scans.errors import ScanOptionError
from stratalog.spark.plain import plainly
from stratalog.spark.sink import task_place
from stratalog.spark.sink_columns import (
    HEADERS,
    KEY,
    PARTITION,
    TIMESTAMP,
    VALUE,
    check_columns,
)
from stratalog.spark.sink_errors import ProducedRowError, SinkError, SinkRowError
from stratalog.spark.sink_options import SinkOptions
from stratalog.spark.sink_plan import TaskPlace, told_by_tasks

if TYPE_CHECKING:
    import pyarrow

ROWS_AT_ONCE = 10_000
WAITING_ROWS_MAX = 50_000
WAITING_BYTES_MAX = 64 << 20
_FLUSH_SECONDS = 1.0
# For a broker's first answer, as Kafka's own producer waits (max.block.ms), or for less where rows
# are not to wait so long.
ANSWER_SECONDS = 60.0
_ROWS_WAIT = ("message.timeout.ms", "delivery.timeout.ms")
# Until a topic that was just made is known to every broker.
SPREAD_SECONDS = 5.0
_TOPICS_SPREAD = ("topic.metadata.propagation.max.ms",)
# Columns that librdkafka's produce of many does not take: these rows are produced one by one.
_EACH = (PARTITION, TIMESTAMP, HEADERS)
_NO_PARTITION = -1
_NOW = 0

_DEFAULTS = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "partitioner": "murmur2_random",  # that of Kafka's own clients
    "allow.auto.create.topics": False,  # a misspelt name is no topic
}
_OURS = {
    "delivery.report.only.error": True,
    "queue.buffering.max.messages": 4 * WAITING_ROWS_MAX,
    "queue.buffering.max.kbytes": 2_097_151,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WirePlan:
    topic: str | None
    columns: tuple[str, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Produced(WriterCommitMessage):
    """A task's rows are acknowledged."""

    row_count: int


class WireWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._plan = plan_wire(options, schema)

    @plainly
    def write(  # type: ignore[override]  # rows are Arrow's, as PySpark has it too
        self, iterator: Iterator["pyarrow.RecordBatch"]
    ) -> WriterCommitMessage:
        return produce_rows(iterator, self._plan, task_place())

    @plainly
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        told_by_tasks(messages, Produced)


class WireStreamWriter(DataSourceStreamArrowWriter):
    """``is_planned``: it is made for tasks, and not for a commit."""

    def __init__(self, options: SinkOptions, schema: StructType, *, is_planned: bool) -> None:
        self._plan = plan_wire(options, schema) if is_planned else None

    @plainly
    def write(  # type: ignore[override]  # rows are Arrow's, as PySpark has it too
        self, iterator: Iterator["pyarrow.RecordBatch"]
    ) -> WriterCommitMessage:
        assert self._plan is not None, "tasks are planned for"
        return produce_rows(iterator, self._plan, task_place())

    @plainly
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        told_by_tasks(messages, Produced, batchId)


@plainly
def plan_wire(options: SinkOptions, schema: StructType) -> WirePlan:
    """What librdkafka does not take, a broker that is not there or an unknown topic is told now."""
    settings: dict[str, Any] = {**_DEFAULTS, **options.kafka, **_OURS}
    settings["compression.type"] = options.codec.config_name
    if options.level is not None:
        settings["compression.level"] = options.level
    settings["bootstrap.servers"] = options.bootstrap_servers
    columns = check_columns(schema, options.topic)
    failures = _Failures()
    producer = _open_producer(settings, error_cb=failures.note)
    try:
        _check_reachable(producer, options.topic, settings, failures)
    finally:
        producer.close()
    return WirePlan(topic=options.topic, columns=columns, settings=settings)


class _Failures:
    """Why connections fail: a call that fails says only that they do."""

    def __init__(self) -> None:
        self.last = ""

    def note(self, error: Any) -> None:
        from confluent_kafka import KafkaError

        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # which follows from the others
            self.last = error.str()


def _open_producer(settings: Mapping[str, Any], **callbacks: Callable[..., None]) -> Any:
    from confluent_kafka import KafkaException, Producer

    try:
        return Producer({**settings, **callbacks})
    except (KafkaException, TypeError, ValueError, AttributeError) as error:
        reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ScanOptionError(
            "kafka.*", ", ".join(sorted(settings)), f"librdkafka does not take them: {reason}"
        ) from None


def _check_reachable(
    producer: Any, topic: str | None, settings: Mapping[str, Any], failures: _Failures
) -> None:
    from confluent_kafka import KafkaError

    until = monotonic() + _bounded(settings, _TOPICS_SPREAD, SPREAD_SECONDS)
    while True:
        found = _ask_brokers(producer, topic, settings, failures)
        refusal = None if topic is None else found.topics[topic].error
        if refusal is None or refusal.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        if monotonic() >= until:
            raise SinkError(
                f"there is no topic {topic!r} at {settings['bootstrap.servers']}; create it "
                "first, or give kafka.allow.auto.create.topics=true"
            )
        producer.poll(0.2)


def _ask_brokers(
    producer: Any, topic: str | None, settings: Mapping[str, Any], failures: _Failures
) -> Any:
    """librdkafka asks once, and gives up with the connection: who waits has to ask again."""
    from confluent_kafka import KafkaException

    seconds = _bounded(settings, _ROWS_WAIT, ANSWER_SECONDS)
    until = monotonic() + seconds
    topics = [] if topic is None else [topic]
    while True:
        try:
            return producer.list_topics(*topics, timeout=max(until - monotonic(), 0))
        except KafkaException as error:
            producer.poll(0.2)  # which also tells of the failures
            if monotonic() >= until:
                raise SinkError(
                    f"no broker of {settings['bootstrap.servers']} has answered in {seconds:g} s: "
                    f"{failures.last or error.args[0].str()}. Are kafka.bootstrap.servers and "
                    "kafka.security.protocol right, and the servers within reach of this host?"
                ) from None


def _bounded(settings: Mapping[str, Any], names: tuple[str, ...], most: float) -> float:
    """Seconds: the least of what was given under these names, in milliseconds, and of ``most``."""
    given = (settings.get(name, "") for name in names)
    return min([most, *(int(text) / 1000 for text in given if text.isdecimal() and int(text))])


def produce_rows(
    rows: Iterator["pyarrow.RecordBatch"], plan: WirePlan, place: TaskPlace
) -> Produced:
    from stratalog.spark.sink_rows import split_by_topic

    task = _WireTask(plan, place)
    try:
        for batch in rows:
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                some = batch.slice(start, ROWS_AT_ONCE)
                for part in split_by_topic(
                    some, plan.topic, task=place.task, first_row=task.row_count
                ):
                    task.produce(part.topic, part.rows, part.numbers)
                task.row_count += some.num_rows
        return task.finish()
    except SinkRowError as error:
        raise ProducedRowError(*error.args) from None
    finally:
        task.close()


def _is_negative(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    return compute.less(column, pyarrow.scalar(0, column.type))


def _is_no_timestamp(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    return compute.less(column.cast("int64"), pyarrow.scalar(1000))


def _has_no_header_key(column: Any) -> Any:
    import pyarrow
    from pyarrow import compute

    headers = compute.list_flatten(column)
    is_wrong = compute.is_null(compute.struct_field(headers, "key"))
    rows = compute.filter(compute.list_parent_indices(column), is_wrong)
    return compute.is_in(pyarrow.array(range(len(column)), rows.type), rows)


_REFUSED: tuple[tuple[str, Callable[[Any], Any], str], ...] = (
    (PARTITION, _is_negative, "a partition is never negative; null leaves it to the key"),
    (
        TIMESTAMP,
        _is_no_timestamp,
        "it is before the second millisecond of 1970; a record's timestamp is never negative, and "
        "librdkafka takes 0 for the time of writing, which null stands for",
    ),
    (HEADERS, _has_no_header_key, "one of them is null, or has no key"),
)


@dataclass(slots=True)
class _WireTask:
    plan: WirePlan
    place: TaskPlace
    row_count: int = 0
    _producer: Any = None
    _failures: list[str] = field(default_factory=list)
    _has_timed_out: bool = False
    # Rows and bytes of what was handed to the producer, for as long as some of it may wait there.
    _handed: deque[tuple[int, int]] = field(default_factory=deque)

    def produce(self, topic: str, rows: "pyarrow.RecordBatch", numbers: Any) -> None:
        if self._producer is None:
            self._producer = _open_producer(self.plan.settings)
        self._check_rows(rows, numbers)
        self._wait_for_room(rows)
        messages = self._messages(rows)
        if any(name in self.plan.columns for name in _EACH):
            if HEADERS in self.plan.columns:
                for message, pairs in zip(messages, rows.column(HEADERS).to_pylist(), strict=True):
                    message["headers"] = [(each["key"], each["value"]) for each in pairs or ()]
            self._produce_each(topic, messages, numbers)
            return
        self._producer.produce_batch(topic, messages, on_delivery=self._delivered)
        for index, message in enumerate(messages):
            if "_error" in message:
                raise self._refused(numbers[index], message["_error"])

    def _check_rows(self, rows: "pyarrow.RecordBatch", numbers: Any) -> None:
        """What the producer would take for something else, or not name the row of."""
        from pyarrow import compute

        for name, find_wrong, reason in _REFUSED:
            if name not in self.plan.columns:
                continue
            row = compute.index(find_wrong(rows.column(name)), True).as_py()
            if row >= 0:
                raise SinkRowError(self.place.task, numbers[row], name, reason)

    def _produce_each(self, topic: str, messages: list[dict[str, Any]], numbers: Any) -> None:
        from confluent_kafka import KafkaException

        for index, message in enumerate(messages):
            try:
                self._producer.produce(topic, **message, on_delivery=self._delivered)
            except KafkaException as error:
                raise self._refused(numbers[index], error.args[0]) from None

    def _messages(self, rows: "pyarrow.RecordBatch") -> list[dict[str, Any]]:
        values = {"value": rows.column(VALUE).to_pylist()}
        if KEY in self.plan.columns:
            values["key"] = rows.column(KEY).to_pylist()
        if PARTITION in self.plan.columns:
            values["partition"] = rows.column(PARTITION).fill_null(_NO_PARTITION).to_pylist()
        if TIMESTAMP in self.plan.columns:
            column: Any = rows.column(TIMESTAMP)
            values["timestamp"] = [
                _NOW if each is None else each // 1000 for each in column.cast("int64").to_pylist()
            ]
        names = tuple(values)
        return [dict(zip(names, row, strict=True)) for row in zip(*values.values(), strict=True)]

    def _wait_for_room(self, rows: "pyarrow.RecordBatch") -> None:
        self._producer.poll(0)
        self._check()
        while self._is_full():
            self._producer.poll(0.05)
            self._check()
        self._handed.append((rows.num_rows, rows.nbytes))

    def _is_full(self) -> bool:
        waiting = len(self._producer)
        while (
            self._handed and sum(rows for rows, _ in self._handed) - self._handed[0][0] >= waiting
        ):
            self._handed.popleft()
        return (
            waiting > WAITING_ROWS_MAX or sum(size for _, size in self._handed) > WAITING_BYTES_MAX
        )

    def finish(self) -> Produced:
        while self._producer is not None and self._producer.flush(_FLUSH_SECONDS):
            self._check()
        self._check()
        return Produced(self.row_count)

    def close(self) -> None:
        """What still waits, because the task has failed, is given up."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.close()

    def _delivered(self, error: Any, message: Any) -> None:
        # Only failures are told. The first is the one to tell; others often follow from it.
        if error is not None:
            place = f"{message.topic()}-{message.partition()}"
            self._failures.append(f"{place}: {error.str()} ({error.name()})")
            self._has_timed_out |= error.name() == "_MSG_TIMED_OUT"

    def _check(self) -> None:
        if self._failures:
            waited = (
                ". They wait for as long as the option kafka.message.timeout.ms says (300000)"
                if self._has_timed_out
                else ""
            )
            raise SinkError(
                f"{len(self._failures)} rows of Spark's partition {self.place.task} were not "
                f"delivered to {self.plan.settings['bootstrap.servers']}, first of them to "
                f"{self._failures[0]}{waited}. Other rows may have been written: over the wire "
                "nothing is undone"
            )

    def _refused(self, row: int, error: Any) -> SinkRowError:
        from confluent_kafka import KafkaError

        # Anything else is about the record as a whole, as its size is.
        is_known = isinstance(error, KafkaError)
        is_of_partition = is_known and error.code() == KafkaError._UNKNOWN_PARTITION
        reason = f"the producer refuses it: {error.str() if is_known else error}"
        return SinkRowError(self.place.task, row, PARTITION if is_of_partition else None, reason)
