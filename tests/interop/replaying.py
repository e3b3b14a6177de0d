"""Giving our own log what Apache Kafka's was given: the same appends, restarts, epochs and clock.

What to append is read back from Kafka's files, in their order, since that is the only place where
client batches and the coordinator's markers stand in one line. A client's batch is taken as it was
sent where the run recorded it; otherwise it is the stored one without its offset and epoch.
"""

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from batches import Header, as_produced, walk
from scenarios import DELETION_LIFE, SCENARIOS, Scenario
from wire import Produced

from stratalog.config import TopicConfig
from stratalog.records import AppendOrigin
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.files import OsFileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.testing.clock import ManualClock

# A broker that restarts alone leads again in the epoch after next.
EPOCHS = (0, 2, 4, 6)
BATCH_FILES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}


@dataclass(frozen=True, slots=True)
class Appended:
    """One append: the bytes as they were handed in, and where Kafka put them."""

    records: bytes
    origin: AppendOrigin
    base_offset: int
    log_append_time_ms: int


def stored_batches(partition_dir: Path) -> Iterator[tuple[Header, bytes]]:
    """Every batch of a partition, in order."""
    for file in sorted(partition_dir.glob("*.log")):
        yield from walk(file.read_bytes())


def appends_of(
    partition_dir: Path, leader_epoch: int, produced: Sequence[Produced] = ()
) -> list[Appended]:
    """What was appended in one leader epoch, duplicates that were refused included."""
    sent: dict[int, list[Produced]] = {}
    for each in produced:
        sent.setdefault(each.base_offset, []).append(each)
    appends = []
    for header, stored in stored_batches(partition_dir):
        if header.partition_leader_epoch != leader_epoch:
            continue
        at = header.base_offset
        if header.is_control:
            appends.append(Appended(as_produced(stored), AppendOrigin.COORDINATOR, at, -1))
        elif at in sent:
            appends += (
                Appended(each.batch, AppendOrigin.CLIENT, at, each.log_append_time_ms)
                for each in sent[at]
            )
        else:
            appends.append(Appended(as_produced(stored), AppendOrigin.CLIENT, at, -1))
    return appends


def scenario_of(topic: str) -> Scenario:
    """The scenario that a topic is named after."""
    (scenario,) = (each for each in SCENARIOS if each.name == topic)
    return scenario


def config_of(topic: str) -> TopicConfig:
    """The configs that the topic had in Kafka, broker-wide ones included."""
    return TopicConfig.from_properties(
        {
            "segment.index.bytes": "65536",
            "retention.ms": "-1",
            "message.timestamp.before.max.ms": str(2**63 - 1),
            "message.timestamp.after.max.ms": str(2**63 - 1),
            **scenario_of(topic).configs,
        }
    )


@contextmanager
def open_partition(directory: Path, config: TopicConfig, *, clean: bool = True) -> Iterator[Log]:
    """One directory of ours, or a copy of Kafka's, on its own."""
    log = open_log(str(directory), config, LogContext.default(), clean=clean)
    try:
        yield log
    finally:
        log.abandon()


class OurPartition:
    """One directory of our own that lives through what a broker's partition lived through."""

    def __init__(
        self,
        directory: Path,
        topic: str,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
    ) -> None:
        self.directory = directory
        self.config = config_of(topic)
        self.clock = ManualClock()
        self.recovery_point = recovery_point
        self.log_start_offset = log_start_offset

    @contextmanager
    def led(self, life: int, started_ms: int, *, clean: bool = True) -> Iterator[Log]:
        """Open as the leader of a life's epoch; left open at the end: a crash, unless closed."""
        self.clock.set(started_ms)
        context = LogContext(OsFileSystem(), self.clock, HandleCache(), DirectoryState())
        log = open_log(
            str(self.directory),
            self.config,
            context,
            clean=clean,
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start_offset,
        )
        try:
            log.epochs.assign(EPOCHS[life], log.log_end_offset)
            yield log
        finally:
            if not log.is_closed:
                log.abandon()

    def append(self, log: Log, appends: Sequence[Appended], life: int) -> None:
        """Append all and check that each lands where Kafka put it."""
        for each in appends:
            if each.log_append_time_ms >= 0:
                self.clock.set(each.log_append_time_ms)
            info = log.append_as_leader(each.records, leader_epoch=EPOCHS[life], origin=each.origin)
            assert info.first_offset == each.base_offset

    def delete_before(self, log: Log, offset: int) -> None:
        """Raise the log start, as a request to delete records does."""
        log.flush()
        log.update_high_watermark(log.log_end_offset)
        assert log.delete_records(offset) == offset

    def close(self, log: Log) -> None:
        """Stop cleanly, and keep what the checkpoints would keep."""
        log.close()
        self.recovery_point = log.recovery_point
        self.log_start_offset = log.log_start_offset


@dataclass(frozen=True, slots=True)
class KafkaPartition:
    """What Kafka's side of one scenario is known by."""

    topic: str
    clean: Path
    crashed: Path
    started_ms: Sequence[int]
    produced: Sequence[Sequence[Produced]] = ((), (), ())

    @property
    def scenario(self) -> Scenario:
        """What the broker was told to do."""
        return scenario_of(self.topic)

    def appends(self, life: int) -> list[Appended]:
        """What one life of the broker appended. The crashed directory holds all lives."""
        return appends_of(self.crashed, EPOCHS[life], self.produced[life])


def replay_clean(kafkas: KafkaPartition, directory: Path) -> OurPartition:
    """Two lives with a clean stop each."""
    ours = OurPartition(directory, kafkas.topic)
    directory.mkdir()
    for life in (0, 1):
        with ours.led(life, kafkas.started_ms[life]) as log:
            if life == 0:
                log.assign_topic_id(topic_id_of(kafkas.clean))
            ours.append(log, kafkas.appends(life), life)
            if life == DELETION_LIFE and kafkas.scenario.delete_before:
                ours.delete_before(log, kafkas.scenario.delete_before)
            ours.close(log)
    return ours


def replay_crashed(
    kafkas: KafkaPartition, directory: Path, *, flushed: bool = False
) -> OurPartition:
    """The third life too, without an end: a crash before or after the last flush.

    Before it, the indexes lack what Kafka's have, since entries are hints and wait for a flush.
    """
    ours = replay_clean(kafkas, directory)
    with ours.led(2, kafkas.started_ms[2]) as log:
        ours.append(log, kafkas.appends(2), 2)
        if flushed:
            log.flush()
    return ours


def recover(ours: OurPartition, started_ms: int) -> None:
    """The fourth life: open after the crash, and stop."""
    with ours.led(3, started_ms, clean=False) as log:
        ours.close(log)


def segment_base_below(directory: Path, offset: int) -> int:
    """The base of the segment that holds ``offset``: from there Kafka reads again after a crash.

    We read again from the offset itself, since what lies below it was flushed with its indexes.
    """
    bases = (int(file.stem) for file in directory.glob("*.log"))
    return max(base for base in bases if base <= offset)


def topic_id_of(partition_dir: Path) -> uuid.UUID:
    """The topic id that Kafka wrote into a partition's directory."""
    text = (partition_dir / "partition.metadata").read_text().rpartition(" ")[2]
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))


def contents(partition_dir: Path) -> dict[str, bytes]:
    """Every file of a partition by name: what two partitions must have in common."""
    return {file.name: file.read_bytes() for file in partition_dir.iterdir() if file.is_file()}


def in_use(partition_dir: Path) -> dict[str, bytes]:
    """Every file of a partition that was not closed, indexes without the zeros that preallocation
    leaves behind their entries: Kafka preallocates an index when it is made, we with an entry."""
    return {
        name: data.rstrip(b"\0") if name.endswith("index") else data
        for name, data in contents(partition_dir).items()
    }


def difference(ours: dict[str, bytes], kafkas: dict[str, bytes]) -> list[str]:
    """What differs, in words short enough to read."""
    problems = [f"{name}: only Kafka has it" for name in sorted(kafkas.keys() - ours.keys())]
    problems += [f"{name}: only we have it" for name in sorted(ours.keys() - kafkas.keys())]
    for name in sorted(ours.keys() & kafkas.keys()):
        left, right = ours[name], kafkas[name]
        if left != right:
            shared = min(len(left), len(right))
            at = next((at for at in range(shared) if left[at] != right[at]), shared)
            problems.append(
                f"{name}: {len(left)} bytes, Kafka's {len(right)}; first difference at {at}: "
                f"{left[at : at + 16].hex()} is not {right[at : at + 16].hex()}"
            )
    return problems
