"""What a commit of 1 GB costs those who append meanwhile, and what 1 000 small ones leave behind.

A client produces one record of 100 bytes at a time, acks=all, the next one when the answer is
there, to one partition. Meanwhile 1 GB that was staged before is committed, into the same partition
and into another one. Stretches without a commit come in between, so that what else the machine does
meets both alike. Once as brokers are by default, where each
acknowledgement waits for the disk, and once without that.

Then 1 000 batches of 100 rows, each staged, handed over and committed, as a stream does.
"""

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.broker_figures import SYNCED
from benchmarks.broker_processes import BrokerProcess, running, stratalog
from benchmarks.broker_raw import Batch, BrokerFailedError, Producer, make_batch
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, Peer, lower, quantile
from stratalog.clock import SystemClock
from stratalog.handover import Handover, open_handover
from stratalog.storage.commits.manifest import AppVersion, CommitKind, Manifest, PartitionManifest
from stratalog.storage.commits.staged_log import StagedLogWriter
from stratalog.storage.commits.staging import open_staging, staging_directory
from stratalog.storage.files import OsFileSystem

COMMIT_BYTES = scaled(1_000_000_000)
BATCH_BYTES = 256 << 10
TURNS = 3
TIMES = 3.0
QUIET_SECONDS = 2.0
SMALL_COMMITS, SMALL_ROWS = scaled(1_000), 100
SEGMENT_BYTES = 256 << 20
ALONE = Peer("the same without", is_rival=False)


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    for is_synced in (True, False):
        home = root / ("synced" if is_synced else "ours")
        with running([stratalog(home, is_synced=is_synced)]) as (broker,):
            for target in ("the same", "another"):
                yield measure(broker, target)
            if is_synced:
                yield from small_commits(broker)
        shutil.rmtree(home)


# --- beside a large commit ----------------------------------------------------------------------


@dataclass
class Stretch:
    """What a producer waited for each of its records, in ms."""

    latencies_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def quantile(self, share: float) -> float:
        return quantile(self.latencies_ms, share)


def measure(broker: BrokerProcess, target: str) -> Outcome:
    """``target`` is the partition that the commit goes to: the producer's, or another."""
    partition = 0 if target == "the same" else 1
    topic = f"load-{partition}"
    with broker.connect() as connection:
        configs = {"segment.bytes": str(SEGMENT_BYTES)}
        connection.create_topic(topic, partitions=2, configs=configs)
    handover = open_handover(broker.log_dir)
    probe = make_batch(100, 1)
    beside, alone = [], []
    produce_for(broker, topic, probe, Stretch(), QUIET_SECONDS)  # warm
    for _ in range(TURNS):
        beside.append(Stretch())
        alone.append(Stretch())
        manifest = stage(handover, topic, {partition: large(COMMIT_BYTES)})
        settle_disk(broker)
        produce_for(broker, topic, probe, alone[-1], QUIET_SECONDS)
        produce_beside(broker, topic, probe, beside[-1], handover, manifest)
    with broker.connect() as connection:
        connection.delete_topic(topic)
    flush = ".flush" if broker.name == SYNCED else ""
    return lower(
        f"commit-load.{'same' if partition == 0 else 'other'}{flush}",
        f"append p99 during the commit of {COMMIT_BYTES / 1e9:.1g} GB into {target} partition"
        f"{', flush on ack' if flush else ''}",
        "ms",
        [each.quantile(0.99) for each in beside],
        [each.quantile(0.99) for each in alone],
        peer=ALONE,
        bar=Bar(ratio=TIMES),
        note=f"longest {max(each.quantile(1) for each in beside):.0f} ms, without "
        f"{max(each.quantile(1) for each in alone):.0f} ms; a commit took "
        f"{median(each.seconds for each in beside):.2f} s",
    )


def produce_for(
    broker: BrokerProcess, topic: str, probe: Batch, stretch: Stretch, seconds: float
) -> None:
    until = time.perf_counter() + seconds
    _produce(broker, topic, probe, stretch, lambda now: now < until)


def produce_beside(
    broker: BrokerProcess,
    topic: str,
    probe: Batch,
    stretch: Stretch,
    handover: Handover,
    manifest: Manifest,
) -> None:
    is_done = threading.Event()
    failures: list[Exception] = []

    def commit() -> None:
        try:
            started = time.perf_counter()
            handover.commit(manifest)
            stretch.seconds += time.perf_counter() - started
        except Exception as error:  # noqa: BLE001 - raised again where the benchmark waits
            failures.append(error)
        finally:
            is_done.set()

    thread = threading.Thread(target=commit)
    thread.start()
    _produce(broker, topic, probe, stretch, lambda _now: not is_done.is_set())
    thread.join()
    if failures:
        raise failures[0]


def _produce(
    broker: BrokerProcess,
    topic: str,
    probe: Batch,
    stretch: Stretch,
    goes_on: Callable[[float], bool],
) -> None:
    with broker.connect() as connection:
        producer = Producer(connection, topic, 0, probe)
        ended = time.perf_counter()
        while goes_on(ended):
            started = time.perf_counter()
            producer.produce()
            ended = time.perf_counter()
            stretch.latencies_ms.append((ended - started) * 1e3)


def settle_disk(broker: BrokerProcess) -> None:
    """What staging has left to be written is not the commit's."""
    OsFileSystem().sync_file_system(str(broker.log_dir))


# --- staging ------------------------------------------------------------------------------------


def large(size_bytes: int) -> list[bytes]:
    dice = random.Random(5)
    batches = [make_batch(1000, BATCH_BYTES, seed=dice.randrange(1 << 30)).data for _ in range(8)]
    count = -(-size_bytes // len(batches[0]))
    return [batches[number % len(batches)] for number in range(count)]


def stage(
    handover: Handover,
    topic: str,
    partitions: Mapping[int, Sequence[bytes]],
    *,
    app: AppVersion | None = None,
) -> Manifest:
    files, facts = OsFileSystem(), handover.topics([topic])[topic]
    staging_id = open_staging(
        files, handover.log_dir, holder="benchmark", seconds=600, clock=SystemClock()
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
        manifest_id=f"bench-{staging_id}",
        kind=CommitKind.APPEND,
        staging_id=staging_id,
        partitions=tuple(staged),
        app=app,
    )


# --- many small ones ----------------------------------------------------------------------------


def small_commits(broker: BrokerProcess) -> Iterator[Outcome]:
    with broker.connect() as connection:
        connection.create_topic("stream")
    handover = open_handover(broker.log_dir)
    batch = make_batch(100, 61 + SMALL_ROWS * 112).data
    took_ms = []
    for number in range(SMALL_COMMITS):
        manifest = stage(
            handover, "stream", {0: [batch]}, app=AppVersion(name="stream", version=number)
        )
        started = time.perf_counter()
        result = handover.commit(manifest)
        took_ms.append((time.perf_counter() - started) * 1e3)
        if result.status != "committed":
            raise BrokerFailedError(f"commit {number} was {result.status}")
    directory = broker.log_dir / "stream-0"
    segments = len(list(directory.glob("*.log")))
    size_bytes = sum(each.stat().st_size for each in directory.glob("*.log"))
    what = f"after {SMALL_COMMITS:,} commits of {SMALL_ROWS} rows"
    normal = max(1, -(-size_bytes // SEGMENT_BYTES))
    size = f"{size_bytes / 1e6:.1f} MB"
    yield lower(
        "commit-load.segments",
        f"segments {what}",
        "segments",
        [segments],
        bar=Bar(value=normal),
        note=size,
    )
    yield lower(
        "commit-load.small",
        f"one commit of {SMALL_ROWS} rows",
        "ms",
        took_ms,
        note=f"p99 {quantile(took_ms, 0.99):.1f} ms",
    )
