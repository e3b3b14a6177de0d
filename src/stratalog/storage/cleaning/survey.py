"""What there is to say about the cleaning of one log, found out by reading it and nothing more.

``survey`` works on a log that another process may own. It asks ``plan_cleaning`` what a cleaner
would do now, counts what it would meet (keys, tombstones, records that compaction has no place
for), and adds what earlier rounds have left in our own files.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import CorruptBatchError, CorruptFileError, CorruptSegmentError
from stratalog.records import KeySurvey, OffsetMap
from stratalog.storage.checkpoint import read_offsets
from stratalog.storage.cleaning.planning import (
    BoundKind,
    CleaningPlan,
    find_eligible_ms,
    plan_cleaning,
)
from stratalog.storage.damage import CUT_SHORT
from stratalog.storage.files import FileSystem, read_file
from stratalog.storage.inspection import list_replica
from stratalog.storage.layout import (
    CLEANER_CHECKPOINT,
    SNAPSHOT_SUFFIX,
    TopicPartition,
    segment_file,
)
from stratalog.storage.moments import moment_text, span_text
from stratalog.storage.ours import OwnFiles
from stratalog.storage.producers import ProducerStates
from stratalog.storage.replay import replay
from stratalog.storage.segment import Segment
from stratalog.storage.segments import Segments
from stratalog.storage.snapshots import decode_snapshot
from stratalog.storage.views import LogView

HELD = "held: configs unknown"
_BUFFER_BYTES = 1 << 20
_NEVER_MS = 1 << 62

Progress = Callable[[int], None]


@dataclass(slots=True)
class Counts:
    """What reading a log has found. The dirty keys are those of the part that may be cleaned."""

    size_bytes: int = 0
    batches: int = 0
    records: int = 0
    control_batches: int = 0
    null_keys: int = 0
    tombstones: int = 0
    tombstones_with_horizon: int = 0
    earliest_horizon_ms: int | None = None
    latest_horizon_ms: int | None = None
    estimated_dirty_keys: int = 0
    map_capacity: int = 0
    damage: str | None = None  # what a cleaner would stumble over

    @property
    def rounds(self) -> int:
        """How many cleanings the dirty keys need, at about so many to a map."""
        return max(1, math.ceil(self.estimated_dirty_keys / self.map_capacity))

    def add(self, found: KeySurvey) -> None:
        self.batches += found.batches
        self.records += found.records
        self.control_batches += found.control_batches
        self.null_keys += found.null_keys
        self.tombstones += found.tombstones
        self.tombstones_with_horizon += found.tombstones_with_horizon
        if found.tombstones_with_horizon:
            earliest, latest = found.earliest_horizon_ms, found.latest_horizon_ms
            known = self.earliest_horizon_ms
            self.earliest_horizon_ms = earliest if known is None else min(known, earliest)
            self.latest_horizon_ms = max(self.latest_horizon_ms or latest, latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleaningSurvey:
    """See the top of this file. ``is_held``: nobody knows the topic's configs, so that nothing
    is cleaned; the plan is then what would be with those that were assumed."""

    directory: str
    topic_partition: TopicPartition
    is_held: bool
    size_bytes: int
    high_watermark: int
    last_stable_offset: int
    open_transaction_offset: int | None
    plan: CleaningPlan
    eligible_at_ms: int | None
    oldest_dirty_timestamp_ms: int | None
    counts: Counts | None
    last_run: dict[str, Any] | None  # of the statistics that the last round has noted
    uncleanable: dict[str, Any] | None  # why the last round failed, if it did
    warnings: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it in words, the arithmetic first."""
        told = list(self.plan.reasons)
        if not self.plan.config.compact:
            return tuple(told)
        told.extend(_say_when(self))
        if self.counts is not None:
            told.extend(_say_counts(self.counts, self.plan))
        told.append(_say_last_run(self.last_run))
        return tuple(told)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every number, and the words."""
        plan, counts = self.plan, self.counts
        return {
            "topic": self.topic_partition.topic,
            "partition": self.topic_partition.partition,
            "directory": self.directory,
            "held": HELD if self.is_held else None,
            "size_bytes": self.size_bytes,
            "cleanup_policy": ",".join(plan.config.cleanup_policy),
            "log_start_offset": plan.log_start_offset,
            "high_watermark": self.high_watermark,
            "last_stable_offset": self.last_stable_offset,
            "log_end_offset": plan.log_end_offset,
            "open_transaction_offset": self.open_transaction_offset,
            "checkpoint": plan.checkpoint,
            "checkpoint_reset": plan.reset.value if plan.reset else None,
            "first_dirty_offset": plan.first_dirty_offset,
            "first_uncleanable_offset": plan.first_uncleanable_offset,
            "bounds": [
                {"kind": each.kind.value, "offset": each.offset, "until_ms": each.until_ms}
                for each in plan.bounds
            ],
            "clean_bytes": plan.clean_bytes,
            "cleanable_bytes": plan.cleanable_bytes,
            "uncleanable_bytes": plan.uncleanable_bytes,
            "active_bytes": plan.active_bytes,
            "cleanable_ratio": plan.cleanable_ratio,
            "min_cleanable_dirty_ratio": plan.config.min_cleanable_dirty_ratio,
            "oldest_dirty_timestamp_ms": self.oldest_dirty_timestamp_ms,
            "compaction_delay_ms": plan.compaction_delay_ms,
            "is_eligible": plan.is_eligible and not self.is_held,
            "eligible_at_ms": self.eligible_at_ms,
            "missing_bytes": plan.missing_bytes,
            "counts": None if counts is None else _counts_dict(counts),
            "last_run": self.last_run,
            "uncleanable": self.uncleanable,
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }


def survey(
    files: FileSystem,
    view: LogView,
    config: TopicConfig,
    *,
    is_held: bool,
    broker: BrokerConfig,
    now_ms: int,
    count: bool = True,
    progress: Progress = lambda _bytes: None,
) -> CleaningSurvey:
    """Look at a log. To ``count`` means to read all of it; the rest costs little."""
    unstable = _first_unstable_offset(files, view, now_ms)
    stable = view.high_watermark
    if unstable is not None:
        stable = min(max(unstable, view.log_start_offset), stable)
    plan = plan_cleaning(
        view.segments,
        config=config,
        checkpoint=_checkpoint(files, view),
        log_start_offset=view.log_start_offset,
        last_stable_offset=stable,
        log_end_offset=view.log_end_offset,
        now_ms=now_ms,
    )
    own = OwnFiles(files, view.directory)
    notes = own.cleaner_notes()
    uncleanable = _dict(notes.get("uncleanable"))
    counted = count and config.compact
    counts = _count(files, view, plan, _map_capacity(broker), progress) if counted else None
    return CleaningSurvey(
        directory=view.directory,
        topic_partition=view.topic_partition,
        is_held=is_held,
        size_bytes=view.size_bytes,
        high_watermark=view.high_watermark,
        last_stable_offset=stable,
        open_transaction_offset=unstable,
        plan=plan,
        eligible_at_ms=None if is_held else find_eligible_ms(view.segments, plan),
        oldest_dirty_timestamp_ms=_oldest_dirty(view, plan),
        counts=counts,
        last_run=_dict(notes.get("last_run")),
        uncleanable=uncleanable,
        warnings=(
            *_warn_of_failures(uncleanable, is_damaged=own.known_damage() is not None),
            *_warn(view, plan, counts),
        ),
    )


def _dict(value: object) -> dict[str, Any] | None:
    """What was noted, if it is what was noted: anybody may have written to the file since."""
    return value if isinstance(value, dict) else None


# --- offsets -----------------------------------------------------------------------------------


def _checkpoint(files: FileSystem, view: LogView) -> int | None:
    directory = list_replica(files, view.directory).log_directory
    with suppress(CorruptFileError):
        return read_offsets(files, f"{directory}/{CLEANER_CHECKPOINT}").get(view.topic_partition)
    return None


def _first_unstable_offset(files: FileSystem, view: LogView, now_ms: int) -> int | None:
    """Where the oldest transaction begins that is open, or ended above the high watermark."""
    producers = ProducerStates(expiration_ms=_NEVER_MS)
    producers.clear(view.log_start_offset)
    for offset in reversed(list_replica(files, view.directory).snapshots):
        if view.log_start_offset < offset <= view.log_end_offset:
            path = segment_file(view.directory, offset, SNAPSHOT_SUFFIX)
            with suppress(CorruptFileError):
                states = decode_snapshot(path, read_file(files, path))
                producers.restore(states, offset, now_ms)
                break
    replay(producers, Segments(view.segments), end_offset=view.log_end_offset)
    producers.on_high_watermark(view.high_watermark)
    return producers.first_unstable_offset


def _oldest_dirty(view: LogView, plan: CleaningPlan) -> int | None:
    """The first timestamp of the segments that are not clean, the active one included."""
    dirty = Segments(view.segments).from_floor(plan.first_dirty_offset)
    known = [found for segment in dirty if (found := segment.first_timestamp_ms()) > 0]
    return min(known, default=None) if plan.first_dirty_offset < plan.log_end_offset else None


# --- counting ----------------------------------------------------------------------------------


def _map_capacity(broker: BrokerConfig) -> int:
    memory_bytes = min(
        broker.log_cleaner_dedupe_buffer_size // broker.log_cleaner_threads, 2**31 - 1
    )
    # Memory of a map is taken as it fills, so that asking for its capacity costs none.
    return OffsetMap(memory_bytes, load_factor=broker.log_cleaner_io_buffer_load_factor).capacity


def _count(
    files: FileSystem, view: LogView, plan: CleaningPlan, map_capacity: int, progress: Progress
) -> Counts:
    counts = Counts(size_bytes=view.size_bytes, map_capacity=map_capacity)
    cleanable = KeySurvey(plan.first_dirty_offset)
    later = KeySurvey(plan.log_end_offset)
    active = view.segments[-1]
    buffer = bytearray(_BUFFER_BYTES)
    for segment in view.segments:
        is_cleanable = segment.base_offset < plan.first_uncleanable_offset
        try:
            buffer = _read(files, segment, cleanable if is_cleanable else later, buffer, progress)
        except CorruptSegmentError as error:
            # Whoever owns the log may be writing the end of its active segment right now.
            if segment is not active:
                counts.damage = counts.damage or str(error)
    counts.add(cleanable)
    counts.add(later)
    counts.estimated_dirty_keys = cleanable.estimated_keys
    return counts


def _read(
    files: FileSystem, segment: Segment, keys: KeySurvey, buffer: bytearray, progress: Progress
) -> bytearray:
    """Feed a segment; returns the buffer, larger if a batch needed that."""
    position, end = 0, segment.size_bytes
    file = files.open(segment.path, writable=False)
    try:
        while position < end:
            with memoryview(buffer) as view:
                size = file.read_into(position, view[: end - position])
                read = _feed(segment, keys, view[:size], position)
            if read == 0:
                if not len(buffer) < keys.wanted_bytes <= end - position:
                    raise CorruptSegmentError(segment.path, position, -1, CUT_SHORT)
                buffer = bytearray(keys.wanted_bytes)
                continue
            progress(read)
            position += read
    finally:
        file.close()
    return buffer


def _feed(segment: Segment, keys: KeySurvey, data: memoryview, position: int) -> int:
    try:
        return keys.feed(data, position)
    except CorruptBatchError as error:
        raise CorruptSegmentError(
            segment.path, error.position, error.base_offset, error.reason
        ) from error


def _counts_dict(counts: Counts) -> dict[str, Any]:
    names = (name for name in counts.__slots__)
    return {**{name: getattr(counts, name) for name in names}, "rounds": counts.rounds}


# --- in words ----------------------------------------------------------------------------------


def _say_when(found: CleaningSurvey) -> Sequence[str]:
    plan, told = found.plan, []
    if found.oldest_dirty_timestamp_ms is not None:
        moment = moment_text(found.oldest_dirty_timestamp_ms)
        age = span_text(plan.now_ms - found.oldest_dirty_timestamp_ms)
        told.append(f"the oldest record not yet cleaned is of {moment}, {age} ago")
    if plan.is_eligible or found.is_held:
        return told
    if found.eligible_at_ms is not None:
        told.append(f"eligible at {moment_text(found.eligible_at_ms)}, by the passing of time")
    if plan.active_bytes:
        total = plan.total_bytes + plan.active_bytes
        ratio = (plan.cleanable_bytes + plan.active_bytes) / total
        told.append(f"if the active segment were closed now, the ratio could be {ratio:.4f}")
    return told


def _say_counts(counts: Counts, plan: CleaningPlan) -> Sequence[str]:
    keys = counts.estimated_dirty_keys
    told = [
        f"about {keys} keys in the cleanable part; the map holds {counts.map_capacity}"
        + (f": it takes about {counts.rounds} rounds" if counts.rounds > 1 else "")
    ]
    with_horizon = counts.tombstones_with_horizon
    without = counts.tombstones - with_horizon
    if not counts.tombstones:
        told.append("no tombstones")
    if without:
        told.append(
            f"{without} tombstones have no delete horizon yet: the next cleaning that keeps them "
            f"sets it, delete.retention.ms={plan.config.delete_retention_ms} later"
        )
    if counts.earliest_horizon_ms is not None and counts.latest_horizon_ms is not None:
        earliest, latest = counts.earliest_horizon_ms, counts.latest_horizon_ms
        span = moment_text(earliest)
        if latest != earliest:
            span += f" to {moment_text(latest)}"
        due = "the next cleaning removes the first" if earliest <= plan.now_ms else "none is due"
        told.append(f"{with_horizon} tombstones wait for their delete horizon, {span}: {due}")
    return told


def _say_last_run(noted: dict[str, Any] | None) -> str:
    if noted is None:
        return "no cleaning is on record"
    try:
        told = (
            f"last cleaned at {moment_text(int(noted['at_ms']))}, from offset "
            f"{int(noted['first_dirty_offset'])} to {int(noted['end_offset'])}: "
            f"{int(noted['messages_kept'])} of {int(noted['messages_read'])} records kept, "
            f"{int(noted['bytes_kept'])} of {int(noted['bytes_read'])} bytes, "
            f"{int(noted['superseded'])} superseded, {int(noted['tombstones_expired'])} tombstones "
            f"expired, {int(noted['null_keys'])} without a key; "
            f"{int(noted['map_entries'])} keys in a map for {int(noted['map_capacity'])}"
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return "the record of the last cleaning cannot be read"
    return told + (": it was full" if noted["map_entries"] >= noted["map_capacity"] else "")


def _warn_of_failures(noted: dict[str, Any] | None, *, is_damaged: bool) -> Sequence[str]:
    told = []
    if is_damaged:
        told.append(
            "recovery found damage that a person has to decide about: nothing is cleaned before "
            "(see 'stratalog log verify' and 'stratalog log repair')"
        )
    if noted is not None:
        try:
            told.append(
                f"uncleanable since {moment_text(int(noted['since_ms']))}, "
                f"{int(noted['attempts'])} failures, next try at "
                f"{moment_text(int(noted['retry_at_ms']))}: {noted['reason']}"
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            told.append("uncleanable, for a reason that cannot be read")
    return told


def _warn(view: LogView, plan: CleaningPlan, counts: Counts | None) -> Sequence[str]:
    told = []
    if not view.is_high_watermark_known:
        told.append(
            "no high watermark is checkpointed: nothing above the log start counts as replicated "
            "(--high-watermark-is-end)"
        )
    for bound in plan.bounds:
        if bound.kind is BoundKind.MIN_COMPACTION_LAG:
            segment = next(each for each in view.segments if each.base_offset == bound.offset)
            latest = segment.max_timestamp()
            if latest.timestamp_ms > plan.now_ms:
                told.append(
                    f"the batch that ends at offset {latest.offset} has a timestamp in the "
                    f"future, {moment_text(latest.timestamp_ms)}: it keeps everything from offset "
                    f"{bound.offset} on from being cleaned"
                )
    if counts is None:
        return told
    if counts.null_keys:
        told.append(
            f"{counts.null_keys} records have no key: cleaning drops them, a compacted topic has "
            "no place for them"
        )
    if counts.damage is not None:
        told.append(f"cleaning fails here, and the partition is uncleanable: {counts.damage}")
    return told
