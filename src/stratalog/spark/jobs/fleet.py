"""What only shows when several log directories are looked at together.

Directories of one broker share its replicas among them: a partition that two of them hold is in one
of them by mistake, and a broker will not start, or will take either. Directories of one cluster
agree on the id of a topic. No two directories have the same id: one would be a copy.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stratalog.storage.check_directory import DirectoryIdentity
from stratalog.storage.findings import Finding, Kind, error
from stratalog.storage.layout import (
    META_PROPERTIES,
    PARTITION_METADATA,
    parse_replica_directory,
)


def distinct(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Each directory once, however often and by whatever name it was given."""
    found: dict[str, str] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), str(Path(path).absolute()))
    return list(found.values())


def check_fleet(
    identities: Sequence[DirectoryIdentity], replicas: Sequence[Mapping[str, Any]]
) -> list[tuple[str, Finding]]:
    """(log directory, finding); ``replicas`` are rows of what was checked."""
    by_path = {each.path: each for each in identities}
    return [
        *_copies(identities),
        *_duplicates(by_path, replicas),
        *_other_ids(by_path, replicas),
    ]


def _copies(identities: Sequence[DirectoryIdentity]) -> Iterator[tuple[str, Finding]]:
    first: dict[str, str] = {}
    for each in identities:
        if not each.directory_id:
            continue
        other = first.setdefault(each.directory_id, each.path)
        if other != each.path:
            sentence = f"has the directory.id of {other}: one of the two is a copy of the other"
            yield each.path, error(Kind.DUPLICATE, f"{each.path}/{META_PROPERTIES}", sentence)


def _duplicates(
    identities: Mapping[str, DirectoryIdentity], replicas: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Finding]]:
    first: dict[tuple[Any, str], str] = {}
    for row in replicas:
        broker = identities[row["directory"]].broker
        # A copy in the making has a name of its own until it takes the other's place.
        if broker is None or parse_replica_directory(row["replica"]).state:
            continue
        other = first.setdefault((broker, row["replica"]), row["directory"])
        if other != row["directory"]:
            sentence = f"is also in {other}, which belongs to the same broker"
            path = f"{row['directory']}/{row['replica']}"
            yield row["directory"], error(Kind.DUPLICATE, path, sentence)


def _other_ids(
    identities: Mapping[str, DirectoryIdentity], replicas: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Finding]]:
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for row in replicas:
        directory, topic_id = row["directory"], row["topic_id"]
        # Directories that nobody says the cluster of may be of any: each is one by itself.
        cluster = identities[directory].cluster_id or directory
        if not topic_id or parse_replica_directory(row["replica"]).state:
            continue
        path = f"{directory}/{row['replica']}"
        known, other = first.setdefault((cluster, row["topic"]), (topic_id, path))
        if known != topic_id:
            sentence = f"says the topic id {topic_id}; in {other} it is {known}"
            yield directory, error(Kind.METADATA, f"{path}/{PARTITION_METADATA}", sentence)
