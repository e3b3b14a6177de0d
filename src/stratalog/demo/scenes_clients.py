"""Scenes with clients: a broker starts, a shop produces, a group reads, and a crash."""

import json
import shlex
import time
from functools import partial
from itertools import islice
from typing import Any

from rich.table import Table

from stratalog.demo.broker import run_stratalog
from stratalog.demo.clients import (
    ReadingGroup,
    ShopProducer,
    WitnessProducer,
    committed,
    create_topics,
    read_from,
    watermarks,
)
from stratalog.demo.data import SPAN_DAYS, Records, make_orders, minute_text
from stratalog.demo.errors import DemoError
from stratalog.demo.screen import rate_text, segments_picture, size_text
from stratalog.demo.stage import (
    CUSTOMERS,
    DELIVERIES,
    ORDERS,
    SEED,
    TOPICS,
    Outcome,
    Stage,
    wait_until,
)

GROUP = "billing"
_ROWS_A_TURN = 5_000
_ROWS_BEFORE_A_LOOK = 250
_SHOWN_SEGMENTS = 4
_AT_THE_CRASH_DAYS = 1


def start_broker(stage: Stage) -> Outcome:
    seconds = stage.broker.start()
    stage.screen.say(shlex.join(stage.broker.command()), "dim")
    stage.screen.say(f"Process {stage.broker.pid} accepts clients on {stage.broker.address}.")
    segments = stage.sizes.segment_config
    create_topics(
        stage.broker.address,
        [
            (ORDERS, TOPICS[ORDERS], {"retention.ms": "-1", **segments}),
            (CUSTOMERS, TOPICS[CUSTOMERS], {"cleanup.policy": "compact", **segments}),
            (DELIVERIES, TOPICS[DELIVERIES], {"retention.ms": "-1"}),
        ],
    )
    stage.screen.say(
        ", ".join(f"{name} has {count}" for name, count in TOPICS.items()) + " partitions."
    )
    return Outcome(
        f"{len(TOPICS)} topics, {sum(TOPICS.values())} partitions", f"{seconds:.2f} s to ready"
    )


# --- producing ------------------------------------------------------------------------------------


def produce(stage: Stage) -> Outcome:
    stage.make_records()
    both = (stage.orders, stage.customers)
    total = sum(map(len, both))
    producer = ShopProducer(stage.broker.address, batch_bytes=stage.sizes.batch_bytes)
    began = time.monotonic()
    with stage.screen.progress(
        "confluent-kafka produces", total, lambda: _picture(stage)
    ) as update:
        sent = 0
        for records in both:
            for start in range(0, len(records), _ROWS_A_TURN):
                end = min(start + _ROWS_A_TURN, len(records))
                producer.send(records.topic, records.rows(start, end))
                update(sent + end - producer.waiting, None)
            sent += len(records)
        producer.finish(lambda left: update(total - left, None))
    seconds = time.monotonic() - began
    for records in both:
        stage.books[records.topic] += len(records)
        stage.check(f"{records.topic}: produced", len(records), _end_offsets(stage, records.topic))
    size_bytes = sum(sum(sizes) for sizes in _sizes(stage).values())
    stage.screen.say(
        f"{len(stage.orders):,} orders and {len(stage.customers):,} changes of customers, with "
        f"keys and headers; {stage.customers.values.null_count:,} tombstones; times over "
        f"{SPAN_DAYS} days, some of them late. Acknowledged when they were on disk."
    )
    return Outcome(
        f"{total:,} records, {size_text(size_bytes)}",
        f"{rate_text(total, seconds, 'records')}",
    )


def show_segments(stage: Stage) -> Outcome:
    stage.screen.show(_picture(stage))
    directory = stage.folder.data / f"{ORDERS}-0"
    _, said = run_stratalog(["log", "segments", str(directory), "-o", "json"])
    rows = json.loads(said)["segments"]
    stage.screen.say(f"{ORDERS}-0, the oldest of its {len(rows)}:")
    stage.screen.table(
        ("offset", "to", "records", "bytes", "first", "last", "began by"),
        [
            (
                f"{row['base_offset']:,}", f"{row['next_offset']:,}", f"{row['records']:,}",
                f"{row['size_bytes']:,}", _short(row["first_timestamp"]),
                _short(row["last_timestamp"]), (row["roll"] or "the first").partition(":")[0],
            )
            for row in rows[:_SHOWN_SEGMENTS]
        ],
        right="0123",
    )  # fmt: skip
    count = sum(map(len, _sizes(stage).values()))
    return Outcome(f"{count} segments of at most {size_text(stage.sizes.segment_bytes)}")


def _short(timestamp_ms: int) -> str:
    """``11-02 20:14``: a row has to fit 80 columns, and two weeks need no year."""
    return minute_text(timestamp_ms)[len("2026-") :]


def _sizes(stage: Stage) -> dict[str, list[int]]:
    return stage.segment_sizes(ORDERS) | stage.segment_sizes(CUSTOMERS)


def _picture(stage: Stage) -> Table:
    encoding = stage.screen.console.encoding
    return segments_picture(_sizes(stage), stage.sizes.segment_bytes, encoding)


def _end_offsets(stage: Stage, topic: str) -> int:
    return sum(high for _, high in watermarks(stage.broker.address, topic, TOPICS[topic]))


# --- consuming ------------------------------------------------------------------------------------


def read_as_group(stage: Stage) -> Outcome:
    topics = [ORDERS, CUSTOMERS]
    expected = sum(stage.books[topic] for topic in topics)
    group = ReadingGroup(stage.broker.address, GROUP, topics, expected)
    with stage.screen.progress("two consumers join and read", expected) as update:
        group.run(lambda count: update(count, None))
    seconds = group.seconds
    for member in group.members:
        held = ", ".join(f"{topic}-{number}" for topic, number in sorted(member.partitions))
        stage.screen.say(
            f"{member.name}: {member.records.total():,} records, "
            f"{size_text(member.size_bytes)} of values, from {held or 'nothing'}"
        )
    lag = 0
    for topic in topics:
        stage.check(
            f"{topic}: read by the group",
            stage.books[topic],
            sum(member.records[topic] for member in group.members),
        )
        ends = watermarks(stage.broker.address, topic, TOPICS[topic])
        offsets = committed(stage.broker.address, GROUP, topic, TOPICS[topic])
        lag += sum(high - max(offset, 0) for (_, high), offset in zip(ends, offsets, strict=True))
    tombstones = sum(member.tombstones for member in group.members)
    stage.check("tombstones read by the group", stage.customers.values.null_count, tombstones)
    is_all = stage.check("lag of the group", 0, lag)
    stage.screen.say(f"Group {GROUP} has committed {'all' if is_all else 'part'} of it: lag {lag}.")
    return Outcome(
        f"{group.read:,} records by 2 consumers", rate_text(group.read, seconds, "records")
    )


# --- a crash --------------------------------------------------------------------------------------


def crash(stage: Stage) -> Outcome:
    records = make_orders(
        stage.sizes.orders_at_the_crash,
        stage.sizes.customers,
        end_ms=time.time_ns() // 1_000_000,
        seed=SEED,
        first_id=len(stage.orders),
        days=_AT_THE_CRASH_DAYS,
    )
    before = [high for _, high in watermarks(stage.broker.address, ORDERS, TOPICS[ORDERS])]
    producer = WitnessProducer(stage.broker.address, batch_bytes=stage.sizes.batch_bytes)
    notes, rows = producer.acknowledged, records.rows(0, len(records))
    with stage.screen.progress("today's orders", len(records)) as update:

        def are_acknowledged(wanted: int) -> bool:
            update(producer.poll(), None)
            return len(notes.places) >= wanted or bool(notes.failures)

        while not are_acknowledged(len(records) // 3) and producer.sent < len(records) // 2:
            producer.send(ORDERS, islice(rows, _ROWS_BEFORE_A_LOOK))
        wait_until(partial(are_acknowledged, len(records) // 3), "a third of them acknowledged")
        # Some more, and while they are on their way:
        producer.send(ORDERS, islice(rows, _ROWS_BEFORE_A_LOOK))
        killed = stage.broker.pid
        stage.broker.kill()
        acknowledged = producer.poll()
        stage.screen.say(
            f"kill -9 {killed}: {acknowledged:,} orders are acknowledged, "
            f"{producer.sent - acknowledged:,} on their way, and the shop goes on."
        )
        producer.send(ORDERS, rows)
        seconds = stage.broker.start()
        _say_recovery(stage, seconds)
        wait_until(partial(are_acknowledged, len(records)), "all orders acknowledged")
    if notes.failures:
        raise DemoError(f"Orders were not delivered: {notes.failures[0]}.")
    stage.books[ORDERS] += len(records)
    is_right = _check_orders(stage, records, before, notes.places)
    return Outcome(
        f"{len(records):,} orders around a kill -9; "
        + ("none lost, none twice" if is_right else "some LOST or twice"),
        f"{seconds:.2f} s to ready again",
    )


def _say_recovery(stage: Stage, seconds: float) -> None:
    wait_until(lambda: bool(stage.broker.events("ready")), "the broker's word that it is ready")
    told = stage.broker.events("logs_recovered")
    if not told:
        stage.screen.say(f"Ready again after {seconds:.2f} s; nothing had to be read again.")
        return
    did = told[0]
    read, cut_off = size_text(did["bytes"]), f"{did['truncated_bytes']:,} bytes"
    stage.screen.say(
        f"Ready again after {seconds:.2f} s: {did['logs']} logs had not been closed, those of "
        f"groups' offsets among them. Of {did['segments']} segments it read what was not known to "
        f"be on disk, {read}; cut off {cut_off} of unfinished writes; made {did['rebuilt']} of "
        "their small files again."
    )


def _check_orders(
    stage: Stage, records: Records, before: list[int], places: dict[int, tuple[int, int]]
) -> bool:
    """Each acknowledged order is where the acknowledgement said; each order is there once."""
    values = records.values.to_pylist()
    at: dict[tuple[int | None, int | None], Any] = {
        place: values[number] for number, place in places.items()
    }
    found = kept = 0
    for chunk in read_from(stage.broker.address, ORDERS, before):
        found += len(chunk)
        kept += sum(at.get((each.partition(), each.offset())) == each.value() for each in chunk)
    are_there = stage.check("orders around the crash", len(records), found)
    are_placed = stage.check("acknowledged orders in their places", len(places), kept)
    stage.screen.say(
        f"A consumer finds {found:,} orders since then, {kept:,} of {len(places):,} where the "
        "broker had acknowledged them."
    )
    return are_there and are_placed
