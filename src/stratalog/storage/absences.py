"""Offsets that a log has and that its files here do not: before its first segment, behind its last.

    tiered     [log start, first segment): Apache Kafka keeps them in remote storage
    missing    [log start, first segment), and [end of the files, high watermark): they are gone

Where a log starts is told by ``log-start-offset-checkpoint`` and by its leader epochs:

    checkpoint of 0, a first segment behind it       Apache Kafka writes 0 for tiered topics alone
    checkpoint below the first segment               of a topic known to be tiered, or where the
                                                     leader epochs begin no later: tiered; else what
                                                     a crash left, which retention has overtaken
    leader epochs that begin below the first
    segment, after a clean stop                      missing: retention cuts them with the log; not
                                                     where a cleaner has been through it
"""

from collections.abc import Callable
from typing import NamedTuple

from stratalog.errors import CorruptFileError, DiskError
from stratalog.storage.checkpoint import read_epochs
from stratalog.storage.files import FileSystem
from stratalog.storage.inspection import topic_partition_of
from stratalog.storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    LEADER_EPOCH_CHECKPOINT,
    OWN_DIRECTORY,
)
from stratalog.storage.missing_segments import find_traces, was_cleaned

MISSING = "missing"
TIERED = "tiered"


class Absence(NamedTuple):
    """``kind`` is ``TIERED`` or ``MISSING``; ``reason`` is the end of a sentence, for people."""

    start_offset: int
    end_offset: int
    kind: str
    reason: str


def absent_start(
    files: FileSystem,
    directory: str,
    first_segment: int,
    *,
    checkpointed: int | None,
    is_tiered: Callable[[], bool | None],
) -> Absence | None:
    """What lies before ``first_segment``, the base offset of a replica's first.

    ``checkpointed`` is its entry in ``log-start-offset-checkpoint``; ``is_tiered`` is asked where
    it matters, and None if nobody knows.
    """
    if checkpointed is not None and checkpointed < first_segment:
        is_known = is_tiered()
        if is_known is None:
            is_known = _looks_tiered(files, directory, checkpointed)
        if is_known:
            reason = (
                f"it starts at {checkpointed}, and its first segment here at {first_segment}: "
                f"remote.storage.enable is true. Read from {first_segment} on, or consume the "
                "rest from the broker"
            )
            return Absence(checkpointed, first_segment, TIERED, reason)
    log_directory = directory.rpartition("/")[0] or "."
    if not files.exists(f"{log_directory}/{CLEAN_SHUTDOWN_FILE}"):
        return None
    start = max(_first_epoch_start(files, directory, first_segment), checkpointed or 0)
    if start >= first_segment or find_traces(files, directory).is_dropped_in(start, first_segment):
        return None
    if was_cleaned(files, log_directory, topic_partition_of(directory)):
        return None
    reason = (
        f"its leader epochs begin at {start}, and its first segment at {first_segment}: the "
        "first segments are missing"
    )
    return Absence(start, first_segment, MISSING, reason)


def _looks_tiered(files: FileSystem, directory: str, checkpointed: int) -> bool:
    if checkpointed == 0:
        return True
    is_ours = files.exists(f"{directory}/{OWN_DIRECTORY}")
    return not is_ours and _first_epoch_start(files, directory, checkpointed + 1) <= checkpointed


def _first_epoch_start(files: FileSystem, directory: str, default: int) -> int:
    try:
        entries = read_epochs(files, f"{directory}/{LEADER_EPOCH_CHECKPOINT}")
    except (CorruptFileError, DiskError):
        return default
    return entries[0].start_offset if entries else default


def missing_end(end_offset: int, *, recovery_point: int, high_watermark: int) -> Absence | None:
    """What the checkpoints of a log without an owner promise beyond ``end_offset``, where its
    files end."""
    known = max(recovery_point, high_watermark)
    if known <= end_offset:
        return None
    what = "the high watermark" if high_watermark >= recovery_point else "the recovery point"
    reason = (
        f"its files end at {end_offset}, and {what} was checkpointed at {known}: the last "
        "segment, or a part of it, is missing"
    )
    return Absence(end_offset, known, MISSING, reason)
