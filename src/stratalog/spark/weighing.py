"""As much of a batch as so many bytes allow: ``maxBytesPerTrigger``.

Bytes are those of the ``.log`` files, as they are read. A batch of the log is never divided: a
partition gets its share rounded down to whole ones, and at least one, so that a stream always
moves on.
"""

from contextlib import suppress

from stratalog.errors import DiskError
from stratalog.scans.snapshot import DirectorySnapshot
from stratalog.scans.times import bytes_between, offset_within_bytes
from stratalog.spark.admission import Offsets, share
from stratalog.storage.layout import TopicPartition


def limit_bytes(
    limit: int, begin: Offsets, end: Offsets, snapshot: DirectorySnapshot
) -> dict[TopicPartition, int]:
    """[begin, end) cut to ``limit`` bytes, shared in proportion to what each partition has."""
    sizes: dict[TopicPartition, int] = {}
    limited = dict(end)
    for each, offset in end.items():
        if offset > begin[each] and each in snapshot.partitions:
            # A segment that was taken out of the log just now is for the planner to find.
            with suppress(DiskError):
                sizes[each] = bytes_between(snapshot.partitions[each], begin[each], offset)
    if sum(sizes.values()) <= limit:
        return limited
    for each, budget in share(limit, sizes).items():
        if budget < sizes[each]:
            with suppress(DiskError):
                limited[each] = offset_within_bytes(
                    snapshot.partitions[each], begin[each], end[each], budget
                )
    return limited
