"""Where reading begins and where it ends: kcat's words, and Kafka's.

    beginning, earliest, smallest      the first record there is
    end, latest, largest               what is written from now on
    stored                             what the group committed (--group)
    N                                  offset N
    -N                                 the last N of each partition
    s@T, e@T                           from the first record not older than T, up to the first
                                       that is not older; T in ms since 1970, or ISO 8601

All of them are resolved once, before the first record is read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from stratalog.cli.failures import UsageError
from stratalog.cli.values import parse_moment

_BEGINNING = frozenset(("beginning", "earliest", "smallest"))
_END = frozenset(("end", "latest", "largest"))
_OFFSET_MAX = 2**63 - 1


class Start(Enum):
    BEGINNING = "beginning"
    END = "end"
    STORED = "stored"
    OFFSET = "offset"
    LAST = "last"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Range:
    """``value`` is the offset, the count or the timestamp that ``start`` needs."""

    start: Start = Start.END
    value: int = 0
    end_timestamp_ms: int | None = None


class Bounds(NamedTuple):
    """What a partition holds: offsets ``[start, end)``, and what timestamps come to in it."""

    start: int
    end: int
    # None if every record is older.
    at_start_timestamp: int | None = None
    at_end_timestamp: int | None = None


def parse_offsets(words: Sequence[str], *, from_beginning: bool) -> Range:
    """One word for the start, and ``e@T``, in any order."""
    start: tuple[Start, int] | None = None
    end: int | None = None
    for word in words:
        if word.startswith("e@"):
            if end is not None:
                raise UsageError("--offset says twice where to end.")
            end = parse_moment(word[2:], f"--offset {word[:2]}")
            continue
        if start is not None:
            raise UsageError("--offset says twice where to begin.")
        start = _parse_start(word)
    if start is not None and from_beginning:
        raise UsageError("Give --from-beginning or --offset, not both.")
    if start is None:
        # Who gives an end only wants what lies before it.
        is_first = from_beginning or end is not None
        start = (Start.BEGINNING if is_first else Start.END, 0)
    return Range(*start, end)


def _parse_start(word: str) -> tuple[Start, int]:
    lower = word.lower()
    if lower in _BEGINNING:
        return Start.BEGINNING, 0
    if lower in _END:
        return Start.END, 0
    if lower == "stored":
        return Start.STORED, 0
    if lower.startswith("s@"):
        return Start.TIMESTAMP, parse_moment(word[2:], f"--offset {word[:2]}")
    if re.fullmatch(r"-?[0-9]{1,19}", word) and abs(int(word)) <= _OFFSET_MAX:
        number = int(word)
        return (Start.LAST, -number) if word.startswith("-") else (Start.OFFSET, number)
    raise UsageError(
        f"--offset {word}: beginning, end, stored, N, -N, s@TIMESTAMP or e@TIMESTAMP is expected."
    )


def resolve_start(wanted: Range, bounds: Bounds) -> int:
    """The offset to begin at, inside of what the partition holds."""
    start, end = bounds.start, bounds.end
    match wanted.start:
        case Start.BEGINNING:
            return start
        case Start.LAST:
            return max(start, end - wanted.value)
        case Start.OFFSET:
            return wanted.value
        case Start.TIMESTAMP:
            return end if bounds.at_start_timestamp is None else bounds.at_start_timestamp
        case _:
            return end


def resolve_end(wanted: Range, bounds: Bounds, *, exits: bool) -> int | None:
    """The offset to stop before; None to go on for ever."""
    if wanted.end_timestamp_ms is not None:
        # If everything is older the log's end is where it stops: what comes later is not waited
        # for, since nothing says that it is ordered by time.
        return bounds.end if bounds.at_end_timestamp is None else bounds.at_end_timestamp
    return bounds.end if exits else None
