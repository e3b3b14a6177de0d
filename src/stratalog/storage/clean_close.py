"""The clean close of a directory's logs: each by itself, or many with two syncs in all.

A close syncs up to six files of a log. Of ten thousand that is most of what a stop takes, and one
sync of the file system does for all of them. The steps of each log keep their order, and nothing
is checkpointed before the last of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stratalog.storage.files import FileSystem
from stratalog.storage.flushing import SYNC_FILE_SYSTEM_FROM, sync_all
from stratalog.storage.sync_failures import SyncFailures

if TYPE_CHECKING:
    from stratalog.storage.log import Log


def close_together(
    files: FileSystem, directory: str, logs: "Sequence[Log]", syncs: SyncFailures
) -> None:
    """Close ``logs``, all of one log directory, so that the next start need not recover them."""
    if len(logs) < SYNC_FILE_SYSTEM_FROM:
        for log in logs:
            log.close()
        return
    sound = [log for log in logs if log.begin_close()]
    tasks = []
    for log in sound:
        # Descriptors are let go of at once: there are fewer of them than logs may be.
        log.segments.active.release()
        tasks.append(log.plan_flush(include_empty_active=True, is_synced_at_once=True))
    sync_all(files, directory, syncs)
    for log, task in zip(sound, tasks, strict=True):
        if task is not None:
            log.complete_flush(task)
        log.finish_close(is_synced=False)
    sync_all(files, directory, syncs)
