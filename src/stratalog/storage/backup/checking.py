"""Is everything in a store of backups what it was when it was written? Every byte is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from stratalog.errors import StorageError
from stratalog.storage.backup.copying import read_checked
from stratalog.storage.backup.manifest import BackupManifest, StoredFile
from stratalog.storage.backup.store import BackupStore

Item = TypeVar("Item")
Result = TypeVar("Result")


class Each(Protocol):
    """``map``, or that of a pool of threads."""

    def __call__(
        self, work: Callable[[Item], Result], items: Iterable[Item], /
    ) -> Iterable[Result]: ...


@dataclass(slots=True)
class BackupCheck:
    """``findings`` are sentences. Unused files are what interrupted runs have left; the next
    backup that needs them has them already."""

    backups: int = 0
    files: int = 0
    size_bytes: int = 0
    unused_files: int = 0
    unused_bytes: int = 0
    findings: list[str] = field(default_factory=list)


def check_store(store: BackupStore, *, each: Each = map) -> BackupCheck:
    """Read all manifests, and once each file that they name."""
    found = BackupCheck()
    files: dict[str, StoredFile] = {}
    users: dict[str, str] = {}
    for backup_id in store.backup_ids():
        found.backups += 1
        try:
            manifest: BackupManifest = store.read_manifest(backup_id)
        except StorageError as error:
            found.findings.append(str(error))
            continue
        for file in manifest.files:
            files[file.digest] = file
            users[file.digest] = backup_id

    def check(file: StoredFile) -> str:
        try:
            read_checked(store, file)
        except StorageError as error:
            return f"{error} (needed by backup {users[file.digest]})"
        return ""

    found.files = len(files)
    found.size_bytes = sum(file.size_bytes for file in files.values())
    found.findings += [sentence for sentence in each(check, files.values()) if sentence]
    for digest, size_bytes in store.stored():
        if digest not in files:
            found.unused_files += 1
            found.unused_bytes += size_bytes
    return found
