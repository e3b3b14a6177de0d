"""A log as its files show it to anybody: nothing is opened for writing, nobody need be asked.

The owner may be at work meanwhile. A view is one moment's: a segment that goes while it is looked
at makes the look fail, and the next view does not have it.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from stratalog.config import TopicConfig
from stratalog.errors import DiskError, LogDirectoryError
from stratalog.storage.checkpoint import read_offsets_if_sound
from stratalog.storage.files import FileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.inspection import SegmentFiles, list_replica
from stratalog.storage.layout import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    TopicPartition,
)
from stratalog.storage.ours import OwnFiles
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.segment import Segment, SegmentSizes

T = TypeVar("T")
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """What an owner says of one log."""

    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class LogView:
    """``high_watermark`` is what the owner says or has checkpointed, and the log's start where
    nobody says."""

    directory: str
    topic_partition: TopicPartition
    segments: tuple[Segment, ...]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    is_high_watermark_known: bool

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)


def look_at(
    files: FileSystem,
    directory: str,
    config: TopicConfig,
    ask: Callable[[LogView], T],
    *,
    offsets: LogOffsets | None = None,
    is_end_replicated: bool = False,
) -> T:
    """What ``ask`` says of the log in ``directory``; asked again if a file went meanwhile."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return ask(
                view_log(
                    files,
                    directory,
                    config,
                    offsets=offsets,
                    is_end_replicated=is_end_replicated,
                )
            )
        except DiskError as error:
            if error.errno != errno.ENOENT or attempt == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def view_log(
    files: FileSystem,
    directory: str,
    config: TopicConfig,
    *,
    offsets: LogOffsets | None = None,
    is_end_replicated: bool = False,
) -> LogView:
    """The log in ``directory``, with ``config`` for what its segments go by. ``offsets`` are its
    owner's; ``is_end_replicated``: without a checkpoint, the high watermark is the log's end."""
    files = ReadOnlyFileSystem(files)
    replica = list_replica(files, directory)
    if not replica.segments:
        raise LogDirectoryError(f"{directory} holds no segment")
    handles = HandleCache()
    segments = tuple(
        view_segment(files, each, config, handles=handles) for each in replica.segments
    )
    log_end_offset = segments[-1].next_offset()
    key = replica.topic_partition
    if offsets is None:
        starts = read_offsets_if_sound(files, f"{replica.log_directory}/{LOG_START_CHECKPOINT}")
        marks = read_offsets_if_sound(files, f"{replica.log_directory}/{HIGH_WATERMARK_CHECKPOINT}")
        started = max(starts.get(key, 0), OwnFiles(files, replica.directory).log_start())
        known = marks.get(key, log_end_offset if is_end_replicated else None)
    else:
        started, known = offsets.log_start_offset, offsets.high_watermark
    log_start_offset = max(segments[0].base_offset, started)
    high_watermark = log_start_offset if known is None else max(known, log_start_offset)
    return LogView(
        replica.directory,
        key,
        segments,
        log_start_offset,
        min(high_watermark, log_end_offset),
        log_end_offset,
        known is not None,
    )


def view_segment(
    files: FileSystem, found: SegmentFiles, config: TopicConfig, *, handles: HandleCache
) -> Segment:
    return Segment(
        files,
        found.directory,
        found.base_offset,
        config,
        handles,
        created_ms=found.modified_ms,
        sizes=SegmentSizes(
            log_bytes=found.size_bytes,
            offset_index_bytes=found.sizes.get(OFFSET_INDEX_SUFFIX, 0),
            time_index_bytes=found.sizes.get(TIME_INDEX_SUFFIX, 0),
            has_transaction_index=TRANSACTION_INDEX_SUFFIX in found,
            modified_ms=found.modified_ms,
        ),
    )
