"""Staged files and manifests for tests of commits, on any file system."""

from collections.abc import Mapping, Sequence

from stratalog.clock import Clock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Record, build_batch
from stratalog.storage.commits.manifest import (
    AppVersion,
    CommitKind,
    Manifest,
    PartitionManifest,
)
from stratalog.storage.commits.staging import StagedLogWriter, open_staging, staging_directory
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition, replica_directory
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

LOG_DIR = "/data"
START_MS = 1_700_000_000_000
STAGED_SECONDS = 60

# A partition's files, each a list of batches, each a list of values.
Values = Sequence[Sequence[Sequence[bytes]]]


def new_manager(
    files: FileSystem,
    clock: Clock,
    config: TopicConfig,
    *,
    append_max_bytes: int = 1000,
    log_dirs: tuple[str, ...] = (LOG_DIR,),
) -> LogManager:
    broker = BrokerConfig(
        log_dirs=log_dirs,
        log_dir_reserve_bytes=0,
        num_recovery_threads_per_data_dir=1,
        log_initial_task_delay_ms=0,
        log_commit_append_max_bytes=append_max_bytes,
    )
    return LogManager(
        broker, files=files, clock=clock, topic_config=lambda _topic: config, is_threaded=False
    )


def new_disk(clock: ManualClock) -> SimulatedFileSystem:
    return SimulatedFileSystem(now_ms=clock.now_ms)


def batch(values: Sequence[bytes]) -> bytes:
    return build_batch([Record(b"k", value, (), START_MS) for value in values])


def stage(
    files: FileSystem,
    clock: Clock,
    staged: Mapping[TopicPartition, Values],
    *,
    manifest_id: str = "load-1",
    app: AppVersion | None = None,
    topic_ids: Mapping[TopicPartition, str] | None = None,
    log_dir: str = LOG_DIR,
    staging_id: str | None = None,
) -> Manifest:
    """Write what tasks would, and say what a driver would."""
    held = open_staging(
        files, log_dir, holder="a test", seconds=STAGED_SECONDS, clock=clock, staging_id=staging_id
    )
    parts = []
    for key, of_files in staged.items():
        directory = staging_directory(f"{log_dir}/{replica_directory(key)}", held)
        found = []
        for number, batches in enumerate(of_files):
            writer = StagedLogWriter(files, directory, f"{number:05d}-0", segment_bytes=1 << 30)
            for values in batches:
                writer.append(batch(values))
            found.extend(writer.finish())
        topic_id = (topic_ids or {}).get(key, "")
        parts.append(
            PartitionManifest(
                topic=key.topic, partition=key.partition, topic_id=topic_id, files=tuple(found)
            )
        )
    return Manifest(
        manifest_id=manifest_id,
        kind=CommitKind.APPEND,
        staging_id=held,
        partitions=tuple(parts),
        app=app,
        holder="a test",
    )
