"""What a commit does to one log, step by step: the shape that each kind of commit fills.

The steps, in order, and on which thread:

    check     any, long     read what was staged; nothing of the log changes
    stop      owner's       appends are paused: where the log ends is fixed
    settle    any           make durable all that the journal's record will stand on; returns what
                            the record says about this log
    place     any           the record is durable: put the files where they belong. The same as
                            rolling forward, which does it again after a crash, with the record
                            alone to go by
    apply     owner's       the log takes them in; appends go on
    complete  any           make durable what the record need not stand for any more
    finish    owner's       note it
    abandon   owner's       instead of the rest, if the record was not written: nothing has changed
"""

import errno
from collections.abc import Callable
from typing import Any, Protocol

from stratalog.errors import CorruptFileError, DiskError
from stratalog.storage.checkpoint import format_id
from stratalog.storage.commits.errors import CommitRefusedError
from stratalog.storage.files import File, FileSystem
from stratalog.storage.layout import (
    LOG_SUFFIX,
    TopicPartition,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.log import Log

WorkRecord = dict[str, Any]


def topic_id_of(log: Log) -> str:
    """As manifests and records of the journal have it; empty where the log has none."""
    return "" if log.topic_id is None else format_id(log.topic_id)


def sync_file(
    files: FileSystem, path: str, *, before: Callable[[File], None] = lambda _file: None
) -> None:
    """Make the bytes of a file durable, whoever wrote them; one that was deleted needs none."""
    try:
        file = files.open(path)
    except DiskError as error:
        if error.errno == errno.ENOENT:
            return
        raise
    try:
        before(file)
        file.sync()
    finally:
        file.close()


def refuse_lost(files: FileSystem, directory: str, staged: str, base_offset: int) -> None:
    """``staged`` was committed, and is neither in staging nor in the segment ``base_offset``. That
    is well if the log has gone on, so that it was there once; else its offsets, which somebody was
    told of, would be given to other records."""
    if not has_gone_on(files, directory, base_offset):
        raise CorruptFileError(
            staged,
            "was committed and is gone before it became part of its log; put it back, or set the "
            f"directory {directory} aside, and start again",
        )


def refuse_cut(files: FileSystem, directory: str, base_offset: int) -> None:
    """The segment ``base_offset`` has lost what lay before committed records, which was durable;
    unless the log has gone on, and it was cleaned or deleted since."""
    if not has_gone_on(files, directory, base_offset):
        raise CorruptFileError(
            segment_file(directory, base_offset, LOG_SUFFIX),
            "has lost the batch behind which records were committed; put the segment back as it "
            f"was, or set the directory {directory} aside, and start again",
        )


def has_gone_on(files: FileSystem, directory: str, base_offset: int) -> bool:
    return any(found > base_offset for found in log_sizes(files, directory))


def log_sizes(files: FileSystem, directory: str) -> dict[int, int]:
    """The segments that are there, by base offset."""
    found = [(entry, parse_segment_file(entry.name)) for entry in files.list(directory)]
    return {
        name.offset: entry.size_bytes
        for entry, name in found
        if name is not None and name.kind == LOG_SUFFIX and not name.state
    }


def refuse_full(
    files: FileSystem, log_dir: str, needed_bytes: int, *, reserve_bytes: int, what: str
) -> None:
    """A commit takes nothing of what stays free for producers. ``what`` is going to happen with so
    many."""
    free_bytes = files.free_bytes(log_dir) if needed_bytes else 0
    if needed_bytes and free_bytes < needed_bytes + reserve_bytes:
        raise CommitRefusedError(
            f"{needed_bytes} {what} in {log_dir}, where {free_bytes} are free and "
            f"log.dir.reserve.bytes={reserve_bytes} stay free"
        )


class PartitionWork(Protocol):
    """``settle`` returns JSON with ``topic``, ``partition``, ``mode``, by which it is rolled
    forward, and ``first_offset`` and ``end_offset``, between which the records are."""

    @property
    def key(self) -> TopicPartition: ...
    @property
    def log(self) -> Log: ...
    @property
    def needed_bytes(self) -> int:
        """How much more is written once the commit is made: there had better be room for it."""
        ...

    def check(self) -> None: ...
    def stop(self) -> None: ...
    def settle(self) -> WorkRecord: ...
    def place(self) -> None: ...
    def apply(self) -> None: ...
    def complete(self) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...
