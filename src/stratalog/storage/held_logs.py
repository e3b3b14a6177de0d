"""Cutting a log that its manager holds: neither cleaned meanwhile nor part of a commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stratalog.storage.commits.errors import AppendsPausedError
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log

if TYPE_CHECKING:
    from stratalog.storage.manager import LogManager


def truncate_held(manager: "LogManager", topic_partition: TopicPartition, offset: int) -> bool:
    log = _uncommitting(manager, topic_partition)
    if offset >= log.log_end_offset:
        return log.truncate_to(offset)
    with _uncleaned(manager, log):
        return log.truncate_to(offset)


def truncate_held_fully(
    manager: "LogManager", topic_partition: TopicPartition, offset: int
) -> None:
    log = _uncommitting(manager, topic_partition)
    with _uncleaned(manager, log):
        log.truncate_fully_and_start_at(offset)


def _uncommitting(manager: "LogManager", topic_partition: TopicPartition) -> Log:
    """A log that may be cut: what a commit has put at its end would be put there again by the next
    start, as long as the commit is not done."""
    if manager.commits.is_under_way(topic_partition):
        raise AppendsPausedError(f"{topic_partition} is part of a commit just now; try again")
    return manager.get(topic_partition)


@contextmanager
def _uncleaned(manager: "LogManager", log: Log) -> Iterator[None]:
    """While a log is cut it is not cleaned; afterwards no more of it counts as cleaned than is
    there."""
    key, cleaner = log.topic_partition, manager.cleaner
    if cleaner is not None:
        cleaner.abort_and_pause(key)
    try:
        yield
    finally:
        if cleaner is not None:
            cleaner.resume(key)
            cleaner.retry(key)
    directory = next(each for each in manager.directories if key in each.logs)
    cleaned_to = directory.cleaner_offset(key)
    if cleaned_to is not None and cleaned_to > log.segments.active.base_offset:
        directory.note_cleaner_offset(key, log.segments.active.base_offset)
