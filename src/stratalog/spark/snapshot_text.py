"""A snapshot as text, so that it can travel to the source as an option.

``stratalog.spark.snapshot`` takes one snapshot and lets many DataFrames read it, each of which is a
load of its own. Text and not a pickle: options come from SQL too, and a pickle is a program.
"""

import base64
import json
import zlib
from typing import Any

from stratalog.directories.owners import Ownership
from stratalog.scans.errors import ScanOptionError
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot
from stratalog.storage.absences import Absence
from stratalog.storage.inspection import ListedSegment, SegmentTable
from stratalog.storage.layout import TopicPartition

SNAPSHOT_OPTION = "stratalog.snapshot"
_VERSION = 2
# An option of some kilobytes may unpack to this and no more: a million segments fit.
_BYTES_MAX = 256 << 20


def write_snapshot(snapshot: DirectorySnapshot) -> str:
    told = {
        "version": _VERSION,
        "path": snapshot.path,
        "directory_id": snapshot.directory_id,
        "owner": [snapshot.owner.kind, snapshot.owner.pid],
        "partitions": [_write_partition(each) for each in snapshot.partitions.values()],
    }
    packed = zlib.compress(json.dumps(told, separators=(",", ":")).encode())
    return base64.b64encode(packed).decode()


def _write_partition(partition: PartitionSnapshot) -> list[object]:
    segments = partition.segments
    return [
        partition.topic_partition.topic,
        partition.topic_partition.partition,
        partition.directory,
        partition.start_offset,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.is_end_exact,
        partition.end_position,
        [list(each) for each in segments],
        [list(each) for each in partition.absences],
    ]


def read_snapshot(text: str) -> DirectorySnapshot:
    unpack = zlib.decompressobj()
    try:
        packed = base64.b64decode(text, validate=True)
        told = json.loads(unpack.decompress(packed, _BYTES_MAX))
        if told["version"] != _VERSION:
            raise ValueError(told["version"])
        partitions = [_read_partition(*each) for each in told["partitions"]]
        kind, pid = told["owner"]
        return DirectorySnapshot(
            str(told["path"]),
            str(told["directory_id"]),
            Ownership(str(kind), None if pid is None else int(pid)),
            {each.topic_partition: each for each in partitions},
        )
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, zlib.error) as error:
        raise ScanOptionError(
            SNAPSHOT_OPTION, text[:40], "it is no snapshot that stratalog.spark.snapshot made"
        ) from error


def _read_partition(
    topic: str,
    partition: int,
    directory: str,
    start_offset: int,
    high_watermark: int,
    last_stable_offset: int,
    is_end_exact: bool,
    end_position: int,
    segments: list[list[int]],
    absences: list[list[Any]],
) -> PartitionSnapshot:
    return PartitionSnapshot(
        TopicPartition(str(topic), int(partition)),
        str(directory),
        int(start_offset),
        int(high_watermark),
        int(last_stable_offset),
        SegmentTable([ListedSegment._make(each) for each in segments]),
        bool(is_end_exact),
        int(end_position),
        tuple(Absence._make(each) for each in absences),
    )
