"""Staged files and manifests for tests of commits, on any file system, and an owner of logs to
commit them to."""

import uuid
from collections.abc import Mapping, Sequence

from stratalog.clock import Clock
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import Codec, Record, build_batch, read_headers
from stratalog.records.columns import decode_records
from stratalog.storage.commits.committing import Commit, CommitResult
from stratalog.storage.commits.manifest import (
    AppVersion,
    CommitKind,
    Manifest,
    PartitionManifest,
)
from stratalog.storage.commits.staged_log import StagedLogWriter
from stratalog.storage.commits.staging import open_staging, staging_directory
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import TopicPartition, replica_directory
from stratalog.storage.log import Log
from stratalog.storage.manager import LogManager
from stratalog.testing import ManualClock, SimulatedFileSystem

LOG_DIR = "/data"
START_MS = 1_700_000_000_000
STAGED_SECONDS = 60

ORDERS = TopicPartition("orders", 0)
OTHERS = TopicPartition("others", 0)
CONFIG = TopicConfig(
    internal_segment_bytes=2000, index_interval_bytes=150, segment_index_bytes=1200
)

# A partition's files, each a list of batches, each a list of values.
Values = Sequence[Sequence[Sequence[bytes]]]
# Little enough to be appended, and so much that it becomes segments of its own.
SMALL: Values = [[[b"a", b"b"], [b"c"]], [[b"d"]]]
LARGE: Values = [[[b"x" * 300]] * 5, [[b"y" * 300]] * 4]


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


def batch(values: Sequence[bytes], codec: Codec = Codec.NONE) -> bytes:
    return build_batch([Record(b"k", value, (), START_MS) for value in values], codec=codec)


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
    codec: Codec = Codec.NONE,
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
                writer.append(batch(values, codec))
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


def flat(values: Values) -> list[bytes]:
    return [value for file in values for each in file for value in each]


class Owner:
    """A manager with logs, and what is staged for it."""

    def __init__(self, files: FileSystem | None = None, log_dir: str = LOG_DIR) -> None:
        self.clock = ManualClock(START_MS)
        self.files = files or new_disk(self.clock)
        self.log_dir = log_dir
        self.start()

    def start(self, config: TopicConfig = CONFIG) -> None:
        self.manager = new_manager(self.files, self.clock, config, log_dirs=(self.log_dir,))
        self.manager.start()

    def log(self, key: TopicPartition = ORDERS) -> Log:
        return self.manager.get(key)

    def create(self, *keys: TopicPartition) -> None:
        for key in keys:
            self.manager.create(key, topic_id=uuid.uuid5(uuid.NAMESPACE_URL, str(key)))

    def stage(
        self,
        values: Values,
        name: str = "load",
        *,
        key: TopicPartition = ORDERS,
        app: AppVersion | None = None,
        topic_id: str = "",
        codec: Codec = Codec.NONE,
    ) -> Manifest:
        return stage(
            self.files,
            self.clock,
            {key: values},
            manifest_id=name,
            app=app,
            topic_ids={key: topic_id},
            log_dir=self.log_dir,
            codec=codec,
        )

    def run(self, manifest: Manifest) -> CommitResult:
        return self.manager.commits.run(manifest)

    def plan(self, manifest: Manifest) -> Commit:
        planned = self.manager.commits.plan(manifest)
        assert isinstance(planned, Commit)
        return planned

    def append(self, value: bytes, key: TopicPartition = ORDERS) -> int:
        return self.log(key).append_as_leader(batch([value])).first_offset

    def values(self, key: TopicPartition = ORDERS) -> list[bytes]:
        log = self.log(key)
        found: list[bytes] = []
        for segment in log.segments:
            for header in segment.headers():
                stored = segment.read_batch(header)
                read_headers(stored)
                assert header.base_offset == len(found)
                found += [bytes(row.value or b"") for row in decode_records(stored)]
        assert len(found) == log.log_end_offset
        return found


def new_owner() -> Owner:
    """On a disk of its own, with two logs."""
    made = Owner()
    made.create(ORDERS, OTHERS)
    return made
