"""How long the event loop keeps everybody waiting while compacted topics are cleaned.

Four compacted topics take 40 MB/s of keyed records in batches of 16 KB, roll every 16 MB and are
cleaned without a pause. The broker itself counts how long each turn of its loop took, and hands
that over as a metric. Beside it a client produces one record at a time to another topic: what it
waits is told too.
"""

import itertools
import json
import re
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.broker_figures import SYNCED
from benchmarks.broker_processes import BrokerProcess, running, stratalog
from benchmarks.broker_raw import Batch, BrokerFailedError, Producer, connections, make_batch
from benchmarks.effort import Effort
from benchmarks.measurement import Bar, Outcome, lower, quantile

TOPICS, BYTES_A_SECOND = 4, 40_000_000
KEYS, IN_FLIGHT = 200_000, 5
BAR_MS, SHARE = 10.0, 0.999
SETTINGS = {"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),
    "min.cleanable.dirty.ratio": "0.01",
}
BATCHES = 64
_LAG = re.compile(r'^stratalog_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
_CLEANED = re.compile(
    r"^stratalog_cleaner_last_run_timestamp_seconds(?:\{[^}]*\})? (\S+)$", re.MULTILINE
)

Buckets = dict[float, float]


@dataclass
class Seen:
    """By the clients, while it ran."""

    latencies_ms: list[float] = field(default_factory=list)
    produced_bytes: int = 0


def run(root: Path, effort: Effort) -> Iterator[Outcome]:
    effort = effort.at_most(seconds=15)
    for is_synced in (False, True):
        home = root / ("synced" if is_synced else "ours")
        with running([stratalog(home, is_synced=is_synced, settings=SETTINGS)]) as (broker,):
            yield measure(broker, effort)


def measure(broker: BrokerProcess, effort: Effort) -> Outcome:
    with broker.connect() as connection:
        connection.create_topic("probe")
        for number in range(TOPICS):
            connection.create_topic(f"compacted-{number}", configs=COMPACTED)
    load(broker, effort.seconds)  # so that there is something to clean, and all is imported
    scrape(broker)
    before, _ = scrape(broker)
    started, waited_s = time.time(), broker.waited_s()
    seen = load(broker, effort.seconds)
    waited_s = broker.waited_s() - waited_s
    after, cleaned_at = scrape(broker)
    if cleaned_at < started:
        raise BrokerFailedError("nothing was cleaned meanwhile")
    lags = {bound: count - before[bound] for bound, count in after.items()}
    turns = lags[float("inf")]
    p50, p99, p999 = (quantile(seen.latencies_ms, share) for share in (0.5, 0.99, SHARE))
    note = (
        f"{turns - lags[BAR_MS / 1e3]:,.0f} of {turns:,.0f} turns took longer than 10 ms; "
        f"the loop was ready and without a core for {waited_s / effort.seconds:.1%} of the time; "
        f"{seen.produced_bytes / effort.seconds / 1e6:.0f} MB/s; a record beside it: "
        f"p50 {p50:.2f}, p99 {p99:.2f}, p99.9 {p999:.1f} ms"
    )
    is_synced = broker.name == SYNCED
    return lower(
        f"stalls.p999{'.flush' if is_synced else ''}",
        f"turn of the broker's loop while cleaning, p99.9{', flush on ack' if is_synced else ''}",
        "ms",
        [share_ms(lags, SHARE)],
        bar=Bar(value=BAR_MS),
        note=note,
    )


def share_ms(lags: Buckets, share: float) -> float:
    """By counting within the bucket as if all in it were spread evenly."""
    wanted = lags[float("inf")] * share
    below_s = below = 0.0
    for bound_s, count in sorted(lags.items()):
        if count >= wanted:
            inside = (wanted - below) / (count - below) if count > below else 0.0
            return (below_s + (bound_s - below_s) * inside) * 1e3
        below_s, below = bound_s, count
    raise AssertionError("the last bucket holds them all")


def scrape(broker: BrokerProcess) -> tuple[Buckets, float]:
    """The turns of the loop by their length, and when a log was last cleaned."""
    owner = json.loads((broker.log_dir / ".stratalog-owner").read_text())
    with urllib.request.urlopen(f"{owner['admin']}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    buckets = {float(bound): float(count) for bound, count in _LAG.findall(text)}
    return buckets, max((float(each) for each in _CLEANED.findall(text)), default=0.0)


def load(broker: BrokerProcess, seconds: float) -> Seen:
    seen, finished = Seen(), threading.Event()
    probe = threading.Thread(target=probe_until, args=(broker, finished, seen))
    probe.start()
    try:
        seen.produced_bytes = produce_steadily(broker, seconds)
    finally:
        finished.set()
        probe.join()
    return seen


def produce_steadily(broker: BrokerProcess, seconds: float) -> int:
    """On a schedule; what is late is made up for."""
    batches = keyed_batches()
    with connections(broker.port, TOPICS) as shared:
        turns = itertools.cycle(
            [
                Producer(connection, f"compacted-{number}", 0, batch)
                for number, connection in enumerate(shared)
            ]
            for batch in batches
        )
        sent: deque[list[Producer]] = deque()
        started, sent_bytes = time.perf_counter(), 0
        while (now := time.perf_counter() - started) < seconds:
            if sent_bytes > now * BYTES_A_SECOND:
                time.sleep(0.001)
                continue
            sent.append(next(turns))
            for producer in sent[-1]:
                producer.send()
                sent_bytes += producer.size_bytes
            if len(sent) == IN_FLIGHT:
                _receive(sent.popleft())
        while sent:
            _receive(sent.popleft())
    return sent_bytes


def _receive(producers: list[Producer]) -> None:
    for producer in producers:
        producer.receive()


def keyed_batches() -> list[Batch]:
    keys = [b"%016d" % key for key in range(KEYS)]
    return [make_batch(100, 16_384, keys=keys, seed=seed) for seed in range(BATCHES)]


def probe_until(broker: BrokerProcess, finished: threading.Event, seen: Seen) -> None:
    with broker.connect() as connection:
        producer = Producer(connection, "probe", 0, make_batch(100, 1))
        while not finished.wait(0.005):
            started = time.perf_counter()
            producer.produce()
            seen.latencies_ms.append((time.perf_counter() - started) * 1e3)
