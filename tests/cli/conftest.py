"""What the commands are tried on: a log directory of our own engine, and a broker of our own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_harness import BATCHES, time_of

from broker_fixture import running_broker
from command_line import CommandLine
from stratalog.config import TopicConfig
from stratalog.records import Codec, Record, build_batch
from stratalog.storage.context import LogContext
from stratalog.storage.recovery import open_log


@pytest.fixture
def replica(tmp_path: Path) -> Path:
    """``orders-0``: 12 batches of 3 records, one second apart, in several segments."""
    directory = tmp_path / "orders-0"
    directory.mkdir()
    context = LogContext.default()
    context.flush_on_ack = False
    config = TopicConfig(
        internal_segment_bytes=600, index_interval_bytes=100, segment_index_bytes=1200
    )
    log = open_log(str(directory), config, context, clean=True)
    for number in range(BATCHES):
        codec = Codec.ZSTD if number % 3 == 0 else Codec.NONE
        rows = [
            Record(
                b"key-%d" % n, b"value %d of batch %d" % (n, number), (), time_of(3 * number + n)
            )
            for n in range(3)
        ]
        log.append_as_leader(build_batch(rows, codec=codec))
    log.close()
    return directory


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """``stratalog`` against one broker for all tests: each takes topics and groups of its own."""
    log_dir = tmp_path_factory.mktemp("broker")
    with running_broker(log_dir, log_flush_on_ack="false") as broker:
        yield CommandLine(broker.bootstrap_server)
