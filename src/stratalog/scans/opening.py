"""Finding a planned file again: under its own name, or under the one its owner has given it since.

    <base>.log                              as it was planned
    <base>.log.deleted                      retention or compaction took it out of the log
    .stratalog/leased/<base>-<end>-<n>.log  the same, kept by a lease
    topic-0.<id>-delete/                    the topic was deleted; all of the above in there

A file is what was planned for if it has the planned inode and was not changed before that, or,
where inodes do not travel (a copy, another host's mount), the planned size and time of change.
Nothing else will do: a compacted segment has the same name and other bytes.
"""

import errno
import os
import socket
from collections.abc import Iterator

from stratalog.config.properties import parse_properties
from stratalog.errors import ConfigError, DiskError
from stratalog.scans.errors import DataLostError, WrongDirectoryError
from stratalog.scans.slices import FileIdentity, ScanSlice
from stratalog.storage.files import Entry, File, FileSystem, read_file
from stratalog.storage.layout import (
    DELETE_DIRECTORY,
    DELETED_SUFFIX,
    FILE_NAME_LENGTH_MAX,
    LEASED_DIRECTORY,
    LOG_SUFFIX,
    META_PROPERTIES,
    parse_leased_file,
    segment_file,
)

_MISSING = "it is not there; every host that runs tasks needs the log directory at the same path"


def host_name() -> str:
    """This host, as errors name it: also by the address that Spark knows it by, since one machine
    can run several of its workers."""
    address = os.environ.get("SPARK_LOCAL_IP") or os.environ.get("SPARK_LOCAL_HOSTNAME")
    name = socket.gethostname()
    return f"{name} ({address})" if address else name


def open_slice(files: FileSystem, planned: ScanSlice) -> File:
    """The file that ``planned`` was made for, or ``DataLostError`` if nobody has it any more."""
    for path in _candidates(files, planned):
        file = _open_if_planned(files, path, planned.identity)
        if file is not None:
            return file
    reason = (
        f"host {host_name()} does not have the segment that the scan was planned for: it was "
        "deleted or rewritten since; scan again, or hold the files with a lease"
    )
    raise DataLostError(planned.topic_partition, planned.start_offset, planned.end_offset, reason)


def _open_if_planned(files: FileSystem, path: str, identity: FileIdentity) -> File | None:
    try:
        file = files.open(path, writable=False)
        # A name may pass to another file, never back: so what it names now, if it is what was
        # planned, is also what was opened.
        found = files.stat(path)
    except DiskError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    if found is not None and is_planned(found, identity):
        return file
    file.close()
    return None


def is_planned(found: Entry, identity: FileIdentity) -> bool:
    if (found.size_bytes, found.modified_ms) == (identity.size_bytes, identity.modified_ms):
        return True
    # Numbers of inodes are few, and those of another host's disk may be the same. A file only
    # grows, or is cut, and both are seen in its time.
    is_same = found.inode != 0 and found.inode == identity.inode
    return is_same and found.modified_ms >= identity.modified_ms


def _candidates(files: FileSystem, planned: ScanSlice) -> Iterator[str]:
    """Where the file may be now, likeliest first."""
    yield from _in_directory(files, planned.directory, planned.base_offset)
    for directory in _deleted_directories(files, planned.directory):
        yield from _in_directory(files, directory, planned.base_offset)
    # Once more: it may have been renamed while it was looked for elsewhere.
    yield from _in_directory(files, planned.directory, planned.base_offset)


def _in_directory(files: FileSystem, directory: str, base_offset: int) -> Iterator[str]:
    path = segment_file(directory, base_offset, LOG_SUFFIX)
    yield path
    yield path + DELETED_SUFFIX
    leased = f"{directory}/{LEASED_DIRECTORY}"
    for entry in _entries(files, leased):
        parsed = parse_leased_file(entry.name)
        if parsed is not None and (parsed.base_offset, parsed.kind) == (base_offset, LOG_SUFFIX):
            yield f"{leased}/{entry.name}"


def _deleted_directories(files: FileSystem, directory: str) -> Iterator[str]:
    """What ``directory`` may have been renamed to; a long topic's name is cut then."""
    parent = _parent(directory)
    topic, _, partition = directory.rpartition("/")[2].rpartition("-")
    for entry in _entries(files, parent):
        plain, _, _ = entry.name.rpartition(".")
        cut, _, number = plain.rpartition("-")
        is_cut = len(entry.name) >= FILE_NAME_LENGTH_MAX and cut and topic.startswith(cut)
        is_of_topic = number == partition and (cut == topic or is_cut)
        if entry.is_directory and entry.name.endswith(DELETE_DIRECTORY) and is_of_topic:
            yield f"{parent}/{entry.name}"


def _parent(directory: str) -> str:
    parent, slash, _ = directory.rpartition("/")
    return parent or slash or "."


def _entries(files: FileSystem, directory: str) -> list[Entry]:
    try:
        return files.list(directory)
    except DiskError:
        return []


def check_directory(files: FileSystem, planned: ScanSlice) -> None:
    """Refuse a path that on this host is not the directory that was planned for.

    Tasks run on other hosts, where the same path may be another broker's disk, or nothing.
    """
    check_log_directory(files, _parent(planned.directory), planned.directory_id)


def check_log_directory(files: FileSystem, log_directory: str, directory_id: str) -> None:
    """Refuse a log directory that is not there, or not the one with this ``directory.id``."""
    if not directory_id:
        if files.stat(log_directory) is None:
            raise WrongDirectoryError(log_directory, host_name(), _MISSING)
        return
    path = f"{log_directory}/{META_PROPERTIES}"
    try:
        found = parse_properties(read_file(files, path)).get("directory.id", "")
    except DiskError as error:
        raise WrongDirectoryError(log_directory, host_name(), f"{_MISSING} ({error})") from error
    except ConfigError as error:
        raise WrongDirectoryError(log_directory, host_name(), str(error)) from error
    if found != directory_id:
        raise WrongDirectoryError(
            log_directory,
            host_name(),
            f"its directory.id is {found or 'not set'}, that of the plan {directory_id}",
        )
