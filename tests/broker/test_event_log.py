"""One line an event, whatever is in it, and never a flood; and which events there are."""

import asyncio
import io
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from broker_parts import append, broker_parts, create_topic
from hypothesis import given
from hypothesis import strategies as st

from stratalog.broker.broker_loop import BrokerLoop, BrokerSelector
from stratalog.broker.event_log import (
    BURST,
    INTERVAL_MS,
    LEVELS,
    LINE_BYTES_MAX,
    VALUE_CHARACTERS_MAX,
    EventHandler,
    log_event,
    start_event_log,
    stop_event_log,
)
from stratalog.broker.loop_lag import STALL_NS, note_lag, watch_loop
from stratalog.broker.metrics import Metrics
from stratalog.broker.state_events import StateEvents
from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation
from stratalog.metadata.image import Update
from stratalog.storage.layout import TopicPartition
from stratalog.testing import ManualClock

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|WARNING|ERROR) [a-z_]+"
    r'( [a-z_]+=([^ "=]+|"([^"\\]|\\.)*"))*\n'
)
VALUES = st.one_of(st.text(max_size=40), st.integers(), st.none(), st.binary(max_size=20))


@contextmanager
def listening(style: str = "text", clock: ManualClock | None = None) -> Iterator[io.StringIO]:
    """What the event log writes meanwhile."""
    stream, hands = io.StringIO(), clock or ManualClock()
    handler = EventHandler(stream, style=style, now_ms=hands.now_ms)
    logger = logging.getLogger("stratalog")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield stream
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def lines_of(stream: io.StringIO) -> list[str]:
    """Without times: level, event and fields."""
    return [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]


# --- lines ------------------------------------------------------------------------------------


@given(st.dictionaries(st.sampled_from(["client", "reason", "n"]), VALUES))
def test_an_event_is_one_plain_line_whatever_a_client_sent(fields: dict[str, object]) -> None:
    with listening() as stream:
        log_event("client_disconnected", **fields)
    assert LINE.fullmatch(stream.getvalue())
    assert stream.getvalue().isascii()


@given(st.dictionaries(st.sampled_from(["client", "time", "level", "event"]), VALUES))
def test_as_json_an_event_is_one_object(fields: dict[str, object]) -> None:
    with listening("json") as stream:
        log_event("client_disconnected", **fields)
    [line] = stream.getvalue().splitlines()
    found = json.loads(line)
    assert (found["event"], found["level"]) == ("client_disconnected", "WARNING")
    if "client" in fields:
        is_plain = isinstance(fields["client"], int | None)
        assert found["client"] == (fields["client"] if is_plain else str(fields["client"]))


def test_text_that_needs_no_quotes_has_none() -> None:
    with listening() as stream:
        log_event("topic_created", topic="orders.eu", partitions=3)
        log_event("directory_full", path="/data/a", reason='no "room" left')
    assert lines_of(stream) == [
        "INFO topic_created topic=orders.eu partitions=3",
        'ERROR directory_full path=/data/a reason="no \\"room\\" left"',
    ]


def test_a_long_value_is_cut() -> None:
    with listening() as stream:
        log_event("client_disconnected", reason="x" * 100_000)
    assert len(stream.getvalue()) < VALUE_CHARACTERS_MAX + 200
    assert "(100000 characters)" in stream.getvalue()


@given(st.lists(st.text('é\u2028"x', min_size=400, max_size=600), min_size=1, max_size=6))
def test_no_line_is_longer_than_what_a_pipe_takes_at_once(values: list[str]) -> None:
    with listening() as stream, listening("json") as objects:
        log_event("client_disconnected", **{f"v{at}": value for at, value in enumerate(values)})
    assert len(stream.getvalue()) <= LINE_BYTES_MAX
    assert len(objects.getvalue()) <= LINE_BYTES_MAX
    json.loads(objects.getvalue())


# --- floods -----------------------------------------------------------------------------------


def test_a_flood_is_cut_and_counted_and_other_events_are_heard() -> None:
    clock = ManualClock()
    with listening(clock=clock) as stream:
        for _ in range(1000):
            log_event("client_disconnected")
        log_event("directory_full")
        clock.advance(2 * INTERVAL_MS)
        for _ in range(3):
            log_event("client_disconnected")
    assert lines_of(stream) == [
        *["WARNING client_disconnected"] * BURST,
        "ERROR directory_full",
        f"WARNING client_disconnected suppressed={1000 - BURST}",
        "WARNING client_disconnected",
    ]


def test_no_pause_is_so_long_that_a_flood_is_written_whole() -> None:
    clock = ManualClock()
    with listening(clock=clock) as stream:
        for _ in range(2):
            for _ in range(100):
                log_event("client_disconnected")
            clock.advance(1000 * INTERVAL_MS)
    assert len(lines_of(stream)) == 2 * BURST


def test_time_that_earned_no_whole_line_counts_for_the_next() -> None:
    clock = ManualClock()
    with listening(clock=clock) as stream:
        for _ in range(BURST):
            log_event("client_disconnected")
        for _ in range(4):
            clock.advance(INTERVAL_MS * 3 // 4)
            log_event("client_disconnected")
    assert len(lines_of(stream)) == BURST + 3


@given(st.lists(st.integers(min_value=0, max_value=3 * INTERVAL_MS), max_size=200))
def test_lines_and_what_was_left_out_add_up(pauses_ms: list[int]) -> None:
    clock = ManualClock()
    with listening(clock=clock) as stream:
        for pause_ms in pauses_ms:
            clock.advance(pause_ms)
            log_event("loop_stalled")
        handler = logging.getLogger("stratalog").handlers[-1]
        assert isinstance(handler, EventHandler)
        handler.write_suppressed()
    lines = lines_of(stream)
    suppressed = sum(int(line.split("suppressed=")[1]) for line in lines if "suppressed" in line)
    # The last line only says how many were left out, if any were.
    extra = suppressed + len(lines) - len(pauses_ms)
    assert extra in (0, 1)
    assert len(lines) - extra <= BURST + sum(pauses_ms) // INTERVAL_MS


# --- the log as a program starts it -------------------------------------------------------------


def test_the_log_starts_and_stops_and_hears_asyncio_too() -> None:
    stream = io.StringIO()
    handler = start_event_log(stream)
    try:
        log_event("ready", endpoint="127.0.0.1:9092")
        try:
            raise ValueError("a mistake")
        except ValueError:
            logging.getLogger("asyncio").exception("Task failed\ntwice")
    finally:
        stop_event_log(handler)
        logging.getLogger("stratalog").setLevel(logging.NOTSET)
    log_event("ready")

    ready, failed = lines_of(stream)
    assert ready == "INFO ready endpoint=127.0.0.1:9092"
    assert failed.startswith('ERROR asyncio message="Task failed\\ntwice" error="ValueError: a mi')
    assert "test_event_log.py" in failed


def test_a_log_that_nobody_reads_any_more_stops_nobody() -> None:
    with listening() as stream:
        stream.close()
        log_event("ready")


def test_who_does_not_read_the_log_keeps_nobody_waiting() -> None:
    readable, writable = os.pipe()
    clock = ManualClock()
    with os.fdopen(readable, "rb") as reader, os.fdopen(writable, "w") as writer:
        handler = EventHandler(writer, now_ms=clock.now_ms)
        record = logging.LogRecord("stratalog", logging.INFO, "", 0, "ready", (), None)
        for _ in range(5000):  # would be 200 KB
            clock.advance(INTERVAL_MS)
            handler.emit(record)
        left = len(os.read(reader.fileno(), 1 << 20).splitlines())
        handler.emit(record)
        assert f"suppressed={5000 - left}" in os.read(reader.fileno(), 1 << 20).decode()


def test_every_event_and_its_level_is_in_the_page_about_watching_a_broker() -> None:
    root = Path(__file__).parents[2]
    told = {word: logging.getLevelName(level) for word, level in LEVELS.items()}
    for module in (root / "src" / "stratalog").rglob("*.py"):
        text = module.read_text()
        for word in re.findall(r'log_event\(\s*"([a-z_]+)"', text):
            told.setdefault(word, "INFO")
        for level, word in re.findall(r'_logger\.([a-z]+)\(\s*"([a-z_]+)"', text):
            told[word] = level.upper()
    table = re.findall(r"^\| (`.*`) \| (\w+) \|", (root / "docs" / "watching.md").read_text(), re.M)
    page = {word: level.upper() for words, level in table for word in re.findall(r"`(\w+)`", words)}
    assert told == {word: page.get(word) for word in told}
    # Those that are chosen by a variable: the states of a directory.
    assert page.keys() - told.keys() == {"directory_online"}


# --- what changes in a broker -------------------------------------------------------------------


def test_changes_of_topics_and_configs_are_told(tmp_path: Path) -> None:
    async def act(stream: io.StringIO) -> list[str]:
        async with broker_parts(tmp_path) as services:
            events = StateEvents(services)
            await create_topic(services, "orders")
            changes = [ConfigChange(name="retention.ms", operation=ConfigOperation.SET, value="5")]
            await services.topics.alter_topic_configs("orders", changes)
            await services.topics.create_partitions("orders", 3)
            await services.topics.delete([services.store.image.topic("orders").topic_id])
            events.stop()
            await create_topic(services, "unheard")
        return lines_of(stream)

    with listening() as stream:
        told = asyncio.run(act(stream))
    assert told == [
        "INFO topic_created topic=orders partitions=1",
        'INFO configs_changed resource=topic name=orders changes="retention.ms=5"',
        "INFO partitions_created topic=orders partitions=3",
        "INFO topic_deleted topic=orders",
    ]


def test_the_end_of_a_hold_is_told(tmp_path: Path) -> None:
    async def act(stream: io.StringIO) -> list[str]:
        async with broker_parts(tmp_path) as services:
            await create_topic(services, "orders")
            held = replace(services.store.image.topic("orders"), is_held=True)
            services.store._commit(services.store.image, Update(topics=(held,)))
            events = StateEvents(services)
            await services.topics.adopt("orders", {"cleanup.policy": "compact"})
            events.stop()
        return lines_of(stream)

    with listening() as stream:
        told = asyncio.run(act(stream))
    assert told == [
        'INFO configs_changed resource=topic name=orders changes="cleanup.policy=compact"',
        "INFO topic_released topic=orders",
    ]


def test_each_change_of_a_state_is_told_once(tmp_path: Path) -> None:
    async def act(stream: io.StringIO) -> list[str]:
        async with broker_parts(tmp_path) as services:
            events = StateEvents(services)
            directory, cleaner = services.logs.directories[0], services.logs.cleaner
            assert cleaner is not None
            key = TopicPartition("orders", 0)

            def full() -> None:
                directory.check_space(1 << 62)
                cleaner.uncleanable.mark(key, "why", 1)
                services.logs.retention_failures[key] = "what"

            def well() -> None:
                directory.check_space(0)
                cleaner.uncleanable.clear(key)
                services.logs.retention_failures.clear()

            for change in (well, full, full, well, well):
                change()
                events.look()
            directory.fail("gone")
            events.look()
            events.stop()
        return [line.split(" ")[1] for line in lines_of(stream)]

    with listening() as stream:
        told = asyncio.run(act(stream))
    assert told == [
        "directory_full",
        "log_uncleanable",
        "retention_failed",
        "directory_online",
        "log_cleanable",
        "retention_recovered",
        "directory_offline",
    ]


def test_the_end_of_a_lease_is_told_with_its_reason(tmp_path: Path) -> None:
    async def act(stream: io.StringIO) -> list[str]:
        async with broker_parts(tmp_path, log_lease_max_bytes=1) as services:
            events = StateEvents(services)
            await create_topic(services, "orders")
            append(services, "orders", count=3)
            leases = services.logs.leases
            for holder in ("short", "long"):
                leases.grant(holder, 1_000, {TopicPartition("orders", 0): (0, 3)})
            leases.book.release(next(iter(leases.book.leases)))
            log = services.logs.get(TopicPartition("orders", 0))
            log.roll()
            log.delete_records(-1)
            services.logs.check_retention(log, 0)
            leases.run(services.clock.now_ms())
            events.look()
            events.stop()
        return [line for line in lines_of(stream) if "lease" in line]

    with listening() as stream:
        ended, lapsed = asyncio.run(act(stream))
    assert ended.startswith("INFO lease_ended id=")
    assert ended.endswith("holder=short reason=released held_bytes=0")
    assert lapsed.startswith("WARNING lease_lapsed id=")
    assert 'holder=long reason="more is held back than log.lease.max.bytes allows"' in lapsed


def test_the_start_tells_of_what_is_held_damaged_or_not_open(tmp_path: Path) -> None:
    async def act(stream: io.StringIO) -> list[str]:
        async with broker_parts(tmp_path) as services:
            await create_topic(services, "held")
            held = replace(services.store.image.topic("held"), is_held=True)
            services.store._commit(services.store.image, Update(topics=(held,)))
            services.replicas.get(TopicPartition("held", 0)).log.is_damaged = True
            services.logs.directories[0].offline_logs[TopicPartition("x", 1)] = "unreadable"
            events = StateEvents(services)
            events.start()
            events.stop()
        return [" ".join(line.split(" ")[1:3]) for line in lines_of(stream)]

    with listening() as stream:
        told = asyncio.run(act(stream))
    assert told == ["topic_held topic=held", "log_damaged log=held-0", "log_offline log=x-1"]


def test_many_of_a_kind_are_named_in_part_and_counted(tmp_path: Path) -> None:
    async def act(stream: io.StringIO) -> list[str]:
        async with broker_parts(tmp_path) as services:
            offline = services.logs.directories[0].offline_logs
            offline.update({TopicPartition("x", number): "gone" for number in range(500)})
            events = StateEvents(services)
            events.look()
            events.look()
            events.stop()
            offline.clear()
        return lines_of(stream)

    with listening() as stream:
        told = asyncio.run(act(stream))
    assert told[:2] == [
        "ERROR log_offline log=x-0 reason=gone",
        "ERROR log_offline log=x-1 reason=gone",
    ]
    assert told[10:] == ["ERROR log_offline others=490"]


# --- the loop -----------------------------------------------------------------------------------


def test_a_turn_of_the_loop_is_timed_from_its_first_callback_to_its_last() -> None:
    metrics = Metrics()

    async def act() -> None:
        await asyncio.sleep(0)
        stop = watch_loop(asyncio.get_running_loop(), metrics)
        await asyncio.sleep(0)
        # The turn that began before anybody watched does not count.
        assert metrics.loop_lags.count == 0
        await asyncio.sleep(0)
        before = metrics.loop_lags.sum_ns
        for _ in range(5):
            await asyncio.sleep(0)
        assert metrics.loop_lags.count >= 5
        assert metrics.loop_lags.sum_ns > before
        stop()
        counted = metrics.loop_lags.count
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert metrics.loop_lags.count == counted

    with asyncio.Runner(loop_factory=BrokerLoop) as runner:
        runner.run(act())


def test_waiting_for_something_to_do_is_no_lag() -> None:
    # Looked at when a wait ends and when the next begins.
    moments = iter([10, 17, 1000, 1003, 2000])
    lags: list[int] = []
    with closing(BrokerSelector(lambda: next(moments))) as turns:
        turns.watch(lags.append)
        for _ in range(3):
            turns.select(0)
    assert lags == [7, 3]


def test_a_stall_is_an_event() -> None:
    metrics = Metrics()
    with listening() as stream:
        note_lag(metrics, STALL_NS - 1)
        note_lag(metrics, STALL_NS)
    assert lines_of(stream) == ["WARNING loop_stalled milliseconds=100"]
    assert metrics.loop_lags.count == 2


def test_a_loop_of_somebody_else_is_sampled() -> None:
    metrics = Metrics()

    async def act() -> None:
        stop = watch_loop(asyncio.get_running_loop(), metrics)
        stop()

    asyncio.run(act())
    assert metrics.loop_lags.count == 0
