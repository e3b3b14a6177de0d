"""Who owns a log directory, and what our broker says of where its logs begin and end.

Asking never fails a scan: an owner that cannot be asked (another user's, stopping, not ours) is
one whose checkpoints have to do.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stratalog.directories.owner_client import ask, topics_query
from stratalog.errors import StorageError
from stratalog.storage.layout import LOCK_FILE, OWNER_FILE, TopicPartition
from stratalog.storage.owner_file import Owner, read_owner
from stratalog.storage.readonly import lock_owner
from stratalog.storage.views import LogOffsets


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who holds the directory's lock: ``kind`` is 'stratalog', 'kafka' or 'none'.

    A lock that is held by somebody who has not left our owner file is counted as Apache Kafka's.
    """

    kind: str = "none"
    pid: int | None = None

    @property
    def is_here(self) -> bool:
        """Whether this very process is the owner: a directory opened without a broker."""
        return self.pid == os.getpid()


def find_owner(log_directory: str) -> tuple[Ownership, Owner | None]:
    """Who owns ``log_directory``, and how to reach it if it is ours and may be asked."""
    lock = f"{log_directory}/{LOCK_FILE}"
    pid = lock_owner(lock)
    if pid is None:
        # A lock file that this user may not even open tells nothing: better too careful.
        is_hidden = Path(lock).exists() and not os.access(lock, os.R_OK)
        return Ownership("kafka" if is_hidden else "none"), None
    try:
        owner = read_owner(log_directory)
    except StorageError:
        is_ours = pid == os.getpid() or Path(log_directory, OWNER_FILE).exists()
        return Ownership("stratalog" if is_ours else "kafka", pid), None
    if owner.pid != pid:
        return Ownership("kafka", pid), None  # the file is what a killed broker left
    return Ownership("stratalog", pid), owner if owner.admin else None


def ask_offsets(owner: Owner, topics: Iterable[str]) -> dict[TopicPartition, LogOffsets] | None:
    """Where the logs of ``topics`` begin and end; None if the owner does not answer."""
    names = sorted(set(topics))
    query = topics_query(names)
    answer = ask(owner, "/v1/offsets" + query)
    if answer.status != 200 and query:
        answer = ask(owner, "/v1/offsets")  # it refuses all if it does not know one
    if answer.status != 200:
        return None
    try:
        return {
            TopicPartition(str(row["topic"]), int(row["partition"])): LogOffsets(
                int(row["log_start_offset"]),
                int(row["high_watermark"]),
                int(row["last_stable_offset"]),
            )
            for row in answer.body["partitions"]
        }
    except (KeyError, TypeError, ValueError):
        return None
