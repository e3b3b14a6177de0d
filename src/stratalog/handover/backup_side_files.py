"""What lies beside the segments of a log, and is backed up with them: indexes and snapshots."""

from collections.abc import Container, Iterator, Mapping
from contextlib import suppress

from stratalog.errors import CorruptFileError, DiskError
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.inspection import ListedSegment
from stratalog.storage.layout import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.ours import OwnFiles
from stratalog.storage.snapshots import decode_snapshot


def read_indexes(files: FileSystem, directory: str, listed: ListedSegment) -> Mapping[str, bytes]:
    """All that belong to a segment, or none: then whoever opens it builds them anew."""
    found = {}
    for suffix in INDEX_SUFFIXES:
        path = segment_file(directory, listed.base_offset, suffix)
        with suppress(DiskError):
            if files.exists(path):
                found[suffix] = read_file(files, path)
    entry = files.stat(segment_file(directory, listed.base_offset, LOG_SUFFIX))
    is_same = entry is not None and entry.inode == listed.inode
    # Without the offset index, Apache Kafka builds all of them again; without another, it does
    # not, and records that were aborted would be read as if they had been committed.
    needed = {OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX}
    if listed.base_offset in OwnFiles(files, directory).aborts():
        needed.add(TRANSACTION_INDEX_SUFFIX)
    if not is_same or needed - set(found) or _is_preallocated(found[OFFSET_INDEX_SUFFIX]):
        return {}
    return found


def _is_preallocated(entries: bytes) -> bool:
    """Whether an offset index was never cut to its size: by who was killed, or rolls just now."""
    return bool(entries) and not any(entries[-8:])


def read_snapshots(
    files: FileSystem, directory: str, wanted: Container[int], *, above: int
) -> dict[int, bytes]:
    """Those of its producers that are at a ``wanted`` offset ``above`` the log's start."""
    kept = {}
    for entry in files.list(directory):
        name = parse_segment_file(entry.name)
        if name is None or name.kind != SNAPSHOT_SUFFIX or name.state:
            continue
        if name.offset in wanted and name.offset > above:
            with suppress(DiskError):
                kept[name.offset] = read_file(files, f"{directory}/{entry.name}")
    return kept


def producer_ids(snapshots: Mapping[int, bytes]) -> Iterator[int]:
    for offset, data in snapshots.items():
        with suppress(CorruptFileError):
            for state in decode_snapshot(f"snapshot {offset}", data):
                yield state.producer_id
