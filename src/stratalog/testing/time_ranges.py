"""Holds the time ranges of a partition against its records, one by one."""

from bisect import bisect_right

from stratalog.errors import CorruptBatchError
from stratalog.records import read_header
from stratalog.records.columns import decode_columns
from stratalog.storage.files import FileSystem
from stratalog.storage.layout import LOG_SUFFIX, parse_segment_file
from stratalog.storage.time_ranges import TimeRanges, read_time_ranges


def believed_ranges(
    files: FileSystem, directory: str, *, is_active: bool = False
) -> dict[int, TimeRanges]:
    """The ranges that a reader would go by, for each segment that has any; ``is_active`` says
    that the partition's last segment is being appended to by one of us."""
    bases = _base_offsets(files, directory)
    found = {}
    for base_offset in bases:
        file = files.open(f"{directory}/{base_offset:020d}{LOG_SUFFIX}", writable=False)
        ranges = read_time_ranges(
            files,
            directory,
            base_offset,
            log_file=file,
            log_size=file.size_bytes(),
            is_active=is_active and base_offset == bases[-1],
        )
        if ranges is not None:
            found[base_offset] = ranges
        file.close()
    return found


def false_ranges(files: FileSystem, directory: str, *, is_active: bool = False) -> list[str]:
    """What is wrong with the ranges that a reader would go by: records outside of them."""
    wrong = []
    for base_offset, ranges in believed_ranges(files, directory, is_active=is_active).items():
        path = f"{directory}/{base_offset:020d}{LOG_SUFFIX}"
        file = files.open(path, writable=False)
        data = file.read_at(0, file.size_bytes())
        file.close()
        wrong += [f"{path}: {each}" for each in _contradictions(data, ranges)]
    return wrong


def _base_offsets(files: FileSystem, directory: str) -> list[int]:
    names = (parse_segment_file(entry.name) for entry in files.list(directory))
    return sorted(n.offset for n in names if n and n.kind == LOG_SUFFIX and not n.state)


def _contradictions(data: bytes, ranges: TimeRanges) -> list[str]:
    wrong, position, starts = [], 0, set(ranges.positions)
    while position < ranges.covered_bytes:
        try:
            header = read_header(data, position, position)
        except CorruptBatchError:
            break
        if header is None or position + header.size_bytes > len(data):
            break
        slot = bisect_right(ranges.positions, position) - 1
        low, high = ranges.min_ms[slot], ranges.max_ms[slot]
        for timestamp_ms in timestamps_of(data[position : position + header.size_bytes]):
            if not low <= timestamp_ms <= high:
                wrong.append(f"{timestamp_ms} at {position} is not in [{low}, {high}]")
        starts.discard(position)
        position += header.size_bytes
    if position >= ranges.covered_bytes and (starts or position > ranges.covered_bytes):
        wrong.append(f"ranges begin at {sorted(starts)} and end at {ranges.covered_bytes}")
    return wrong


def timestamps_of(batch: bytes) -> list[int]:
    """What a reader sees of a batch; nothing of one that is damaged."""
    try:
        rows = decode_columns(batch, columns=("timestamp_ms",), include_control=True)
    except CorruptBatchError:
        return []
    return [value for value in rows.column(0).to_pylist() if value is not None]
