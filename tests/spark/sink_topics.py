"""Topics for Spark to write to, and what is in them afterwards: read by nothing of Spark's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

import stratalog
from broker_fixture import running_broker
from stratalog.storage.layout import STAGING_DIRECTORY, STAGING_FILE_PREFIX


def make_topics(
    log_dir: Path, topics: Mapping[str, int], config: Mapping[str, str] | None = None
) -> None:
    """Topics with so many partitions each, in a directory that our broker has been the owner of."""
    with running_broker(log_dir) as broker:
        create_topics(broker.bootstrap_server, topics, config)


def create_topics(
    bootstrap_server: str, topics: Mapping[str, int], config: Mapping[str, str] | None = None
) -> None:
    wanted = [
        NewTopic(name, count, replication_factor=1, config=dict(config or {}))
        for name, count in topics.items()
    ]
    client = AdminClient({"bootstrap.servers": bootstrap_server})  # to live until all is made
    for made in client.create_topics(wanted).values():
        made.result(60)


def rows_in(log_dir: Path, topic: str) -> list[dict[str, Any]]:
    """All records of a topic, by partition and offset; also while a broker owns them."""
    columns = ["partition", "offset", "timestamp", "key", "value", "headers"]
    rows = stratalog.scan(log_dir, topic, columns=columns).read_all().to_pylist()
    rows.sort(key=lambda row: (row["partition"], row["offset"]))
    return rows


def values_in(log_dir: Path, topic: str) -> list[bytes | None]:
    """By partition and offset; the offsets of each partition have no holes."""
    rows = rows_in(log_dir, topic)
    for partition in {row["partition"] for row in rows}:
        offsets = [row["offset"] for row in rows if row["partition"] == partition]
        assert offsets == list(range(len(offsets)))
    return [row["value"] for row in rows]


def left_behind(log_dir: Path) -> list[str]:
    """Leases and files of writes that are over: there should be none."""
    return [
        str(each.relative_to(log_dir))
        for each in sorted(log_dir.rglob("*"))
        if each.name.startswith(STAGING_FILE_PREFIX)
        or (f"/{STAGING_DIRECTORY}/" in str(each) and each.is_file())
    ]
