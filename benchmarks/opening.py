"""Opening cleanly closed logs: many small ones, and one of very many segments."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.effort import Effort, repeats, scaled
from benchmarks.measurement import NO_BAR, Bar, Outcome, higher
from benchmarks.timing import wall_s
from benchmarks.workload import UnsyncedFileSystem, make_batches
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager

LOGS = scaled(250, least=10)
SEGMENTS_A_LOG = 20
SINGLES = scaled(2_000, least=50)
LONG_LOG_SEGMENTS = scaled(10_000, least=200)
SEGMENTS_A_SECOND = Bar(value=5_000)


def run(root: Path, _effort: Effort) -> Iterator[Outcome]:
    shapes = (
        ("many", LOGS, SEGMENTS_A_LOG, "segments/s", SEGMENTS_A_SECOND),
        ("long", 1, LONG_LOG_SEGMENTS, "segments/s", SEGMENTS_A_SECOND),
        ("single", SINGLES, 1, "logs/s", NO_BAR),
    )
    for name, logs, segments, unit, bar in shapes:
        rates = open_often(root / name, logs=logs, segments=segments)
        what = f"open cleanly closed logs: {logs:,} of {segments:,} segments"
        yield higher(f"opening.{name}", what, unit, rates, bar=bar)


def open_often(root: Path, *, logs: int, segments: int) -> list[float]:
    """Segments a second, each time that all of them are opened."""
    config = BrokerConfig(log_dirs=(str(root),), log_dir_reserve_bytes=0)
    small = TopicConfig(internal_segment_bytes=len(make_batches(1)[0]) + 1)
    manager = LogManager(config, files=UnsyncedFileSystem(), topic_config=lambda _topic: small)
    manager.start()
    batches = make_batches(16)
    for number in range(logs):
        log = manager.create(TopicPartition("bench", number))
        for segment in range(segments):
            log.append_as_leader(batches[segment % len(batches)])
    manager.shutdown()
    rates = []
    for _ in range(repeats(2)):
        manager = LogManager(config, topic_config=lambda _topic: small)
        elapsed_s = wall_s(manager.start)
        found = sum(len(log.segments) for log in manager)
        assert found >= logs * segments
        manager.shutdown()
        rates.append(found / elapsed_s)
    return rates
