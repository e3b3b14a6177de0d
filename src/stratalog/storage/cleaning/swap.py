"""Putting a cleaned segment in the place of those it was made from.

``.cleaned`` → ``.swap``, the old files → ``.deleted`` (or to those who have a lease on them),
``.swap`` → plain, in Kafka's order. As in
Kafka, the renames of a directory are taken to reach the disk in the order in which they are made,
which journals see to. Whatever step a crash hits, the next start finds the old segments or the new
one (``sweep``).

Runs on the log's own thread, as everything that changes a log does, and so does nothing that takes
long: the caller makes the names durable, on any thread, before anything is done that builds on
them.
"""

from collections.abc import Sequence
from contextlib import suppress

from stratalog.errors import CleaningAbortedError, DiskError, OutOfResourcesError
from stratalog.storage.cleaning.cleaned import CleanedSegment
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import CLEANED_SUFFIX, SWAP_SUFFIX
from stratalog.storage.log import Log


def swap_in(
    log: Log,
    cleaned: CleanedSegment,
    base_offsets: Sequence[int],
    *,
    truncation_count: int,
    may_take_back: bool = True,
) -> None:
    """Replace the segments with these base offsets by ``cleaned``, which is finished.

    ``truncation_count`` is the log's from when the cleaning was planned. What a journal tells of
    already may not be taken back.
    """
    is_changed = truncation_count != log.truncation_count
    is_changed |= not set(log.segments.base_offsets).issuperset(base_offsets)
    if is_changed or log.is_closed or log.failure is not None:
        raise CleaningAbortedError(f"{log.topic_partition} has changed since its cleaning began")
    replaced = [log.segments.at(base_offset) for base_offset in base_offsets]
    assert log.segments.active not in replaced, f"{log} is being appended to"
    files = log.context.files
    _offer(log, cleaned, may_take_back=may_take_back)
    try:
        now_ms = log.context.clock.now_ms()
        for segment in replaced:
            log.retire(segment, log.end_of(segment))
        for suffix in cleaned.suffixes:
            files.rename(cleaned.path(suffix, SWAP_SUFFIX), cleaned.path(suffix, ""))
        for segment in replaced:
            log.segments.remove(segment)
        log.segments.add(cleaned.open(log.context.handles, log.config, created_ms=now_ms))
        for segment in replaced:
            if segment.base_offset != cleaned.base_offset:
                log.drop_snapshot(segment.base_offset)
    except DiskError as error:
        # Memory and disk may say different things now: only a new start can tell.
        log.fail(error)
        raise
    _note(log, cleaned)


def _offer(log: Log, cleaned: CleanedSegment, *, may_take_back: bool) -> None:
    """After this, a crash ends with the new segment in place."""
    files = log.context.files
    try:
        for suffix in cleaned.suffixes:
            files.rename(cleaned.path(suffix, CLEANED_SUFFIX), cleaned.path(suffix, SWAP_SUFFIX))
    except DiskError as error:
        if not may_take_back or not _take_back(files, cleaned, error):
            log.fail(error)
        raise


def _take_back(files: FileSystem, cleaned: CleanedSegment, error: DiskError) -> bool:
    """Where the system ran out of something that comes back: the log itself is untouched yet, and
    need not fail."""
    if not isinstance(error, OutOfResourcesError):
        return False
    try:
        # The log last: without it, the indexes would be taken for the old segment's.
        for suffix in reversed(cleaned.suffixes):
            files.unlink(cleaned.path(suffix, SWAP_SUFFIX), missing_ok=True)
    except DiskError:
        return False
    return True


def _note(log: Log, cleaned: CleanedSegment) -> None:
    """What is kept beside the log about its segments; hints, so a failure is passed over."""
    with suppress(DiskError):
        cleaned.place_time_ranges()
    with suppress(DiskError):
        if cleaned.has_aborts and cleaned.base_offset not in log.own.aborts():
            log.own.note_aborts(cleaned.base_offset)
        log.own.keep_aborts(log.segments)
        log.own.keep_rolls(set(log.segments.base_offsets))
