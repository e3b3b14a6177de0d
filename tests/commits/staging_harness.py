"""Staged files on a simulated disk, and the ordinary log that they are compared with."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from stratalog.config import TopicConfig
from stratalog.records import Record, build_batch, read_headers
from stratalog.storage.commits.checking import CheckedPartition, check_partition
from stratalog.storage.commits.manifest import (
    CommitKind,
    Manifest,
    PartitionManifest,
    StagedFile,
)
from stratalog.storage.commits.staged_log import StagedLogWriter, digest_of
from stratalog.storage.commits.staging import staging_directory
from stratalog.storage.files import FileSystem
from stratalog.testing import SimulatedFileSystem

LOG_DIR = "/logs"
DIRECTORY = "/logs/orders-0"
STAGING_ID = "5f" * 16
NOW_MS = 1_700_000_000_000
# Below the least that segment.bytes may be, which is more than a small file has.
SMALL = {"internal_segment_bytes": 4_096, "segment_index_bytes": 1_200}


def new_disk(*directories: str) -> SimulatedFileSystem:
    files = SimulatedFileSystem(now_ms=lambda: NOW_MS)
    for each in (LOG_DIR, DIRECTORY, *directories):
        files.make_directory(each)
    return files


def topic(**settings: Any) -> TopicConfig:
    return TopicConfig(**{**SMALL, **settings})


def batch(count: int = 1, *, value_bytes: int = 8, at_ms: int = NOW_MS, **options: Any) -> bytes:
    rows = [Record(b"k%d" % number, bytes(value_bytes), (), at_ms) for number in range(count)]
    return build_batch(rows, **options)


def stage(
    files: FileSystem,
    *tasks: Iterable[bytes],
    directory: str = DIRECTORY,
    staging_id: str = STAGING_ID,
    segment_bytes: int = 1 << 20,
) -> tuple[StagedFile, ...]:
    """What tasks have written that were given these batches, in the order of the tasks."""
    staged: list[StagedFile] = []
    for number, batches in enumerate(tasks):
        writer = StagedLogWriter(
            files,
            staging_directory(directory, staging_id),
            f"{number:05d}-0",
            segment_bytes=segment_bytes,
        )
        for each in batches:
            writer.append(each)
        staged += writer.finish()
    return tuple(staged)


def put_staged(files: SimulatedFileSystem, content: bytes, name: str = "x.log") -> StagedFile:
    """A file as nobody's writer would write it, and a manifest's word for it."""
    stage(files, [batch()])  # makes the directories
    files.put(f"{staging_directory(DIRECTORY, STAGING_ID)}/{name}", content)
    headers = read_headers(content, check_crc=False)
    return StagedFile(
        name=name,
        size_bytes=len(content),
        record_count=sum(max(each.record_count, 0) for each in headers),
        digest=f"{digest_of([each.crc for each in headers]):08x}",
    )


def part_of(staged: Sequence[StagedFile]) -> PartitionManifest:
    return PartitionManifest(topic="orders", partition=0, files=tuple(staged))


def manifest_of(staged: Sequence[StagedFile]) -> Manifest:
    return Manifest(
        manifest_id="load-1",
        kind=CommitKind.APPEND,
        staging_id=STAGING_ID,
        partitions=(part_of(staged),),
    )


def check(
    files: FileSystem,
    staged: Sequence[StagedFile],
    config: TopicConfig | None = None,
    *,
    now_ms: int = NOW_MS,
    append_max_bytes: int = 0,
) -> CheckedPartition:
    """As segments of their own, unless they have less than ``append_max_bytes``."""
    return check_partition(
        files,
        DIRECTORY,
        part_of(staged),
        config or topic(),
        staging_id=STAGING_ID,
        now_ms=now_ms,
        append_max_bytes=append_max_bytes,
    )


def staged_path(name: str) -> str:
    return f"{staging_directory(DIRECTORY, STAGING_ID)}/{name}"


def stamped(batches: Iterable[bytes], *, base_offset: int = 0, leader_epoch: int = -1) -> bytes:
    """The batches with the offsets that they get one after the other."""
    whole = bytearray()
    for each in batches:
        (header,) = read_headers(each)
        whole += base_offset.to_bytes(8, "big") + each[8:12]
        whole += leader_epoch.to_bytes(4, "big", signed=True) + each[16:]
        base_offset += header.record_count
    return bytes(whole)


def changed(staged: StagedFile, **fields: Any) -> StagedFile:
    return replace(staged, **fields)
