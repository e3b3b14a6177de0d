"""Offsets that no batch has, at the end of a slice: removed by compaction, or missing.

A reader that returns fewer rows than were stored must say so. Every hole that is met is looked
into once, when it is met: most logs have none, and a plan of a million segments cannot open them.
"""

from collections.abc import Iterator

from stratalog.directories.topic_facts import TopicFacts, find_topic_facts
from stratalog.errors import CorruptBatchError
from stratalog.records import BatchHeader, read_headers
from stratalog.scans.slices import ScanSlice, SliceEnd
from stratalog.storage.files import File, FileSystem
from stratalog.storage.layout import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, segment_file
from stratalog.storage.missing_segments import (
    SegmentTraces,
    find_traces,
    is_dense,
    was_cleaned,
)

_CHUNK_BYTES = 1 << 20
_UNCOMMITTED = "the last segment ends before them, and they were committed"
_NOT_COMPACTED = "a segment is missing: {log} ends before them, and the topic is not compacted"
_INDEXED = "a segment is missing: {index} is there without its .log"


class Holes:
    """Tells missing offsets from compacted ones, for the logs of some directories."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._facts: dict[str, TopicFacts] = {}
        self._traces: dict[str, SegmentTraces] = {}

    def why_missing(self, planned: ScanSlice, file: File, next_offset: int) -> str | None:
        """Why the offsets from ``next_offset`` to the end of ``planned`` must have been there,
        for which no batch is in its ``file``; None if compaction may have removed them."""
        if planned.end is SliceEnd.COMMITTED:
            return _UNCOMMITTED
        if planned.end is SliceEnd.UNKNOWN:
            return None
        traces = self._find_traces(planned.directory)
        indexed = traces.indexed_in(next_offset, planned.end_offset)
        if indexed is not None:
            return _INDEXED.format(index=segment_file("", indexed, OFFSET_INDEX_SUFFIX)[1:])
        is_dropped = traces.is_dropped(
            planned.base_offset, file.size_bytes(), next_offset, planned.end_offset
        )
        if is_dropped or self.may_be_compacted(planned):
            return None
        if not is_dense(planned.base_offset, _batches(file)):
            return None  # compaction took offsets here before: its topic was compacted once
        return _NOT_COMPACTED.format(log=segment_file("", planned.base_offset, LOG_SUFFIX)[1:])

    def may_be_missing(self, planned: ScanSlice) -> bool:
        """Whether offsets of ``planned`` that no batch has would be told as missing: for a plan,
        which else needs no slice of them."""
        if planned.end is not SliceEnd.BEFORE_NEXT:
            return planned.end is SliceEnd.COMMITTED
        traces = self._find_traces(planned.directory)
        is_indexed = traces.indexed_in(planned.start_offset, planned.end_offset) is not None
        return is_indexed or not self.may_be_compacted(planned)

    def may_be_compacted(self, planned: ScanSlice) -> bool:
        """Whether that is possible, by what is known of the topic and of this replica."""
        log_directory = planned.directory.rpartition("/")[0] or "."
        if was_cleaned(self._files, log_directory, planned.topic_partition):
            return True
        if log_directory not in self._facts:
            self._facts[log_directory] = find_topic_facts(self._files, log_directory)
        return planned.topic_partition.topic not in self._facts[log_directory].not_compacted

    def _find_traces(self, directory: str) -> SegmentTraces:
        if directory not in self._traces:
            self._traces[directory] = find_traces(self._files, directory)
        return self._traces[directory]


def _batches(file: File) -> Iterator[BatchHeader]:
    """The batches of a segment by their headers, up to damage or its end."""
    position, size = 0, _CHUNK_BYTES
    while True:
        chunk = file.read_at(position, size)
        try:
            headers = read_headers(chunk, position, check_crc=False)
        except CorruptBatchError:
            return
        yield from headers
        if headers:
            position = headers[-1].position + headers[-1].size_bytes
        elif len(chunk) < size:
            return
        else:
            size *= 2  # for a batch that is larger than that
