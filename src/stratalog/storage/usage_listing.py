"""What is listed for ``plan_usage``: the files of a log directory, and what surrounds them.

Nothing is opened but lease files, and nothing changed; the directory may be in use. A file that
goes while it is looked at is passed over.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from stratalog.errors import DiskError, StorageError
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import STAGING_FILE_PREFIX, parse_staging_file
from stratalog.storage.leases import Lease, list_lease_files, read_lease
from stratalog.storage.unlinked_files import unlinked_files
from stratalog.storage.usage import ListedFile, Owner, Surroundings, Usage, plan_usage


def look_at_usage(
    files: FileSystem,
    log_directory: str,
    *,
    owner: Owner,
    now_ms: int,
    owner_pid: int | None = None,
    leases: Iterable[Lease] | None = None,
    below: str = "",
) -> Usage:
    """What takes the disk; ``below`` is one of its directories, where only that is meant.

    Without ``leases`` they are those that lie there as files.
    """
    found = tuple(left_leases(files, log_directory) if leases is None else leases)
    free_bytes: int | None = None
    with suppress(DiskError):
        free_bytes = files.free_bytes(log_directory)
    around = Surroundings(
        log_directory=log_directory,
        owner=owner,
        now_ms=now_ms,
        leases=found,
        staged_until_ms=_staged_until_ms(files, log_directory),
        free_bytes=free_bytes,
        unlinked=tuple(
            each
            for each in ([] if owner_pid is None else unlinked_files(owner_pid, log_directory))
            if each.path.startswith(f"{below}/" if below else "")
        ),
    )
    return plan_usage(list_files(files, log_directory, below), around)


def list_files(files: FileSystem, log_directory: str, below: str = "") -> Iterator[ListedFile]:
    """Every file in the directory and below it, those with several names once."""
    seen: set[int] = set()
    waiting = [below]
    while waiting:
        inner = waiting.pop()
        try:
            entries = files.list(f"{log_directory}/{inner}" if inner else log_directory)
        except DiskError:
            if inner == below:
                raise
            continue  # it has gone since
        for entry in entries:
            path = f"{inner}/{entry.name}" if inner else entry.name
            if entry.is_directory:
                if not entry.is_link:
                    waiting.append(path)
                continue
            disk_bytes = entry.size_bytes if entry.disk_bytes < 0 else entry.disk_bytes
            if entry.link_count > 1:
                # A hard link takes no room beside the first.
                disk_bytes = 0 if entry.inode in seen else disk_bytes
                seen.add(entry.inode)
            yield ListedFile(path, entry.size_bytes, disk_bytes)


def left_leases(files: FileSystem, log_directory: str) -> Iterator[Lease]:
    """Those that are there as files; one that cannot be read holds nothing."""
    for lease_id in list_lease_files(files, log_directory):
        with suppress(StorageError):
            lease = read_lease(files, log_directory, lease_id)
            if lease is not None:
                yield lease


def _staged_until_ms(files: FileSystem, log_directory: str) -> dict[str, int]:
    found = {}
    for entry in files.list(log_directory):
        if entry.name.startswith(STAGING_FILE_PREFIX):
            staging_id = parse_staging_file(entry.name)
            if staging_id is not None:
                found[staging_id] = entry.modified_ms
    return found
