"""Checking a replica's segments in a row: what belongs to none, overlaps or is missing.

Each finding is about names and offsets that ``check_segment`` has found; ``missing_segments`` says
what else tells a missing segment from a compacted one.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from stratalog.storage.check_segment import SegmentFacts
from stratalog.storage.files import FileSystem
from stratalog.storage.findings import Finding, Kind, error, warning
from stratalog.storage.inspection import Replica
from stratalog.storage.layout import base_offset_of
from stratalog.storage.missing_segments import find_traces


def orphan_findings(replica: Replica, segments: Sequence[SegmentFacts]) -> Iterator[Finding]:
    """A crash leaves some of segments that were being deleted. Then their logs have a name of
    their own, or no offset is missing where they were."""
    for path in replica.not_files:
        sentence = (
            "is no regular file, and no broker reads it; if a segment was there, its records are "
            "gone from this log. Remove it, or put the file back"
        )
        yield warning(Kind.NOT_A_FILE, path, sentence, offset=base_offset_of(path))
    for path in replica.orphans:
        base_offset = base_offset_of(path)
        gap = _gap_at(base_offset, segments)
        if gap is None or replica.is_swapping or base_offset in replica.leaving:
            yield warning(Kind.ORPHAN_FILE, path, "belongs to no .log")
            continue
        sentence = (
            "belongs to no .log, and the segments beside it leave out the offsets "
            f"[{gap[0]}, {gap[1]}): a segment is missing"
        )
        yield error(Kind.ORPHAN_FILE, path, sentence, offset=base_offset)


def overlap_findings(segments: Sequence[SegmentFacts]) -> Iterator[Finding]:
    for facts, following in pairwise(segments):
        base_offset = following.files.base_offset
        if facts.next_offset > base_offset:
            sentence = (
                f"its batches go up to offset {facts.next_offset - 1}, but the next segment "
                f"begins at {base_offset}"
            )
            yield error(Kind.OVERLAP, facts.files.log_path, sentence, offset=base_offset)


def missing_findings(
    files: FileSystem, directory: str, segments: Sequence[SegmentFacts]
) -> Iterator[Finding]:
    """Segments that are missing from a log of a topic that is not compacted, and that no cleaner
    has been through. Under an earlier policy a leader's cleaner may have: then offsets are missing
    inside segments too. A person who drops a damaged batch leaves a copy of it."""
    if not all(facts.is_dense for facts in segments[:-1]):
        return
    traces = find_traces(files, directory)
    for facts, following in pairwise(segments):
        start, end = facts.next_offset, following.files.base_offset
        base_offset, size_bytes = facts.files.base_offset, facts.files.size_bytes
        if start < end and not traces.is_dropped(base_offset, size_bytes, start, end):
            sentence = (
                f"the segment before it ends at offset {start}: [{start}, {end}) is missing, "
                "and its topic is not compacted"
            )
            yield error(Kind.GAP, following.files.log_path, sentence, offset=start)


def _gap_at(base_offset: int, segments: Sequence[SegmentFacts]) -> tuple[int, int] | None:
    """The offsets, with ``base_offset``, between the segments before and behind it."""
    place = bisect_right(segments, base_offset, key=lambda facts: facts.files.base_offset)
    if not 0 < place < len(segments):
        return None
    start, end = segments[place - 1].next_offset, segments[place].files.base_offset
    return (start, end) if start <= base_offset < end else None
