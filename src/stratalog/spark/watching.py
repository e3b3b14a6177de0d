"""The partitions of a stream in their log directory: looked at often, planned from seldom.

A look finds where logs begin and end, and asks the owner where one runs; a snapshot of some
partitions, with their segments, is taken when a batch is planned.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from stratalog.clock import Clock
from stratalog.errors import DiskError
from stratalog.scans.errors import MissingTopicError
from stratalog.scans.selection import Assign, Selection, Subscribe, SubscribePattern
from stratalog.scans.snapshot import DirectorySnapshot, take_snapshot
from stratalog.scans.tail import find_log_end
from stratalog.spark.admission import Offsets
from stratalog.spark.losses import Span, Spans
from stratalog.spark.options import SourceOptions
from stratalog.spark.polling import Poller, Sleep
from stratalog.spark.topic_ids import TopicIdReader, TopicIds
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition


class DirectoryWatch:
    """What a stream sees of its directory. ``reached`` is how far the stream has come."""

    def __init__(self, options: SourceOptions, clock: Clock, sleep: Sleep) -> None:
        self._options = options
        self._poller = Poller(self._look, clock, sleep)
        self._log_directory = ""
        self._ids = TopicIdReader(OsFileSystem())
        self.reached: Offsets = {}
        self.topic_ids: TopicIds = {}
        self._remade: set[str] = set()
        self.seen: Spans = {}
        self.last_ends: dict[TopicPartition, int] = {}  # also of partitions that are gone

    @property
    def looks(self) -> int:
        return self._poller.looks

    def latest(self) -> Spans:
        """What was there a moment ago, or is now."""
        return self._poller.latest()

    def log_directory(self) -> str:
        """Where the options' path may be a single partition of it."""
        if not self._log_directory:
            self.latest()
        return self._log_directory

    def wait(self) -> None:
        """Until ``latest`` looks again."""
        self._poller.wait()

    def snapshot(self, partitions: Iterable[TopicPartition] | None = None) -> DirectorySnapshot:
        """With the segments; of all partitions, or of those of ``partitions`` that are there."""
        if partitions is None:
            self._poller.forget()  # or it might lack a partition that this snapshot has
            return self._take(self._options.selection, with_segments=True)
        named: dict[str, list[int]] = {}
        for each in partitions:
            named.setdefault(each.topic, []).append(each.partition)
        chosen = Assign({topic: tuple(numbers) for topic, numbers in named.items()})
        return self._take(chosen, with_segments=True)

    def spans(self, snapshot: DirectorySnapshot, reached: Offsets) -> Spans:
        """Where logs begin and end, which have been read, or planned, as far as ``reached``.

        A high watermark may be behind that for a moment, as when a broker starts, and the log be
        whole: only where its files end tells whether it went back.
        """
        isolation = self._options.isolation
        spans = {
            each: Span(
                found.start_offset,
                found.end_offset(isolation),
                found.is_end_exact,
                found.absences,
            )
            for each, found in snapshot.partitions.items()
        }
        remade = [
            each for each, span in spans.items() if each.topic in self._remade and not span.is_exact
        ]
        if remade:
            for each, log_end in self._log_ends(remade).items():
                spans[each] = replace(spans[each], end_offset=min(spans[each].end_offset, log_end))
        behind = [each for each, span in spans.items() if span.end_offset < reached.get(each, 0)]
        if behind:
            log_ends = self._log_ends(behind)
            for each in behind:
                # Where a log is leaving just now, the next look tells more.
                is_back = each in log_ends and log_ends[each] < reached[each]
                spans[each] = replace(spans[each], is_exact=is_back)
        return spans

    def ids_of(self, snapshot: DirectorySnapshot) -> TopicIds:
        return self._ids.ids_of(snapshot.partitions)

    def note_remade(self, topics: Iterable[str]) -> None:
        """For these, what was checkpointed of where their logs end may still be of those that
        were deleted: Apache Kafka writes it every five seconds. Their files tell as well."""
        new = set(topics) - self._remade
        if new:
            self._remade |= new
            self._poller.forget()

    def _log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        files = OsFileSystem()
        log_ends = {}
        for each, found in self.snapshot(partitions).partitions.items():
            with suppress(DiskError):
                log_ends[each], _ = find_log_end(files, found.directory, found.segments)
        return log_ends

    def _look(self) -> Spans:
        snapshot = self._take(self._options.selection)
        self._log_directory = snapshot.path
        topic_ids = self.ids_of(snapshot)
        if topic_ids != self.topic_ids:
            # A topic may have been made anew between the two: what is seen now has these ids.
            snapshot = self._take(self._options.selection)
            topic_ids = self.ids_of(snapshot)
        self.topic_ids = topic_ids
        self.seen = self.spans(snapshot, self.reached)
        self.last_ends.update({each: span.end_offset for each, span in self.seen.items()})
        return self.seen

    def _take(self, selection: Selection, *, with_segments: bool = False) -> DirectorySnapshot:
        """A topic that is gone is left out; one that was never there is an error."""
        options = self._options
        while True:
            try:
                return take_snapshot(
                    options.path,
                    selection,
                    isolation=options.isolation,
                    with_segments=with_segments,
                )
            except MissingTopicError as error:
                if not self.last_ends:
                    raise
                selection = _without(selection, error)


def _without(selection: Selection, missing: MissingTopicError) -> Selection:
    """The rest of a selection, one topic or partition of which is not there."""
    if isinstance(selection, SubscribePattern):
        return selection
    if isinstance(selection, Subscribe):
        return Subscribe(tuple(each for each in selection.topics if each != missing.topic))
    left = {
        topic: tuple(
            each
            for each in partitions
            if topic != missing.topic or missing.partition not in (-1, each)
        )
        for topic, partitions in selection.partitions.items()
    }
    return Assign({topic: partitions for topic, partitions in left.items() if partitions})
