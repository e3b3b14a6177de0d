"""Tidying a replica's directory before it is read: what an interrupted swap or delete left.

A cleaner writes ``.cleaned`` files, renames the finished set to ``.swap``, takes the old segments
out of the way, and renames to the plain names. Whatever step a crash hit, one of two things is
true afterwards: the old segments are all there, or the new ones are.
"""

from collections.abc import Callable
from itertools import pairwise

from stratalog.records import read_headers
from stratalog.storage.files import Entry, FileSystem
from stratalog.storage.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SWAP_SUFFIX,
    SegmentFileName,
    parse_segment_file,
)

_WALK_BYTES = 1 << 20
_UNKNOWN_END = 2**63 - 1


# Keeps the files of the segment that owns the offsets [base, end), if somebody has a lease on them.
Keep = Callable[[int, int], None]


def sweep(
    files: FileSystem, directory: str, keep: Keep = lambda _base_offset, _end_offset: None
) -> list[Entry]:
    """Finish or undo what was going on, in Kafka's order; returns what is there afterwards."""
    entries = files.list(directory)
    names = _names(entries)
    if not any(known.state for known in names.values()):
        return entries
    for name, known in names.items():
        if known.state == DELETED_SUFFIX:
            files.unlink(f"{directory}/{name}")
    _undo_unfinished(files, directory, names)
    _finish_swaps(files, directory, keep)
    return files.list(directory)


def _names(entries: list[Entry]) -> dict[str, SegmentFileName]:
    names = (entry.name for entry in entries if entry.is_file)
    parsed = {name: parse_segment_file(name) for name in names}
    return {name: known for name, known in parsed.items() if known is not None}


def _undo_unfinished(files: FileSystem, directory: str, names: dict[str, SegmentFileName]) -> None:
    """A ``.cleaned`` file says that its set was not complete, nor any set renamed before it:
    several new segments are renamed from the last to the first."""
    cleaned = [known.offset for known in names.values() if known.state == CLEANED_SUFFIX]
    if not cleaned:
        return
    for name, known in names.items():
        if known.state == SWAP_SUFFIX and known.offset >= min(cleaned):
            files.unlink(f"{directory}/{name}")
    for name, known in names.items():
        if known.state == CLEANED_SUFFIX:
            files.unlink(f"{directory}/{name}")


def _finish_swaps(files: FileSystem, directory: str, keep: Keep) -> None:
    names = _names(files.list(directory))
    swaps = {name: known for name, known in names.items() if known.state == SWAP_SUFFIX}
    logs = {name: known.offset for name, known in swaps.items() if known.kind == LOG_SUFFIX}
    if logs:
        start = min(logs.values())
        end = max(_next_offset(files, f"{directory}/{name}", base) for name, base in logs.items())
        plain = {name: known for name, known in names.items() if not known.state}
        bases = sorted({each.offset for each in plain.values() if each.kind == LOG_SUFFIX})
        for base_offset, end_offset in pairwise([*bases, _UNKNOWN_END]):
            # A swap file that nothing was left for ends where it begins, and replaces all the same.
            if start <= base_offset < end or base_offset in logs.values():
                keep(base_offset, end_offset)
        for name, known in plain.items():
            if start <= known.offset < end:
                files.unlink(f"{directory}/{name}", missing_ok=True)
    # The logs first: as long as one has its suffix, what overlaps it is still being removed.
    for name in sorted(swaps, key=lambda name: (swaps[name].kind != LOG_SUFFIX, name)):
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")


def _next_offset(files: FileSystem, path: str, base_offset: int) -> int:
    """One past the last batch of a swap file, which its cleaner has flushed whole."""
    file = files.open(path, writable=False)
    try:
        position, size, found = 0, _WALK_BYTES, base_offset
        end = file.size_bytes()
        while position < end:
            headers = read_headers(file.read_at(position, size), position, check_crc=False)
            if headers:
                position = headers[-1].position + headers[-1].size_bytes
                found = headers[-1].next_offset
            elif position + size >= end:
                break
            else:
                size *= 2
        return found
    finally:
        file.close()
