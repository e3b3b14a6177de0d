"""What is due in the parts of a broker: one that fails keeps no other from its turn."""

from pathlib import Path
from typing import Any

import pytest

from broker_fixture import RunningBroker, running_broker
from stratalog.broker.server import Broker
from stratalog.replication.purgatory import DelayedOperation

NEVER_MS = 1 << 62


class Unanswerable(DelayedOperation):
    def is_ready(self) -> bool:
        return False

    def complete(self, *, is_expired: bool) -> None:
        raise ValueError("of replicas")


class Parts:
    """Something due in every part of a broker; ``failing`` are those in which it fails."""

    def __init__(self, broker: Broker, failing: set[str]) -> None:
        self._failing = failing
        self.had_their_turn: list[str] = []
        services = broker.services
        now_ms = broker._now_ms()
        if "replicas" in failing:
            services.replicas.fetch_purgatory.complete_or_watch(Unanswerable(now_ms), ["key"])
        services.groups._timers.schedule("due", now_ms, lambda: self._turn("groups"))
        services.logs.schedule.add(
            "due",
            lambda _now_ms: self._turn("logs"),
            first_ms=services.clock.now_ms(),
            period_ms=NEVER_MS,
        )
        broker._events.look = lambda: self._turn("events")  # type: ignore[method-assign]
        broker._acceptor.sweep = lambda _now_ms: self._turn("sweep")  # type: ignore[method-assign]
        broker._sweep_ms = now_ms

    def _turn(self, name: str) -> None:
        self.had_their_turn.append(name)
        if name in self._failing:
            raise ValueError(f"of {name}")


def ring(running: RunningBroker, failing: set[str]) -> tuple[list[str], int | None]:
    """Which parts had their turn, and in how many milliseconds the next ring is due."""
    broker = running.broker

    def ring_now() -> tuple[list[str], int | None]:
        parts: Any = Parts(broker, failing)
        now_ms = broker._now_ms()
        next_ms = broker._ring(now_ms)
        return parts.had_their_turn, None if next_ms is None else next_ms - now_ms

    found: tuple[list[str], int | None] = running.call(ring_now)
    return found


ALL = ["groups", "logs", "events", "sweep"]


@pytest.mark.parametrize(
    "failing", [{"replicas"}, {"groups"}, {"logs"}, {"events"}, {"sweep"}, {"replicas", "logs"}]
)
def test_a_part_that_fails_is_told_of_and_keeps_no_other_from_its_turn(
    tmp_path: Path, failing: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    with running_broker(tmp_path) as broker:
        had_their_turn, next_ring_ms = ring(broker, failing)

    assert had_their_turn == ALL
    told = [record.fields["reason"] for record in caplog.records if record.msg == "task_failed"]  # type: ignore[attr-defined]
    assert sorted(told) == sorted(f"of {name}" for name in failing)
    assert next_ring_ms is not None, "the others are still to be rung for"
    assert next_ring_ms <= 5_000


def test_what_fails_all_the_time_does_not_keep_the_loop_busy(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        services = broker.broker.services

        def always_due() -> None:
            now_ms = broker.broker._now_ms()
            services.groups._timers.schedule("due", now_ms, always_due)
            raise ValueError("again")

        def ring_now() -> int | None:
            always_due_at = broker.broker._now_ms()
            services.groups._timers.schedule("due", always_due_at, always_due)
            next_ms = broker.broker._ring(always_due_at)
            services.groups._timers.cancel("due")
            return None if next_ms is None else next_ms - always_due_at

        assert broker.call(ring_now) > 0
