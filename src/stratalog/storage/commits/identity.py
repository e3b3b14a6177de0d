"""Whether a staged file is still what was checked: another may have been put in its place."""

from typing import NamedTuple

from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.files import Entry, FileSystem


class FileIdentity(NamedTuple):
    """What changes when somebody writes to a file, or puts another in its place."""

    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, entry: Entry) -> "FileIdentity":
        return cls(entry.inode, entry.size_bytes, entry.modified_ns)


def identify(files: FileSystem, path: str) -> FileIdentity:
    found = files.stat(path)
    if found is None:
        raise StagedFileError(path, -1, "it is gone since it was checked")
    return FileIdentity.of(found)


def refuse_other(files: FileSystem, path: str, checked: FileIdentity) -> None:
    """Refuse what is not there any more, was changed, or is another file."""
    found = identify(files, path)
    if found.size_bytes != checked.size_bytes:
        reason = f"{found.size_bytes} bytes, and {checked.size_bytes} when it was checked"
        raise StagedFileError(path, -1, reason)
    if found != checked:
        reason = "it was changed, or another was put in its place, since it was checked"
        raise StagedFileError(path, -1, reason)
