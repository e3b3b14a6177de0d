"""Random histories, cleaned again and again, against the model of ``cleaning_model``; and what
holds of every cleaning whatever the model says."""

from cleaning_model import Row, last_rows
from cleaning_reading import read_batches, stored_batches
from cleaning_steps import Clean, Roll, Step
from cleaning_world import World
from hypothesis import given
from hypothesis import strategies as st
from random_histories import histories

from stratalog.records import ControlType, read_control_batch, read_headers
from stratalog.records.columns import decode_records
from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation


def committed_rows(log: Log, start_offset: int) -> list[Row]:
    """What a consumer with ``read_committed`` gets, by the list of aborted transactions that
    comes with each fetch."""
    found: list[Row] = []
    for content, told in read_batches(log, start_offset, isolation=Isolation.TXN_COMMITTED):
        waiting = sorted(told, key=lambda entry: entry.first_offset)
        dropped: set[int] = set()
        for header in read_headers(content):
            batch = content[header.position : header.position + header.size_bytes]
            while waiting and waiting[0].first_offset <= header.last_offset:
                dropped.add(waiting.pop(0).producer_id)
            if header.is_control:
                control = read_control_batch(batch)
                if control is not None and control.type is ControlType.ABORT:
                    dropped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in dropped):
                found += rows_of(batch)
    return [row for row in found if row.offset >= start_offset]


def rows_of(content: bytes) -> list[Row]:
    return [
        Row(each.offset, each.timestamp_ms, each.key, each.value, each.headers)
        for each in decode_records(content)
    ]


def check_state(world: World, start_offset: int) -> None:
    """From there on, a reader ends with the last value of every key, or knows that it is gone."""
    stable = world.log.last_stable_offset
    written = [row for row in world.committed() if row.offset < stable]
    found = committed_rows(world.log, start_offset)
    known = {row.offset: row for row in written}
    assert all(known[row.offset] == row for row in found), "records never change"
    after = last_rows(found, start_offset)
    before = last_rows(written, start_offset)
    assert after.keys() <= before.keys()
    for key, row in before.items():
        if row.value is None and key not in after:
            continue  # deleted, and the reader never heard of it
        assert after[key] == row


@given(histories())
def test_the_log_is_what_the_model_says_after_every_round(steps: list[Step]) -> None:
    World().run(steps)


@given(histories(with_legacy=True))
def test_so_it_is_where_old_messages_lie_between(steps: list[Step]) -> None:
    World().run(steps)


@given(histories(with_legacy=True))
def test_a_reader_from_any_offset_ends_with_the_last_value_of_every_key(steps: list[Step]) -> None:
    world = World().run(steps)
    for start_offset in range(world.log.log_start_offset, world.log.last_stable_offset + 1):
        check_state(world, start_offset)


@given(histories(with_legacy=True), st.integers(80, 400))
def test_offsets_only_grow_whatever_a_fetch_may_hold(steps: list[Step], max_bytes: int) -> None:
    world = World().run(steps)
    log = world.log
    pieces = [c for c, _ in read_batches(log, log.log_start_offset, max_bytes=max_bytes)]
    offsets = [row.offset for content in pieces for row in rows_of(content)]
    assert offsets == sorted(set(offsets))
    stored = [content for _, content in stored_batches(log)]
    visible = [b for b in stored if read_headers(b)[0].last_offset >= log.log_start_offset]
    assert b"".join(pieces) == b"".join(visible)


@given(histories())
def test_cleaning_moves_neither_end_of_a_log(steps: list[Step]) -> None:
    world = World().run(steps)
    log = world.log
    ends = (log.log_start_offset, log.last_stable_offset, log.high_watermark, log.log_end_offset)
    world.run([Clean(), Clean(after_ms=2**40), Clean()])
    assert ends == (
        log.log_start_offset,
        log.last_stable_offset,
        log.high_watermark,
        log.log_end_offset,
    )


@given(histories(with_legacy=True), st.booleans())
def test_opening_a_cleaned_log_again_finds_the_same_batches(
    steps: list[Step], is_clean: bool
) -> None:
    world = World().run(steps)
    before = list(stored_batches(world.log))
    bases = world.log.segments.base_offsets
    end_offset = world.log.log_end_offset
    world.reopen(is_clean=is_clean)
    assert list(stored_batches(world.log)) == before
    assert world.log.segments.base_offsets == bases
    assert world.log.log_end_offset == end_offset


@given(histories())
def test_who_wrote_last_can_be_told_from_what_cleaning_leaves(steps: list[Step]) -> None:
    """Without snapshots, from the batches alone: else a duplicate would be appended."""
    world = World().run(steps)
    now_ms = world.clock.now_ms()
    known = {each.producer_id: each for each in world.log.producers if each.batches}
    world.log.flush()
    world.log.abandon()
    files = world.files.clone()
    for name in list(files.tree(world.log.directory)):
        if name.endswith(".snapshot"):
            files.unlink(f"{world.log.directory}/{name}")
    world.clock.set(0)  # nobody has expired
    log = world.open(files, is_clean=False, start_offset=world.log.log_start_offset)
    world.clock.set(now_ms)
    for producer_id, before in known.items():
        if before.last_data_offset < world.log.log_start_offset:
            continue
        after = log.producers.get(producer_id)
        assert after is not None
        assert (after.epoch, after.last_sequence) == (before.epoch, before.last_sequence)
        assert after.last_data_offset == before.last_data_offset
        assert after.transaction_first_offset == before.transaction_first_offset


@given(histories())
def test_cleaning_again_with_nothing_new_only_lets_time_pass(steps: list[Step]) -> None:
    """Once horizons are set and what they held is gone, a further round changes no byte."""
    world = World().run([*steps, Roll()])
    for _ in range(4):
        world.first_dirty_offset = 0
        world.run([Clean(after_ms=2 * world.config.delete_retention_ms)])
    before = list(stored_batches(world.log))
    world.first_dirty_offset = 0
    world.run([Clean()])
    assert list(stored_batches(world.log)) == before
