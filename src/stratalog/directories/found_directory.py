"""The replicas in a log directory and whose they are, by names and small files; nothing is changed.

A replica is its name and its topic id: enough to hold a directory against what is known of it.
"""

import uuid

from stratalog.errors import CorruptFileError
from stratalog.metadata.adoption import FoundDirectory, FoundReplica, StrayReplica
from stratalog.storage.checkpoint import read_topic_id
from stratalog.storage.directory import LogDirectory
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import PARTITION_METADATA, STRAY_DIRECTORY


def find_directory(directory: LogDirectory) -> FoundDirectory:
    """The replicas in a directory and whose they are: enough for reconciliation."""
    identity = directory.identity()
    replicas = directory.replicas()
    return FoundDirectory(
        path=directory.path,
        replicas=tuple(
            FoundReplica(
                topic=name.topic_partition.topic,
                partition=name.topic_partition.partition,
                topic_id=_topic_id(directory.files, path),
            )
            for path, name in replicas
            if not name.state
        ),
        strays=tuple(
            StrayReplica(
                directory.path,
                path.removeprefix(f"{directory.path}/"),
                _topic_id(directory.files, path),
                name.topic_partition.partition,
            )
            for path, name in replicas
            if name.state == STRAY_DIRECTORY
        ),
        cluster_id=identity.cluster_id if identity else "",
        node_id=identity.node_id if identity else None,
        directory_id=identity.directory_id if identity else None,
    )


def _topic_id(files: FileSystem, path: str) -> uuid.UUID | None:
    try:
        return read_topic_id(files, f"{path}/{PARTITION_METADATA}")
    except CorruptFileError:
        # The log will not open and say why; its name still tells whose it is.
        return None
