"""Writing the time ranges that a directory lacks: it was copied, or written by Apache Kafka.

Only where nobody else writes: the directory is locked while this goes on.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from stratalog.errors import DiskError
from stratalog.storage.files import FileSystem
from stratalog.storage.inspection import Found, find_replicas, list_replica
from stratalog.storage.layout import LOCK_FILE
from stratalog.storage.time_range_writing import write_time_ranges
from stratalog.storage.time_ranges import EARLIEST_MS, RANGE_BYTES, read_time_ranges

Segment = tuple[str, int]
Map = Callable[[Callable[[Segment], str | None], Iterable[Segment]], Iterable[str | None]]


@dataclass(slots=True)
class FilledRanges:
    """What became of a directory's segments, those left out that are too short to have ranges."""

    written: int = 0
    present: int = 0
    failures: list[str] = field(default_factory=list)


def fill_time_ranges(files: FileSystem, path: str, *, each: Map = map) -> FilledRanges:
    """Write the missing ranges of a log directory, or of one partition; ``each`` is ``map`` or
    does the same on several threads. ``LogDirectoryError`` if somebody owns the directory."""
    found = find_replicas(files, path)
    filled = FilledRanges()
    with _locked(files, found):
        missing = []
        for directory in found.replicas:
            for segment in list_replica(files, directory).segments:
                if segment.size_bytes < RANGE_BYTES:
                    continue
                if _has_ranges(files, directory, segment.base_offset, segment.log_path):
                    filled.present += 1
                else:
                    missing.append((directory, segment.base_offset))

        def write(segment: Segment) -> str | None:
            try:
                done = write_time_ranges(files, *segment)
            except DiskError as error:
                return str(error)
            return None if done else f"{segment[0]}: the file system keeps no exact times"

        for failure in each(write, missing):
            if failure is None:
                filled.written += 1
            else:
                filled.failures.append(failure)
    return filled


def _has_ranges(files: FileSystem, directory: str, base_offset: int, log_path: str) -> bool:
    file = files.open(log_path, writable=False)
    try:
        found = read_time_ranges(
            files, directory, base_offset, log_file=file, log_size=file.size_bytes()
        )
        if found is None or found.covered_bytes < file.size_bytes():
            return False
        return EARLIEST_MS not in found.min_ms  # which is what nobody has looked into
    finally:
        file.close()


@contextmanager
def _locked(files: FileSystem, found: Found) -> Iterator[None]:
    """A partition that lies by itself, in no log directory, has no owner to keep out."""
    path = f"{found.log_directory}/{LOCK_FILE}"
    if not found.is_log_directory and not files.exists(path):
        yield
        return
    lock = files.lock(path)
    try:
        yield
    finally:
        lock.release()
