"""SqliteMetadataStore: the embedded store, one SQLite file at the top of a log directory.

Apache Kafka ignores plain files there. Only the owner of the directory opens it, and holds it
exclusively. A change is a transaction in SQLite's write-ahead log, synced before it is answered,
so that what was answered survives a killed process and a lost machine; half a change is never
seen. What the file holds is read once, when it is opened; afterwards reading costs nothing.
"""

import errno
import os
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from stratalog.config import BrokerConfig
from stratalog.errors import (
    CorruptFileError,
    DiskError,
    DiskFullError,
    InvalidRequestError,
    LogDirectoryError,
    MetadataStoreError,
    OutOfMemoryError,
    OutOfResourcesError,
    ProducerIdsExhaustedError,
    StratalogError,
    TooManyOpenFilesError,
    UnknownTopicIdError,
)
from stratalog.metadata import dynamic_configs, topics
from stratalog.metadata.controller_changes import FollowedController
from stratalog.metadata.dynamic_configs import ConfigChange, effective_broker
from stratalog.metadata.image import (
    CLUSTER_DEFAULT,
    NODE_ID_MAX,
    MetadataChange,
    MetadataImage,
    TopicMetadata,
    TopicState,
    Update,
    apply_update,
)
from stratalog.metadata.names import random_topic_id
from stratalog.metadata.producer_ids import (
    PRODUCER_ID_BLOCK_SIZE,
    PRODUCER_ID_MAX,
    next_producer_id,
)
from stratalog.metadata.server_configs import over_noted
from stratalog.metadata.store import Listener
from stratalog.metadata.tables import (
    VERSION,
    BadRowsError,
    create_missing_tables,
    create_tables,
    read_followed,
    read_image,
    write_followed,
    write_update,
)
from stratalog.metadata.topics import NewTopic, PartitionChange

METADATA_FILE = ".stratalog-metadata.db"
# In the other log directories of the same broker: the path of the one that has the file.
METADATA_POINTER = ".stratalog-metadata-in"
# A path for what is to be known for a moment only.
IN_MEMORY = ":memory:"


class SqliteMetadataStore:
    """A ``MetadataStore`` in one file. Made by ``open``; empty until ``initialize`` says whose it
    is and what is there already, in one step, so that half an adoption is never found."""

    def __init__(
        self,
        path: str,
        connection: sqlite3.Connection,
        broker: BrokerConfig,
        nodes: tuple[int, ...] | None,
    ) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = connection
        self._static_broker = broker
        self._nodes = nodes
        self._listeners: list[Listener] = []
        # Taken twice only by a listener that makes a change: it is told off, not left to hang.
        self._lock = threading.RLock()
        self._is_telling = False
        self._failure = ""
        self._image = read_image(connection, nodes)
        # The dynamic configs of an image, and what they make of the static ones.
        self._effective: tuple[Mapping[int | None, Mapping[str, str]] | None, BrokerConfig] = (
            None,
            broker,
        )

    @classmethod
    def open(
        cls,
        path: str,
        *,
        broker: BrokerConfig | None = None,
        nodes: tuple[int, ...] | None = None,
        is_for_a_moment: bool = False,
    ) -> Self:
        """Open the file, or make it. ``nodes`` are those that replicas can be placed on; this
        node alone if nobody says otherwise. ``is_for_a_moment``: what ``broker`` leaves open is
        what the last broker was started with."""
        with _translated(path):
            # A change may be made on any thread, one at a time.
            connection = sqlite3.connect(
                path, timeout=0, isolation_level=None, check_same_thread=False
            )
            try:
                _prepare(connection, path)
                store = cls(path, connection, broker or BrokerConfig(), nodes)
                if is_for_a_moment:
                    store._go_by_noted()
                return store
            except BaseException:
                connection.close()
                raise

    def _go_by_noted(self) -> None:
        noted = None if self._image is None else self._image.server_configs
        if noted:
            self._static_broker = over_noted(self._static_broker, noted)
            self._effective = (None, self._static_broker)

    def __repr__(self) -> str:
        return f"<SqliteMetadataStore {self.path}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with _translated(self.path):
                    connection.close()

    # --- reading ------------------------------------------------------------------------------

    @property
    def is_initialized(self) -> bool:
        return self._image is not None

    @property
    def image(self) -> MetadataImage:
        if self._image is None:
            raise MetadataStoreError(f"{self.path} has not been told whose metadata it holds")
        return self._image

    @property
    def static_broker(self) -> BrokerConfig:
        return self._static_broker

    @property
    def broker(self) -> BrokerConfig:
        image = self.image
        known, effective = self._effective
        if known is not image.broker_configs:
            overrides = image.broker_overrides(image.node_id)
            effective = effective_broker(self._static_broker, overrides)
            self._effective = (image.broker_configs, effective)
        return effective

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # --- changing -----------------------------------------------------------------------------

    def initialize(
        self,
        cluster_id: str,
        node_id: int,
        update: Update | None = None,
        followed: FollowedController | None = None,
    ) -> None:
        """Say whose metadata this is, and with what it begins. Only once, and all or nothing."""
        with self._lock:
            if self._image is not None:
                raise MetadataStoreError(f"{self.path} belongs to {self._image.cluster_id} already")
            nodes = (node_id,) if self._nodes is None else self._nodes
            empty = MetadataImage(cluster_id=cluster_id, node_id=node_id, nodes=nodes)
            self._commit(empty, update or Update(), followed)

    @property
    def followed(self) -> FollowedController | None:
        """What Kafka's controller had written when its log was last read; None if it never was."""
        with self._lock, _translated(self.path):
            return read_followed(self._usable())

    def follow(self, update: Update, followed: FollowedController) -> None:
        """Take over what Kafka's controller has written since, in one step."""
        with self._lock:
            self._commit(self.image, update, followed)

    def create_topics(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicMetadata | StratalogError]:
        with self._lock:
            topics.check_request_size(wanted, self.broker)
            results: list[TopicMetadata | StratalogError] = []
            created: dict[str, TopicMetadata] = {}
            for each in wanted:
                try:
                    topic = self._plan_topic(each, beside=created)
                except StratalogError as error:
                    results.append(error)
                else:
                    created[topic.name] = topic
                    results.append(topic)
            if created and not validate_only:
                self._commit(self.image, Update(topics=tuple(created.values())))
            return results

    def create_topic(self, wanted: NewTopic) -> TopicMetadata:
        (result,) = self.create_topics([wanted])
        if isinstance(result, StratalogError):
            raise result
        return result

    def _plan_topic(self, wanted: NewTopic, beside: Mapping[str, TopicMetadata]) -> TopicMetadata:
        image = self.image
        topic_id = random_topic_id()
        assert topic_id not in image.topics_by_id, "122 random bits do not repeat"
        return topics.plan_topic(
            image, wanted, broker=self.broker, topic_id=topic_id, beside=beside
        )

    def create_partitions(
        self,
        name: str,
        new_count: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> TopicMetadata:
        with self._lock:
            topic = topics.plan_partitions(self.image, name, new_count, assignments=assignments)
            return self._put(topic, validate_only=validate_only)

    def mark_live(self, *topic_ids: uuid.UUID) -> None:
        with self._lock:
            self._put_states(topic_ids, TopicState.LIVE)

    def begin_delete(self, *topic_ids: uuid.UUID) -> tuple[TopicMetadata, ...]:
        with self._lock:
            return self._put_states(topic_ids, TopicState.DELETING)

    def _put_states(
        self, topic_ids: Sequence[uuid.UUID], state: TopicState
    ) -> tuple[TopicMetadata, ...]:
        image = self.image
        changed = tuple(replace(image.topic_by_id(each), state=state) for each in topic_ids)
        if changed:
            self._commit(image, Update(topics=changed))
        return changed

    def finish_delete(self, *topic_ids: uuid.UUID) -> None:
        with self._lock:
            for topic_id in topic_ids:
                if topic_id not in self.image.deleting:
                    raise UnknownTopicIdError(str(topic_id))
            if topic_ids:
                self._commit(self.image, Update(removed=frozenset(topic_ids)))

    def change_partitions(self, changes: Sequence[PartitionChange]) -> None:
        with self._lock:
            changed = topics.change_partitions(self.image, changes)
            if changed:
                self._commit(self.image, Update(topics=changed))

    def alter_topic_configs(
        self, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> TopicMetadata:
        with self._lock:
            topic = self.image.topic(name)
            configs = dynamic_configs.alter_topic_configs(topic.configs, changes, self.broker)
            return self._put(replace(topic, configs=configs), validate_only=validate_only)

    def replace_topic_configs(
        self, name: str, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> TopicMetadata:
        with self._lock:
            topic = self.image.topic(name)
            texts = dynamic_configs.check_topic_configs(configs, self.broker)
            return self._put(replace(topic, configs=texts), validate_only=validate_only)

    def set_known(self, name: str, configs: Mapping[str, str | None]) -> TopicMetadata:
        with self._lock:
            topic = self.image.topic(name)
            if not topic.is_held:
                raise InvalidRequestError(
                    f"topic {name!r} is not held: its configs are known, and can be altered"
                )
            # What is known of it stays: who adds the rest may not know that it would go.
            known = {**topic.configs, **configs}
            texts = dynamic_configs.check_topic_configs(known, self.broker)
            return self._put(replace(topic, configs=texts, is_held=False))

    def alter_broker_configs(
        self, node_id: int | None, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> None:
        with self._lock:
            before = self.image.broker_configs.get(node_id, {})
            configs = dynamic_configs.alter_broker_configs(before, changes, self._static_broker)
            self._put_broker(node_id, configs, validate_only=validate_only)

    def replace_broker_configs(
        self,
        node_id: int | None,
        configs: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None:
        with self._lock:
            texts = dynamic_configs.check_broker_configs(configs, self._static_broker)
            self._put_broker(node_id, texts, validate_only=validate_only)

    def note_server_configs(self, configs: Mapping[str, str]) -> None:
        """Remember what this broker was started with, for whoever asks when it has stopped."""
        with self._lock:
            if configs != self.image.server_configs:
                self._commit(self.image, Update(server_configs=dict(configs)))

    def allocate_producer_ids(self) -> range:
        with self._lock:
            first = self.image.next_producer_id
            if first > PRODUCER_ID_MAX - PRODUCER_ID_BLOCK_SIZE:
                raise ProducerIdsExhaustedError(f"no block of producer ids is left after {first}")
            end = first + PRODUCER_ID_BLOCK_SIZE
            self._commit(self.image, Update(next_producer_id=end))
            return range(first, end)

    def go_on_with_producer_ids(self, seen: int) -> None:
        with self._lock:
            stored = self.image.next_producer_id
            first = next_producer_id(stored, seen)
            if first != stored:
                self._commit(self.image, Update(next_producer_id=first))

    # --- how ----------------------------------------------------------------------------------

    def _put(self, topic: TopicMetadata, *, validate_only: bool = False) -> TopicMetadata:
        if not validate_only:
            self._commit(self.image, Update(topics=(topic,)))
        return topic

    def _put_broker(
        self, node_id: int | None, configs: dict[str, str], *, validate_only: bool
    ) -> None:
        if node_id is not CLUSTER_DEFAULT and not 0 <= node_id <= NODE_ID_MAX:
            raise InvalidRequestError(f"{node_id} is not the id of a node")
        update = Update(broker_configs={node_id: configs})
        after = apply_update(self.image, update)
        # What a node is told and what all are told must agree on every node.
        for node in after.nodes:
            effective_broker(self._static_broker, after.broker_overrides(node))
        if not validate_only:
            self._commit(self.image, update)

    def _commit(
        self, before: MetadataImage, update: Update, followed: FollowedController | None = None
    ) -> None:
        connection = self._usable()
        after = apply_update(before, update)
        try:
            with _translated(self.path):
                connection.execute("BEGIN IMMEDIATE")
                write_update(connection, before, after, update)
                if followed is not None:
                    write_followed(connection, followed)
                connection.execute("COMMIT")
        except BaseException as error:
            self._abandon(connection, error)
            raise
        self._image = after
        self._tell(MetadataChange(before, after, update))

    def _tell(self, change: MetadataChange) -> None:
        self._is_telling = True
        try:
            for listener in tuple(self._listeners):
                listener(change)
        finally:
            self._is_telling = False

    def _usable(self) -> sqlite3.Connection:
        assert not self._is_telling, (
            "a listener makes no changes: later ones would hear of them first"
        )
        if self._connection is None:
            raise MetadataStoreError(f"{self.path} is closed")
        if self._failure:
            raise MetadataStoreError(f"{self.path} must be opened anew: {self._failure}")
        return self._connection

    def _abandon(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """Space, descriptors and memory that run out are a state: the change is undone and the next
        may work. After any other failure nobody knows what the file holds, until it is opened and
        read again."""
        if not isinstance(error, OutOfResourcesError):
            self._failure = str(error) or type(error).__name__
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error as failed:
            self._failure = str(failed)


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    # Before the first access: with the lock held for good, no shared memory file is needed.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("BEGIN EXCLUSIVE")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        create_tables(connection)
    if version in (0, VERSION):
        create_missing_tables(connection)
    connection.execute("COMMIT")
    if version == 0:
        if path != IN_MEMORY:
            _sync_directory(path)
    elif version != VERSION:
        raise CorruptFileError(path, f"has layout {version}, and {VERSION} is what is known here")
    elif (found := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise CorruptFileError(path, found)


def _sync_directory(path: str) -> None:
    descriptor = os.open(Path(path).absolute().parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except (BadRowsError, UnicodeDecodeError) as error:
        raise CorruptFileError(path, str(error)) from error
    except OSError as error:
        raise DiskError("sync", path, error.errno or 0, error.strerror or str(error)) from error
    except sqlite3.Error as error:
        raise _own_error(path, error) from error
    except MemoryError as error:
        raise _out_of_memory(path) from error


def _own_error(path: str, error: sqlite3.Error) -> StratalogError:
    # The lower byte is the kind; what is above says more about it.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError("write", path, errno.ENOSPC, "no space is left")
    if code == sqlite3.SQLITE_NOMEM:
        return _out_of_memory(path)
    if code == sqlite3.SQLITE_CANTOPEN:
        # Nothing was written: the file itself is open already, or could not be opened at all.
        return TooManyOpenFilesError("open", path, errno.EMFILE, str(error))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LogDirectoryError(f"{path} is opened by another process")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return CorruptFileError(path, str(error))
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY):
        return DiskError("write", path, errno.EIO, str(error))
    return CorruptFileError(path, str(error))


def _out_of_memory(path: str) -> OutOfMemoryError:
    return OutOfMemoryError("write", path, errno.ENOMEM, "no memory is left")
