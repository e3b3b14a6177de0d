"""Metrics in Prometheus' text format, made in slices that do not keep the loop.

    # HELP stratalog_log_size_bytes Bytes in the segments of a log.
    # TYPE stratalog_log_size_bytes gauge
    stratalog_log_size_bytes{partition="0",topic="orders"} 1.0e+06

A broker may have thousands of partitions and of groups, so samples are read when their turn comes,
``SLICE_SAMPLES`` at a time or for ``SLICE_NS`` at most, and the loop does other work in between.
Numbers of one scrape are therefore not all of one moment. Imported when somebody first asks:
whoever does not watch a broker does not pay for it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from itertools import accumulate
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from stratalog.broker.metrics import LATENCY_BOUNDS_NS, Histogram, MetricsSnapshot, TopicCounts
from stratalog.broker.overview import group_lags
from stratalog.broker.services import Services
from stratalog.errors import StratalogError
from stratalog.protocol.api import ApiKey
from stratalog.storage.cleaning.rounds import plan_log
from stratalog.storage.context import DiskState
from stratalog.storage.directory import LogDirectory
from stratalog.storage.log import Log

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
SLICE_SAMPLES: Final = 100
SLICE_NS: Final = 2_000_000

Labels = tuple[str, ...]
Sample = tuple[Labels, "float | Histogram"]
_PARTITION = ("topic", "partition")
_VERSION = version("stratalog")
_PROCESS = ProcessCollector(namespace="stratalog", registry=None)
_BOUNDS = [*(f"{bound / 1e9:g}" for bound in LATENCY_BOUNDS_NS), "+Inf"]


@dataclass(frozen=True, slots=True)
class Family:
    """All samples of one name. ``samples`` is read piece by piece, and once."""

    name: str
    kind: Callable[..., Metric]
    help: str
    labels: tuple[str, ...]
    samples: Iterable[Sample]


async def expose(
    services: Services, *, now_ns: Callable[[], int] = time.perf_counter_ns
) -> AsyncIterator[bytes]:
    """The text, a slice at a time; whoever reads it slowly keeps only itself waiting."""
    for family in families(services):
        for text in slices(family, now_ns):
            yield text
            await asyncio.sleep(0)
    yield generate_latest(_PROCESS)


def slices(family: Family, now_ns: Callable[[], int]) -> Iterator[bytes]:
    """The text of one family; what says its name and kind stands before the first sample."""
    samples = iter(family.samples)
    is_first = True
    while True:
        metric = family.kind(family.name, family.help, labels=family.labels)
        is_last = _fill(metric, samples, now_ns)
        if not metric.samples:
            return
        text = generate_latest(_Ready(metric))
        yield text if is_first else text.split(b"\n", 2)[2]
        if is_last:
            return
        is_first = False


def _fill(metric: Metric, samples: Iterator[Sample], now_ns: Callable[[], int]) -> bool:
    """Whether all samples were read."""
    until_ns = now_ns() + SLICE_NS
    for count, (labels, value) in enumerate(samples, start=1):
        if isinstance(value, Histogram):
            buckets = list(zip(_BOUNDS, accumulate(value.counts), strict=True))
            metric.add_metric(labels, buckets, value.sum_ns / 1e9)  # type: ignore[attr-defined]
        else:
            metric.add_metric(labels, value)  # type: ignore[attr-defined]
        if count >= SLICE_SAMPLES or now_ns() >= until_ns:
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Ready(Collector):
    """A family that has been collected already."""

    metric: Metric

    def collect(self) -> Iterable[Metric]:
        return (self.metric,)


# --- what there is to tell --------------------------------------------------------------------


def families(services: Services) -> Iterator[Family]:
    services.metrics.keep_topics(services.store.image.topics)
    counted = services.metrics.snapshot()
    yield gauge("stratalog_info", "Which stratalog this is.", [((_VERSION,), 1)], "version")
    yield from _of_requests(counted)
    yield from _of_topics(counted)
    yield from _of_connections(counted)
    yield from _of_logs(services)
    yield from _of_directories(services)
    yield from _of_cleaning(services)
    yield from _of_commits(counted, services)
    yield from _of_waiting(services)
    yield from _of_groups(services)


def gauge(name: str, help_: str, samples: Iterable[Sample], *labels: str) -> Family:
    return Family(name, GaugeMetricFamily, help_, labels, samples)


def counter(name: str, help_: str, samples: Iterable[Sample], *labels: str) -> Family:
    return Family(name, CounterMetricFamily, help_, labels, samples)


def histogram(name: str, help_: str, samples: Iterable[Sample], *labels: str) -> Family:
    return Family(name, HistogramMetricFamily, help_, labels, samples)


def _one(value: float | Histogram) -> list[Sample]:
    return [((), value)]


def _of_requests(counted: MetricsSnapshot) -> Iterator[Family]:
    apis = [((_api_name(key),), counts) for key, counts in sorted(counted.apis.items())]
    yield counter(
        "stratalog_requests",
        "Requests answered.",
        [(labels, each.latency.count) for labels, each in apis],
        "api",
    )
    yield counter(
        "stratalog_request_failures",
        "Requests refused as a whole; what failed of a part is counted by topic.",
        [(labels, each.failures) for labels, each in apis],
        "api",
    )
    yield histogram(
        "stratalog_request_duration_seconds",
        "From a request's last byte received to its answer handed to the socket, waits included.",
        [(labels, each.latency) for labels, each in apis],
        "api",
    )


def _api_name(api_key: int) -> str:
    try:
        return ApiKey(api_key).name.lower()
    except ValueError:
        return str(api_key)


_TOPIC_COUNTS: Final[tuple[tuple[str, str, Callable[[TopicCounts], int]], ...]] = (
    ("produce_requests", "Produce requests, by partition.", lambda each: each.produce_requests),
    ("produce_failures", "Those refused or failed.", lambda each: each.produce_failures),
    ("produced_bytes", "Bytes appended by producers.", lambda each: each.produced_bytes),
    ("produced_messages", "Records appended by producers.", lambda each: each.produced_messages),
    ("fetch_requests", "Fetch requests, by partition.", lambda each: each.fetch_requests),
    ("fetch_failures", "Those refused or failed.", lambda each: each.fetch_failures),
    ("fetched_bytes", "Bytes given to consumers.", lambda each: each.fetched_bytes),
)


def _of_topics(counted: MetricsSnapshot) -> Iterator[Family]:
    for name, help_, value in _TOPIC_COUNTS:
        yield counter(f"stratalog_{name}", f"{help_} All topics.", _one(value(counted.total)))
        yield counter(
            f"stratalog_topic_{name}",
            help_,
            [((topic,), value(counts)) for topic, counts in counted.topics.items()],
            "topic",
        )


def _of_connections(counted: MetricsSnapshot) -> Iterator[Family]:
    yield gauge("stratalog_connections", "Clients connected.", _one(counted.connections))
    yield counter(
        "stratalog_connections_opened", "Connections accepted.", _one(counted.connections_opened)
    )
    yield counter(
        "stratalog_connections_refused",
        "Connections closed at once, because there were too many.",
        _one(counted.connections_refused),
    )
    yield counter(
        "stratalog_protocol_errors",
        "Connections closed because of what a client sent.",
        _one(counted.protocol_errors),
    )
    yield gauge(
        "stratalog_bytes_in_flight",
        "Memory held by requests being read or answered.",
        _one(counted.bytes_in_flight),
    )
    yield histogram(
        "stratalog_loop_lag_seconds",
        "How long a turn of the event loop kept everything else waiting.",
        _one(counted.loop_lag),
    )


# --- logs and directories ---------------------------------------------------------------------

_LOG_VALUES: Final[tuple[tuple[str, str, Callable[[Log], int]], ...]] = (
    ("size_bytes", "Bytes in the segments of a log.", lambda log: log.size_bytes),
    ("segments", "Segments of a log.", lambda log: len(log.segments)),
    ("start_offset", "First offset of a log.", lambda log: log.log_start_offset),
    ("end_offset", "Offset of the next record.", lambda log: log.log_end_offset),
    ("high_watermark", "Where consumers stop.", lambda log: log.high_watermark),
    (
        "last_stable_offset",
        "Where consumers of committed data stop.",
        lambda log: log.last_stable_offset,
    ),
)


def _of_logs(services: Services) -> Iterator[Family]:
    logs = [
        (directory, log, (log.topic_partition.topic, str(log.topic_partition.partition)))
        for directory in services.logs.directories
        for log in directory.logs.values()
    ]
    for name, help_, value in _LOG_VALUES:
        yield gauge(
            f"stratalog_log_{name}",
            help_,
            ((labels, value(log)) for _, log, labels in logs),
            *_PARTITION,
        )
    yield gauge(
        "stratalog_log_dirty_ratio",
        "How much of what a round would read of a compacted log has not been cleaned.",
        _dirty_ratios(logs, services.clock.now_ms()),
        *_PARTITION,
    )
    yield gauge(
        "stratalog_logs_damaged",
        "Logs with damage that a person has to decide about.",
        _one(sum(log.is_damaged for _, log, _ in logs)),
    )
    yield gauge(
        "stratalog_logs_held",
        "Logs of topics whose configs are unknown: nothing is removed from them.",
        _one(sum(log.is_held for _, log, _ in logs)),
    )


def _dirty_ratios(
    logs: Iterable[tuple[LogDirectory, Log, Labels]], now_ms: int
) -> Iterator[Sample]:
    for directory, log, labels in logs:
        if log.config.compact and not log.is_closed and directory.is_online:
            try:
                plan = plan_log(log, directory.cleaner_offset(log.topic_partition), now_ms)
            except StratalogError:
                continue  # the cleaner meets the same, and sets the log aside
            yield labels, plan.cleanable_ratio


def _of_directories(services: Services) -> Iterator[Family]:
    directories = services.logs.directories
    yield gauge(
        "stratalog_directory_state",
        "1 for the state that a log directory is in.",
        [
            ((directory.path, state.value), float(directory.state.state is state))
            for directory in directories
            for state in DiskState
        ],
        "path",
        "state",
    )
    yield gauge(
        "stratalog_directory_free_bytes",
        "Bytes free on the file system of a log directory.",
        _free_bytes(directories),
        "path",
    )
    yield gauge(
        "stratalog_directory_logs",
        "Logs in a log directory.",
        [((each.path,), len(each.logs)) for each in directories],
        "path",
    )
    yield gauge(
        "stratalog_directory_offline_logs",
        "Logs in a log directory that could not be opened.",
        [((each.path,), len(each.offline_logs)) for each in directories],
        "path",
    )
    leases = services.logs.leases.book
    yield gauge(
        "stratalog_directory_leased_bytes",
        "Bytes in a log directory that would be gone but for leases.",
        [((each.path,), leases.held_bytes(each.path)) for each in directories],
        "path",
    )
    yield gauge("stratalog_leases", "Leases that readers hold.", [((), len(leases.leases))])


def _free_bytes(directories: Iterable[LogDirectory]) -> Iterator[Sample]:
    for directory in directories:
        if directory.is_online:
            try:
                yield (directory.path,), directory.files.free_bytes(directory.path)
            except StratalogError:
                continue


def _of_cleaning(services: Services) -> Iterator[Family]:
    yield gauge(
        "stratalog_retention_failures",
        "Logs whose last check of retention failed.",
        _one(len(services.logs.retention_failures)),
    )
    cleaner = services.logs.cleaner
    if cleaner is None:
        return
    status = cleaner.status()
    yield gauge(
        "stratalog_cleaner_uncleanable_partitions",
        "Partitions whose cleaning failed; each is tried again.",
        _one(len(status.uncleanable)),
    )
    yield gauge(
        "stratalog_cleaner_uncleanable_bytes",
        "Bytes that could be cleaned in those.",
        _one(status.uncleanable_bytes),
    )
    yield gauge(
        "stratalog_cleaner_max_dirty_percent",
        "The dirty ratio of the log that is cleaned next.",
        _one(status.max_dirty_percent),
    )
    yield gauge(
        "stratalog_cleaner_last_run_timestamp_seconds",
        "When the cleaner last looked for work.",
        _one(status.last_run_ms / 1000),
    )


def _of_commits(counted: MetricsSnapshot, services: Services) -> Iterator[Family]:
    counts = counted.commits
    yield counter("stratalog_commits", "Commits of staged segments.", _one(counts.committed))
    yield counter(
        "stratalog_committed_bytes",
        "Bytes that came into logs by them.",
        _one(counts.committed_bytes),
    )
    yield counter("stratalog_commits_refused", "Commits refused.", _one(counts.refused))
    yield gauge(
        "stratalog_commits_running",
        "Commits that are under way or wait for their turn.",
        _one(services.commits.running_count),
    )
    yield histogram(
        "stratalog_commit_duration_seconds",
        "From a manifest to the end of its commit, waits included.",
        _one(counts.duration),
    )
    yield histogram(
        "stratalog_commit_paused_seconds",
        "For how long a commit kept appends to its logs waiting.",
        _one(counts.paused),
    )


# --- requests that wait, and groups -----------------------------------------------------------


def _of_waiting(services: Services) -> Iterator[Family]:
    replicas = services.replicas
    yield gauge(
        "stratalog_purgatory_size",
        "Requests that wait for what they asked for, or for their time to run out.",
        [
            (("append",), len(replicas.append_purgatory)),
            (("produce",), len(replicas.produce_purgatory)),
            (("fetch",), len(replicas.fetch_purgatory)),
            (("delete_records",), len(replicas.delete_purgatory)),
        ],
        "operation",
    )


def _of_groups(services: Services) -> Iterator[Family]:
    groups = list(services.groups.all())
    states = Counter(group.state.value for group in groups)
    yield gauge(
        "stratalog_groups",
        "Groups by state.",
        [((state,), count) for state, count in sorted(states.items())],
        "state",
    )
    yield gauge(
        "stratalog_group_members",
        "Members of a group.",
        (((group.group_id,), len(group.members)) for group in groups),
        "group",
    )
    yield gauge(
        "stratalog_group_lag",
        "Records between what a group has committed and the high watermark.",
        (
            ((group.group_id, key.topic, str(key.partition)), lag)
            for group in groups
            for key, lag in group_lags(services, group)
        ),
        "group",
        *_PARTITION,
    )
