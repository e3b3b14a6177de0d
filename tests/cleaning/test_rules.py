"""One rule of compaction at a time, with the numbers written out.

``World`` also holds every round against the model; what stands here is what the rule itself says,
so that a mistake which log and model share is noticed.
"""

from cleaning_model import describe_stored
from cleaning_reading import stored_batches
from cleaning_steps import Append, Clean, End, Expire, Roll
from cleaning_world import HOUR_MS, START_MS, World
from rules_harness import (
    BIG,
    END,
    FOREVER_MS,
    at,
    batches,
    clean_all,
    delete,
    has_horizon,
    offsets,
    put,
    put_raw,
    raw,
    row,
    run,
)

from stratalog.records import Codec, Record

# --- records -------------------------------------------------------------------------------------


def test_a_record_that_a_later_one_supersedes_goes_and_the_last_of_its_key_stays() -> None:
    world = run(put(1, 2), put(1, 3), *END, Clean())
    assert offsets(world) == [1, 2, 3, 4]


def test_a_record_in_the_clean_part_goes_when_the_dirty_part_has_its_key() -> None:
    world = run(put(1), put(2), *END, Clean(), put(1), *END, Clean())
    assert offsets(world) == [1, 3, 4]


def test_a_record_without_a_key_goes() -> None:
    world = run(put(None, 1), put(None), *END)
    result = clean_all(world)
    assert offsets(world) == [1, 3]
    assert result.stats.null_keys == 2


def test_a_record_behind_what_the_map_knows_stays_whatever_it_is() -> None:
    world = run(put(1, 2), put(3, 1, None), *END, Clean(slots=3))  # two keys fit
    assert offsets(world) == [0, 1, 2, 3, 4, 5]
    assert world.first_dirty_offset == 2


def test_a_map_that_fills_ends_the_round_inside_a_batch_even_at_a_key_it_knows() -> None:
    world = run(put(1, 1, 2, 1, 3), *END, Clean(slots=3))
    assert world.first_dirty_offset == 3
    assert offsets(world) == [1, 2, 3, 4, 5]
    world.run([Clean(slots=3)])
    assert world.first_dirty_offset == 5
    assert offsets(world) == [2, 3, 4, 5]


def test_a_round_ends_at_the_end_of_its_last_segment_across_a_gap() -> None:
    world = run(put(1), put(2, 3, 4))
    world.log.truncate_to(3)  # takes the whole batch away
    world.batches.pop()
    world.run([Roll(), Clean()])
    assert world.first_dirty_offset == 3


def test_an_aborted_record_supersedes_nothing() -> None:
    world = run(put(1), put(1, producer=7, transactional=True), End(7, commit=False), *END, Clean())
    assert 0 in offsets(world)
    assert 1 not in offsets(world)


def test_nothing_from_the_segment_of_the_last_stable_offset_on_is_touched() -> None:
    world = run(put(1), Roll(), put(1), put(1, producer=7, transactional=True), Roll(), put(1))
    world.run([Roll(), Clean()])
    assert world.first_dirty_offset == 1
    assert offsets(world) == [0, 1, 2, 3]


# --- tombstones ----------------------------------------------------------------------------------


def test_a_tombstone_gets_its_horizon_first_and_goes_when_that_has_come() -> None:
    world = run(put(1), delete(1), *END, Clean())
    tombstone = at(world, 1)
    assert has_horizon(tombstone)
    assert tombstone.base_timestamp_ms == START_MS + HOUR_MS
    assert tombstone.rows[0].timestamp_ms == START_MS
    assert tombstone.max_timestamp_ms == START_MS
    world.run([put(5), Roll(), Clean(after_ms=HOUR_MS - 1)])
    assert at(world, 1) == tombstone
    world.run([put(6), Roll(), Clean(after_ms=1)])
    assert offsets(world) == [2, 3, 4]


def test_a_horizon_that_is_set_is_never_moved() -> None:
    world = run(delete(1), *END, Clean())
    content = next(stored_batches(world.log))[1]
    world.run([put(5), Roll(), Clean(after_ms=HOUR_MS // 2)])
    assert next(stored_batches(world.log))[1] == content


def test_a_tombstone_behind_the_map_gets_its_horizon_too() -> None:
    world = run(put(1, 2), delete(3), *END, Clean(slots=3))
    assert world.first_dirty_offset == 2
    assert has_horizon(at(world, 2))
    far = run(put(1, 2), *[put(number) for number in range(100)], delete(3), *END, Clean(slots=3))
    assert has_horizon(at(far, 102))


def test_a_horizon_past_the_end_of_time_is_none() -> None:
    config = BIG.altered(delete_retention_ms=2**63 - 1)
    world = run(put(1), delete(1), *END, Clean(), put(5), Roll(), Clean(), config=config)
    assert not has_horizon(at(world, 1))
    assert at(world, 1).base_timestamp_ms == START_MS


def test_a_batch_keeps_its_horizon_when_its_tombstones_are_gone() -> None:
    world = run(Append((row(1, tombstone=True), row(2))), *END, Clean())
    world.run([put(5), Roll(), Clean(after_ms=HOUR_MS)])
    batch = at(world, 0)
    assert [each.offset for each in batch.rows] == [1]
    assert has_horizon(batch)
    assert batch.base_timestamp_ms == START_MS + HOUR_MS


def test_a_superseded_tombstone_goes_at_once() -> None:
    world = run(delete(1), put(1), *END, Clean())
    assert offsets(world) == [1, 2]


# --- transactions --------------------------------------------------------------------------------


def test_an_abort_goes_in_three_rounds_data_then_horizon_then_marker() -> None:
    world = run(put(1, producer=7, transactional=True), End(7, commit=False))
    world.run([put(2, producer=7), *END, Clean()])
    assert offsets(world) == [1, 2, 3]
    assert not has_horizon(at(world, 1))
    assert len(world.listed()) == 1
    world.run([put(5), Roll(), Clean(after_ms=HOUR_MS)])
    assert has_horizon(at(world, 1))
    assert at(world, 1).base_timestamp_ms == START_MS + 2 * HOUR_MS
    assert world.listed() == []
    world.run([put(6), Roll(), Clean(after_ms=HOUR_MS)])
    assert 1 not in offsets(world)


def test_so_does_a_commit_once_its_records_are_superseded() -> None:
    world = run(put(1, producer=7, transactional=True), End(7, commit=True))
    world.run([put(1, producer=7), *END, Clean()])
    assert offsets(world) == [1, 2, 3]
    assert not has_horizon(at(world, 1))
    world.run([put(5), Roll(), Clean(after_ms=HOUR_MS)])
    assert has_horizon(at(world, 1))
    world.run([put(6), Roll(), Clean(after_ms=HOUR_MS - 1)])
    assert 1 in offsets(world)
    world.run([put(7), Roll(), Clean(after_ms=1)])
    assert 1 not in offsets(world)


def test_a_marker_stays_as_it_is_while_its_transaction_has_data() -> None:
    world = run(put(1, producer=7, transactional=True), End(7, commit=True), *END, Clean())
    content = list(stored_batches(world.log))
    world.run([put(5), Roll(), Clean(after_ms=FOREVER_MS), put(6), Roll(), Clean(after_ms=1)])
    assert list(stored_batches(world.log))[:2] == content[:2]


def test_the_data_of_one_transaction_does_not_keep_the_marker_of_the_next() -> None:
    """Whether that one was committed or aborted."""
    for commit in (True, False):
        world = run(put(1, producer=7, transactional=True), End(7, commit=True))
        world.run([put(2, producer=7, transactional=True), End(7, commit=commit)])
        world.run([put(2, producer=7), *END, Clean()])
        assert offsets(world) == [0, 1, 3, 4, 5]
        assert not has_horizon(at(world, 3))
        world.run([put(5), Roll(), Clean()])
        assert not has_horizon(at(world, 1))
        assert has_horizon(at(world, 3))


def test_a_bare_header_of_a_transaction_counts_as_data() -> None:
    world = run(put(1, producer=7, transactional=True), End(7, commit=False), *END, Clean())
    world.run([put(5), Roll(), Clean(after_ms=HOUR_MS), put(6), Roll(), Clean(after_ms=HOUR_MS)])
    assert at(world, 0).record_count == 0
    assert not has_horizon(at(world, 1))
    assert len(world.listed()) == 1


def test_an_entry_of_a_transaction_index_moves_on_unchanged() -> None:
    config = BIG.altered(internal_segment_bytes=300, index_interval_bytes=50)
    world = run(put(1, producer=8, transactional=True), config=config)
    for number in range(6):
        world.run([put(number, producer=7, transactional=True), End(7, commit=False)])
    world.run([End(8, commit=True), *END])
    listed = world.listed()
    assert len({entry.last_stable_offset for entry in listed}) == 1
    assert len(listed) == 6
    world.run([Clean()])
    assert world.listed() == listed


def test_a_control_batch_of_another_kind_stays() -> None:
    world = World(BIG)
    leader_change = Record(b"\0\0\0\2", b"anything", (), START_MS)
    put_raw(world, raw([leader_change], control=True))
    world.run(END)
    before = list(stored_batches(world.log))
    for number in range(3):
        clean_all(world, now_ms=START_MS + number * FOREVER_MS)
    assert list(stored_batches(world.log)) == before


def test_an_empty_control_batch_goes() -> None:
    world = World(BIG)
    put_raw(world, raw([], control=True, transactional=True, producer_id=5, producer_epoch=0))
    world.run(END)
    clean_all(world)
    assert offsets(world) == [1]
    assert len(batches(world)) == 1


# --- batches that stay for what their header says ------------------------------------------------


def test_the_last_batch_of_an_active_producer_stays_as_61_bytes() -> None:
    world = run(put(1, 2, producer=7, codec=Codec.GZIP), put(1, 2), *END)
    before = at(world, 0)
    world.run([Clean()])
    content = next(stored_batches(world.log))[1]
    assert len(content) == 61
    after = describe_stored(content)
    assert after == before._replace(
        attributes=0, base_timestamp_ms=-1, record_count=0, rows=(), max_timestamp_ms=START_MS
    )
    assert (after.producer_id, after.base_sequence, after.last_offset) == (7, 0, 1)


def test_it_goes_when_the_producer_has_written_another_or_is_forgotten() -> None:
    world = run(put(1, producer=7), put(1, producer=8), put(1), *END, Clean())
    assert [batch.base_offset for batch in batches(world)] == [0, 1, 2, 3]
    world.run([put(5, producer=7), Roll(), Clean()])
    assert [batch.base_offset for batch in batches(world)] == [1, 2, 3, 4]
    world.run([Expire(), put(6), Roll(), Clean()])
    assert [batch.base_offset for batch in batches(world)] == [2, 3, 4, 5]


def test_the_marker_of_a_producer_without_data_in_its_epoch_stays() -> None:
    world = run(put(1, producer=7), End(7, commit=True, raises_epoch=True), *END)
    for _ in range(3):
        world.run([put(5), Roll(), Clean(after_ms=HOUR_MS)])
    marker = at(world, 1)
    assert (marker.record_count, marker.producer_epoch) == (0, 1)
    assert not has_horizon(marker)


def test_the_last_batch_of_a_round_stays_though_nothing_is_left_of_it() -> None:
    world = run(put(1), put(None, None), Roll(), Clean())
    assert [(b.base_offset, b.last_offset, b.record_count) for b in batches(world)] == [
        (0, 0, 1),
        (1, 2, 0),
    ]
    world.run([put(2), Roll(), Clean()])
    assert [batch.base_offset for batch in batches(world)] == [0, 3]
