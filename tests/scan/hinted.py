"""Model logs with the hints beside them that an owner would have written, whole or garbled."""

from pathlib import Path

from hypothesis import strategies as st
from modelled import ModelLog, Row

from stratalog.records import SegmentScan
from stratalog.scans.where import Where
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import time_ranges_file
from stratalog.storage.time_range_writing import write_time_ranges

HINTS = ("index", "timeindex", "timeranges")


def write_with_hints(log: ModelLog, root: Path, *, interval_bytes: int = 0) -> Path:
    """The log's files with an entry for (nearly) every batch in each kind of hint."""
    directory = log.write(root)
    for segment in log.segments:
        scan = SegmentScan(segment.base_offset, interval_bytes)
        scan.feed(segment.content)
        scan.finish()
        stem = directory / f"{segment.base_offset:020d}"
        stem.with_suffix(".index").write_bytes(scan.offset_entries)
        stem.with_suffix(".timeindex").write_bytes(scan.time_entries)
        write_time_ranges(OsFileSystem(), str(directory), segment.base_offset, range_bytes=1)
    return directory


def hint_path(directory: Path, base_offset: int, kind: str) -> Path:
    if kind == "timeranges":
        return Path(time_ranges_file(str(directory), base_offset))
    return directory / f"{base_offset:020d}.{kind}"


@st.composite
def garblings(draw: st.DrawFn, log: ModelLog) -> list[tuple[int, str, str, int, int]]:
    """Segments' hints, and what befalls them."""
    bases = [segment.base_offset for segment in log.segments]
    one = st.tuples(
        st.sampled_from(bases),
        st.sampled_from(HINTS),
        st.sampled_from(("delete", "cut", "flip", "swap entries", "zero")),
        st.integers(0, 200),
        st.integers(1, 255),
    )
    return draw(st.lists(one, max_size=4))


def garble(directory: Path, garblings: list[tuple[int, str, str, int, int]]) -> None:
    for base_offset, kind, how, at, mask in garblings:
        path = hint_path(directory, base_offset, kind)
        content = bytearray(path.read_bytes() if path.exists() else b"")
        if how == "delete" or not content:
            path.unlink(missing_ok=True)
            continue
        at %= len(content)
        if how == "cut":
            del content[at:]
        elif how == "flip":
            content[at] ^= mask
        elif how == "zero":
            content[at:] = bytes(len(content) - at)
        else:
            size = 12 if kind == "timeindex" else 8
            content[:size], content[-size:] = content[-size:], content[:size]
        path.write_bytes(content)


def _around(values: list[int]) -> st.SearchStrategy[int]:
    return st.sampled_from(values or [0]).flatmap(lambda n: st.integers(n - 1, n + 1))


@st.composite
def wheres(draw: st.DrawFn, rows: list[Row]) -> Where:
    """Conditions about as wide as the log."""
    offsets = [row.offset for row in rows]
    times = [row.timestamp_ms for row in rows]
    bounds = {
        "min_offset": _around(offsets),
        "max_offset": _around(offsets),
        "min_timestamp_ms": _around(times),
        "max_timestamp_ms": _around(times),
        "keys": st.frozensets(st.sampled_from((b"", b"a", b"bb", b"no")), max_size=2),
    }
    # Few at a time: what all of them leave would often be nothing.
    chosen = draw(st.sets(st.sampled_from(sorted(bounds)), max_size=2))
    return Where(**{name: draw(bounds[name]) for name in sorted(chosen)})


def is_wanted(where: Where, row: Row) -> bool:
    """The condition as anybody would check it."""
    lows = ((where.min_offset, row.offset), (where.min_timestamp_ms, row.timestamp_ms))
    highs = ((where.max_offset, row.offset), (where.max_timestamp_ms, row.timestamp_ms))
    return (
        all(low is None or low <= value for low, value in lows)
        and all(high is None or value <= high for high, value in highs)
        and (where.keys is None or row.key in where.keys)
    )


def lateness_ms(rows: list[Row]) -> int:
    """By how much some record is older than one before it, at most."""
    newest, late = rows[0].timestamp_ms if rows else 0, 0
    for row in rows:
        late = max(late, newest - row.timestamp_ms)
        newest = max(newest, row.timestamp_ms)
    return late
