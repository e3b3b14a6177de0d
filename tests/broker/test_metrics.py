"""What a broker counts, and how it is shown to Prometheus."""

import asyncio
import re
from pathlib import Path

import pytest
from broker_parts import append, broker_parts, create_topic
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Sample
from prometheus_client.parser import text_string_to_metric_families

from stratalog.broker import exposition
from stratalog.broker.exposition import SLICE_SAMPLES, expose, gauge, slices
from stratalog.broker.metrics import LATENCY_BOUNDS_NS, Histogram, Metrics, TopicCounts
from stratalog.broker.services import Services
from stratalog.storage.layout import TopicPartition

TOPICS = st.sampled_from(["a", "b", "unknown"])
COUNTS = st.integers(min_value=0, max_value=1 << 40)


# --- counting ---------------------------------------------------------------------------------


@given(
    st.lists(
        st.one_of(st.integers(min_value=0, max_value=10**11), st.sampled_from(LATENCY_BOUNDS_NS))
    )
)
def test_each_duration_is_in_the_first_bucket_that_is_not_too_short(durations: list[int]) -> None:
    histogram = Histogram()
    metrics = Metrics()
    for duration_ns in durations:
        histogram.add(duration_ns)
        metrics.request_done(7, duration_ns)

    bounds = [*LATENCY_BOUNDS_NS, float("inf")]
    lower = [-1, *LATENCY_BOUNDS_NS]
    expected = [
        sum(low < each <= high for each in durations)
        for low, high in zip(lower, bounds, strict=True)
    ]
    assert histogram.counts == expected
    assert not durations or metrics.apis[7].latency.counts == expected
    assert (histogram.count, histogram.sum_ns) == (len(durations), sum(durations))


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("produced"), TOPICS, COUNTS, COUNTS),
            st.tuples(st.just("fetched"), TOPICS, COUNTS),
            st.tuples(st.just("produce_failed"), TOPICS),
            st.tuples(st.just("fetch_failed"), TOPICS),
            st.tuples(st.just("keep_topics"), st.sets(TOPICS)),
        )
    )
)
def test_the_totals_count_everything_and_never_go_down(calls: list[tuple[object, ...]]) -> None:
    metrics = Metrics(is_topic=lambda topic: topic != "unknown")
    expected = TopicCounts()
    for name, *arguments in calls:
        getattr(metrics, str(name))(*arguments)
        if name in ("produced", "produce_failed"):
            expected.produce_requests += 1
        if name in ("fetched", "fetch_failed"):
            expected.fetch_requests += 1
        if name == "produced":
            expected.produced_bytes += arguments[1]  # type: ignore[operator]
            expected.produced_messages += arguments[2]  # type: ignore[operator]
        if name == "fetched":
            expected.fetched_bytes += arguments[1]  # type: ignore[operator]
        expected.produce_failures += name == "produce_failed"
        expected.fetch_failures += name == "fetch_failed"
        assert metrics.total() == expected


def test_names_that_clients_make_up_take_no_memory() -> None:
    metrics = Metrics(is_topic=lambda topic: topic == "known")
    for number in range(1000):
        metrics.produce_failed(f"made-up-{number}")
        metrics.fetch_failed(f"made-up-{number}")
    metrics.produce_failed("known")

    assert list(metrics.topics) == ["known"]
    assert metrics.total().produce_failures == 1001


def test_a_snapshot_does_not_change_any_more() -> None:
    metrics = Metrics()
    metrics.produced("t", 10, 1)
    metrics.request_done(0, 1000)
    snapshot = metrics.snapshot()
    metrics.produced("t", 10, 1)
    metrics.request_done(0, 1000, is_failed=True)
    metrics.loop_lag(0.5)

    assert snapshot.topics["t"].produced_bytes == snapshot.total.produced_bytes == 10
    assert (snapshot.apis[0].latency.count, snapshot.apis[0].failures) == (1, 0)
    assert snapshot.loop_lag.count == 0


# --- the text ---------------------------------------------------------------------------------


async def scrape(services: Services) -> bytes:
    return b"".join([text async for text in expose(services)])


def samples_of(text: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    """By name and values of labels, in the order of the labels' names."""
    found: list[Sample] = [
        sample
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    ]
    by_name = {
        (each.name, tuple(value for _, value in sorted(each.labels.items()))): each.value
        for each in found
    }
    assert len(by_name) == len(found)
    return by_name


def test_the_text_tells_of_traffic_logs_groups_and_directories(tmp_path: Path) -> None:
    commits = {"g": {TopicPartition("orders", 1): 2, TopicPartition("gone", 0): 5}}

    async def act() -> bytes:
        async with broker_parts(tmp_path, commits=commits) as services:
            await create_topic(services, "orders", 2)
            append(services, "orders", 1, count=5)
            services.metrics.produced("orders", 400, 5)
            services.metrics.fetch_failed("orders")
            services.metrics.request_done(0, 2_000_000)
            services.metrics.request_done(0, 2_000_000, is_failed=True)
            services.metrics.connections = 3
            return await scrape(services)

    found = samples_of(asyncio.run(act()))
    path = str(tmp_path)
    expected = {
        ("stratalog_requests_total", ("produce",)): 2,
        ("stratalog_request_failures_total", ("produce",)): 1,
        ("stratalog_request_duration_seconds_bucket", ("produce", "0.001")): 0,
        ("stratalog_request_duration_seconds_bucket", ("produce", "0.0025")): 2,
        ("stratalog_request_duration_seconds_bucket", ("produce", "+Inf")): 2,
        ("stratalog_request_duration_seconds_sum", ("produce",)): 0.004,
        ("stratalog_produced_bytes_total", ()): 400,
        ("stratalog_topic_produced_messages_total", ("orders",)): 5,
        ("stratalog_topic_fetch_failures_total", ("orders",)): 1,
        ("stratalog_connections", ()): 3,
        ("stratalog_log_end_offset", ("0", "orders")): 0,
        ("stratalog_log_end_offset", ("1", "orders")): 5,
        ("stratalog_log_high_watermark", ("1", "orders")): 5,
        ("stratalog_log_segments", ("1", "orders")): 1,
        ("stratalog_group_lag", ("g", "1", "orders")): 3,
        ("stratalog_group_members", ("g",)): 0,
        ("stratalog_groups", ("Empty",)): 1,
        ("stratalog_directory_state", (path, "online")): 1,
        ("stratalog_directory_state", (path, "offline")): 0,
        ("stratalog_directory_logs", (path,)): 2,
        ("stratalog_purgatory_size", ("fetch",)): 0,
        ("stratalog_retention_failures", ()): 0,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert ("stratalog_group_lag", ("g", "0", "gone")) not in found
    assert found["stratalog_log_size_bytes", ("1", "orders")] > 0
    assert found["stratalog_directory_free_bytes", (path,)] > 0
    assert found["stratalog_process_resident_memory_bytes", ()] > 0


def test_every_metric_is_in_the_page_about_watching_a_broker(tmp_path: Path) -> None:
    async def act() -> bytes:
        commits = {"g": {TopicPartition("orders", 0): 0}}
        async with broker_parts(tmp_path, commits=commits) as services:
            await create_topic(services, "orders", cleanup_policy="compact")
            append(services, "orders")
            services.metrics.produced("orders", 1, 1)
            services.metrics.request_done(0, 1)
            return await scrape(services)

    names = {
        line.split()[2] for line in asyncio.run(act()).decode().splitlines() if line[:6] == "# TYPE"
    }
    page = (Path(__file__).parents[2] / "docs" / "watching.md").read_text()
    documented = set(re.findall(r"`(stratalog_[a-z_]+)", page))
    assert names == documented


def test_only_compacted_logs_have_a_dirty_ratio(tmp_path: Path) -> None:
    async def act() -> bytes:
        async with broker_parts(tmp_path) as services:
            await create_topic(services, "deleted")
            await create_topic(services, "compacted", cleanup_policy="compact")
            append(services, "compacted", count=10)
            services.replicas.get(TopicPartition("compacted", 0)).log.roll()
            return await scrape(services)

    found = samples_of(asyncio.run(act()))
    assert found["stratalog_log_dirty_ratio", ("0", "compacted")] == 1.0
    assert ("stratalog_log_dirty_ratio", ("0", "deleted")) not in found


def test_counts_of_a_deleted_topic_move_to_the_total_alone(tmp_path: Path) -> None:
    async def act() -> bytes:
        async with broker_parts(tmp_path) as services:
            services.metrics.produced("gone", 100, 1)
            return await scrape(services)

    found = samples_of(asyncio.run(act()))
    assert found["stratalog_produced_bytes_total", ()] == 100
    assert ("stratalog_topic_produced_bytes_total", ("gone",)) not in found


@pytest.mark.parametrize("count", [0, 1, SLICE_SAMPLES, SLICE_SAMPLES + 1, 3 * SLICE_SAMPLES])
def test_slices_put_together_are_the_family_as_a_whole(count: int) -> None:
    samples = [((f"g{number}",), number) for number in range(count)]
    pieces = list(slices(gauge("stratalog_x", "An x.", iter(samples), "group"), lambda: 0))

    text = b"".join(pieces)
    assert samples_of(text) == {("stratalog_x", labels): value for labels, value in samples}
    assert text.count(b"# HELP") == min(count, 1)
    assert len(pieces) == -(-count // SLICE_SAMPLES)


def test_a_slice_ends_when_its_time_is_over() -> None:
    ticks = iter(range(0, 10**9, exposition.SLICE_NS // 4))
    samples = (((str(number),), number) for number in range(20))
    pieces = list(slices(gauge("stratalog_x", "An x.", samples, "n"), lambda: next(ticks)))

    assert len(pieces) == 5


@given(st.text(max_size=20))
def test_any_name_of_a_group_arrives_as_it_is(name: str) -> None:
    # Parsers split at every line break they know; Prometheus knows one.
    text = b"".join(slices(gauge("stratalog_x", "An x.", [((name,), 1.0)], "group"), lambda: 0))
    line = text.decode().split("\n")[2]
    quoted = line.removeprefix('stratalog_x{group="').removesuffix('"} 1.0')
    unescaped = quoted.replace("\\\\", "\0").replace("\\n", "\n").replace('\\"', '"')
    assert unescaped.replace("\0", "\\") == name or "\0" in name
