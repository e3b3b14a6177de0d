"""Logs without a broker: a directory of Kafka's files, owned and used from Python.

    with stratalog.open_directory("data", create=True) as logs:
        orders = logs.create("orders")
        orders.append([Record(b"k", b"v", timestamp_ms=1)])
        for record in orders.records(start_offset=0):
            ...

What ``append`` has returned is on disk, and readers see it. One process owns a directory at a
time, and uses it from one thread.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from typing_extensions import Buffer

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import (
    ConfigError,
    LogDirectoryError,
    OffsetOutOfRangeError,
    StratalogError,
)
from stratalog.records import Codec, Record, build_batch
from stratalog.records.columns import KAFKA_COLUMNS, StoredRecord, decode_columns, decode_records
from stratalog.storage.appending import LogAppendInfo
from stratalog.storage.check import Finding, check
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.loading import LoadProgress
from stratalog.storage.log import Log
from stratalog.storage.lookup import list_offset
from stratalog.storage.manager import LogManager
from stratalog.storage.reading import FetchedData, Isolation

if TYPE_CHECKING:
    import pyarrow

_READ_BYTES = 1 << 20


def open_directory(
    path: str | Path,
    *,
    create: bool = False,
    config: Mapping[str, str] | None = None,
    topics: Mapping[str, Mapping[str, str]] | None = None,
    show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
) -> "LogsDirectory":
    """Take a log directory, of stratalog's or of Apache Kafka's making, and open its logs.

    ``config`` are broker settings, ``topics`` the settings of single topics, both by Kafka's
    names. The directory must be there unless ``create`` says otherwise, and nobody else may own
    it. ``show_progress`` is told how far opening has come: recovery after a crash can take a while.

    Settings that a broker has left in the directory count, and ``config`` and ``topics`` are laid
    over them. A topic that is there already, whose settings are not known and that ``topics`` does
    not name, is held: its logs are read and appended to, but nothing old is ever removed from them,
    since nobody has said by which rules they were kept. Name it, with ``{}`` for the defaults, or
    call ``configure``.
    """
    if not str(path):
        raise LogDirectoryError("the path is empty; name a log directory")
    place = Path(path)
    if not create and not place.is_dir():
        raise LogDirectoryError(f"{place} is not a directory; create=True would make it")
    settings = dict(config or {})
    if "log.dirs" in settings or "log.dir" in settings:
        raise ConfigError("log.dirs", str(place), "the directory is the one that is opened")
    broker = replace(
        BrokerConfig.from_properties(settings),
        # Not as text, in which a comma would part one path into two.
        log_dirs=(str(place.absolute()),),
        # Whoever appends here is trusted with what a coordinator would be asked.
        transaction_partition_verification_enable=False,
    )
    # A moment of every import otherwise, and only needed here.
    from stratalog.directories.known_directory import learn_directory, strangers_in
    from stratalog.metadata.server_configs import over_noted

    known = learn_directory(OsFileSystem(), str(place.absolute()))
    noted = known.server_configs
    server = broker if noted is None else over_noted(broker, noted)
    configs = known.topic_configs(server if settings else None)
    strangers = strangers_in(OsFileSystem(), str(place.absolute()), known)
    chosen = {
        name: configs.of(name, given, is_stranger=name in strangers).config
        for name, given in (topics or {}).items()
    }
    for name in known.topics.keys() - strangers:
        if name not in chosen and (found := configs.of(name)).is_known:
            chosen[name] = found.config
    return LogsDirectory(broker, chosen, show_progress)


class LogsDirectory:
    """An open directory; a context manager that closes it cleanly."""

    def __init__(
        self,
        broker: BrokerConfig,
        topics: Mapping[str, TopicConfig],
        show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
    ) -> None:
        self._topics = dict(topics)
        self._default = TopicConfig.from_properties({}, broker=broker)
        self._manager = LogManager(
            broker,
            topic_config=self._topics.get,
            show_progress=show_progress,
            is_threaded=False,
        )
        self._manager.start()
        try:
            self._manager.flush_appended()
        except StratalogError:
            self._manager.shutdown()
            raise
        for log in self._manager:
            log.raise_high_watermark(log.log_end_offset)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._manager.shutdown()

    @property
    def path(self) -> Path:
        return Path(self._manager.directories[0].path)

    def partitions(self) -> list[tuple[str, int]]:
        """Topic and partition of every log that is open here."""
        keys = sorted(log.topic_partition for log in self._manager)
        return [(key.topic, key.partition) for key in keys]

    def log(self, topic: str, partition: int = 0) -> "PartitionLog":
        return PartitionLog(self._manager.get(TopicPartition(topic, partition)))

    def create(
        self, topic: str, partition: int = 0, *, config: Mapping[str, str] | None = None
    ) -> "PartitionLog":
        """A new, empty log. Its settings are not kept with it: give them to ``open_directory``
        when it is opened again. Given here, they count for all partitions of the topic."""
        if config is not None:
            self.configure(topic, config)
        elif not any(name == topic for name, _ in self.partitions()):
            # A new topic has no past that a default could contradict.
            self._topics.setdefault(topic, self._default)
        return PartitionLog(self._manager.create(TopicPartition(topic, partition)))

    def configure(self, topic: str, config: Mapping[str, str]) -> None:
        """Say by which settings a topic is kept, from now on; it is not held any more."""
        known = TopicConfig.from_properties(config, broker=self._manager.config)
        self._topics[topic] = known
        self._manager.configure(topic, known)

    @property
    def held_topics(self) -> list[str]:
        """Topics whose settings nobody has named: nothing old is removed from their logs."""
        return sorted({log.topic_partition.topic for log in self._manager if log.is_held})

    def delete(self, topic: str, partition: int = 0) -> None:
        self._manager.delete(TopicPartition(topic, partition))

    def maintain(self) -> list[str]:
        """Run the periodic tasks that are due (retention, compaction, checkpoints, deletes); call
        it now and then. Topics that are held keep everything."""
        self._manager.leases.look_now()
        return self._manager.run_due()

    def check(self) -> list[Finding]:
        """Read and check everything; what is wrong, and where."""
        return [finding for log in self._manager for finding in check(log)]


class PartitionLog:
    """One log: append at the end, read anywhere, find by time."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __repr__(self) -> str:
        return (
            f"<PartitionLog {self._log.topic_partition} [{self.start_offset}, {self.end_offset})>"
        )

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def size_bytes(self) -> int:
        return self._log.size_bytes

    def append(self, records: Iterable[Record], *, codec: str = "none") -> LogAppendInfo:
        """Append one batch. It is durable, and readers see it, when this returns."""
        return self.append_batch(build_batch(records, codec=Codec.from_name(codec)))

    def append_batch(self, batch: Buffer, *, flush: bool = True) -> LogAppendInfo:
        """Append a produced batch as it is. With ``flush=False`` it becomes durable and visible
        with the next one that is flushed: many small appends then share one sync."""
        # The epoch that the last leader has left: a lower one would have the log forget it.
        appended = self._log.append_as_leader(batch, max(self._log.epochs.latest_epoch, 0))
        if flush:
            self.flush()
        return appended

    def flush(self) -> None:
        self._log.flush()
        self._log.raise_high_watermark(self._log.log_end_offset)

    def read(
        self,
        start_offset: int,
        *,
        max_bytes: int = _READ_BYTES,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
    ) -> FetchedData:
        """Batches from ``start_offset`` on, as a slice of a file: nothing is decoded or copied."""
        return self._log.read(start_offset, max_bytes=max_bytes, isolation=isolation)

    def records(self, start_offset: int | None = None) -> Iterator[StoredRecord]:
        """Every record from ``start_offset`` on, one by one: for looking, not for moving data."""
        for data, first_offset in self._chunks(start_offset):
            for record in decode_records(data, include_control=False):
                if record.offset >= first_offset:
                    yield record

    def to_arrow(
        self, start_offset: int | None = None, *, columns: Sequence[str] = KAFKA_COLUMNS
    ) -> "pyarrow.Table":
        """The records from ``start_offset`` on, as a table; decoded by compiled code."""
        import pyarrow

        batches = [
            decode_columns(data, columns=columns, start_offset=first_offset)
            for data, first_offset in self._chunks(start_offset)
        ]
        if not batches:
            return pyarrow.table(decode_columns(b"", columns=columns))
        return pyarrow.Table.from_batches(batches)

    def _chunks(self, start_offset: int | None) -> Iterator[tuple[bytes, int]]:
        """Whole batches, a piece at a time, up to what can be seen now."""
        offset = self.start_offset if start_offset is None else start_offset
        if offset < 0:
            raise OffsetOutOfRangeError(offset, self.start_offset, self.end_offset)
        while True:
            fetched = self.read(offset)
            if fetched.records is None:
                return
            data = fetched.whole_batches()
            assert data.content, "a read that returns anything returns a whole batch at least"
            yield data.content, offset
            offset = data.next_offset

    def find(self, *, timestamp_ms: int) -> int | None:
        """The offset of the first record that is not older than ``timestamp_ms``."""
        found = list_offset(self._log, timestamp_ms)
        return None if found.offset < 0 else found.offset

    def delete_records(self, before_offset: int) -> int:
        """Forget what lies below ``before_offset``, durably; returns where the log starts now."""
        log_start_offset = self._log.delete_records(before_offset)
        self._log.keep_log_start()
        return log_start_offset
