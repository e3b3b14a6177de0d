"""Before a segment is cut in place, on which somebody has a lease: the log goes on with a copy.

A reader knows its file by what the file is, not by its name. One that was cut and appended to again
is still that file, with other records at the same offsets. So the file that readers know goes to
``leased`` as it is, and a copy of it takes its name.

``.cleaned`` → ``.swap``, the old file out of the way, ``.swap`` → plain: as after a cleaning, so
that whatever step a crash hits, the next start finds one whole file (``sweep``). It costs a copy of
a segment, on the log's thread: a log is cut when a leader has changed, and leased then hardly ever.
"""

from contextlib import suppress

from stratalog.errors import DiskError
from stratalog.storage.files import FileSystem
from stratalog.storage.held_files import UNKNOWN_END
from stratalog.storage.layout import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    TopicPartition,
    segment_file,
)
from stratalog.storage.lease_book import LeaseBook
from stratalog.storage.segment import Segment

_COPY_BYTES = 8 << 20


def leave_to_readers(
    files: FileSystem,
    leases: LeaseBook,
    topic_partition: TopicPartition,
    directory: str,
    segment: Segment,
) -> None:
    """If anybody has a lease on ``segment``, let them have its file, and the log a copy."""
    base_offset = segment.base_offset
    if not leases.is_leased(topic_partition, base_offset, UNKNOWN_END):
        return
    path = segment_file(directory, base_offset, LOG_SUFFIX)
    copy = path + CLEANED_SUFFIX
    try:
        _copy(files, segment, copy)
    except DiskError:
        # Without room for a copy, the log must be cut all the same.
        with suppress(DiskError):
            files.unlink(copy, missing_ok=True)
        return
    aborted = list(segment.transaction_index) if segment.transaction_index.exists else []
    segment.discard()
    files.rename(copy, path + SWAP_SUFFIX)
    going = [path]
    if aborted:
        going.append(segment_file(directory, base_offset, TRANSACTION_INDEX_SUFFIX))
    leases.keep_files(topic_partition, directory, base_offset, UNKNOWN_END, going)
    files.rename(path + SWAP_SUFFIX, path)
    if aborted:
        segment.transaction_index.rebuild(aborted)
    files.sync_directory(directory)


def _copy(files: FileSystem, segment: Segment, target: str) -> None:
    files.unlink(target, missing_ok=True)
    file = files.open(target, create=True)
    try:
        position = 0
        while position < segment.size_bytes:
            size = min(_COPY_BYTES, segment.size_bytes - position)
            file.write_at(position, [segment.file().read_at(position, size)])
            position += size
        file.sync()
    finally:
        file.close()
