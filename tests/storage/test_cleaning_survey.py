"""What a survey says of a log, against the log itself."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from small_logs import DIRECTORY, START_MS, new_disk, opened

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.records import (
    AppendOrigin,
    Record,
    build_batch,
    build_end_transaction_marker,
)
from stratalog.storage.checkpoint import write_offsets
from stratalog.storage.cleaning.rounds import clean_now
from stratalog.storage.cleaning.survey import CleaningSurvey, survey
from stratalog.storage.layout import CLEANER_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.views import look_at
from stratalog.testing import SimulatedFileSystem

ORDERS = TopicPartition("orders", 0)
COMPACT = TopicConfig(
    cleanup_policy=("compact",),
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    delete_retention_ms=1000,
)
BROKER = BrokerConfig(log_dirs=("/data",))


def batch(*rows: tuple[bytes | None, bytes | None], at_ms: int = START_MS, **fields: Any) -> bytes:
    return build_batch([Record(key, value, (), at_ms) for key, value in rows], **fields)


def looked(
    files: SimulatedFileSystem,
    config: TopicConfig = COMPACT,
    *,
    broker: BrokerConfig = BROKER,
    now_ms: int = START_MS,
    count: bool = True,
    high_watermark: int | None = 1 << 40,
) -> CleaningSurvey:
    if high_watermark is not None:
        write_offsets(files, f"/data/{HIGH_WATERMARK_CHECKPOINT}", {ORDERS: high_watermark})
    readable = ReadOnlyFileSystem(files)
    return look_at(
        readable,
        DIRECTORY,
        config,
        lambda view: survey(
            readable, view, config, is_held=False, broker=broker, now_ms=now_ms, count=count
        ),
    )


def filled(config: TopicConfig = COMPACT, *, batches: int = 12) -> tuple[SimulatedFileSystem, Log]:
    files = new_disk()
    log = opened(files, config=config)
    for number in range(batches):
        log.append_as_leader(
            batch((b"key-%d" % (number % 5), b"value"), (b"once-%d" % number, None))
        )
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return files, log


ROWS = st.tuples(
    st.none() | st.integers(0, 6).map(lambda number: b"key-%d" % number),
    st.none() | st.just(b"value"),
)


@settings(max_examples=40)
@given(st.lists(st.lists(ROWS, min_size=1, max_size=4), max_size=30), st.integers(0, 130))
def test_it_counts_what_the_log_holds(
    history: list[list[tuple[bytes | None, bytes | None]]], checkpoint: int
) -> None:
    files = new_disk()
    log = opened(files, config=TopicConfig(internal_segment_bytes=400))
    for rows in history:
        log.append_as_leader(batch(*rows))
    log.flush()
    checkpoint = min(checkpoint, log.log_end_offset)
    write_offsets(files, f"/data/{CLEANER_CHECKPOINT}", {ORDERS: checkpoint})

    found = looked(files).counts

    rows = [row for each in history for row in each]
    active = log.segments.active.base_offset
    assert found is not None
    assert found.records == len(rows)
    assert found.tombstones == sum(value is None for _, value in rows)
    assert found.null_keys == sum(key is None for key, _ in rows)
    assert found.estimated_dirty_keys == len({key for key, _ in rows[checkpoint:active]} - {None})
    assert (found.size_bytes, found.damage) == (log.size_bytes, None)


def test_the_plan_is_the_one_that_the_cleaner_makes_of_the_open_log() -> None:
    files, log = filled()
    write_offsets(files, f"/data/{CLEANER_CHECKPOINT}", {ORDERS: 3})
    found = looked(files, count=False)
    assert found.counts is None
    assert found.plan.first_dirty_offset == 3
    assert found.plan.first_uncleanable_offset == log.segments.active.base_offset
    assert found.plan.log_end_offset == found.last_stable_offset == log.log_end_offset
    assert found.plan.active_bytes == log.segments.active.size_bytes


def test_what_is_not_replicated_is_not_cleanable() -> None:
    files, log = filled()
    second = log.segments.base_offsets[1]
    found = looked(files, high_watermark=second + 1)
    assert found.plan.first_uncleanable_offset == second
    assert found.warnings == ()


def test_without_a_checkpointed_high_watermark_nothing_counts_as_replicated() -> None:
    files, _ = filled()
    found = looked(files, high_watermark=None)
    assert (found.last_stable_offset, found.plan.cleanable_bytes) == (0, 0)
    assert any("no high watermark" in warning for warning in found.warnings)


def test_an_open_transaction_bounds_the_cleanable_part_with_and_without_a_snapshot() -> None:
    files = new_disk()
    log = opened(files, config=COMPACT)
    log.append_as_leader(batch((b"a", b"1"), (b"b", b"1")))
    transactional = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log.append_as_leader(batch((b"a", b"2"), **transactional, base_sequence=0))
    for _ in range(8):
        log.append_as_leader(batch((b"c", b"3"), (b"d", b"3")))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    assert len(log.snapshots.offsets) > 0

    assert looked(files).open_transaction_offset == 2
    assert looked(files).last_stable_offset == 2
    for offset in log.snapshots.offsets:
        files.unlink(log.snapshots.path(offset))
    assert looked(files).open_transaction_offset == 2

    marker = build_end_transaction_marker(
        commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=START_MS
    )
    log.append_as_leader(marker, origin=AppendOrigin.COORDINATOR)
    log.flush()
    assert looked(files).open_transaction_offset is None
    assert looked(files).last_stable_offset == log.log_end_offset


def test_tombstones_wait_for_the_horizon_that_a_cleaning_gives_them() -> None:
    files, log = filled()
    before = looked(files)
    assert before.counts is not None
    assert before.counts.earliest_horizon_ms is None
    assert any("have no delete horizon yet" in told for told in before.sentences)

    clean_now(log, first_dirty_offset=0, now_ms=START_MS + 5, map_bytes=1 << 16)
    after = looked(files, now_ms=START_MS + 6)

    assert after.counts is not None
    assert after.counts.tombstones_with_horizon > 0
    assert after.counts.earliest_horizon_ms == START_MS + 1005
    assert after.counts.latest_horizon_ms == START_MS + 1005
    assert any("none is due" in told for told in after.sentences)
    later = looked(files, now_ms=START_MS + 1005)
    assert any("the next cleaning removes" in told for told in later.sentences)


def test_more_keys_than_the_map_holds_take_several_rounds() -> None:
    files = new_disk()
    log = opened(files, config=TopicConfig(internal_segment_bytes=1 << 20))
    keys = 50_000
    for first in range(0, keys, 5000):
        log.append_as_leader(batch(*((b"%d" % n, b"") for n in range(first, first + 5000))))
    log.roll()
    log.flush()
    small = BrokerConfig(log_dirs=("/data",), log_cleaner_dedupe_buffer_size=(1 << 20) + 24)
    found = looked(files, broker=small).counts
    assert found is not None
    assert found.map_capacity == int(((1 << 20) // 24 + 1) * 0.9)
    assert abs(found.estimated_dirty_keys - keys) < keys * 0.05
    assert found.rounds == 2


def test_records_without_a_key_are_a_warning() -> None:
    files = new_disk()
    log = opened(files, config=TopicConfig(internal_segment_bytes=400))
    log.append_as_leader(batch((None, b"lost"), (b"k", b"v")))
    log.flush()
    assert any("1 records have no key" in warning for warning in looked(files).warnings)


def test_a_corrupt_batch_that_cleaning_would_meet_is_told_and_the_rest_is_counted() -> None:
    files, log = filled()
    first = log.segments.first
    file = files.open(first.path)
    file.write_at(first.size_bytes - 1, [b"\xff"])
    file.close()
    found = looked(files)
    assert found.counts is not None
    assert found.counts.damage is not None
    assert first.path in found.counts.damage
    assert 0 < found.counts.records < log.log_end_offset
    assert any("uncleanable" in warning for warning in found.warnings)


def test_the_end_of_an_active_segment_may_be_on_its_way() -> None:
    files, log = filled()
    active = log.segments.active
    file = files.open(active.path)
    file.write_at(active.size_bytes, [batch((b"k", b"v"))[:-3]])
    file.close()
    found = looked(files)
    assert found.counts is not None
    assert found.counts.damage is None


def test_a_timestamp_in_the_future_that_holds_up_cleaning_is_named_with_its_offset() -> None:
    files = new_disk()
    config = COMPACT.altered(min_compaction_lag_ms=10, message_timestamp_after_max_ms=1 << 60)
    log = opened(files, config=config)
    far_ms = START_MS + 10 * 365 * 86_400_000
    for number in range(12):
        at_ms = far_ms if number == 1 else START_MS - 1000
        log.append_as_leader(batch((b"k%d" % number, b"v"), at_ms=at_ms))
    log.flush()
    found = looked(files, config)
    assert found.plan.bound.until_ms == far_ms + 10
    assert any("offset 1 has a timestamp in the future" in told for told in found.warnings)


def test_a_topic_that_is_not_compacted_is_not_read() -> None:
    files, _ = filled()
    found = looked(files, TopicConfig())
    assert found.counts is None
    assert found.sentences == ("not compacted: cleanup.policy is delete",)


def test_what_earlier_rounds_noted_is_told() -> None:
    files, log = filled()
    assert "no cleaning is on record" in looked(files).sentences

    stats = clean_now(log, first_dirty_offset=0, now_ms=START_MS, map_bytes=1 << 16).stats
    log.own.note_cleaning({"at_ms": START_MS, **stats.as_dict()})
    found = looked(files)
    assert found.last_run == {"at_ms": START_MS, **stats.as_dict()}
    assert found.sentences[-1].startswith("last cleaned at 2023-11-14 22:13:20Z, from offset 0 to")

    trouble = {"reason": "no luck", "since_ms": 0, "attempts": 2, "retry_at_ms": 60_000}
    log.own.note_uncleanable(trouble)
    found = looked(files)
    assert (found.last_run is not None, found.uncleanable) == (True, trouble)
    assert found.warnings[0] == (
        "uncleanable since 1970-01-01 00:00:00Z, 2 failures, next try at 1970-01-01 00:01:00Z: "
        "no luck"
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers(),
        lambda each: (
            st.lists(each, max_size=3)
            | st.dictionaries(
                st.sampled_from(("last_run", "uncleanable", "at_ms", "since_ms", "end_offset")),
                each,
            )
        ),
    )
)
def test_notes_that_somebody_garbled_do_no_harm(notes: Any) -> None:
    files, log = filled(batches=1)
    log.own._write_hint("cleaner", json.dumps(notes))
    found = looked(files, count=False)
    assert found.sentences
    assert found.as_dict()["last_run"] is found.last_run


def test_damage_that_waits_for_a_person_is_told() -> None:
    files, log = filled()
    log.own.note_damage(0, {})
    assert any("recovery found damage" in warning for warning in looked(files).warnings)


def test_a_batch_larger_than_the_buffer_is_counted_too() -> None:
    files = new_disk()
    log = opened(files, config=TopicConfig(max_message_bytes=1 << 22))
    log.append_as_leader(batch((b"large", bytes(1_500_000)), (b"small", None)))
    log.append_as_leader(batch((b"another", b"value")))
    log.flush()
    found = looked(files).counts
    assert found is not None
    assert (found.records, found.tombstones, found.damage) == (3, 1, None)
