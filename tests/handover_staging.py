"""Staged loads for tests: what a task would have written, and the manifest of it."""

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from stratalog.clock import SystemClock
from stratalog.handover import Handover
from stratalog.records import Record, build_batch
from stratalog.storage.commits.manifest import (
    AppVersion,
    CommitKind,
    Manifest,
    PartitionManifest,
)
from stratalog.storage.commits.staged_log import StagedLogWriter
from stratalog.storage.commits.staging import open_staging, staging_directory
from stratalog.storage.files import OsFileSystem

START_MS = 1_700_000_000_000


def rows(first: int, count: int, size_bytes: int = 10) -> bytes:
    """One batch of ``count`` records with keys from ``s<first>`` on."""
    return build_batch(
        Record(b"s%d" % number, b"v" * size_bytes, timestamp_ms=START_MS + number)
        for number in range(first, first + count)
    )


def stage(
    handover: Handover,
    topic: str,
    partitions: Mapping[int, Iterable[bytes]],
    *,
    manifest_id: str | None = None,
    app: AppVersion | None = None,
    seconds: float = 600,
) -> Manifest:
    """Write ``partitions``, batches of each, as one task would."""
    files = OsFileSystem()
    facts = handover.topics([topic])[topic]
    staging_id = open_staging(
        files, handover.log_dir, holder="a test", seconds=seconds, clock=SystemClock()
    )
    staged = []
    for partition, batches in partitions.items():
        directory = staging_directory(facts.partitions[partition], staging_id)
        writer = StagedLogWriter(files, directory, "00000-0", segment_bytes=facts.segment_bytes)
        for batch in batches:
            writer.append(batch)
        staged.append(
            PartitionManifest(
                topic=topic, partition=partition, topic_id=facts.topic_id, files=writer.finish()
            )
        )
    return Manifest(
        manifest_id=manifest_id or uuid.uuid4().hex,
        kind=CommitKind.APPEND,
        staging_id=staging_id,
        partitions=tuple(staged),
        app=app,
        holder="a test",
    )


def staged_left(log_dir: Path) -> list[Path]:
    """Whatever is staged still, in any partition."""
    return sorted(log_dir.glob("*/.stratalog/staging/*/*"))


def in_no_time(handover: Handover) -> Handover:
    """With a clock that runs ahead when somebody waits: what is bounded ends at once."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    handover._monotonic = lambda: now[0]
    handover._sleep = sleep
    return handover
