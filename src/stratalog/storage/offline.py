"""Owning a log directory for one piece of work, with no broker about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stratalog.clock import Clock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.files import FileSystem
from stratalog.storage.loading import LoadProgress
from stratalog.storage.manager import LogManager


@contextmanager
def owned_logs(
    config: BrokerConfig,
    *,
    topic_config: Callable[[str], TopicConfig | None],
    files: FileSystem | None = None,
    clock: Clock | None = None,
    show_progress: Callable[[LoadProgress], None] = lambda _progress: None,
    is_end_replicated: bool = False,
) -> Iterator[LogManager]:
    """Take the directories, open their logs, and close all cleanly at the end.

    Other replicas may exist elsewhere, so high watermarks are those that were checkpointed: what
    lies above one may yet be truncated by a leader, and is nobody's to delete. With
    ``is_end_replicated`` that of a log without a checkpoint is its end.
    """
    manager = LogManager(
        config,
        files=files,
        clock=clock,
        topic_config=topic_config,
        show_progress=show_progress,
        # Whatever is begun here is done when it returns: nobody comes back for the rest.
        is_threaded=False,
    )
    manager.start()
    try:
        # A high watermark stays below what is flushed, and recovery may have found more than was.
        manager.flush_appended()
        for directory in manager.directories:
            known = directory.high_watermarks()
            for log in directory.logs.values():
                otherwise = log.log_end_offset if is_end_replicated else 0
                log.raise_high_watermark(known.get(log.topic_partition, otherwise))
        yield manager
    finally:
        manager.shutdown()
