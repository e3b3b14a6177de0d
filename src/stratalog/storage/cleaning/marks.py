"""Marks of a cleaning that several processes share: a bit for each offset that is cleaned.

Two kinds: the record is superseded, and the record has no key or no value. Whoever has looked at a
range of keys, or at some segments, writes what it found to a file beside what is staged; whoever
rewrites a segment reads its part of all of them and puts them together.

    <name>.marks   the bits of superseded records, then those of the special ones; the lowest bit
                   of a byte first, from the round's first offset on. Holes are zeros
"""

import mmap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from stratalog.records import OffsetMap
from stratalog.storage.cleaning.rewriting import RoundPlan
from stratalog.storage.files import FileSystem

MARKS_SUFFIX = ".marks"
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets that marks speak of."""

    first_offset: int
    end_offset: int

    @property
    def size_bytes(self) -> int:
        """Of the bits of one kind."""
        return (self.end_offset - self.first_offset + 7) // 8

    def cut(self, first_offset: int, end_offset: int) -> "Span":
        """The part that speaks of these offsets, in whole bytes."""
        first = max(first_offset, self.first_offset)
        return Span(first - (first - self.first_offset) % 8, min(end_offset, self.end_offset))


def span_of(plan: RoundPlan) -> Span:
    """Of the marks of a whole round."""
    first_offset = plan.sources[0].base_offset if plan.sources else plan.upper_bound_offset
    return Span(first_offset, plan.upper_bound_offset)


class Marks:
    """Marks that are being made. Memory is taken as bits are set."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._superseded = mmap.mmap(-1, max(span.size_bytes, 1))
        self._special = mmap.mmap(-1, max(span.size_bytes, 1))

    def lend(self, offset_map: OffsetMap) -> None:
        """Let whoever fills ``offset_map`` mark here."""
        span = self.span
        offset_map.mark_in(self._superseded, self._special, span.first_offset, span.end_offset)

    def write(self, files: FileSystem, path: str) -> None:
        """Not synced: after a crash nobody asks for them. Whoever finds the name finds all."""
        unfinished = f"{path}.tmp"
        files.unlink(unfinished, missing_ok=True)
        file = files.open(unfinished, create=True)
        size = self.span.size_bytes
        try:
            file.truncate(2 * size)
            for kind, bits in enumerate((self._superseded, self._special)):
                for at in range(0, size, _PIECE_BYTES):
                    piece = bits[at : min(at + _PIECE_BYTES, size)]
                    if piece.count(0) != len(piece):
                        file.write_at(kind * size + at, [piece])
        finally:
            file.close()
        files.rename(unfinished, path)

    def close(self) -> None:
        # A map that they are lent to keeps them until it is cleared.
        for bits in (self._superseded, self._special):
            with suppress(BufferError):
                bits.close()


def decide(
    files: FileSystem,
    paths: Iterable[str],
    whole: Span,
    part: Span,
    offset_map: OffsetMap,
) -> None:
    """Tell a map what all these files say of ``part``, which was cut from ``whole``."""
    superseded, special = bytearray(part.size_bytes), bytearray(part.size_bytes)
    at = (part.first_offset - whole.first_offset) // 8
    for path in paths:
        file = files.open(path, writable=False)
        try:
            for kind, bits in enumerate((superseded, special)):
                for place, piece in _pieces(part.size_bytes):
                    start = kind * whole.size_bytes + at + place
                    _join(bits, place, file.read_at(start, piece))
        finally:
            file.close()
    offset_map.decide(superseded, special, part.first_offset, part.end_offset)


def _pieces(size_bytes: int) -> Iterator[tuple[int, int]]:
    for place in range(0, size_bytes, _PIECE_BYTES):
        yield place, min(_PIECE_BYTES, size_bytes - place)


def _join(bits: bytearray, place: int, found: bytes) -> None:
    """Both, as one large number each: quicker than anything that looks at bytes."""
    own = bits[place : place + len(found)]
    joined = int.from_bytes(own, "little") | int.from_bytes(found, "little")
    bits[place : place + len(found)] = joined.to_bytes(len(found), "little")
