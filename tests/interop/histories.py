"""Histories of a partition, written by us: the appends of clients, coordinators and leaders.

A history is data: a list of steps that one writer carries out, so that tests can name the histories
that a rule is about and hypothesis can make the others.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stratalog.config import TopicConfig
from stratalog.records import (
    AppendOrigin,
    Codec,
    Record,
    build_batch,
    build_end_transaction_marker,
)
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.files import OsFileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.testing.clock import ManualClock
from stratalog.testing.legacy import legacy_message_set

START_MS = 1_700_000_000_000
DAY_MS = 86_400_000
MAP_BYTES = 1 << 20

# What every history is written and cleaned with, unless it says otherwise.
CONFIGS: Mapping[str, str] = {
    "internal.segment.bytes": "2000",
    "segment.index.bytes": "65536",
    "index.interval.bytes": "300",
    "delete.retention.ms": "1000",
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


@dataclass(frozen=True, slots=True)
class Put:
    """One batch from a producer; ``producer`` is its id, -1 for none."""

    records: Sequence[Record]
    codec: Codec = Codec.NONE
    producer: int = -1
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The marker that ends a producer's transaction."""

    producer: int
    commit: bool
    timestamp_ms: int = START_MS


@dataclass(frozen=True, slots=True)
class Bump:
    """A producer begins anew, in its next epoch."""

    producer: int


@dataclass(frozen=True, slots=True)
class OldPut:
    """What a broker of old left: messages of magic 0 or 1."""

    messages: Sequence[tuple[bytes | None, bytes | None, int]]
    magic: int
    codec: Codec = Codec.NONE
    log_append_time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch as a leader has stored it, with gaps and all; its base offset is made to fit."""

    records: Sequence[Record]
    offset_deltas: Sequence[int] | None = None
    last_offset_delta: int | None = None
    delete_horizon_ms: int | None = None
    codec: Codec = Codec.NONE


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that nothing was stored under."""

    count: int


@dataclass(frozen=True, slots=True)
class Roll:
    """A new segment begins."""


@dataclass(frozen=True, slots=True)
class Age:
    """The newest segment's files look as if they were last written at ``modified_ms``."""

    modified_ms: int


Step = Put | End | Bump | OldPut | Stored | Gap | Roll | Age


@dataclass(frozen=True, slots=True)
class Round:
    """One cleaning: what is appended before it, when it is, with how much memory for keys.

    ``log_start_offset`` is where records are deleted up to first, if the high watermark allows;
    ``forgets`` is a checkpoint that was lost: everything is dirty again.
    """

    now_ms: int = START_MS
    map_bytes: int = MAP_BYTES
    high_watermark: int | None = None
    log_start_offset: int = 0
    steps: Sequence[Step] = ()
    forgets: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """Steps, the configs they are written under, and the cleanings that follow."""

    steps: Sequence[Step]
    rounds: Sequence[Round] = (Round(),)
    configs: Mapping[str, str] | None = None
    cleaning_configs: Mapping[str, str] | None = None

    @property
    def written_with(self) -> dict[str, str]:
        return {**CONFIGS, **(self.configs or {})}

    @property
    def cleaned_with(self) -> dict[str, str]:
        compacted = {"cleanup.policy": "compact"}
        return {**self.written_with, **compacted, **(self.cleaning_configs or {})}


class HistoryWriter:
    """Carries out steps on a log of ours."""

    def __init__(self, log: Log) -> None:
        self.log = log
        # The producers of before a restart are known by what they last wrote.
        self._sequences = {state.producer_id: state.last_sequence + 1 for state in log.producers}
        self._epochs = {state.producer_id: state.epoch for state in log.producers}
        self._offset = 0
        self._first_base = log.segments.active.base_offset
        self._ages: dict[int, int] = {}

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._do(step)

    def set_ages(self, now_ms: int) -> None:
        """After the log was closed, which is the last to write: what was written here looks as if
        it was written at ``now_ms``, or when an ``Age`` says."""
        for file in Path(self.log.directory).glob("*.*"):
            if file.stem.isdigit() and int(file.stem) >= self._first_base:
                modified_ns = self._ages.get(int(file.stem), now_ms) * 1_000_000
                os.utime(file, ns=(modified_ns, modified_ns))

    def _do(self, step: Step) -> None:
        log, offset = self.log, max(self._offset, self.log.log_end_offset)
        match step:
            case Put():
                self._put(step)
            case Bump():
                self._epochs[step.producer] = self._epochs.get(step.producer, 0) + 1
                self._sequences[step.producer] = 0
            case End():
                marker = build_end_transaction_marker(
                    commit=step.commit,
                    producer_id=step.producer,
                    producer_epoch=self._epochs.get(step.producer, 0),
                    coordinator_epoch=0,
                    timestamp_ms=step.timestamp_ms,
                )
                log.append_as_leader(marker, origin=AppendOrigin.COORDINATOR)
            case OldPut():
                messages = legacy_message_set(
                    step.messages,
                    magic=step.magic,
                    base_offset=offset,
                    codec=step.codec,
                    log_append_time_ms=step.log_append_time_ms,
                )
                log.append_as_follower(messages)
            case Stored():
                log.append_as_follower(_stored(step, offset))
            case Gap():
                self._offset = offset + step.count
            case Roll():
                if log.segments.active.size_bytes:
                    log.roll()
            case Age():
                self._ages[log.segments.active.base_offset] = step.modified_ms

    def _put(self, step: Put) -> None:
        has_producer = step.producer >= 0
        sequence = self._sequences.get(step.producer, 0)
        batch = build_batch(
            step.records,
            codec=step.codec,
            producer_id=step.producer,
            producer_epoch=self._epochs.get(step.producer, 0) if has_producer else -1,
            base_sequence=sequence if has_producer else -1,
            transactional=step.transactional,
        )
        self.log.append_as_leader(batch)
        self._sequences[step.producer] = sequence + len(step.records)


def _stored(step: Stored, offset: int) -> bytes:
    return build_batch(
        step.records,
        base_offset=offset,
        codec=step.codec,
        offset_deltas=step.offset_deltas,
        last_offset_delta=step.last_offset_delta,
        delete_horizon_ms=step.delete_horizon_ms,
        leader_epoch=0,
    )


def write_history(history: History, directory: Path) -> None:
    """Write a closed partition directory."""
    directory.mkdir(parents=True)
    append_steps(history, history.steps, directory, START_MS)


def append_steps(
    history: History,
    steps: Sequence[Step],
    directory: Path,
    now_ms: int,
    log_start_offset: int = 0,
) -> None:
    """Append to a closed partition and close it again."""
    # Not yet compacted: that would refuse what must be written here too, keys that are null.
    configs = history.written_with
    with opened(directory, configs, now_ms, log_start_offset=log_start_offset) as log:
        writer = HistoryWriter(log)
        writer.run(steps)
    writer.set_ages(now_ms)


def _context(now_ms: int) -> LogContext:
    return LogContext(OsFileSystem(), ManualClock(now_ms), HandleCache(), DirectoryState())


@contextmanager
def opened(
    directory: Path,
    configs: Mapping[str, str],
    now_ms: int,
    high_watermark: int | None = None,
    log_start_offset: int = 0,
) -> Iterator[Log]:
    """A cleanly closed partition of ours, opened under a clock and cleanly closed again."""
    config = TopicConfig.from_properties(configs)
    context = _context(now_ms)
    log = open_log(str(directory), config, context, clean=True, log_start_offset=log_start_offset)
    log.flush()  # only what is known to be flushed is below a high watermark of ours
    log.update_high_watermark(log.log_end_offset if high_watermark is None else high_watermark)
    try:
        yield log
        log.run_deletes(2**62)
        log.close()
    finally:
        log.abandon()
