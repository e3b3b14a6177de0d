"""The tables of the embedded store: an image as rows, and an update written into them.

    cluster          one row: whose metadata this is, its epoch, the next producer id
    topics           id (16 bytes), name, state, whether it is held
    partitions       topic, number, leader, epochs; lists of nodes as text: 1,2,3
    topic_configs    topic, name, text
    broker_configs   node (-1: all of them), name, text
    server_configs   one row: what the broker was started with last, as JSON; the table is made when
                     a broker first notes it, and a release that does not know it passes it over
    followed         one row: what the log of Kafka's controller said when it was last read

``user_version`` is the version of this layout. SQLite keeps no checksums, so rows carry their own
(CRC-32 of their values; of a topic also its configs and how many partitions it has, of the cluster
also the brokers' configs and how many topics there are). A file that was damaged or edited is
refused, never half believed: a flipped bit in a retention time would delete data.
"""

import json
import sqlite3
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from stratalog.metadata.controller_changes import FollowedController, FollowedTopic
from stratalog.metadata.image import (
    CLUSTER_DEFAULT,
    MetadataImage,
    PartitionMetadata,
    TopicMetadata,
    TopicState,
    Update,
    with_topics,
)

VERSION = 1
# "slmd", so that the file is known for what it is.
APPLICATION_ID = 0x736C6D64

_ALL_NODES = -1
_SCHEMA = """
CREATE TABLE cluster (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    cluster_id TEXT NOT NULL,
    node_id INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    next_producer_id INTEGER NOT NULL,
    crc INTEGER NOT NULL
);
CREATE TABLE topics (
    topic_id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    is_held INTEGER NOT NULL,
    crc INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX topic_names ON topics (name) WHERE state != 'deleting';
CREATE TABLE partitions (
    topic_id BLOB NOT NULL,
    partition INTEGER NOT NULL,
    leader INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL,
    partition_epoch INTEGER NOT NULL,
    replicas TEXT NOT NULL,
    isr TEXT NOT NULL,
    adding_replicas TEXT NOT NULL,
    removing_replicas TEXT NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE topic_configs (
    topic_id BLOB NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (topic_id, name)
) WITHOUT ROWID;
CREATE TABLE broker_configs (
    node_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (node_id, name)
) WITHOUT ROWID;
"""
_SERVER_SCHEMA = """
CREATE TABLE IF NOT EXISTS server_configs (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    configs TEXT NOT NULL,
    crc INTEGER NOT NULL
)
"""
# Not in the first layouts: made when it is missed.
_FOLLOWED = """
CREATE TABLE IF NOT EXISTS followed (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    content TEXT NOT NULL,
    crc INTEGER NOT NULL
)
"""


class BadRowsError(Exception):
    """Rows that no store has written; the store says so with its path."""


def _crc(*values: object) -> int:
    return zlib.crc32(repr(values).encode(errors="backslashreplace"))


def _check(crc: int, *values: object) -> None:
    if crc != _crc(*values):
        raise BadRowsError(f"a row does not carry its checksum: {values[:4]}")


def create_missing_tables(connection: sqlite3.Connection) -> None:
    """Those that a store of an older release has not."""
    connection.execute(_FOLLOWED)


def create_tables(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


# --- reading -------------------------------------------------------------------------------------


def read_image(
    connection: sqlite3.Connection, nodes: tuple[int, ...] | None
) -> MetadataImage | None:
    """All that is stored; None if nobody has said yet whose metadata it is."""
    row = connection.execute(
        "SELECT cluster_id, node_id, epoch, next_producer_id, crc FROM cluster"
    ).fetchone()
    topics = _read_topics(connection)
    if row is None:
        if topics:
            raise BadRowsError("there are topics of no cluster")
        return None
    configs: dict[int | None, dict[str, str]] = defaultdict(dict)
    rows = connection.execute("SELECT node_id, name, value FROM broker_configs").fetchall()
    for node, name, value in rows:
        configs[CLUSTER_DEFAULT if node == _ALL_NODES else node][name] = value
    *values, crc = row
    _check(crc, *values, len(topics), sorted(rows))
    cluster_id, node_id, epoch, next_producer_id = values
    image = MetadataImage(
        cluster_id=cluster_id,
        node_id=node_id,
        nodes=(node_id,) if nodes is None else nodes,
        epoch=epoch,
        next_producer_id=next_producer_id,
        broker_configs=dict(configs),
        server_configs=_read_server_configs(connection),
    )
    return with_topics(image, topics)


def _read_server_configs(connection: sqlite3.Connection) -> dict[str, str] | None:
    if not connection.execute(
        "SELECT 1 FROM sqlite_master WHERE name = 'server_configs'"
    ).fetchone():
        return None
    row = connection.execute("SELECT configs, crc FROM server_configs").fetchone()
    if row is None:
        return None
    text, crc = row
    _check(crc, text)
    return {str(name): str(value) for name, value in json.loads(text).items()}


def _read_topics(connection: sqlite3.Connection) -> list[TopicMetadata]:
    partitions: dict[bytes, list[PartitionMetadata]] = defaultdict(list)
    for *values, crc in connection.execute(
        "SELECT topic_id, partition, leader, leader_epoch, partition_epoch, replicas, isr, "
        "adding_replicas, removing_replicas, crc FROM partitions ORDER BY topic_id, partition"
    ):
        _check(crc, *values)
        partitions[values[0]].append(_partition(values[1:]))
    configs: dict[bytes, dict[str, str]] = defaultdict(dict)
    for topic_id, name, value in connection.execute(
        "SELECT topic_id, name, value FROM topic_configs"
    ):
        configs[topic_id][name] = value
    topics = [
        _topic(row, partitions.pop(row[0], []), configs.pop(row[0], {}))
        for row in connection.execute("SELECT topic_id, name, state, is_held, crc FROM topics")
    ]
    if partitions or configs:
        raise BadRowsError("partitions or configs of a topic that is not there")
    return topics


def _topic(
    row: tuple[bytes, str, str, int, int],
    partitions: list[PartitionMetadata],
    configs: dict[str, str],
) -> TopicMetadata:
    *values, crc = row
    _check(crc, *values, len(partitions), sorted(configs.items()))
    topic_id, name, state, is_held = row[:4]
    if not partitions or any(each.partition != n for n, each in enumerate(partitions)):
        raise BadRowsError(f"topic {name!r} lacks a partition")
    return TopicMetadata(
        name=name,
        topic_id=uuid.UUID(bytes=topic_id),
        partitions=tuple(partitions),
        configs=configs,
        state=TopicState(state),
        is_held=bool(is_held),
    )


def _partition(values: list[Any]) -> PartitionMetadata:
    number, leader, leader_epoch, partition_epoch = values[:4]
    replicas, isr, adding, removing = map(_parse_nodes, values[4:])
    return PartitionMetadata(
        partition=number,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        replicas=replicas,
        isr=isr,
        adding_replicas=adding,
        removing_replicas=removing,
    )


@lru_cache(maxsize=1024)  # most partitions share their replicas with many others
def _parse_nodes(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def _format_nodes(nodes: Iterable[int]) -> str:
    return ",".join(map(str, nodes))


def read_followed(connection: sqlite3.Connection) -> FollowedController | None:
    row = connection.execute("SELECT content, crc FROM followed").fetchone()
    if row is None:
        return None
    content, crc = row
    _check(crc, content)
    told = json.loads(content)
    return FollowedController(
        state=told["state"],
        topics={
            uuid.UUID(topic_id): FollowedTopic(
                name=name, leader_epochs=tuple(epochs), configs=configs
            )
            for topic_id, (name, epochs, configs) in told["topics"].items()
        },
        broker_configs={
            CLUSTER_DEFAULT if int(node) == _ALL_NODES else int(node): configs
            for node, configs in told["broker_configs"].items()
        },
    )


# --- writing -------------------------------------------------------------------------------------


def write_followed(connection: sqlite3.Connection, followed: FollowedController) -> None:
    content = json.dumps(
        {
            "state": followed.state,
            "topics": {
                str(topic_id): (topic.name, topic.leader_epochs, dict(topic.configs))
                for topic_id, topic in followed.topics.items()
            },
            "broker_configs": {
                _node(node): dict(each) for node, each in followed.broker_configs.items()
            },
        }
    )
    connection.execute("INSERT OR REPLACE INTO followed VALUES (1, ?, ?)", (content, _crc(content)))


def write_update(
    connection: sqlite3.Connection, before: MetadataImage, after: MetadataImage, update: Update
) -> None:
    """The rows that differ from ``before``, inside the caller's transaction."""
    known = {**before.topics_by_id, **before.deleting}
    for topic_id in update.removed:
        for table in ("topics", "partitions", "topic_configs"):
            connection.execute(f"DELETE FROM {table} WHERE topic_id = ?", (topic_id.bytes,))
    for topic in update.topics:
        _write_topic(connection, known.get(topic.topic_id), topic)
    for node, configs in update.broker_configs.items():
        connection.execute("DELETE FROM broker_configs WHERE node_id = ?", (_node(node),))
        _insert_configs(connection, "broker_configs", _node(node), configs)
    if update.server_configs is not None:
        text = json.dumps(dict(update.server_configs), sort_keys=True)
        connection.execute(_SERVER_SCHEMA)
        connection.execute(
            "INSERT OR REPLACE INTO server_configs VALUES (1, ?, ?)", (text, _crc(text))
        )
    _write_cluster(connection, after)


def _node(node: int | None) -> int:
    return _ALL_NODES if node is CLUSTER_DEFAULT else node


def _write_cluster(connection: sqlite3.Connection, image: MetadataImage) -> None:
    values = (image.cluster_id, image.node_id, image.epoch, image.next_producer_id)
    configs = [
        (_node(node), name, value)
        for node, texts in image.broker_configs.items()
        for name, value in texts.items()
    ]
    topic_count = len(image.topics_by_id) + len(image.deleting)
    connection.execute(
        "INSERT OR REPLACE INTO cluster VALUES (1, ?, ?, ?, ?, ?)",
        (*values, _crc(*values, topic_count, sorted(configs))),
    )


def _write_topic(
    connection: sqlite3.Connection, before: TopicMetadata | None, topic: TopicMetadata
) -> None:
    topic_id = topic.topic_id.bytes
    values = (topic_id, topic.name, topic.state.value, int(topic.is_held))
    connection.execute(
        "INSERT OR REPLACE INTO topics VALUES (?, ?, ?, ?, ?)",
        (*values, _crc(*values, len(topic.partitions), sorted(topic.configs.items()))),
    )
    stored = set() if before is None else set(before.partitions)
    connection.executemany(
        "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_partition_row(topic_id, each) for each in topic.partitions if each not in stored],
    )
    if before is None or before.configs != topic.configs:
        connection.execute("DELETE FROM topic_configs WHERE topic_id = ?", (topic_id,))
        _insert_configs(connection, "topic_configs", topic_id, topic.configs)


def _partition_row(topic_id: bytes, partition: PartitionMetadata) -> tuple[object, ...]:
    values = (
        topic_id,
        partition.partition,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        _format_nodes(partition.replicas),
        _format_nodes(partition.isr),
        _format_nodes(partition.adding_replicas),
        _format_nodes(partition.removing_replicas),
    )
    return (*values, _crc(*values))


def _insert_configs(
    connection: sqlite3.Connection, table: str, owner: bytes | int, configs: Mapping[str, str]
) -> None:
    connection.executemany(
        f"INSERT INTO {table} VALUES (?, ?, ?)",
        [(owner, name, value) for name, value in configs.items()],
    )
