"""Where backups are kept: a seam, and the one store there is, a directory.

    <target>/stratalog-backup.json    says that it is one
    <target>/backups/<id>.json        the manifests
    <target>/files/3f/3f2a…           bytes, each file named by its SHA-256
    <target>/incoming/                what the run under way has copied; swept by the next
    <target>/.lock                    one run at a time

A file gets its name in ``files`` only when its bytes are on the disk, and a manifest is written
when all its files have theirs. So whatever a crash hits, the manifests that are there are whole;
what it leaves in ``incoming`` is removed by the next run, what it leaves in ``files`` used by it.
"""

import errno
import json
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

from typing_extensions import Buffer

from stratalog.errors import DiskError, LogDirectoryError
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.manifest import (
    CONTENT_BYTES_MAX,
    VERSION,
    BackupManifest,
    StoredFile,
    decode_manifest,
    is_backup_id,
)
from stratalog.storage.files import (
    DirectoryLock,
    File,
    FileSystem,
    read_file,
    remove_tree,
    replace_file,
)

MARKER_FILE = "stratalog-backup.json"
_LOCK_FILE = ".lock"
_MANIFESTS = "backups"
_FILES = "files"
_INCOMING = "incoming"


class IncomingFile(Protocol):
    """A file that is being copied to a store. Ends with ``keep`` or ``discard``."""

    def write(self, data: Buffer) -> None: ...
    def keep(self, file: StoredFile) -> None:
        """All was written, and it is ``file``; it is the store's after the next ``settle``."""
        ...

    def discard(self) -> None: ...


class StoreRun(Protocol):
    """One writer of a store. ``incoming`` may be called from several threads."""

    def incoming(self) -> IncomingFile: ...
    def settle(self) -> None:
        """What was kept so far is durable, under its name."""
        ...

    def write_manifest(self, manifest: BackupManifest) -> None:
        """That is the backup. All its files have to be there."""
        ...

    def close(self) -> None: ...


class BackupStore(Protocol):
    """Files by their content, and manifests by their id."""

    @property
    def name(self) -> str:
        """For people: a path, a URL."""
        ...

    def begin(self) -> StoreRun: ...
    def has(self, file: StoredFile) -> bool: ...
    def open(self, file: StoredFile) -> File:
        """To be read; BackupDamagedError if it is not there."""
        ...

    def path(self, file: StoredFile) -> str: ...
    def stored(self) -> Iterator[tuple[str, int]]:
        """Digest and size of all files that are there."""
        ...

    def backup_ids(self) -> list[str]:
        """In the order in which they were made."""
        ...

    def read_manifest(self, backup_id: str) -> BackupManifest: ...


class LocalBackupStore:
    """A directory of a file system."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self.files = files
        self.name = path.rstrip("/") or "/"

    def _in(self, *names: str) -> str:
        return "/".join((self.name, *names))

    @property
    def exists(self) -> bool:
        return self.files.exists(self._in(MARKER_FILE))

    def check(self) -> None:
        """Refuse what is no store of backups, or is one of a later version."""
        if not self.exists:
            raise BackupError(
                f"{self.name} holds no backups: there is no {MARKER_FILE} in it. Name the "
                "directory that `stratalog log backup` was given."
            )
        self._check_version()

    def _check_version(self) -> None:
        """A marker that says nothing hides no backup: manifests tell their versions themselves."""
        path = self._in(MARKER_FILE)
        try:
            told = json.loads(read_file(self.files, path))
        except (ValueError, RecursionError):
            return
        version = told.get("version") if isinstance(told, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise BackupError(
                f"{path} is of version {version} of the store, and this is written for version "
                f"{VERSION}: use a later release of stratalog"
            )

    def begin(self) -> "LocalStoreRun":
        """Take the store, which is made if there is none."""
        self._make_place()
        try:
            lock = self.files.lock(self._in(_LOCK_FILE))
        except LogDirectoryError as error:
            raise BackupError(
                f"another backup is being written to {self.name}: {error}. Wait for it"
            ) from error
        try:
            self._make_contents()
            return LocalStoreRun(self, lock)
        except BaseException:
            lock.release()
            raise

    def _make_place(self) -> None:
        """A directory that can be locked: nothing else, since others may be making one too."""
        found = self.files.stat(self.name)
        if found is None:
            try:
                self.files.make_directory(self.name)
            except DiskError as error:
                if error.errno != errno.EEXIST:
                    raise
            self.files.sync_directory(os.path.dirname(os.path.abspath(self.name)))
        elif not found.is_directory:
            raise BackupError(f"{self.name} is not a directory")
        # Before a lock is put into what is no store.
        self._check_contents()

    def _check_contents(self) -> None:
        names = {each.name for each in self.files.list(self.name)}
        # Asked behind the list: whatever somebody else makes meanwhile comes behind the marker.
        if self.exists:
            self._check_version()
        elif names - {_LOCK_FILE, f"{MARKER_FILE}.tmp"}:
            raise BackupError(
                f"{self.name} is not empty and holds no backups: name a new or an empty directory"
            )

    def _make_contents(self) -> None:
        self._check_contents()
        if not self.exists:
            content = json.dumps({"version": VERSION}).encode()
            replace_file(self.files, self._in(MARKER_FILE), content)
        for each in (_MANIFESTS, _FILES):
            self.make_directory(self._in(each))
        self.files.sync_directory(self.name)

    def make_directory(self, path: str) -> bool:
        if self.files.exists(path):
            return False
        self.files.make_directory(path)
        return True

    # --- files --------------------------------------------------------------------------------

    def path(self, file: StoredFile) -> str:
        return self._in(_FILES, file.digest[:2], file.digest)

    def has(self, file: StoredFile) -> bool:
        found = self.files.stat(self.path(file))
        return found is not None and not found.is_directory and found.size_bytes == file.size_bytes

    def open(self, file: StoredFile) -> File:
        path = self.path(file)
        found = self.files.stat(path)
        if found is None:
            raise BackupDamagedError(path, "it is missing")
        if found.size_bytes != file.size_bytes:
            raise BackupDamagedError(
                path, f"it has {found.size_bytes} bytes, not the {file.size_bytes} of the backup"
            )
        return self.files.open(path, writable=False)

    def stored(self) -> Iterator[tuple[str, int]]:
        for directory in self.files.list(self._in(_FILES)):
            if not directory.is_directory:
                yield directory.name, directory.size_bytes
                continue
            for entry in self.files.list(self._in(_FILES, directory.name)):
                yield entry.name, entry.size_bytes

    # --- manifests ----------------------------------------------------------------------------

    def manifest_path(self, backup_id: str) -> str:
        return self._in(_MANIFESTS, f"{backup_id}.json")

    def backup_ids(self) -> list[str]:
        self.check()
        if not self.files.exists(self._in(_MANIFESTS)):
            return []
        names = (each.name for each in self.files.list(self._in(_MANIFESTS)))
        ids = (each.removesuffix(".json") for each in names if each.endswith(".json"))
        return sorted(each for each in ids if is_backup_id(each))

    def read_manifest(self, backup_id: str) -> BackupManifest:
        path = self.manifest_path(backup_id)
        found = self.files.stat(path)
        if found is None:
            raise BackupError(f"{self.name} holds no backup {backup_id}")
        if found.size_bytes > CONTENT_BYTES_MAX:
            raise BackupDamagedError(path, f"it has {found.size_bytes} bytes, too many")
        manifest = decode_manifest(path, read_file(self.files, path))
        if manifest.backup_id != backup_id:
            raise BackupDamagedError(path, f"it is the manifest of {manifest.backup_id}")
        return manifest

    def incoming_path(self, *names: str) -> str:
        return self._in(_INCOMING, *names)


class LocalStoreRun:
    """See ``StoreRun``."""

    def __init__(self, store: LocalBackupStore, lock: DirectoryLock) -> None:
        self._store = store
        self._files = store.files
        self._lock: DirectoryLock | None = lock
        self._kept: list[tuple[str, StoredFile]] = []
        self._guard = threading.Lock()
        self._sweep()
        self._files.make_directory(store.incoming_path())

    def __enter__(self) -> "LocalStoreRun":
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _sweep(self) -> None:
        path = self._store.incoming_path()
        for entry in self._files.list(self._store.name):
            if entry.name == _INCOMING and (entry.is_link or not entry.is_directory):
                raise BackupError(
                    f"{path} is no directory of this store, and would be swept: remove it"
                )
        if self._files.exists(path):
            remove_tree(self._files, path)

    def incoming(self) -> "LocalIncomingFile":
        path = self._store.incoming_path(uuid.uuid4().hex)
        return LocalIncomingFile(self._files.open(path, create=True), self)

    def take(self, path: str, file: StoredFile) -> None:
        with self._guard:
            self._kept.append((path, file))

    def discard(self, path: str) -> None:
        self._files.unlink(path, missing_ok=True)

    def settle(self) -> None:
        with self._guard:
            kept, self._kept = self._kept, []
        if not kept:
            return
        # Bytes first, names after: two syncs of the file system however many files there are.
        self._files.sync_file_system(self._store.name)
        for path, file in kept:
            target = self._store.path(file)
            self._store.make_directory(os.path.dirname(target))
            self._files.rename(path, target)
        self._files.sync_file_system(self._store.name)

    def write_manifest(self, manifest: BackupManifest) -> None:
        content = manifest.encode()
        path = self._store.manifest_path(manifest.backup_id)
        _check_readable(path, content)
        self.settle()
        replace_file(self._files, path, content)

    def close(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            with suppress(DiskError):
                self._sweep()
            lock.release()


def _check_readable(path: str, content: bytes) -> None:
    """Refuse a manifest that no restore could read: it would be told of only when it is needed."""
    reason = f"it has {len(content)} bytes, too many" if len(content) > CONTENT_BYTES_MAX else ""
    try:
        decode_manifest(path, content)
    except BackupDamagedError as error:
        reason = error.reason
    if reason:
        raise BackupError(
            f"no backup was made, since it could not be read again: {reason}. Put that right in "
            "the log directory, or name the topics that are in order with --topic"
        )


class LocalIncomingFile:
    """See ``IncomingFile``."""

    def __init__(self, file: File, run: LocalStoreRun) -> None:
        self._file = file
        self._run = run
        self._size_bytes = 0

    def write(self, data: Buffer) -> None:
        self._file.write_at(self._size_bytes, [data])
        self._size_bytes += memoryview(data).nbytes

    def keep(self, file: StoredFile) -> None:
        assert file.size_bytes == self._size_bytes, "all of it was written"
        self._file.close()
        self._run.take(self._file.path, file)

    def discard(self) -> None:
        self._file.close()
        self._run.discard(self._file.path)
