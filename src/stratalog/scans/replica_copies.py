"""Warns of a process that reads replicas of one partition from several brokers: rows come twice.

Nobody can tell whether two scans are put together, so the second one is only warned of, once. What
is known of a directory is its cluster, its node and its partitions.
"""

import warnings
from collections.abc import Iterable

from stratalog.storage.check_directory import read_identity
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition

_KNOWN_MAX = 10_000


class ReplicasRead:
    """Which node's replica of a partition was read first, by cluster."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, TopicPartition], tuple[str, str]] = {}
        self._warned: set[tuple[str, str]] = set()

    def note(
        self, files: FileSystem, log_directory: str, partitions: Iterable[TopicPartition]
    ) -> None:
        identity, _ = read_identity(files, log_directory)
        if identity.broker is None:
            return
        cluster_id, node_id = identity.broker
        for each in partitions:
            if len(self._first) >= _KNOWN_MAX:
                return
            node, path = self._first.setdefault((cluster_id, each), (node_id, log_directory))
            if node != node_id and (path, log_directory) not in self._warned:
                self._warned.add((path, log_directory))
                warnings.warn(
                    f"{path} of broker {node} and {log_directory} of broker {node_id} both hold "
                    f"{each}: replicas have the same rows, and a union has them twice. Read each "
                    "partition from one broker",
                    stacklevel=4,
                )


replicas_read = ReplicasRead()
