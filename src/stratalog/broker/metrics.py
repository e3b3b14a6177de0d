"""What a broker counts while it works: plain integers, changed on the loop's thread alone.

A count costs a few tenths of a microsecond, so nothing here locks, formats or allocates: whoever
shows the numbers (``exposition``) copies them first. What can be asked of the parts themselves, as
sizes and offsets, is not counted here.

Counts of a topic that is gone stay in the totals, which never go down. Names come from clients:
only topics that exist get counts of their own.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

# Upper bounds, inclusive. From 50 µs, since less is a quick answer, to beyond the longest fetch.
LATENCY_BOUNDS_NS = tuple(
    round(seconds * 1e9)
    for seconds in (
        0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
        0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    )
)  # fmt: skip


class Histogram:
    """Durations, counted in ``LATENCY_BOUNDS_NS`` and one bucket for what is longer."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(LATENCY_BOUNDS_NS) + 1)
        self.sum_ns = 0

    def add(self, duration_ns: int) -> None:
        self.counts[bisect_left(LATENCY_BOUNDS_NS, duration_ns)] += 1
        self.sum_ns += duration_ns

    @property
    def count(self) -> int:
        return sum(self.counts)

    def copy(self) -> "Histogram":
        copy = Histogram()
        copy.counts[:] = self.counts
        copy.sum_ns = self.sum_ns
        return copy


class ApiCounts:
    """The requests of one API; each of them has a duration."""

    __slots__ = ("failures", "latency")

    def __init__(self) -> None:
        self.failures = 0
        self.latency = Histogram()

    def copy(self) -> "ApiCounts":
        copy = ApiCounts()
        copy.failures = self.failures
        copy.latency = self.latency.copy()
        return copy


@dataclass(slots=True)
class TopicCounts:
    """A topic's traffic. A request for several partitions counts once for each of them; those
    that failed are among the requests."""

    produce_requests: int = 0
    produce_failures: int = 0
    produced_bytes: int = 0
    produced_messages: int = 0
    fetch_requests: int = 0
    fetch_failures: int = 0
    fetched_bytes: int = 0

    # Field by field: dataclasses' own way takes ten times as long, and there may be thousands.
    def copy(self) -> "TopicCounts":
        return TopicCounts(
            self.produce_requests,
            self.produce_failures,
            self.produced_bytes,
            self.produced_messages,
            self.fetch_requests,
            self.fetch_failures,
            self.fetched_bytes,
        )

    def add(self, other: "TopicCounts") -> None:
        self.produce_requests += other.produce_requests
        self.produce_failures += other.produce_failures
        self.produced_bytes += other.produced_bytes
        self.produced_messages += other.produced_messages
        self.fetch_requests += other.fetch_requests
        self.fetch_failures += other.fetch_failures
        self.fetched_bytes += other.fetched_bytes


@dataclass(slots=True)
class CommitCounts:
    """Staged segments that became part of logs: how many commits, how long each took, and for how
    long appends had to wait for it."""

    committed: int = 0
    committed_bytes: int = 0
    refused: int = 0
    duration: Histogram = field(default_factory=Histogram)
    paused: Histogram = field(default_factory=Histogram)

    def copy(self) -> "CommitCounts":
        return CommitCounts(
            self.committed,
            self.committed_bytes,
            self.refused,
            self.duration.copy(),
            self.paused.copy(),
        )


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """A copy of all counts, which another thread may read."""

    apis: dict[int, ApiCounts]
    topics: dict[str, TopicCounts]
    total: TopicCounts
    loop_lag: Histogram
    connections: int
    connections_opened: int
    connections_refused: int
    protocol_errors: int
    bytes_in_flight: int
    commits: CommitCounts


@dataclass(slots=True, eq=False)
class Metrics:
    """See the top of this file. ``is_topic`` says whether a topic exists; it is asked only about
    one that has no counts yet."""

    is_topic: Callable[[str], bool] | None = None

    # Changed by whoever knows.
    connections: int = 0
    connections_opened: int = 0
    connections_refused: int = 0
    protocol_errors: int = 0
    bytes_in_flight: Callable[[], int] = lambda: 0

    apis: dict[int, ApiCounts] = field(default_factory=dict)
    topics: dict[str, TopicCounts] = field(default_factory=dict)
    loop_lags: Histogram = field(default_factory=Histogram)
    commits: CommitCounts = field(default_factory=CommitCounts)
    # Topics that are gone, and failures for topics that never were.
    _elsewhere: TopicCounts = field(default_factory=TopicCounts)

    # --- on the path of a request -------------------------------------------------------------

    def request_done(self, api_key: int, duration_ns: int, is_failed: bool = False) -> None:
        counts = self.apis.get(api_key)
        if counts is None:
            counts = self.apis[api_key] = ApiCounts()
        latency = counts.latency
        latency.counts[bisect_left(LATENCY_BOUNDS_NS, duration_ns)] += 1
        latency.sum_ns += duration_ns
        if is_failed:
            counts.failures += 1

    def produced(self, topic: str, size_bytes: int, messages: int) -> None:
        """Records were appended to one partition of ``topic``, which therefore exists."""
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicCounts()
        counts.produce_requests += 1
        counts.produced_bytes += size_bytes
        counts.produced_messages += messages

    def fetched(self, topic: str, size_bytes: int) -> None:
        """One partition of ``topic`` was read, which therefore exists; perhaps without result."""
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicCounts()
        counts.fetch_requests += 1
        counts.fetched_bytes += size_bytes

    def produce_failed(self, topic: str) -> None:
        counts = self._of(topic)
        counts.produce_requests += 1
        counts.produce_failures += 1

    def fetch_failed(self, topic: str) -> None:
        counts = self._of(topic)
        counts.fetch_requests += 1
        counts.fetch_failures += 1

    def loop_lag(self, seconds: float) -> None:
        """For so long the loop did not come back to look for what is ready."""
        self.loop_lags.add(int(seconds * 1e9))

    def _of(self, topic: str) -> TopicCounts:
        counts = self.topics.get(topic)
        if counts is not None:
            return counts
        if self.is_topic is None or not self.is_topic(topic):
            return self._elsewhere
        counts = self.topics[topic] = TopicCounts()
        return counts

    # --- for whoever shows them ---------------------------------------------------------------

    def keep_topics(self, existing: Iterable[str]) -> None:
        """Forget the topics that are gone; what they counted stays in the totals."""
        for topic in self.topics.keys() - set(existing):
            self._elsewhere.add(self.topics.pop(topic))

    def total(self) -> TopicCounts:
        """Over all topics that are or were here."""
        total = self._elsewhere.copy()
        for counts in self.topics.values():
            total.add(counts)
        return total

    def snapshot(self) -> MetricsSnapshot:
        return MetricsSnapshot(
            {api_key: counts.copy() for api_key, counts in self.apis.items()},
            {topic: counts.copy() for topic, counts in self.topics.items()},
            self.total(),
            self.loop_lags.copy(),
            self.connections,
            self.connections_opened,
            self.connections_refused,
            self.protocol_errors,
            self.bytes_in_flight(),
            self.commits.copy(),
        )
