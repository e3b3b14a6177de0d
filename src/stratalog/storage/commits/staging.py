"""Staging: files written beside a log by whoever does not own it, and the lease that keeps them.

    <log dir>/.stratalog-staging-<id>             its modification time: until when it holds
    {"version": 1, "holder": "spark ...", "created_ms": ...}
    <log dir>/orders-0/.stratalog/staging/<id>/   what is staged for one partition
      00007-0-00000.log                           whole batches, offsets from 0 on

Tasks on any host that has the file system write here, so nothing in this module changes a log. The
owner of the log directory removes what is staged when its lease is over, or has no file, and no
commit needs it (``sweep_staging``). Else only a commit does, or whoever has staged it.

The lease's file is not synced: a loss of power may take it, and with it what was not committed.
"""

import errno
import json
import uuid
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress

from stratalog.clock import Clock
from stratalog.errors import DiskError, TopicNameError
from stratalog.storage.commits.manifest import is_staging_id
from stratalog.storage.files import Entry, FileSystem, remove_tree
from stratalog.storage.layout import (
    STAGING_DIRECTORY,
    STAGING_FILE_PREFIX,
    TopicPartition,
    parse_replica_directory,
    parse_staging_file,
    replica_directory,
    staging_directory,
    staging_file,
)
from stratalog.storage.leases import cut_holder

__all__ = [
    "hold_staging",
    "open_staging",
    "release_staging",
    "release_unused_staging",
    "renew_staging",
    "staged_partitions",
    "staging_directory",
    "staging_until_ms",
    "sweep_staging",
]

# Nobody's files stay longer than this after they were last renewed, whatever the clock said then.
STAGING_MS_MAX = 24 * 3_600_000
_UNFINISHED_MS = 3_600_000


# --- the lease --------------------------------------------------------------------------------


def open_staging(
    files: FileSystem,
    log_dir: str,
    *,
    holder: str,
    seconds: float,
    clock: Clock,
    staging_id: str | None = None,
) -> str:
    """Begin to stage, before the first file is written; or go on, if ``staging_id`` is held."""
    now_ms = clock.now_ms()
    until_ms = now_ms + _lasting_ms(seconds)
    if staging_id is None:
        staging_id = uuid.uuid4().hex
    elif _prolong(files, staging_file(log_dir, staging_id), until_ms):
        return staging_id
    content = {"version": 1, "holder": cut_holder(holder), "created_ms": now_ms}
    path = staging_file(log_dir, staging_id)
    # Of its own: several tasks may open the same one at the same time.
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        file = files.open(temporary, create=True)
        try:
            file.write_at(0, [json.dumps(content, separators=(",", ":")).encode()])
        finally:
            file.close()
        files.set_modified(temporary, until_ms)
        files.rename(temporary, path)
    except DiskError:
        with suppress(DiskError):
            files.unlink(temporary, missing_ok=True)
        raise
    return staging_id


def renew_staging(
    files: FileSystem, log_dir: str, staging_id: str, seconds: float, clock: Clock
) -> bool:
    """Hold it for ``seconds`` from now on, never shorter than before; False if it is lost."""
    until_ms = clock.now_ms() + _lasting_ms(seconds)
    return _prolong(files, staging_file(log_dir, staging_id), until_ms)


def hold_staging(
    files: FileSystem, log_dir: str, staging_id: str, seconds: float, clock: Clock
) -> bool:
    """Hold what somebody else has opened for ``seconds`` from now on, be that shorter than before;
    False if it was given up: then nothing may be staged any more."""
    path = staging_file(log_dir, staging_id)
    entry = files.stat(path)
    if entry is None or entry.is_directory:
        return False
    return _set_until(files, path, clock.now_ms() + _lasting_ms(seconds))


def _lasting_ms(seconds: float) -> int:
    return min(max(int(seconds * 1000), 0), STAGING_MS_MAX)


def _prolong(files: FileSystem, path: str, until_ms: int) -> bool:
    entry = files.stat(path)
    if entry is None or entry.is_directory:
        return False
    return entry.modified_ms >= until_ms or _set_until(files, path, until_ms)


def _set_until(files: FileSystem, path: str, until_ms: int) -> bool:
    try:
        files.set_modified(path, until_ms)
    except DiskError as error:
        if error.errno != errno.ENOENT:
            raise
        return False
    return True


def staging_until_ms(files: FileSystem, log_dir: str, staging_id: str) -> int | None:
    """Until when it is held; None if it is not, or no more."""
    entry = files.stat(staging_file(log_dir, staging_id))
    return None if entry is None or entry.is_directory else entry.modified_ms


def release_staging(
    files: FileSystem,
    log_dir: str,
    staging_id: str,
    *,
    partitions: Iterable[TopicPartition] | None = None,
) -> None:
    """Remove its lease and all that was staged under it. Its maker, or a commit that is done.

    With ``partitions`` only those are looked at, which is quicker where there are very many; what
    was staged for others is left to the sweep.
    """
    assert is_staging_id(staging_id), "a path is made of it"
    # The lease goes first: whoever would renew it learns that it is lost.
    files.unlink(staging_file(log_dir, staging_id), missing_ok=True)
    if partitions is None:
        directories = _replicas(files, log_dir)
    else:
        directories = [f"{log_dir}/{replica_directory(each)}" for each in partitions]
    for directory in directories:
        _remove_staged(files, directory, staging_id)


def release_unused_staging(files: FileSystem, log_dir: str, staging_id: str) -> None:
    """Remove its lease if no file is staged under it: for one of several that stage, and fails.

    Another who has just opened it may be about to make a first file, and looks for the lease then
    (see ``StagedLogWriter``). So the lease goes first, and comes back if there is a file after all.
    """
    if _has_staged_files(files, log_dir, staging_id):
        return
    lease = staging_file(log_dir, staging_id)
    aside = f"{lease}.{uuid.uuid4().hex}.tmp"
    files.rename(lease, aside)
    is_used = True  # unless it is known better
    try:
        is_used = _has_staged_files(files, log_dir, staging_id)
    finally:
        if is_used:
            files.rename(aside, lease)
    if is_used:
        return
    files.unlink(aside, missing_ok=True)
    for directory in _staged_directories(files, log_dir, staging_id):
        with suppress(DiskError):  # not empty any more: whose file that is takes it back
            files.remove_directory(directory)


def _has_staged_files(files: FileSystem, log_dir: str, staging_id: str) -> bool:
    return any(_list(files, each) for each in _staged_directories(files, log_dir, staging_id))


def _staged_directories(files: FileSystem, log_dir: str, staging_id: str) -> list[str]:
    found = [staging_directory(each, staging_id) for each in _replicas(files, log_dir)]
    return [each for each in found if files.exists(each)]


def _remove_staged(files: FileSystem, directory: str, staging_id: str) -> None:
    path = staging_directory(directory, staging_id)
    if not files.exists(path):  # as in nearly all of very many partitions: an error would cost more
        return
    try:
        remove_tree(files, path)
    except DiskError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise


# --- what the owner sweeps away ---------------------------------------------------------------


def sweep_staging(
    files: FileSystem, log_dir: str, *, now_ms: int, in_use: Container[str]
) -> list[str]:
    """Remove what was staged under leases that are over, except those ``in_use``; their ids.

    ``in_use`` is asked of nothing but what is to be removed, just before. What cannot be removed
    now is left to the next time.
    """
    held = _held(files, log_dir, now_ms)
    gone: set[str] = set()
    for staging_id, until_ms in sorted(held.items()):
        if until_ms <= now_ms and staging_id not in in_use:
            with suppress(DiskError):
                files.unlink(staging_file(log_dir, staging_id), missing_ok=True)
                gone.add(staging_id)
    left: set[str] = set()
    for directory, staging_id in staged_partitions(files, log_dir):
        if staging_id not in gone and (
            staging_id in held
            # Since it was looked for: a lease is there before what is staged under it.
            or files.exists(staging_file(log_dir, staging_id))
            or staging_id in in_use
        ):
            continue
        gone.add(staging_id)
        try:
            _remove_staged(files, directory, staging_id)
        except DiskError:
            left.add(staging_id)
    return sorted(gone - left)


def _held(files: FileSystem, log_dir: str, now_ms: int) -> dict[str, int]:
    """The leases here, with the time until which each holds."""
    found: dict[str, int] = {}
    for entry in files.list(log_dir):
        if entry.is_directory or not entry.name.startswith(STAGING_FILE_PREFIX):
            continue
        path = f"{log_dir}/{entry.name}"
        staging_id = parse_staging_file(entry.name)
        if staging_id is None:
            is_old = entry.modified_ms + _UNFINISHED_MS < now_ms
            # Its maker had another clock, and nobody would ever see it grow old.
            is_from_afar = entry.modified_ms > now_ms + STAGING_MS_MAX
            if entry.name.endswith(".tmp") and (is_old or is_from_afar):
                files.unlink(path, missing_ok=True)
            continue
        found[staging_id] = entry.modified_ms
        if entry.modified_ms > now_ms + STAGING_MS_MAX:
            # Whoever made it had another clock, or this one was set back: it is to end some time.
            found[staging_id] = now_ms + STAGING_MS_MAX
            with suppress(DiskError):
                files.set_modified(path, found[staging_id])
    return found


def staged_partitions(files: FileSystem, log_dir: str) -> Iterator[tuple[str, str]]:
    """Each partition's directory with the id of something that is staged in it."""
    for directory in _replicas(files, log_dir):
        for entry in _list(files, f"{directory}/{STAGING_DIRECTORY}"):
            if entry.is_directory and not entry.is_link and is_staging_id(entry.name):
                yield directory, entry.name


def _replicas(files: FileSystem, log_dir: str) -> list[str]:
    """The partitions' directories: not those of logs that were deleted, nor strays."""
    found = []
    for entry in files.list(log_dir):
        if entry.is_directory:
            with suppress(TopicNameError):
                if not parse_replica_directory(entry.name).state:
                    found.append(f"{log_dir}/{entry.name}")
    return found


def _list(files: FileSystem, path: str) -> list[Entry]:
    if not files.exists(path):
        return []
    try:
        return files.list(path)
    except DiskError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return []
