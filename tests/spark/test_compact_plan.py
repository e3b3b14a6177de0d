"""Which way a compaction on Spark is done, and why; and how many keys it expects."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import TopicConfig
from stratalog.spark.compaction_plan import Strategy, map_bytes_of, plan_compact
from stratalog.spark.jobs.compacting import read_size
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.storage.cleaning.key_estimate import Estimate, extrapolate
from stratalog.storage.cleaning.outside_work import MAP_BYTES_MAX
from stratalog.storage.cleaning.rewriting import RoundPlan, Source
from stratalog.storage.cleaning.round_json import OutsideRound
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition

GB = 1 << 30
MILLION = 1_000_000


def round_of(records: int, *, segments: int = 2, segment_bytes: int = GB) -> OutsideRound:
    """A log that nobody has cleaned yet."""
    each = records // segments
    sources = tuple(
        Source(base, f"/logs/t-0/{base:020d}.log", segment_bytes, 0, 0, 0, base + each, 0, ())
        for base in range(0, segments * each, each)
    )
    plan = RoundPlan(
        TopicPartition("t", 0), "/logs/t-0", OsFileSystem(), TopicConfig(), 0, segments * each,
        0, 0, sources, (),
    )  # fmt: skip
    return OutsideRound(plan=plan, segments=(), topic_id="", hash_name="siphash", load_factor=0.9)


def chosen(
    round_: OutsideRound, keys: int, *, memory: int = GB, slots: int = 2, others: int = 0
) -> tuple[Strategy, int, str]:
    rounds = [round_, *(round_of(10) for _ in range(others))]
    found = plan_compact(
        rounds,
        map_bytes=map_bytes_of(memory, slots),
        slots=slots,
        estimate=lambda plan: Estimate(keys, plan.upper_bound_offset),
    )[0]
    return found.strategy, found.ranges, " ".join(found.reasons)


def test_keys_that_fit_one_map_are_done_by_one_task_a_partition() -> None:
    strategy, ranges, told = chosen(round_of(20 * MILLION), MILLION, others=3)
    assert (strategy, ranges) == (Strategy.ONE_MAP, 1)
    assert "about 1,000,000 keys in the dirty part, of 20,000,000 offsets" in told
    assert "one map: all keys fit" in told


def test_cores_that_would_be_idle_share_the_segments_of_a_large_log() -> None:
    assert chosen(round_of(20 * MILLION), MILLION)[0] is Strategy.SLICES
    small = round_of(20 * MILLION, segment_bytes=GB // 10)
    assert chosen(small, MILLION)[0] is Strategy.ONE_MAP
    cleaned_before = round_of(20 * MILLION)
    part = replace(cleaned_before.plan, first_dirty_offset=MILLION)
    assert chosen(replace(cleaned_before, plan=part), MILLION)[0] is Strategy.ONE_MAP


def test_more_keys_are_taken_in_ranges_that_fit_with_room_to_spare() -> None:
    strategy, ranges, told = chosen(round_of(20 * MILLION), 20 * MILLION)
    assert (strategy, ranges) == (Strategy.RANGES, 2)
    assert "ranges: reading the keys 2 times" in told


def test_no_map_is_larger_than_one_can_be_however_much_memory_there_is() -> None:
    strategy, ranges, told = chosen(
        round_of(400 * MILLION, segments=100, segment_bytes=GB // 10), 300 * MILLION, memory=64 * GB
    )
    assert (strategy, ranges) == (Strategy.RANGES, 6)
    assert "a map of 2,147 MB holds 80,530,636" in told


@given(st.integers(1, 10**9), st.integers(20, 44))
def test_what_is_planned_fits_the_maps_that_tasks_make(keys: int, memory_bits: int) -> None:
    round_ = round_of(1000 * MILLION, segments=100)
    [found] = plan_compact(
        [round_],
        map_bytes=1 << memory_bits,
        slots=2,
        estimate=lambda plan: Estimate(keys, plan.upper_bound_offset),
    )
    slots = min(found.map_bytes, MAP_BYTES_MAX) // 24
    assert found.strategy is Strategy.SHUFFLE or keys <= found.ranges * slots * round_.load_factor


def test_far_more_keys_are_shuffled() -> None:
    strategy, _, told = chosen(round_of(400 * MILLION, segments=40), 400 * MILLION)
    assert strategy is Strategy.SHUFFLE
    assert "sorting hashes and offsets" in told


def test_marks_that_leave_no_room_for_a_map_are_left_to_the_shuffle() -> None:
    strategy, _, told = chosen(round_of(2000 * MILLION, segments=200), 15 * MILLION)
    assert strategy is Strategy.SHUFFLE
    assert "two bits for each offset, are 500 MB and leave no room for a map" in told


def test_tasks_that_make_marks_have_so_much_less_for_their_maps() -> None:
    memory = map_bytes_of(GB, 2)
    by_ranges = round_of(40 * MILLION)
    [found] = plan_compact(
        [by_ranges], map_bytes=memory, slots=2, estimate=lambda _plan: Estimate(*2 * [13 * MILLION])
    )
    assert found.strategy is Strategy.RANGES
    assert found.map_bytes == memory - 2 * 40 * MILLION // 8
    small = round_of(MILLION, segment_bytes=GB // 10)
    [found] = plan_compact([small], map_bytes=memory, slots=2)
    assert (found.strategy, found.map_bytes) == (Strategy.ONE_MAP, memory)


@given(st.integers(1, 10**7), st.integers(1, 10**6), st.integers(1, 10**9))
def test_an_estimate_is_never_below_what_was_seen_nor_above_the_records(
    keys: int, sampled: int, records: int
) -> None:
    records = max(records, sampled)
    found = min(keys, sampled)
    estimated = extrapolate(found, sampled, records)
    assert found - 1 <= estimated <= records + 1


@pytest.mark.parametrize("keys", [1000, 50_000, 2_000_000])
def test_keys_that_are_all_as_likely_are_counted_well(keys: int) -> None:
    dice = random.Random(7)
    sample = [dice.randrange(keys) for _ in range(200_000)]
    records = 5_000_000
    expected = keys * -math.expm1(-records / keys)
    estimated = extrapolate(len(set(sample)), len(sample), records)
    assert abs(estimated - expected) / expected < 0.05


@pytest.mark.parametrize(
    ("text", "size"), [("512m", 512 << 20), ("4g", 4 * GB), ("4GB", 4 * GB), ("1024", 1024)]
)
def test_memory_is_read_as_spark_writes_it(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "g", "much", "1.5g", "-1g"])
def test_memory_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(JobOptionError, match="not a size"):
        read_size(text)
