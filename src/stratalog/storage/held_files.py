"""Files of segments that a log has no use for any more, kept for readers that hold a lease."""

from dataclasses import dataclass
from os.path import dirname

from stratalog.storage.files import FileSystem
from stratalog.storage.layout import (
    LEASED_DIRECTORY,
    TopicPartition,
    parse_leased_file,
    replica_directory,
)
from stratalog.storage.leases import Lease

# Where a segment ends if that is not known: nothing is taken from whoever may hold it.
UNKNOWN_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """Files that a log has no use for any more. ``paths`` are files, or with ``is_tree`` one
    directory of a deleted partition, which only leases up to ``before_ms`` hold."""

    topic_partition: TopicPartition
    log_dir: str
    start_offset: int
    end_offset: int
    paths: tuple[str, ...]
    size_bytes: int
    is_tree: bool = False
    before_ms: int = UNKNOWN_END

    def is_held_by(self, lease: Lease) -> bool:
        return lease.created_ms <= self.before_ms and lease.covers(
            self.topic_partition, self.start_offset, self.end_offset
        )


def find_held(
    files: FileSystem, topic_partition: TopicPartition, directory: str
) -> list[HeldFiles]:
    """What is kept of one partition, for leases or none."""
    leased = f"{directory}/{LEASED_DIRECTORY}"
    if not files.exists(leased):
        return []
    sets: dict[tuple[int, int, int], list[tuple[str, int]]] = {}
    for entry in files.list(leased):
        name = None if entry.is_directory else parse_leased_file(entry.name)
        if name is not None:
            key = (name.base_offset, name.end_offset, name.number)
            sets.setdefault(key, []).append((f"{leased}/{entry.name}", entry.size_bytes))
    return [
        HeldFiles(
            topic_partition,
            dirname(directory),
            base_offset,
            end_offset,
            tuple(path for path, _ in found),
            sum(size for _, size in found),
        )
        for (base_offset, end_offset, _), found in sets.items()
    ]


def held_on_disk(files: FileSystem, log_dir: str, lease: Lease) -> int:
    """What a lease holds back in a directory that nobody owns; deleted topics do not count."""
    return sum(
        held.size_bytes
        for key in lease.ranges
        for held in find_held(files, key, f"{log_dir}/{replica_directory(key)}")
        if held.is_held_by(lease)
    )
