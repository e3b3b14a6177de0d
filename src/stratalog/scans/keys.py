"""Which partition a key is in, by Kafka's default partitioner; and whether that can be believed.

How many partitions a topic has is not written in a log directory, which may hold only some; and
a topic may have had fewer once. What pruning needs is less: that the keys here are where so many
partitions would put them. So keys are sampled, and one in the wrong place forbids it; and so do too
few, since with another number of partitions a key can be in its place by chance.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from stratalog.errors import DiskError, RecordError
from stratalog.records.columns import decode_columns
from stratalog.scans.places import SegmentPlaces
from stratalog.scans.snapshot import PartitionSnapshot
from stratalog.storage.files import FileSystem
from stratalog.storage.inspection import ListedSegment

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SAMPLE_BYTES_MAX = 4 << 20
# By chance a key is in its place with a probability of one half, at most.
_KEYS_MIN = 32
_KEYS_WANTED = 2 * _KEYS_MIN  # some partitions have fewer than their share
_BATCHES_MAX = 64
_SEGMENTS_MAX = 64


def murmur2(key: bytes) -> int:
    """As the Java client computes it, without a sign."""
    hashed = _SEED ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        part = int.from_bytes(key[at : at + 4], "little") * _M & _MASK
        part = (part ^ part >> 24) * _M & _MASK
        hashed = (hashed * _M & _MASK) ^ part
    if rest := key[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15


def partition_of(key: bytes, partition_count: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


@dataclass(frozen=True, slots=True)
class KeyPlacement:
    """The partitions of one topic that keys can be in; ``partitions`` None is any, and why."""

    partitions: frozenset[int] | None
    explanation: str


def place_keys(
    files: FileSystem, keys: frozenset[bytes], partitions: Mapping[int, PartitionSnapshot]
) -> KeyPlacement:
    """Where ``keys`` of one topic can be, of which these partitions are in the directory."""
    count = len(partitions)
    if set(partitions) != set(range(count)):
        return KeyPlacement(
            None,
            f"not all partitions from 0 on are here ({count} are, the last is {max(partitions)})",
        )
    seen = 0
    for number, partition in partitions.items():
        oldest, newest = _sample(files, partition, _KEYS_WANTED // count + 1)
        # Partitions are only ever added: it is the oldest records that can be in other places.
        seen += len(oldest)
        for key in (*oldest, *newest):
            if partition_of(key, count) != number:
                return KeyPlacement(
                    None,
                    f"partition {number} holds a key that the default partitioner would have put "
                    f"in {partition_of(key, count)} of {count}",
                )
    if seen < _KEYS_MIN and count > 1:
        return KeyPlacement(
            None, f"the oldest records have too few keys to tell ({seen}, of {_KEYS_MIN})"
        )
    chosen = frozenset(partition_of(key, count) for key in keys)
    names = ", ".join(map(str, sorted(chosen)))
    return KeyPlacement(
        chosen, f"in partition {names} of {count} by the default partitioner, as {seen} keys are"
    )


def _sample(
    files: FileSystem, partition: PartitionSnapshot, wanted: int
) -> tuple[set[bytes], set[bytes]]:
    """Keys of the oldest segments that have any, and of the newest. Compaction leaves the first
    segments of a log empty, or with few keys."""
    segments = partition.segments
    filled = [place for place, size in enumerate(segments.sizes_bytes) if size]
    oldest: set[bytes] = set()
    for place in filled[:_SEGMENTS_MAX]:
        missing = wanted - len(oldest)
        oldest |= _first_keys(files, partition.directory, segments[place], missing)
        if len(oldest) >= wanted:
            break
    if len(filled) < 2:
        return oldest, set()
    return oldest, _first_keys(files, partition.directory, segments[filled[-1]], 1)


def _first_keys(
    files: FileSystem, directory: str, listed: ListedSegment, wanted: int
) -> set[bytes]:
    """The keys of a segment's first batches, until there are ``wanted``."""
    found: set[bytes] = set()
    with SegmentPlaces(files, directory, listed) as places, suppress(DiskError, RecordError):
        # Of damage, whoever reads it is told.
        for batch in islice(places.walk(0), _BATCHES_MAX):
            if batch.is_control or batch.size_bytes > _SAMPLE_BYTES_MAX:
                continue
            content = places.file.read_at(batch.position, batch.size_bytes)
            columns = decode_columns(content, columns=("key",), start_offset=-1)
            found.update(key for key in columns.column(0).to_pylist() if key is not None)
            if len(found) >= wanted:
                break
    return found
