"""One rule of compaction at a time: what a rewrite does to batches, files and segments."""

import pytest
from cleaning_model import Described, describe_stored
from cleaning_reading import read_batches, stored_batches
from cleaning_steps import Append, Clean, End, Expire, Roll
from cleaning_world import DIRECTORY, HOUR_MS, START_MS, World
from rules_harness import (
    BIG,
    END,
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

from stratalog.config import TopicConfig
from stratalog.errors import CorruptSegmentError
from stratalog.records import Codec, Record, read_headers
from stratalog.records._kernels import crc32c

# --- what a rewrite does to a batch --------------------------------------------------------------


def test_a_batch_that_loses_its_first_and_last_records_keeps_its_range_of_offsets() -> None:
    rows = (row(1), row(2, age_ms=-5), row(3, age_ms=-3), row(4, age_ms=-9))
    world = run(Append(rows), put(1, 4), *END, Clean())
    batch = at(world, 0)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (0, 3, 2)
    assert [each.offset for each in batch.rows] == [1, 2]
    assert (batch.base_timestamp_ms, batch.max_timestamp_ms) == (START_MS + 5, START_MS + 5)


@pytest.mark.parametrize("codec", Codec)
def test_a_rewritten_batch_keeps_its_codec_and_its_records(codec: Codec) -> None:
    rows = (row(1, has_headers=True), row(2, value_bytes=3000, has_headers=True), row(1))
    world = run(Append(rows, codec=codec), *END, Clean())
    batch = at(world, 0)
    assert batch.attributes & 7 == codec
    assert [each.offset for each in batch.rows] == [1, 2]
    assert batch.rows[0].headers == (("at", b"1"), ("none", None))


def test_a_batch_that_loses_nothing_keeps_every_byte() -> None:
    odd = with_attributes(raw([Record(b"a", b"1", (), START_MS)]), 1 << 9)
    world = World(BIG)
    put_raw(world, odd)
    world.run([put(1, 2, codec=Codec.SNAPPY), *END])
    before = list(stored_batches(world.log))
    clean_all(world)
    assert list(stored_batches(world.log)) == before


def with_attributes(batch: bytes, extra: int) -> bytes:
    changed = bytearray(batch)
    changed[21:23] = (int.from_bytes(changed[21:23]) | extra).to_bytes(2)
    changed[17:21] = crc32c(memoryview(changed)[21:]).to_bytes(4)
    return bytes(changed)


def test_a_rewrite_clears_what_a_producer_left_in_unused_bits() -> None:
    rows = [Record(b"a", b"1", (), START_MS), Record(b"b", b"2", (), START_MS)]
    odd = bytearray(with_attributes(raw(rows), 0xFF80))
    odd[62] = odd[62 + odd[61] // 2 + 1] = 0x55  # attributes of the two records
    odd[17:21] = crc32c(memoryview(odd)[21:]).to_bytes(4)
    world = World(BIG)
    put_raw(world, bytes(odd))
    put_raw(world, raw([Record(b"a", b"3", (), START_MS)], 2))
    world.run(END)
    clean_all(world)
    content = next(stored_batches(world.log))[1]
    assert content[21:23] == b"\0\0"
    assert content[62] == 0
    assert content == raw(rows[1:], offset_deltas=[1])


def test_a_rewrite_gives_records_of_log_append_time_the_time_they_were_seen_with() -> None:
    rows = (row(1, age_ms=70), row(2, age_ms=50), row(3, age_ms=60))
    world = run(Append(rows, log_append_time=True), put(1), *END, Clean())
    batch = at(world, 0)
    assert batch.attributes == 8
    assert batch.base_timestamp_ms == batch.max_timestamp_ms == START_MS
    content = next(stored_batches(world.log))[1]
    assert content[63:64] == b"\0", "the delta of the first record kept"
    assert {each.timestamp_ms for each in batch.rows} == {START_MS}


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_become_batches_of_magic_2(magic: int, codec: Codec) -> None:
    world = run(put(1, 2, 3, magic=magic, codec=codec), put(1), *END, Clean())
    found = batches(world)
    assert {batch.magic for batch in found} == {2}
    first = found[0]
    assert first.base_offset == first.rows[0].offset == 1
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (-1, -1, -1)
    assert (first.leader_epoch, first.attributes) == (-1, codec)
    assert first.last_offset == (1 if codec is Codec.NONE else 2)
    assert first.max_timestamp_ms == (-1 if magic == 0 else START_MS)


def test_an_old_tombstone_that_stays_gets_a_horizon() -> None:
    world = run(delete(1, magic=1), *END, Clean())
    assert has_horizon(at(world, 0))
    assert at(world, 0).base_timestamp_ms == START_MS + HOUR_MS


@pytest.mark.parametrize(
    ("between_ms", "first_dirty_offset", "stays"),
    [(HOUR_MS - 1, 3, True), (HOUR_MS, 3, False), (HOUR_MS, 2, True)],
)
def test_an_old_tombstone_goes_when_its_segment_is_old_beside_the_last_clean_one(
    between_ms: int, first_dirty_offset: int, stays: bool
) -> None:
    world = run(delete(1, magic=1), put(2), Roll())
    world.clock.advance(between_ms)
    world.run([put(3), Roll(), put(4), Roll()])
    # As a cleaner left it that did not know magic 2.
    world.first_dirty_offset = first_dirty_offset
    world.run([Clean()])
    assert (0 in offsets(world)) is stays


def test_an_old_message_that_would_be_an_empty_batch_cannot_be_cleaned() -> None:
    world = run(put(1), put(None, magic=1), Roll())
    before = list(stored_batches(world.log))
    with pytest.raises(CorruptSegmentError):
        clean_all(world)
    assert list(stored_batches(world.log)) == before


# --- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("buffer_bytes", [1, 61, 100, 4096])
def test_a_batch_larger_than_the_buffer_makes_it_grow(buffer_bytes: int) -> None:
    steps = [put(1, 2), Append((row(3, value_bytes=20_000), row(1))), put(4, codec=Codec.ZSTD)]
    world = run(*steps, *END)
    other = run(*steps, *END)
    clean_all(world, buffer_bytes=buffer_bytes)
    clean_all(other)
    assert list(stored_batches(world.log)) == list(stored_batches(other.log))
    assert offsets(world) == [1, 2, 3, 4, 5]


def test_a_rewritten_batch_above_max_message_bytes_is_kept_and_told_of() -> None:
    world = run(Append((row(1), row(2, value_bytes=5000))), put(1), *END)
    world.log.configure(BIG.altered(max_message_bytes=1000))
    result = clean_all(world)
    assert offsets(world) == [1, 2, 3]
    assert "max.message.bytes=1000" in " ".join(result.stats.warnings)


# --- files ---------------------------------------------------------------------------------------


def small_segments(count: int = 6, config: TopicConfig = BIG) -> World:
    world = World(config)
    for number in range(count):
        world.run([put(number % 3), put(50 + number), Roll()])
        world.clock.advance(1000)
    return world


def tree(world: World) -> set[str]:
    return {name for name in world.files.tree(DIRECTORY) if "/" not in name}


def test_a_cleaned_segment_is_as_old_as_the_last_it_was_made_from() -> None:
    world = small_segments()
    last = [*world.log.segments][-2]
    expected = world.modified_ms(last)
    assert expected > START_MS
    world.run([Clean(after_ms=HOUR_MS)])
    for suffix in (".log", ".index", ".timeindex"):
        entry = world.files.stat(f"{DIRECTORY}/{0:020}{suffix}")
        assert entry is not None
        assert entry.modified_ms == expected


def test_a_snapshot_goes_with_the_base_offset_it_belongs_to() -> None:
    world = small_segments()
    before = {name for name in tree(world) if name.endswith(".snapshot")}
    assert f"{4:020}.snapshot" in before
    clean_all(world)
    assert {f"{base:020}.snapshot.deleted" for base in (2, 4, 6, 8, 10)} <= tree(world)
    assert f"{12:020}.snapshot" in tree(world)
    world.log.run_deletes(world.clock.now_ms() + 1)
    assert not [name for name in tree(world) if name.endswith(".deleted")]


def test_replaced_files_wait_for_file_delete_delay_ms() -> None:
    world = small_segments(config=BIG.altered(file_delete_delay_ms=500))
    clean_all(world)
    waiting = {name for name in tree(world) if name.endswith(".deleted")}
    assert {f"{base:020}.log.deleted" for base in (0, 2, 4, 6, 8, 10)} <= waiting
    world.log.run_deletes(world.clock.now_ms() + 499)
    assert {name for name in tree(world) if name.endswith(".deleted")} == waiting
    world.log.run_deletes(world.clock.now_ms() + 500)
    assert not [name for name in tree(world) if name.endswith(".deleted")]


def test_what_an_earlier_attempt_left_is_removed_first() -> None:
    world = small_segments()
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        world.files.put(f"{DIRECTORY}/{0:020}{suffix}.cleaned", b"of an earlier attempt")
    world.run([Clean()])
    assert not [name for name in tree(world) if "cleaned" in name or "txnindex" in name]


def test_a_swap_takes_the_steps_of_kafka_in_its_order() -> None:
    world = run(put(1, producer=7, transactional=True), End(7, commit=False), Roll(), put(2))
    world.run([Roll()])
    start = world.files.operations
    clean_all(world)
    names = [each for each in world.files.trace if each.number > start and each.kind == "rename"]
    moved = [(source_name(each.path), str(each.detail[0]).rpartition(".")[2]) for each in names]
    kinds = ("log", "index", "timeindex", "txnindex")
    first, second = f"{0:020}", f"{2:020}"
    expected = [(f"{first}.{kind}.cleaned", "swap") for kind in kinds]
    expected += [(f"{first}.{kind}", "deleted") for kind in kinds]
    expected += [(f"{second}.{kind}", "deleted") for kind in kinds[:3]]
    expected += [(f"{first}.{kind}.swap", kind) for kind in kinds]
    expected += [(f"{second}.snapshot", "deleted")]
    assert [each for each in moved if ".tmp" not in each[0]] == expected


def source_name(path: str) -> str:
    return path.rpartition("/")[2]


# --- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (BIG.altered(internal_segment_bytes=330), "segment.bytes"),
        (BIG.altered(segment_index_bytes=24, index_interval_bytes=0), "segment.index.bytes"),
    ],
)
def test_segments_join_up_to_a_limit(config: TopicConfig, why: str) -> None:
    world = small_segments(8, config)
    before = world.log.segments.base_offsets
    world.run([Clean()])
    after = world.log.segments.base_offsets
    assert 2 < len(after) < len(before), why
    assert set(after) <= set(before)


def test_all_small_segments_become_one() -> None:
    world = small_segments(8)
    world.run([Clean()])
    assert world.log.segments.base_offsets == [0, 16]


def test_an_emptied_segment_stays_as_an_empty_file_until_it_can_join() -> None:
    config = BIG.altered(internal_segment_bytes=200)
    world = run(put(1), put(2), Roll(), put(1), put(2), Roll(), put(3), Roll(), config=config)
    world.run([Clean()])
    sizes = [segment.size_bytes for segment in world.log.segments]
    assert sizes[0] == 0
    assert read(world, 0) == read(world, 2)


def read(world: World, start_offset: int) -> list[Described]:
    found = []
    for content, _ in read_batches(world.log, start_offset):
        for header in read_headers(content):
            end = header.position + header.size_bytes
            found.append(describe_stored(content[header.position : end]))
    return found


# --- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("position", [30, 70])
def test_a_corrupt_batch_stops_the_round_and_nothing_is_lost(position: int) -> None:
    world = small_segments()
    segment = [*world.log.segments][2]
    world.files.flip(segment.path, position, 1)
    before = world.files.tree(DIRECTORY)
    with pytest.raises(CorruptSegmentError) as raised:
        clean_all(world)
    assert segment.path in str(raised.value)
    assert world.files.tree(DIRECTORY) == before


def test_an_abort_below_the_log_start_counts_for_nothing_any_more() -> None:
    world = run(put(1), put(2, producer=7, transactional=True), End(7, commit=False), *END)
    world.run([Expire()])
    world.log.raise_log_start_offset(3)
    world.run([Clean()])
    assert offsets(world) == [0, 1, 2, 3]
    assert has_horizon(at(world, 2))
    assert world.listed() == []


def test_a_log_start_inside_a_segment_changes_nothing_below_it_but_what_is_superseded() -> None:
    world = run(put(1), put(2), put(1), *END)
    world.log.raise_log_start_offset(2)
    clean_all(world)
    assert world.log.log_start_offset == 2
    assert offsets(world) == [1, 2, 3]


@pytest.mark.parametrize("deltas", [[-1, 1], [0, 0], [1, 0], [2**31 - 1, 1]])
def test_a_log_with_offsets_that_apache_kafka_did_not_look_at_can_be_cleaned(
    deltas: list[int],
) -> None:
    world = run(put(2), Roll())
    rows = [Record(key, b"odd", (), START_MS) for key in (b"a", b"a")]
    put_raw(world, raw(rows, 1, offset_deltas=deltas, last_offset_delta=1))
    put_raw(world, raw([Record(b"b", b"v", (), START_MS)], 3))
    world.log.roll()
    clean_all(world)
    assert offsets(world) == [0, 2, 3]
    clean_all(world)
    assert offsets(world) == [0, 2, 3]
