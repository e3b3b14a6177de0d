"""The client that measures: what it says of a broker is what the broker did."""

import os
import time
from array import array
from collections.abc import Iterator

import pytest
from benchmarks.broker_raw import (
    BrokerFailedError,
    Connection,
    Fetcher,
    Producer,
    fetch,
    make_batch,
    produce,
)
from benchmarks.processes import cpu_s

from stratalog.testing import broker


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with broker() as running:
        yield int(running.bootstrap_servers.rpartition(":")[2])


@pytest.fixture
def connection(port: int) -> Iterator[Connection]:
    with Connection(port) as opened:
        yield opened


def test_one_record_at_a_time_fills_all_figures(connection: Connection) -> None:
    connection.create_topic("one-by-one")
    batch = make_batch(100, 1)
    latencies_ns = array("q", bytes(8 * 50))
    started = time.perf_counter_ns()
    Producer(connection, "one-by-one", 0, batch).fill(latencies_ns)
    elapsed_ns = time.perf_counter_ns() - started
    assert min(latencies_ns) > 0
    assert sum(latencies_ns) < elapsed_ns
    read = fetch([Fetcher(connection, "one-by-one", 0, batch)], 51 * len(batch.data), 60)
    assert read.size_bytes == 51 * len(batch.data), "one that is not told, and the fifty"


def test_what_is_refused_is_not_told_as_a_latency(connection: Connection) -> None:
    connection.create_topic("gone")
    producer = Producer(connection, "gone", 0, make_batch(100, 1))
    producer.produce()
    connection.delete_topic("gone")
    with pytest.raises(BrokerFailedError, match="produce"):
        producer.fill(array("q", bytes(8)))


def test_all_that_was_produced_is_what_is_fetched(connection: Connection) -> None:
    connection.create_topic("many")
    batch = make_batch(1_000, 16_384)
    produced = produce([Producer(connection, "many", 0, batch)], 1_000_000, 60)
    assert produced.size_bytes >= 1_000_000
    again = fetch([Fetcher(connection, "many", 0, batch)], 3 * produced.size_bytes, 60)
    assert again.size_bytes >= 3 * produced.size_bytes


def test_the_time_of_a_process_is_told_finer_than_in_ticks() -> None:
    before_s = time.process_time()
    told_s = cpu_s(os.getpid())
    assert before_s <= told_s <= time.process_time()
