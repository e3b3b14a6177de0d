"""Cutting off the end of a log where its batches end before its bytes do.

Two kinds of end: what an interrupted write leaves holds no valid batch and goes; an end that holds
some, behind damage, is kept aside (``kept_cuts``). The segments behind go first and the cut comes
last: what a crash leaves in between is a log that still has the damage, and is cut again.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from stratalog.errors import OutOfResourcesError
from stratalog.storage.files import FileSystem
from stratalog.storage.kept_cuts import KeptCut, KeptCuts
from stratalog.storage.layout import SEGMENT_SUFFIXES, segment_file
from stratalog.storage.scanning import EndCut
from stratalog.storage.segment import Segment
from stratalog.storage.segments import Segments


@dataclass(frozen=True, slots=True)
class DamagedEnd:
    """``segment`` ends at ``cut``, and ``later`` go."""

    files: FileSystem
    directory: str
    segments: Segments
    segment: Segment
    later: Sequence[Segment]
    cut: EndCut

    def prepare(self, cuts: KeptCuts, now_ms: int) -> KeptCut | None:
        """Keep what has to be copied, if anything is to be kept. Where there is no room for it this
        raises, and the log is as it was."""
        if not self.cut.has_batches:
            return None
        kept = cuts.begin(self._noted(now_ms), [each.base_offset for each in self.later])
        try:
            cuts.keep_end(kept, self.segment.file())
        except OutOfResourcesError:
            with suppress(OutOfResourcesError):
                cuts.give_up(kept)
            raise
        return kept

    def cut_off(self, cuts: KeptCuts, kept: KeptCut | None) -> None:
        if kept is None:
            self._shorten()
            return
        for each in reversed(self.later):
            cuts.keep_segment(kept, each.base_offset)
            remove_segment(self.files, self.directory, self.segments, each)
        self.files.sync_directory(self.directory)
        self._shorten()
        with suppress(OutOfResourcesError):  # the next start does so
            cuts.finish(kept)

    def _noted(self, now_ms: int) -> KeptCut:
        cut, segment = self.cut, self.segment
        size_bytes = cut.end - cut.position + sum(each.size_bytes for each in self.later)
        return KeptCut(
            now_ms, cut.offset, segment.base_offset, cut.position, size_bytes, cut.reason, ()
        )

    def _shorten(self) -> None:
        file = self.segment.file()
        file.truncate(self.cut.position)
        # Durable at once: the log may end at its recovery point now, so that no flush would come
        # by, and what was cut must not be there again after the next crash.
        file.sync()
        gone = [each for each in self.later if each in set(self.segments)]
        for each in gone:
            remove_segment(self.files, self.directory, self.segments, each)
        if gone:
            self.files.sync_directory(self.directory)


def remove_segment(files: FileSystem, directory: str, segments: Segments, segment: Segment) -> None:
    segments.remove(segment)
    segment.discard()
    for suffix in SEGMENT_SUFFIXES:
        files.unlink(segment_file(directory, segment.base_offset, suffix), missing_ok=True)
