"""Directories of deleted logs, which have their ``-delete`` names and wait to be removed."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from stratalog.errors import DiskError
from stratalog.storage.directory import LogDirectory
from stratalog.storage.janitor import Janitor
from stratalog.storage.layout import TopicPartition
from stratalog.storage.lease_book import LeaseBook


class DeletedDirectory(NamedTuple):
    due_ms: int
    directory: LogDirectory
    path: str
    topic_partition: TopicPartition


class DeletedDirectories:
    """Directories of deleted logs that one manager has yet to remove. Confined to the owner's
    thread."""

    def __init__(self, janitor: Janitor, leases: LeaseBook) -> None:
        self._janitor = janitor
        self._leases = leases
        self._waiting: list[DeletedDirectory] = []

    def add(self, deleted: Iterable[DeletedDirectory]) -> None:
        self._waiting.extend(deleted)

    def remove_due(self, now_ms: int) -> None:
        due = [each for each in self._waiting if each.due_ms <= now_ms]
        self._waiting = [each for each in self._waiting if each.due_ms > now_ms]
        for each in due:
            if each.directory.is_online and not self._is_leased(each):
                self._janitor.remove_tree(each.path, partial(self._not_removed, each))

    def remove_half_made(self, directory: LogDirectory) -> None:
        """What is left of logs that could not be made: nobody can have a lease on it."""
        while directory.half_made:
            path = directory.half_made.pop()
            again = partial(_not_taken_back, directory, path)
            self._janitor.remove_tree(path, again)

    def _is_leased(self, deleted: DeletedDirectory) -> bool:
        return self._leases.keep_tree(deleted.topic_partition, deleted.path, deleted.due_ms)

    def _not_removed(self, deleted: DeletedDirectory, error: DiskError) -> None:
        """What the system has run out of comes back, and the next turn tries again."""
        if error.is_passing:
            self._waiting.append(deleted)
        else:
            deleted.directory.fail(str(error))


def _not_taken_back(directory: LogDirectory, path: str, error: DiskError) -> None:
    if error.is_passing:
        directory.half_made.append(path)
    else:
        directory.fail(str(error))
