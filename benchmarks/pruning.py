"""What a scan reads of a topic when it is asked for a part of it, counted by the reader itself.

A gigabyte in more than twenty segments, two weeks of event time in which records come up to an
hour too early or too late. Bars are on bytes, so that the machine has no part in it.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import stratalog
from benchmarks.effort import Effort, scaled
from benchmarks.measurement import Bar, Outcome, lower
from stratalog.records import Record, build_batch
from stratalog.scans.api import plan, scan
from stratalog.scans.keys import partition_of
from stratalog.scans.reading import ScanReport

TOTAL_BYTES = scaled(1 << 30, least=64 << 20)
SEGMENT_BYTES = TOTAL_BYTES // 22
VALUE_BYTES = 1000
RECORDS_A_BATCH = 16
SPAN_MS = 14 * 24 * 3_600_000
DISORDER_MS = 3_600_000
START_MS = 1_700_000_000_000
INDEX_INTERVAL_BYTES = 4096
PARTITIONS = 12
KEYS = [b"k%d" % number for number in range(1000)]


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    path = str(root / "logs")
    batch_bytes = fill(path)
    yield time_window(path)
    yield from offset_range(path, batch_bytes)
    yield one_key(path)


def fill(path: str) -> int:
    """One partition that is large, and twelve that are small; the size of the largest batch."""
    dice = random.Random(1)
    count = TOTAL_BYTES // (VALUE_BYTES + 16) // RECORDS_A_BATCH
    largest = 0
    now = {"message.timestamp.before.max.ms": str(2**63 - 1)}
    with stratalog.open_directory(path, create=True) as logs:
        log = logs.create("events", config={"segment.bytes": str(SEGMENT_BYTES), **now})
        value = dice.randbytes(VALUE_BYTES)
        for number in range(count):
            at_ms = START_MS + SPAN_MS * number // count
            batch = build_batch(
                Record(
                    b"%08d" % number,
                    value,
                    timestamp_ms=at_ms + dice.randint(-DISORDER_MS, DISORDER_MS),
                )
                for _ in range(RECORDS_A_BATCH)
            )
            largest = max(largest, len(batch))
            log.append_batch(batch, flush=number == count - 1)
        for partition in range(PARTITIONS):
            keys = [key for key in KEYS if partition_of(key, PARTITIONS) == partition]
            keyed = logs.create("keyed", partition, config=now)
            keyed.append([Record(key, value, timestamp_ms=START_MS) for key in keys])
    return largest


def time_window(path: str) -> Outcome:
    """The middle hundredth of the time."""
    first_ms = START_MS + SPAN_MS // 2
    window = f"timestamp BETWEEN '{text(first_ms)}' AND '{text(first_ms + SPAN_MS // 100)}'"
    read, everything = bytes_read(path, "events", where=window), bytes_read(path, "events")
    segments = len(list(Path(path, "events-0").glob("*.log")))
    note = (
        f"{read / 1e6:.1f} of {everything / 1e6:,.0f} MB in {segments} segments, records up to an "
        "hour early or late"
    )
    what = "pruning: a hundredth of the time, share of the bytes read"
    share = [100 * read / everything]
    return lower("pruning.time", what, "%", share, bar=Bar(value=3), note=note, is_headline=True)


def offset_range(path: str, batch_bytes: int) -> Iterator[Outcome]:
    """Too much at each end: one batch and two index intervals are allowed."""
    everything, count = bytes_read(path, "events"), records(path)
    for start, end in ((count // 5, count // 5), (count // 8, count // 3)):
        read = bytes_read(path, "events", where=f"offset BETWEEN {start} AND {end}")
        asked = end - start + 1
        needed = asked * everything / count  # records are equally large
        too_much = (read - needed) / 2
        bar = Bar(value=batch_bytes + 2 * INDEX_INTERVAL_BYTES)
        range_ = "one offset" if asked == 1 else f"{asked:,} offsets"
        what = f"pruning: {range_}, read too much at each end"
        name = "pruning.offset" if asked == 1 else "pruning.offsets"
        yield lower(name, what, "bytes", [too_much], bar=bar)


def one_key(path: str) -> Outcome:
    planned = plan(path, "keyed", key=b"k7")
    partitions = {each.topic_partition for task in planned.tasks for each in task.slices}
    what = f"pruning: one key of {PARTITIONS} partitions, partitions read"
    return lower("pruning.key", what, "partitions", [len(partitions)], bar=Bar(value=1))


def bytes_read(path: str, topic: str, where: str | None = None) -> int:
    report = ScanReport()
    for _ in scan(path, topic, where=where, columns=["offset", "timestamp"], report=report):
        pass
    return report.bytes_read


def records(path: str) -> int:
    return sum(batch.num_rows for batch in scan(path, "events", columns=["offset"]))


def text(timestamp_ms: int) -> str:
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}"
