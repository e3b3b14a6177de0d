"""What retention deletes and what recovery does is told in the event log, with the numbers."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker_parts import append, broker_parts, create_topic

from stratalog.broker.event_log import start_event_log, stop_event_log
from stratalog.broker.overview import Health, health
from stratalog.broker.state_events import StateEvents
from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation
from stratalog.storage.kept_cuts import KeptCut
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log

KEY = TopicPartition("orders", 0)


@contextmanager
def events() -> Iterator[list[dict[str, Any]]]:
    stream = io.StringIO()
    handler = start_event_log(stream, style="json", level=logging.INFO)
    told: list[dict[str, Any]] = []
    try:
        yield told
    finally:
        stop_event_log(handler)
        told += map(json.loads, stream.getvalue().splitlines())


def named(told: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in told if event["event"] == name]


def test_what_retention_deletes_is_told_with_the_rule_and_the_reason(tmp_path: Path) -> None:
    async def act() -> int:
        async with broker_parts(tmp_path) as services:
            state = StateEvents(services)
            await create_topic(services, "orders")
            log: Log = services.logs.get(KEY)
            for _ in range(3):
                append(services, "orders", count=2)
                log.roll()
            gone = sum(segment.size_bytes for segment in list(log.segments)[:3])
            change = ConfigChange(name="retention.ms", operation=ConfigOperation.SET, value="1000")
            await services.topics.alter_topic_configs("orders", [change])
            later_ms = services.clock.now_ms() + 10**12
            services.logs.check_retention(log, later_ms)
            services.logs.check_retention(log, later_ms)
            state.stop()
            append(services, "orders", count=2)
            services.logs.check_retention(log, later_ms * 2)
            return gone

    with events() as told:
        gone_bytes = asyncio.run(act())
    (event,) = named(told, "segments_deleted")
    assert event["log"] == "orders-0"
    assert (event["segments"], event["bytes"]) == (3, gone_bytes)
    assert event["log_start_offset"] == 6
    assert event["rule"] == "time"
    assert "retention.ms=1000" in event["reason"]


def test_a_start_after_an_unclean_stop_tells_what_was_read_again(tmp_path: Path) -> None:
    def copy(source: Path, target: Path) -> None:
        for each in source.rglob("*"):
            place = target / each.relative_to(source)
            if each.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(each.read_bytes())

    async def crash() -> int:
        async with broker_parts(tmp_path / "lives") as services:
            await create_topic(services, "orders")
            append(services, "orders", count=5)
            # What a process that is killed now leaves behind.
            copy(tmp_path / "lives", tmp_path / "died")
            return services.logs.get(KEY).size_bytes

    async def start(place: str) -> None:
        async with broker_parts(tmp_path / place) as services:
            state = StateEvents(services)
            state.start()
            state.stop()

    size_bytes = asyncio.run(crash())
    with events() as told:
        asyncio.run(start("died"))
    (event,) = named(told, "logs_recovered")
    assert (event["logs"], event["segments"]) == (1, 1)
    assert (event["bytes"], event["truncated_bytes"]) == (size_bytes, 0)
    with events() as told:
        asyncio.run(start("lives"))
    assert named(told, "logs_recovered") == []


def test_a_directory_that_refuses_appends_is_told_once_and_that_it_is_over(tmp_path: Path) -> None:
    async def act() -> list[Health]:
        async with broker_parts(tmp_path) as services:
            await create_topic(services, "orders")
            state = StateEvents(services)
            (directory,) = services.logs.directories
            found = []
            for refused in ("", "write a.log: Disk quota exceeded", "write b.log: the same", ""):
                directory.state.refused = refused
                state.look()
                found.append(health(services, is_ready=True)[0])
            directory.state.refused = "write a.log: Disk quota exceeded"
            state.look()
            assert append(services, "orders").error is None
            state.look()
            state.stop()
            return found

    with events() as told:
        found = asyncio.run(act())
    assert found == [Health.OK, Health.DEGRADED, Health.DEGRADED, Health.OK]
    quota = "write a.log: Disk quota exceeded"
    assert [event["reason"] for event in named(told, "appends_refused")] == [quota, quota]
    assert len(named(told, "appends_resumed")) == 2


def test_what_a_start_has_cut_is_told_once_and_in_health_as_long_as_it_is_kept(
    tmp_path: Path,
) -> None:
    cut = KeptCut(1_700_000_000_000, 42, 0, 4200, 99, "its CRC does not match", ("a",), True)

    async def act() -> tuple[Health, dict[str, Any]]:
        async with broker_parts(tmp_path) as services:
            await create_topic(services, "orders")
            log: Log = services.logs.get(KEY)
            log.recovery_report.cut, log.recovery_cuts = cut, (cut,)
            StateEvents(services).start()
            return health(services, is_ready=True)

    with events() as told:
        found, body = asyncio.run(act())
    (event,) = named(told, "recovery_cut")
    assert (event["offset"], event["bytes"], event["until"][:10]) == (42, 99, "2023-11-21")
    assert event["kept"].endswith("orders-0/.stratalog/cut")
    assert found is Health.OK, "nobody has to do anything"
    assert body["recovery_cuts"]["orders-0"][0]["reason"] == "its CRC does not match"
