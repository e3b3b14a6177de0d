"""A real process on a real disk is killed while it writes; the next owner finds all it reported."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from crash_scenario import readable_batches

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import LogDirectoryError
from stratalog.records import read_headers
from stratalog.storage.check import check
from stratalog.storage.findings import Severity
from stratalog.storage.layout import TopicPartition
from stratalog.storage.manager import LogManager

KEY = TopicPartition("t", 0)

WRITER = """
import sys
from test_killed_writer import KEY, manager_on
from stratalog.records import Record, build_batch

manager = manager_on(sys.argv[1])
manager.start()
log = manager.get(KEY) if KEY in manager else manager.create(KEY)
while True:
    for size in (10, 300, 40):
        log.append_as_leader(build_batch([Record(b"k", bytes(size), (), 0)]), leader_epoch=0)
    manager.flush_appended()
    manager.checkpoint_recovery_points()
    print(log.recovery_point, flush=True)
"""


def manager_on(path: str) -> LogManager:
    config = TopicConfig(internal_segment_bytes=4000, index_interval_bytes=200)
    return LogManager(
        BrokerConfig(log_dirs=(path,), log_dir_reserve_bytes=0),
        topic_config=lambda _topic: config,
    )


def start_writer(path: Path) -> "subprocess.Popen[str]":
    search = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": search},
    )


def test_what_a_killed_writer_reported_as_flushed_is_there(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    reported = 0
    for reports in (1, 20, 40):
        with start_writer(directory) as writer:
            assert writer.stdout is not None
            for _ in range(reports):
                reported = int(writer.stdout.readline())
            with pytest.raises(LogDirectoryError, match=str(writer.pid)):
                manager_on(str(directory)).start()
            writer.send_signal(signal.SIGKILL)
            reported = max([reported, *(int(line) for line in writer.stdout if line.strip())])
        manager = manager_on(str(directory))
        manager.start()
        log = manager.get(KEY)
        batches = [read_headers(batch)[0] for batch in readable_batches(log)]
        assert log.log_end_offset >= reported
        assert [batch.base_offset for batch in batches] == list(range(log.log_end_offset))
        assert not [each for each in check(log) if each.severity is Severity.ERROR]
        manager.shutdown()
