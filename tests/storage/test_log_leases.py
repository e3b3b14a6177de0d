"""What an owner keeps of its logs for those who hold a lease."""

import errno

from cleaners import COMPACT, cleaner_of, written
from managers import ORDERS, PAYMENTS, LeaseWorld, fill, leave
from small_logs import START_MS

from stratalog.config import TopicConfig
from stratalog.storage.check import check
from stratalog.storage.layout import TopicPartition
from stratalog.storage.lease_book import LeaseEnd
from stratalog.storage.log_leases import LOOK_MS
from stratalog.testing import SimulatedFileSystem

DELAY_MS = 10_000
SLOW = TopicConfig(
    internal_segment_bytes=400,
    segment_index_bytes=96,
    index_interval_bytes=50,
    retention_ms=-1,
    file_delete_delay_ms=DELAY_MS,
)


def test_what_retention_takes_out_is_kept_until_the_lease_is_over() -> None:
    world = LeaseWorld()
    before = world.segments()
    world.lease(ms=30_000)
    world.delete_all()
    assert len(before) > 3
    assert world.kept() == list(before.values())
    world.later(29_999)
    assert world.kept() == list(before.values())
    world.later(1_000)
    assert world.kept() == []
    assert world.lease_files() == []
    assert world.ends() == [LeaseEnd.EXPIRED]


def test_without_a_lease_nothing_is_kept() -> None:
    world = LeaseWorld()
    world.delete_all()
    assert world.kept() == []
    assert world.book.held_bytes() == 0


def test_only_segments_with_leased_offsets_are_kept() -> None:
    world = LeaseWorld()
    bases = world.logs.get(ORDERS).segments.base_offsets
    before = world.segments()
    world.lease((ORDERS, bases[1], bases[2]))
    world.delete_all()
    assert world.kept() == [before[f"{bases[1]:020d}.log"]]


def test_one_offset_is_enough_at_either_end_of_a_segment() -> None:
    world = LeaseWorld()
    bases = world.logs.get(ORDERS).segments.base_offsets
    before = world.segments()
    world.lease((ORDERS, bases[1] - 1, bases[1] + 1))
    world.delete_all()
    assert world.kept() == [before[f"{base:020d}.log"] for base in bases[:2]]


def test_a_lease_on_another_partition_keeps_nothing() -> None:
    world = LeaseWorld()
    world.logs.create(PAYMENTS)
    world.lease((PAYMENTS, 0, 100))
    world.delete_all()
    assert world.kept() == []


def test_indexes_are_kept_beside_their_log() -> None:
    world = LeaseWorld()
    world.lease()
    world.delete_all()
    names = [path for path in world.files.tree("/data") if ".stratalog/leased/" in path]
    stems = {name.rpartition("/")[2].partition(".")[0] for name in names}
    kinds = {name.rpartition(".")[2] for name in names}
    assert kinds == {"log", "index", "timeindex"}
    assert len(names) == 3 * len(stems)


def test_what_compaction_replaces_is_kept_generation_by_generation() -> None:
    world = LeaseWorld(COMPACT, log_cleaner_dedupe_buffer_size=5 << 20)
    log = written(world.logs, PAYMENTS)
    generations = []
    for _ in range(2):
        log.roll()
        generations += world.segments(PAYMENTS).values()
        world.lease((PAYMENTS, 0, 1 << 40))
        cleaner_of(world.logs).run(world.clock.now_ms())
        log.append_as_leader(fresh(log.log_end_offset))
        log.update_high_watermark(log.log_end_offset)
    there = [*world.kept(), *world.segments(PAYMENTS).values()]
    assert len(world.kept()) > 3
    assert all(any(now.startswith(then) for now in there) for then in generations)


def fresh(offset: int) -> bytes:
    from stratalog.records import Record, build_batch

    return build_batch([Record(b"key-0", b"value of %d" % offset, (), START_MS)])


def test_what_truncation_drops_or_empties_is_kept() -> None:
    world = LeaseWorld()
    log = world.logs.get(ORDERS)
    before = world.segments()
    bases = log.segments.base_offsets
    world.lease()
    world.logs.truncate_to(ORDERS, bases[1])
    kept = world.kept()
    assert kept == [before[f"{base:020d}.log"] for base in bases[1:]]


def test_a_segment_that_is_cut_is_left_to_its_readers_and_the_log_goes_on_with_a_copy() -> None:
    world = LeaseWorld()
    log = world.logs.get(ORDERS)
    before = list(world.segments().values())[-1]
    world.lease()
    kept = world.files._file(f"{log.directory}/{log.segments.active.base_offset:020d}.log")
    world.logs.truncate_to(ORDERS, log.log_end_offset - 1)
    fill(log, 2)
    assert world.kept() == [before]
    name = f"{log.segments.active.base_offset:020d}.log"
    assert world.files._file(f"{log.directory}/{name}") is not kept
    assert [str(each) for each in check(log)] == []


def test_a_segment_that_cannot_be_copied_is_cut_all_the_same() -> None:
    world = LeaseWorld()
    world.lease()
    world.files.fail(lambda operation: operation.path.endswith(".cleaned"), errno.ENOSPC, times=99)
    log = world.logs.get(ORDERS)
    end_offset = log.log_end_offset
    world.logs.truncate_to(ORDERS, end_offset - 1)
    assert log.log_end_offset < end_offset
    assert log.failure is None
    assert not [path for path in world.files.tree("/data") if path.endswith(".cleaned")]


def test_a_cut_that_a_crash_interrupted_loses_neither_the_log_nor_what_is_leased() -> None:
    world = LeaseWorld()
    log = world.logs.get(ORDERS)
    log.flush()
    before = world.segments()
    world.lease()
    moments: list[SimulatedFileSystem] = []
    world.files.observer = lambda _operation: moments.append(world.files.clone())
    world.logs.truncate_to(ORDERS, log.log_end_offset - 3)
    kept_to = log.log_end_offset
    assert len(moments) > 8
    for files in moments:
        world.files = files
        world.logs = world.start()
        # The cut lies inside a batch, which goes as a whole.
        assert world.logs.get(ORDERS).log_end_offset >= kept_to - 1
        assert not world.logs.get(ORDERS).is_damaged
        there = [*world.kept(), *world.segments().values()]
        assert all(any(now.startswith(then) for now in there) for then in before.values())


def test_a_deleted_topic_stays_in_its_directory_until_the_lease_is_over() -> None:
    world = LeaseWorld(TopicConfig(file_delete_delay_ms=DELAY_MS))
    before = world.segments()
    world.lease(ms=30_000)
    world.logs.delete(ORDERS)
    world.later(DELAY_MS + 1_000)
    there = [data for path, data in world.files.tree("/data").items() if "-delete/" in path]
    assert all(data in there for data in before.values())
    assert world.book.held_bytes() >= sum(len(data) for data in before.values())
    world.later(30_000)
    assert not [path for path in world.files.tree("/data") if "-delete/" in path]
    assert world.book.held_bytes() == 0


def test_a_lease_on_a_new_topic_does_not_keep_a_deleted_one_of_its_name() -> None:
    world = LeaseWorld(TopicConfig(file_delete_delay_ms=DELAY_MS))
    world.logs.delete(ORDERS)
    world.logs.create(ORDERS)
    world.clock.advance(DELAY_MS + 1)
    world.lease()
    world.later()
    assert not [path for path in world.files.tree("/data") if "-delete/" in path]


def test_what_was_kept_of_a_topic_goes_with_it_when_it_is_deleted() -> None:
    world = LeaseWorld(SLOW)
    world.lease(ms=30_000)
    world.delete_all()
    before = world.kept()
    assert before
    world.logs.delete(ORDERS)
    world.later(DELAY_MS + 1_000)
    assert world.kept() == before, "it can still be read, in the directory that waits"
    there = world.files.tree("/data")
    sizes = [len(data) for path, data in there.items() if "-delete/" in path]
    assert world.book.held_bytes() <= sum(sizes), "it is not counted twice"
    world.later(30_000)
    assert not [path for path in world.files.tree("/data") if path.startswith("orders-0")]


def test_a_topic_with_the_longest_of_names_is_kept_too() -> None:
    long = TopicPartition("t" * 249, 0)
    world = LeaseWorld(TopicConfig(file_delete_delay_ms=DELAY_MS))
    fill(world.logs.create(long))
    world.lease((long, 0, 100), ms=120_000)
    world.logs.delete(long)
    world.restart(log_segment_delete_delay_ms=DELAY_MS)
    world.later(DELAY_MS + 1_000)
    world.later(DELAY_MS)
    assert [path for path in world.files.tree("/data") if "-delete/" in path]
    world.later(120_000)
    assert not [path for path in world.files.tree("/data") if "-delete/" in path]


def test_a_new_lease_rescues_what_waits_to_be_unlinked() -> None:
    world = LeaseWorld(SLOW)
    before = world.segments()
    bases = world.logs.get(ORDERS).segments.base_offsets
    world.delete_all()
    world.later(DELAY_MS - 1)
    world.lease((ORDERS, bases[1], 1 << 40))
    world.later(DELAY_MS)
    assert world.kept() == [before[f"{base:020d}.log"] for base in bases[1:]]
    assert not [path for path in world.files.tree("/data") if path.endswith(".deleted")]


def test_a_lease_left_as_a_file_rescues_too() -> None:
    world = LeaseWorld(SLOW)
    before = world.segments()
    world.later(LOOK_MS - 1_000)
    world.delete_all()
    leave(world)
    world.later(1_000)
    world.later(1_000)
    world.later(DELAY_MS)
    assert world.kept() == list(before.values())


def test_two_leases_on_one_segment_keep_it_until_both_are_over() -> None:
    world = LeaseWorld()
    first, second = world.lease(), world.lease()
    world.delete_all()
    world.book.release(first)
    world.later()
    assert world.kept()
    world.book.release(second)
    world.later()
    assert world.kept() == []


def test_a_log_goes_on_where_nothing_can_be_kept() -> None:
    world = LeaseWorld()
    world.lease()
    world.files.fail(lambda operation: operation.kind == "mkdir", errno.ENOSPC, times=99)
    world.delete_all()
    assert world.kept() == []
    log = world.logs.get(ORDERS)
    assert log.failure is None
    assert log.log_start_offset == log.log_end_offset
