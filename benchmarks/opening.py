"""Opening cleanly closed logs: many small ones, and one of very many segments."""

import time
from pathlib import Path

from benchmarks.result import Result
from benchmarks.workload import UnsyncedFileSystem, make_batches
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager

LOGS = 250
SEGMENTS_A_LOG = 20
LONG_LOG_SEGMENTS = 10_000


def run(root: Path) -> list[Result]:
    many = _open(root / "many", logs=LOGS, segments=SEGMENTS_A_LOG)
    single = _open(root / "single", logs=2_000, segments=1)
    long = _open(root / "long", logs=1, segments=LONG_LOG_SEGMENTS)
    return [
        Result("open cleanly closed logs", many, "segments/s", 5_000, detail="250 logs of 20"),
        Result("open cleanly closed logs", single, "logs/s", None, detail="2 000 logs of 1"),
        Result("open cleanly closed logs", long, "segments/s", 5_000, detail="1 log of 10 000"),
    ]


def _open(root: Path, *, logs: int, segments: int) -> float:
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
    manager = LogManager(config, topic_config=lambda _topic: small)
    started = time.perf_counter()
    manager.start()
    elapsed_s = time.perf_counter() - started
    found = sum(len(log.segments) for log in manager)
    assert found >= logs * segments
    manager.shutdown()
    return found / elapsed_s
