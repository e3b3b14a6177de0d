"""Scenes about what is kept: retention, and the verification of everything at the end."""

import json
import time
from collections import Counter
from typing import Any

from rich.text import Text

from stratalog.demo.broker import run_stratalog
from stratalog.demo.clients import alter_topic, read_from, watermarks
from stratalog.demo.data import DAY_MS
from stratalog.demo.errors import DemoError
from stratalog.demo.screen import size_text
from stratalog.demo.stage import ORDERS, TOPICS, Outcome, Stage, wait_until

RETENTION_DAYS = 7


def delete_old(stage: Stage) -> Outcome:
    retention_ms = RETENTION_DAYS * DAY_MS
    before = _starts(stage)
    alter_topic(stage.broker.address, ORDERS, "retention.ms", str(retention_ms))
    stage.screen.say(f"{ORDERS}: retention.ms is {retention_ms} now, {RETENTION_DAYS} days.")
    with stage.screen.progress("logs checked by the broker", TOPICS[ORDERS]) as update:

        def are_all_told() -> bool:
            update(len(_deleted(stage)), None)
            return len(_deleted(stage)) == TOPICS[ORDERS]

        wait_until(are_all_told, "old segments of every partition deleted")
    # Time goes on, and the next segment would be old one day: what is left is to be looked at.
    alter_topic(stage.broker.address, ORDERS, "retention.ms", "-1")
    after = _starts(stage)
    wait_until(lambda: _told_starts(stage) == after, "the broker's word of all that it deleted")
    _check_young(stage, after, time.time_ns() // 1_000_000 - retention_ms)
    told = _deleted(stage)
    for name, events in sorted(told.items()):
        count = sum(event["segments"] for event in events)
        last = events[-1]
        stage.screen.say(
            f"{name}: {count} segment{'s' * (count != 1)} by {last['rule']}; of the youngest, "
            f"{last['reason']}"
        )
    stage.screen.say("retention.ms is -1 again, so that the rest stays for you to look at.")
    records = sum(after) - sum(before)
    stage.books[ORDERS] -= records
    gone = [event for events in told.values() for event in events]
    segments, size_bytes = (sum(each[name] for each in gone) for name in ("segments", "bytes"))
    return Outcome(f"{records:,} records in {segments} segments, {size_text(size_bytes)}")


def _check_young(stage: Stage, starts: list[int], since_ms: int) -> None:
    """Nothing is gone that was not old."""
    found = 0
    for chunk in read_from(stage.broker.address, ORDERS, starts):
        found += sum(each.timestamp()[1] >= since_ms for each in chunk)
    expected = stage.orders.count_between(since_ms, stage.end_ms)
    stage.check(f"orders of the last {RETENTION_DAYS} days", expected, found)


def _deleted(stage: Stage) -> dict[str, list[dict[str, Any]]]:
    """What the broker said of each log, in order; usually once."""
    told: dict[str, list[dict[str, Any]]] = {}
    for event in stage.broker.events("segments_deleted"):
        told.setdefault(event["log"], []).append(event)
    return told


def _told_starts(stage: Stage) -> list[int]:
    return [events[-1]["log_start_offset"] for _, events in sorted(_deleted(stage).items())]


def _starts(stage: Stage) -> list[int]:
    return [low for low, _ in watermarks(stage.broker.address, ORDERS, TOPICS[ORDERS])]


# --- verification ---------------------------------------------------------------------------------


def verify_all(stage: Stage) -> Outcome:
    """What the books say, a client and ``stratalog log verify`` must say too."""
    counted = _count_as_client(stage)
    stage.broker.stop()
    code, said = run_stratalog(["log", "verify", stage.log_dir, "-o", "json"])
    report = json.loads(said)["directories"][0]
    verified: Counter[str] = Counter()
    for log, records in report["records"].items():
        verified[log.rpartition("-")[0]] += records
    for topic in TOPICS:
        stage.check(f"{topic}: records, by a client", stage.books[topic], counted[topic])
        stage.check(f"{topic}: records, by log verify", stage.books[topic], verified[topic])
    stage.check("findings of log verify", 0, len(report["findings"]))
    if code and not report["findings"]:
        raise DemoError(f"stratalog log verify ended with {code} and said nothing.")
    stage.screen.table(
        ("what", "must be", "is", ""),
        [
            (each.what, each.must_be, f"{each.found:,}", _mark(stage, is_right=each.holds))
            for each in stage.checks
        ],
        right="12",
    )
    wrong = sum(not each.holds for each in stage.checks)
    size = size_text(report["size_bytes"])
    records = sum(verified[topic] for topic in TOPICS)
    return Outcome(
        f"{records:,} records; all {report['segments']} segments, {size}: "
        + ("nothing wrong" if not wrong else f"{wrong} of {len(stage.checks)} checks failed")
    )


def _mark(stage: Stage, *, is_right: bool) -> Text:
    is_plain = not stage.screen.console.encoding.lower().startswith("utf")
    if is_right:
        return Text("ok" if is_plain else "✓", style="green")
    return Text("WRONG", style="bold red")


def _count_as_client(stage: Stage) -> Counter[str]:
    counted: Counter[str] = Counter()
    total = sum(stage.books[topic] for topic in TOPICS)
    with stage.screen.progress("a consumer reads everything again", total) as update:
        for topic, partitions in TOPICS.items():
            starts = [low for low, _ in watermarks(stage.broker.address, topic, partitions)]
            for chunk in read_from(stage.broker.address, topic, starts):
                counted[topic] += len(chunk)
                update(counted.total(), None)
    return counted
