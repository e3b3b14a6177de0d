"""Recovery after an unclean stop, from page cache, on one core: headers, CRCs, records, and both
indexes rebuilt because they are gone. Verification of the same log, also on one core."""

import time
from pathlib import Path

from benchmarks.result import Result
from benchmarks.workload import fill, new_log
from stratalog.config import TopicConfig
from stratalog.storage.check import check
from stratalog.storage.context import LogContext
from stratalog.storage.recovery import open_log

SIZE_BYTES = 1 << 30


def run(root: Path) -> list[Result]:
    log = new_log(root, config=TopicConfig(segment_bytes=256 << 20))
    fill(log, SIZE_BYTES)
    size_bytes = log.size_bytes
    log.close()
    directory = Path(log.directory)
    rates = []
    for _ in range(3):
        for index in directory.glob("*index"):
            index.unlink()
        started = time.process_time()
        again = open_log(log.directory, log.config, LogContext.default(), recovery_point=0)
        rates.append(size_bytes / (time.process_time() - started) / 1e9)
        assert again.log_end_offset == log.log_end_offset
        again.close()
    verified = []
    for _ in range(3):
        started = time.process_time()
        assert check(log.directory) == []
        verified.append(size_bytes / (time.process_time() - started) / 1e9)
    return [
        Result("recovery", max(rates), "GB/s a core", 1, detail=f"{size_bytes / 1e9:.2f} GB"),
        Result("verify", max(verified), "GB/s a core", 1, detail=f"{size_bytes / 1e9:.2f} GB"),
    ]
