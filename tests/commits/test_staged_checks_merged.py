"""Which staged files become one, and that it is then what an ordinary log would have written."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staging_harness import DIRECTORY, NOW_MS, batch, check, new_disk, stage, stamped, topic

from stratalog.config import TopicConfig
from stratalog.records import Codec, Record, build_batch, read_headers
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.identity import identify
from stratalog.storage.commits.manifest import StagedFile
from stratalog.storage.commits.merging import (
    CheckedFile,
    SegmentMaker,
    place_time_ranges,
    plan_files,
    rebase,
    rebase_file,
)
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import segment_file
from stratalog.storage.recovery import open_log
from stratalog.storage.time_ranges import TimeRanges, read_time_ranges
from stratalog.testing import CrashMode, ManualClock, SimulatedFileSystem, strategies

# A log also rolls between timestamps that are far from each other; a load does not.
ANY_TIME = {
    "message_timestamp_before_max_ms": 2**62,
    "message_timestamp_after_max_ms": 2**62,
    "segment_ms": 2**62,
}


def sized(*sizes: int) -> list[StagedFile]:
    return [
        StagedFile(name=f"{number}.log", size_bytes=size, record_count=1, digest="0" * 8)
        for number, size in enumerate(sizes)
    ]


def groups(staged: Sequence[StagedFile], segment_bytes: int = 100) -> list[list[int]]:
    plan = plan_files(staged, segment_bytes=segment_bytes, append_max_bytes=0)
    return [[each.size_bytes for each in group] for group in plan.groups]


# --- the plan ---------------------------------------------------------------------------------


def test_large_files_stay_and_small_neighbours_become_one() -> None:
    assert groups(sized(25, 24, 24, 100, 3, 90, 4, 5, 6)) == [
        [25],
        [24, 24],
        [100],
        [3],
        [90],
        [4, 5, 6],
    ]
    assert groups(sized(*[24] * 9)) == [[24] * 4, [24] * 4, [24]]
    assert groups(sized(3)) == [[3]]
    assert groups(sized(700, 1)) == [[700], [1]]


def test_a_file_that_is_large_by_itself_is_never_copied_however_large_segments_are() -> None:
    large = 32 << 20

    assert groups(sized(large, large - 1, 1, large, 2), segment_bytes=1 << 30) == [
        [large],
        [large - 1, 1],
        [large],
        [2],
    ]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(0, 300))
def test_a_plan_keeps_the_order_and_leaves_no_two_segments_that_could_be_one(
    sizes: list[int], append_max_bytes: int
) -> None:
    staged = sized(*sizes)

    plan = plan_files(staged, segment_bytes=100, append_max_bytes=append_max_bytes)

    assert [each for group in plan.groups for each in group] == staged
    if not plan.is_adopted:
        assert len(plan.groups) == 1
    else:
        totals = [sum(each.size_bytes for each in group) for group in plan.groups]
        assert all(each <= 100 for each in totals)
        small = [all(each.size_bytes < 25 for each in group) for group in plan.groups]
        for place in range(len(totals) - 1):
            both = small[place] and small[place + 1]
            assert not both or totals[place] + plan.groups[place + 1][0].size_bytes > 100


def test_only_less_than_the_limit_is_appended() -> None:
    for size, is_adopted in ((99, False), (100, True)):
        plan = plan_files(sized(size - 10, 10), segment_bytes=1_000, append_max_bytes=100)
        assert plan.is_adopted is is_adopted


def test_what_would_not_fit_a_segment_is_not_appended_as_one() -> None:
    assert plan_files(sized(60, 60), segment_bytes=100, append_max_bytes=1_000).is_adopted


def test_no_segment_gets_more_records_than_an_index_can_count() -> None:
    most = 2**31 - 1
    many = [
        StagedFile(name=f"{n}.log", size_bytes=1, record_count=most // 2, digest="0" * 8)
        for n in range(3)
    ]

    assert groups(many) == [[1, 1], [1]]


def test_a_plan_for_very_many_small_files_takes_no_time() -> None:
    plan = plan_files(sized(*[1] * 200_000), segment_bytes=1 << 30, append_max_bytes=0)

    assert len(plan.groups) == 1


# --- what comes out ---------------------------------------------------------------------------


def ordinary(batches: Sequence[bytes], config: TopicConfig) -> SimulatedFileSystem:
    """The disk of a log to which the batches were appended one by one, and which was closed."""
    files = new_disk()
    context = LogContext(
        files, ManualClock(NOW_MS), HandleCache(), DirectoryState(), flush_on_ack=False
    )
    log = open_log(DIRECTORY, config, context, clean=True)
    for each in batches:
        log.append_as_leader(each, leader_epoch=0)
    log.close()
    return files


def placed(files: SimulatedFileSystem, checked: CheckedFile, base_offset: int) -> None:
    """As a commit puts it into the log."""
    rebase(files, checked, base_offset=base_offset, leader_epoch=0)
    for suffix in (".log", ".index", ".timeindex"):
        files.rename(checked.beside(suffix), segment_file(DIRECTORY, base_offset, suffix))
    place_time_ranges(files, checked, DIRECTORY, base_offset=base_offset)


def time_ranges(files: SimulatedFileSystem, base_offset: int = 0) -> TimeRanges | None:
    file = files.open(segment_file(DIRECTORY, base_offset, ".log"))
    return read_time_ranges(
        files, DIRECTORY, base_offset, log_file=file, log_size=file.size_bytes()
    )


tasks = st.lists(st.lists(strategies.batches(), min_size=1, max_size=6), min_size=1, max_size=4)
settings_that_change_batches = st.sampled_from(
    [{}, {"message_timestamp_type": "LogAppendTime"}, {"compression_type": "gzip"}]
)


@given(tasks, st.sampled_from([1, 64, 500]), settings_that_change_batches)
def test_a_merged_segment_is_byte_for_byte_that_of_a_log(
    given_batches: list[list[bytes]], interval: int, settings: dict[str, str]
) -> None:
    config = topic(
        internal_segment_bytes=1 << 20, index_interval_bytes=interval, **ANY_TIME, **settings
    )
    expected = ordinary([each for batches in given_batches for each in batches], config)
    files = new_disk()

    (checked,) = check(files, stage(files, *given_batches), config).files
    placed(files, checked, 0)

    for suffix in (".log", ".index", ".timeindex"):
        path = segment_file(DIRECTORY, 0, suffix)
        assert files.contents(path) == expected.contents(path), suffix
    assert time_ranges(files) == time_ranges(expected)
    assert checked.offset_index_bytes == len(files.contents(segment_file(DIRECTORY, 0, ".index")))
    assert checked.time_index_bytes == len(files.contents(segment_file(DIRECTORY, 0, ".timeindex")))


@given(st.lists(strategies.batches(), min_size=1, max_size=8), st.integers(0, 2**40))
def test_a_file_gets_its_offsets_and_nothing_else_changes(
    batches: list[bytes], base_offset: int
) -> None:
    files = new_disk()
    config = topic(**ANY_TIME, index_interval_bytes=64)
    (checked,) = check(files, stage(files, batches), config).files

    placed(files, checked, base_offset)

    content = files.contents(segment_file(DIRECTORY, base_offset, ".log"))
    assert content == stamped(batches, base_offset=base_offset, leader_epoch=0)
    assert files.is_synced(segment_file(DIRECTORY, base_offset, ".log"))
    found = time_ranges(files, base_offset)
    assert (found is not None) is checked.has_time_ranges
    if found is not None:
        assert found.anchor is not None
        assert found.anchor.last_offset == base_offset + checked.record_count - 1


@given(st.lists(strategies.batches(), min_size=1, max_size=8), st.integers(0, 2**40))
def test_offsets_are_given_also_by_whoever_has_only_the_file(
    batches: list[bytes], base_offset: int
) -> None:
    files = new_disk()
    (checked,) = check(files, stage(files, batches), topic(**ANY_TIME)).files
    files.rename(checked.path, "/logs/moved.log")

    rebase_file(files, "/logs/moved.log", base_offset=base_offset, leader_epoch=7)

    expected = stamped(batches, base_offset=base_offset, leader_epoch=7)
    assert files.contents("/logs/moved.log") == expected
    rebase(files, checked, base_offset=5, leader_epoch=8, path="/logs/moved.log", is_synced=False)
    assert files.contents("/logs/moved.log") == stamped(batches, base_offset=5, leader_epoch=8)
    assert not files.is_synced("/logs/moved.log")


def test_offsets_are_not_given_to_what_is_no_batch() -> None:
    files = new_disk()
    for content in (batch()[:-1] + b"xx", batch() + bytes(30), b"\xff" * 70):
        files.put("/logs/x.log", content)
        with pytest.raises(StagedFileError):
            rebase_file(files, "/logs/x.log", base_offset=0, leader_epoch=0)


def test_records_come_out_in_the_order_of_the_tasks() -> None:
    files = new_disk()
    batches = [[batch(at_ms=NOW_MS + number, value_bytes=600)] for number in range(12)]
    staged = stage(files, *batches)

    checked = check(files, staged)

    assert [each.batch_count for each in checked.files] == [6, 6]
    headers = [h for each in checked.files for h in read_headers(files.contents(each.path))]
    assert [each.max_timestamp_ms - NOW_MS for each in headers] == list(range(12))
    assert [each.name for each in checked.files] == [f"merged.{n:05d}.log" for n in range(2)]
    assert all(files.is_synced(each.path) for each in checked.files)


def test_an_index_with_less_room_than_entries_keeps_the_first() -> None:
    files = new_disk()
    staged = stage(files, [batch()] * 40)

    small = topic(index_interval_bytes=1, segment_index_bytes=100)
    (checked,) = check(files, staged, small).files

    whole = topic(index_interval_bytes=1)
    offsets = files.contents(checked.beside(".index"))
    times = files.contents(checked.beside(".timeindex"))
    assert (len(offsets), len(times)) == (96, 12)
    check(files, staged, whole)
    assert files.contents(checked.beside(".index")).startswith(offsets)


def test_nothing_is_told_of_times_that_nobody_could_skip() -> None:
    files = new_disk()
    (checked,) = check(files, stage(files, [batch()])).files

    assert not checked.has_time_ranges
    placed(files, checked, 0)
    assert time_ranges(files) is None


def test_a_side_car_that_is_garbled_is_not_placed() -> None:
    files = new_disk()
    config = topic(index_interval_bytes=64)
    (checked,) = check(files, stage(files, [batch()] * 20), config).files
    files.flip(checked.beside(".timeranges"), 40, 1)

    placed(files, checked, 0)

    assert time_ranges(files) is None


def test_a_merged_segment_of_several_codecs_reads_back() -> None:
    files = new_disk()
    given_batches = [
        [build_batch([Record(b"k", b"v%d" % codec, (), NOW_MS)], codec=codec)] for codec in Codec
    ]

    (checked,) = check(files, stage(files, *given_batches)).files

    content = files.contents(checked.path)
    assert content == stamped([each for (each,) in given_batches])


def test_a_discarded_segment_leaves_the_file_that_it_did_not_write() -> None:
    files = new_disk()
    (staged,) = stage(files, [batch()])
    directory = f"{DIRECTORY}/.stratalog/staging/{'5f' * 16}"
    maker = SegmentMaker(
        files,
        directory,
        staged.name,
        topic(),
        staged=identify(files, f"{directory}/{staged.name}"),
    )
    maker.take(files.contents(f"{directory}/{staged.name}"))
    maker.finish()
    assert len(files.tree(directory)) == 3

    maker.discard()

    assert set(files.tree(directory)) == {staged.name}


@pytest.mark.parametrize("mode", list(CrashMode))
def test_offsets_that_were_given_in_part_can_be_given_again(mode: CrashMode) -> None:
    batches = [batch(2), batch(1), batch(3, value_bytes=500), batch(1)]
    files = new_disk()
    for directory in ("/", "/logs"):
        files.sync_directory(directory)
    staged = stage(files, batches)
    (checked,) = check(files, staged).files
    moments: list[SimulatedFileSystem] = []
    files.observer = lambda _operation: moments.append(files.clone())
    rebase(files, checked, base_offset=700, leader_epoch=3)
    assert len(moments) == len(batches) + 1

    for seed, moment in enumerate([*moments, files]):
        found = moment.after_crash(mode, seed)
        (again,) = check(found, staged).files
        rebase(found, again, base_offset=90, leader_epoch=4)
        assert found.contents(again.path) == stamped(batches, base_offset=90, leader_epoch=4)
