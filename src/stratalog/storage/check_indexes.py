"""Checking the indexes of one segment against what its ``.log`` says.

A scan of the log gives two tables in the very layouts of the index files, with an entry for *every*
batch: (last offset, position), and (largest timestamp so far, last offset of the batch that had
it). An index is a selection of them, so each entry is looked up, and nothing is kept per batch but
its entry's bytes.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from typing_extensions import Buffer

from stratalog.records._kernels import search_offset_index, search_time_index
from stratalog.storage.findings import Finding, Kind, error, warning
from stratalog.storage.transactions import AbortedTransaction

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_ABORTED_ENTRY = struct.Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class IndexContext:
    """What an index check has to know of the segment."""

    base_offset: int
    is_last: bool
    has_batches: bool
    max_timestamp_ms: int


@dataclass(slots=True)
class IndexFacts:
    entries: int = 0
    findings: list[Finding] = field(default_factory=list)


def check_offset_index(
    about: IndexContext, path: str, data: bytes | None, table: Buffer
) -> IndexFacts:
    if data is None:
        return IndexFacts(findings=_missing(about, path))
    facts = IndexFacts()
    entries = _used(about, path, data, _OFFSET_ENTRY.size, Kind.OFFSET_INDEX, facts)
    known = _OffsetTable(table)
    wrong = [
        (slot, f"offset {about.base_offset + relative} at {position}")
        for slot, (relative, position) in enumerate(_OFFSET_ENTRY.iter_unpack(entries))
        if not known.holds(relative, position)
    ]
    rule = "points to no batch that ends there"
    facts.findings += _told(path, Kind.OFFSET_INDEX, wrong, _OFFSET_ENTRY.size, rule)
    pairs = pairwise(_OFFSET_ENTRY.iter_unpack(entries))
    if not wrong and any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairs):
        facts.findings.append(warning(Kind.OFFSET_INDEX, path, "its entries are not in order"))
    return facts


class _OffsetTable:
    """(relative last offset, position) of every batch of the segment, in order."""

    def __init__(self, table: Buffer) -> None:
        self._table = memoryview(table)
        self._slots = len(self._table) // _OFFSET_ENTRY.size

    def _entry(self, slot: int) -> tuple[int, int]:
        relative, position = _OFFSET_ENTRY.unpack_from(self._table, slot * _OFFSET_ENTRY.size)
        return relative, position

    def holds(self, relative: int, position: int) -> bool:
        if relative < 0 or position < 0:
            return False
        slot = search_offset_index(self._table, self._slots, relative)
        if slot < 0 or self._entry(slot)[0] != relative:
            return False
        return self._entry(slot)[1] == position or self._is_earlier_batch(position, slot)

    def _is_earlier_batch(self, position: int, below: int) -> bool:
        """Releases before 4.0 gave a whole append one entry: its last offset, and the position
        of its first batch."""
        low, high = 0, below
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle)[1] < position:
                low = middle + 1
            else:
                high = middle
        return self._entry(low)[1] == position


def check_time_index(
    about: IndexContext, path: str, data: bytes | None, table: Buffer
) -> IndexFacts:
    if data is None:
        return IndexFacts(findings=_missing(about, path))
    facts = IndexFacts()
    entries = _used(about, path, data, _TIME_ENTRY.size, Kind.TIME_INDEX, facts)
    wrong = list(_wrong_times(about, entries, memoryview(table)))
    facts.findings += _told(path, Kind.TIME_INDEX, wrong, _TIME_ENTRY.size, "")
    last_ms = -1
    if facts.entries:
        last_ms, _ = _TIME_ENTRY.unpack_from(entries, len(entries) - _TIME_ENTRY.size)
    if not about.is_last and not wrong and last_ms < about.max_timestamp_ms:
        # Retention goes by the last entry: without it a segment looks older than it is.
        facts.findings.append(
            warning(
                Kind.TIME_INDEX,
                path,
                f"its last timestamp is {last_ms}; the segment is closed and its largest is "
                f"{about.max_timestamp_ms}",
            )
        )
    return facts


def _wrong_times(
    about: IndexContext, entries: bytes, table: memoryview
) -> Iterator[tuple[int, str]]:
    last_ms, last_relative = -1, -1
    for slot, (timestamp_ms, relative) in enumerate(_TIME_ENTRY.iter_unpack(entries)):
        text = f"timestamp {timestamp_ms} at offset {about.base_offset + relative}"
        if not _is_running_maximum(table, timestamp_ms, relative):
            yield slot, f"{text} is not the largest timestamp up to a batch"
        elif timestamp_ms <= last_ms or relative < last_relative:
            yield slot, f"{text} does not follow timestamp {last_ms}"
        last_ms, last_relative = timestamp_ms, relative


def _is_running_maximum(table: memoryview, timestamp_ms: int, relative: int) -> bool:
    slot = search_time_index(table, len(table) // _TIME_ENTRY.size, timestamp_ms)
    if slot < 0:
        return False
    known_ms, known_relative = _TIME_ENTRY.unpack_from(table, slot * _TIME_ENTRY.size)
    # Releases before 3.0 wrote the offset of the record itself, inside that batch.
    before = _TIME_ENTRY.unpack_from(table, (slot - 1) * _TIME_ENTRY.size)[1] if slot else -1
    return bool(known_ms == timestamp_ms and before < relative <= known_relative)


def _missing(about: IndexContext, path: str) -> list[Finding]:
    if not about.has_batches:
        return []
    return [warning(Kind.MISSING_FILE, path, "is not there, though its .log has batches")]


def _used(
    about: IndexContext, path: str, data: bytes, entry_bytes: int, kind: Kind, facts: IndexFacts
) -> bytes:
    """The entries before the zeros of an index that is still being appended to."""
    if len(data) % entry_bytes:
        sentence = f"{len(data)} bytes are no multiple of an entry's {entry_bytes}"
        facts.findings.append(warning(kind, path, sentence))
    slots = len(data) // entry_bytes
    facts.entries = min(-(-len(data.rstrip(b"\0")) // entry_bytes), slots)
    if slots - facts.entries == 1 and not about.is_last:
        facts.entries = slots  # zeros can be an entry: timestamp 0 at the segment's first offset
    if slots - facts.entries > 1 and not about.is_last:
        sentence = f"{slots - facts.entries} empty entries were left when the segment was closed"
        position = facts.entries * entry_bytes
        facts.findings.append(warning(kind, path, sentence, position=position))
    return data[: facts.entries * entry_bytes]


def _told(
    path: str, kind: Kind, wrong: list[tuple[int, str]], entry_bytes: int, rule: str
) -> list[Finding]:
    """One finding for all wrong entries of an index: the first, and how many more."""
    if not wrong:
        return []
    slot, text = wrong[0]
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    sentence = f"entry {slot}: {text} {rule}".rstrip() + more
    return [warning(kind, path, sentence, position=slot * entry_bytes)]


@dataclass(slots=True)
class AbortedFacts:
    transactions: list[AbortedTransaction] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def read_aborted(path: str, data: bytes | None) -> AbortedFacts:
    """The entries of a transaction index, as far as they can be read."""
    facts = AbortedFacts()
    data = data or b""
    left = len(data) % _ABORTED_ENTRY.size
    if left:
        sentence = f"{left} bytes are left behind the last whole entry"
        position = len(data) - left
        facts.findings.append(warning(Kind.TRANSACTION_INDEX, path, sentence, position=position))
    for slot, (version, *fields) in enumerate(_ABORTED_ENTRY.iter_unpack(data[: len(data) - left])):
        if version != 0:
            sentence = f"entry {slot} has version {version}; only 0 is known"
            position = slot * _ABORTED_ENTRY.size
            facts.findings.append(error(Kind.TRANSACTION_INDEX, path, sentence, position=position))
            break
        facts.transactions.append(AbortedTransaction(*fields))
    return facts
