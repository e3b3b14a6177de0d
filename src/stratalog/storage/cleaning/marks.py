"""Marks of a cleaning that several processes share: a bit for each offset that is cleaned.

Two kinds: the record is superseded, and the record has no key or no value. Whoever has looked at a
range of keys, or at some segments, writes what it found to a file beside what is staged; whoever
rewrites a segment reads its part of all of them and puts them together. A file speaks of the
offsets that its name says, and no other.

    <name>.<first offset>-<end offset>.marks
        the bits of superseded records, then those of the special ones; the lowest bit of a byte
        first, from the first offset on, which is a multiple of eight. Holes are zeros
"""

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from typing_extensions import Buffer

from stratalog.records import OffsetMap, mark_offsets
from stratalog.storage.cleaning.rewriting import RoundPlan, Source
from stratalog.storage.files import FileSystem

_MARKS_FILE = re.compile(r"\.(?P<first>[0-9]+)-(?P<end>[0-9]+)\.marks$")
_PIECE_BYTES = 1 << 20
# A block is what one task marks: 2 ** bits offsets, or more if that were too many blocks. Where a
# log has wide gaps, they hold few records.
_BLOCK_BITS = 24
_BLOCKS_MAX = 4096


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets that marks speak of. They begin with a whole byte of the log's bits, so that
    those of any two spans can be put together."""

    first_offset: int
    end_offset: int

    @classmethod
    def around(cls, first_offset: int, end_offset: int) -> "Span":
        first = first_offset - first_offset % 8
        return cls(first, max(end_offset, first))

    @property
    def size_bytes(self) -> int:
        """Of the bits of one kind."""
        return (self.end_offset - self.first_offset + 7) // 8

    def common(self, other: "Span") -> "Span":
        first = max(self.first_offset, other.first_offset)
        return Span.around(first, min(self.end_offset, other.end_offset))


def span_of(plan: RoundPlan) -> Span:
    """Of the marks of a whole round."""
    return sources_span(plan, plan.sources)


def sources_span(plan: RoundPlan, sources: Sequence[Source]) -> Span:
    """Of some that follow each other."""
    upper = plan.upper_bound_offset
    if not sources:
        return Span.around(upper, upper)
    return Span.around(sources[0].base_offset, min(sources[-1].end_offset, upper))


def block_bits(span: Span) -> int:
    """An offset's block is the offset without so many of its lowest bits."""
    offsets = span.end_offset - span.first_offset
    return max(_BLOCK_BITS, (offsets // _BLOCKS_MAX).bit_length())


def block_count(span: Span) -> int:
    bits = block_bits(span)
    return (max(span.end_offset - 1, span.first_offset) >> bits) - (span.first_offset >> bits) + 1


def block_span(span: Span, block: int) -> Span:
    bits = block_bits(span)
    return span.common(Span(block << bits, (block + 1) << bits))


def is_marks_file(name: str) -> bool:
    return _MARKS_FILE.search(name) is not None


class Marks:
    """Marks that are being made. Memory is taken as bits are set: of pages that nobody has written
    to, none is taken by reading them either, which holds for private mappings only."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._superseded = _bits(span)
        self._special = _bits(span)

    def lend(self, offset_map: OffsetMap) -> None:
        """Let whoever fills ``offset_map`` mark here."""
        span = self.span
        offset_map.mark_in(self._superseded, self._special, span.first_offset, span.end_offset)

    def supersede(self, offsets: Buffer) -> None:
        """Mark those of these 64-bit numbers that lie here."""
        mark_offsets(offsets, self._superseded, self.span.first_offset, self.span.end_offset)

    def write(self, files: FileSystem, stem: str) -> str:
        """The path of the file. Not synced: after a crash nobody asks for it. Whoever finds the
        name finds all."""
        path = f"{stem}.{self.span.first_offset}-{self.span.end_offset}.marks"
        unfinished = f"{path}.tmp"
        files.unlink(unfinished, missing_ok=True)
        file = files.open(unfinished, create=True)
        size = self.span.size_bytes
        try:
            file.truncate(2 * size)
            for kind, bits in enumerate((self._superseded, self._special)):
                for at in range(0, size, _PIECE_BYTES):
                    piece = bits[at : min(at + _PIECE_BYTES, size)]
                    if _has_any(piece):
                        file.write_at(kind * size + at, [piece])
        finally:
            file.close()
        files.rename(unfinished, path)
        return path

    def close(self) -> None:
        # A map that they are lent to keeps them until it is cleared.
        for bits in (self._superseded, self._special):
            with suppress(BufferError):
                bits.close()


def decide(files: FileSystem, paths: Iterable[str], part: Span, offset_map: OffsetMap) -> None:
    """Tell a map what all these files say of ``part``."""
    superseded, special = _bits(part), _bits(part)
    for path in paths:
        span = _span_in(path)
        common = part.common(span)
        if not common.size_bytes:
            continue
        source = (common.first_offset - span.first_offset) // 8
        target = (common.first_offset - part.first_offset) // 8
        file = files.open(path, writable=False)
        try:
            for kind, bits in enumerate((superseded, special)):
                for place, size in _pieces(common.size_bytes):
                    start = kind * span.size_bytes + source + place
                    _join(bits, target + place, file.read_at(start, size))
        finally:
            file.close()
    offset_map.decide(superseded, special, part.first_offset, part.end_offset)


def _bits(span: Span) -> mmap.mmap:
    return mmap.mmap(-1, max(span.size_bytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _span_in(path: str) -> Span:
    found = _MARKS_FILE.search(path)
    if found is None:
        raise ValueError(f"{path} is not a file of marks")
    return Span(int(found["first"]), int(found["end"]))


def _pieces(size_bytes: int) -> Iterator[tuple[int, int]]:
    for place in range(0, size_bytes, _PIECE_BYTES):
        yield place, min(_PIECE_BYTES, size_bytes - place)


def _has_any(piece: bytes) -> bool:
    return piece.count(0) != len(piece)


def _join(bits: mmap.mmap, place: int, found: bytes) -> None:
    """Both, as one large number each: quicker than anything that looks at bytes."""
    if not _has_any(found):
        return
    own = bits[place : place + len(found)]
    joined = int.from_bytes(own, "little") | int.from_bytes(found, "little")
    bits[place : place + len(found)] = joined.to_bytes(len(found), "little")
