"""Staged batches that have to change: what counts then is what is written, as for a producer."""

import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staging_harness import (
    DIRECTORY,
    NOW_MS,
    batch,
    check,
    new_disk,
    part_of,
    stage,
    staged_path,
    topic,
)

from stratalog.config import TopicConfig
from stratalog.errors import RecordBatchTooLargeError, RecordError
from stratalog.records import Codec, read_headers
from stratalog.records.columns import decode_records
from stratalog.storage.commits.checking import CheckedPartition, check_partition
from stratalog.storage.commits.errors import StagedFileError
from stratalog.storage.commits.merging import rebase
from stratalog.storage.context import DirectoryState, LogContext
from stratalog.storage.files import OsFileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import segment_file
from stratalog.storage.log import Log
from stratalog.storage.recovery import open_log
from stratalog.testing import ManualClock, SimulatedFileSystem, strategies

SEGMENT_BYTES = 4_096
# Small once they are compressed, and far from it if they are not.
PACKED = {"value_bytes": 1_500, "codec": Codec.ZSTD}
# A log also rolls between timestamps that are far from each other; a load does not.
ANY_TIME = {
    "message_timestamp_before_max_ms": 2**62,
    "message_timestamp_after_max_ms": 2**62,
    "segment_ms": 2**62,
}


def opened(files: SimulatedFileSystem, config: TopicConfig) -> Log:
    context = LogContext(
        files, ManualClock(NOW_MS), HandleCache(), DirectoryState(), flush_on_ack=False
    )
    return open_log(DIRECTORY, config, context, clean=True)


def values(files: SimulatedFileSystem, checked: CheckedPartition) -> list[bytes]:
    """In order; the offsets of each file have to count from 0."""
    found: list[bytes] = []
    for each in checked.files:
        content = files.contents(each.path)
        assert len(content) == each.size_bytes
        offset = 0
        for header in read_headers(content):
            stored = content[header.position : header.position + header.size_bytes]
            assert header.base_offset == offset
            offset = header.next_offset
            found += [bytes(row.value or b"") for row in decode_records(stored)]
        assert offset == each.record_count
    return found


# --- how large a batch may be -----------------------------------------------------------------


@pytest.mark.parametrize("value_bytes", [100, 3_900, 4_000, 4_020, 4_030, 4_100, 9_000])
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("compression_type", ["producer", "uncompressed", "lz4"])
@pytest.mark.parametrize("max_message_bytes", [4_060, 1 << 20])
def test_a_batch_is_refused_where_a_producers_is(
    value_bytes: int, codec: Codec, compression_type: str, max_message_bytes: int
) -> None:
    config = topic(compression_type=compression_type, max_message_bytes=max_message_bytes)
    one = batch(value_bytes=value_bytes, codec=codec)
    files = new_disk()
    staged = stage(files, [one])
    before = files.tree()
    try:
        opened(new_disk(), config).append_as_leader(one)
    except (RecordBatchTooLargeError, RecordError):
        with pytest.raises(StagedFileError, match=r"a batch of|the rebuilt batch"):
            check(files, staged, config)
        assert files.tree() == before
    else:
        assert check(files, staged, config).record_count == 1


def test_a_batch_too_large_in_the_topics_codec_is_told_by_its_file_and_place() -> None:
    files = new_disk()
    small, large = batch(codec=Codec.ZSTD), batch(value_bytes=5_000, codec=Codec.ZSTD)
    staged = stage(files, [small, large])

    with pytest.raises(StagedFileError, match=r"in the codec of compression\.type") as caught:
        check(files, staged, topic(compression_type="uncompressed"))

    assert caught.value.path == staged_path(staged[0].name)
    assert caught.value.position == len(small)


# --- how large a segment becomes --------------------------------------------------------------


@pytest.mark.parametrize("append_max_bytes", [0, 1_000_000])
def test_no_segment_is_larger_than_segment_bytes(append_max_bytes: int) -> None:
    files = new_disk()
    staged = stage(files, [batch(**PACKED)] * 13)
    assert staged[0].size_bytes < SEGMENT_BYTES

    config = topic(compression_type="uncompressed", index_interval_bytes=1)
    checked = check(files, staged, config, append_max_bytes=append_max_bytes)

    assert checked.is_adopted
    assert [each.batch_count for each in checked.files] == [2] * 6 + [1]
    assert [each.name for each in checked.files] == [f"merged.{n:05d}.log" for n in range(7)]
    for each in checked.files:
        assert each.size_bytes == len(files.contents(each.path)) <= SEGMENT_BYTES
        assert each.offset_index_bytes == len(files.contents(each.beside(".index")))
        assert files.is_synced(each.path)
    assert values(files, checked) == [bytes(1_500)] * 13


tasks = st.lists(st.lists(strategies.batches(), min_size=1, max_size=6), min_size=1, max_size=4)


@given(tasks, st.sampled_from(["producer", "uncompressed", "gzip"]), st.integers(150, 3_000))
def test_segments_of_batches_that_change_are_those_of_a_log(
    given_batches: list[list[bytes]], compression_type: str, segment_bytes: int
) -> None:
    config = topic(
        internal_segment_bytes=segment_bytes,
        index_interval_bytes=64,
        message_timestamp_type="LogAppendTime",
        compression_type=compression_type,
        **ANY_TIME,
    )
    files, expected = new_disk(), new_disk()
    staged = stage(files, *given_batches)
    log = opened(expected, config)
    try:
        for each in given_batches:
            for one in each:
                log.append_as_leader(one, leader_epoch=0)
    except (RecordBatchTooLargeError, RecordError):
        with pytest.raises(StagedFileError):
            check(files, staged, config)
        return
    base_offsets = [segment.base_offset for segment in log.segments]
    log.close()

    checked = check(files, staged, config)

    offset = 0
    for each, base_offset in zip(checked.files, base_offsets, strict=True):
        assert offset == base_offset
        rebase(files, each, base_offset=base_offset, leader_epoch=0)
        for suffix in (".log", ".index", ".timeindex"):
            found = files.contents(each.beside(suffix))
            assert found == expected.contents(segment_file(DIRECTORY, base_offset, suffix)), suffix
        offset += each.record_count


codecs = st.lists(
    st.lists(st.sampled_from([Codec.NONE, Codec.LZ4, Codec.ZSTD]), min_size=1, max_size=5),
    min_size=1,
    max_size=8,
)


@given(codecs, st.sampled_from(["lz4", "uncompressed"]), st.sampled_from([0, 700, 5_000]))
def test_records_stay_in_order_whatever_has_to_change(
    given_codecs: Sequence[Sequence[Codec]], compression_type: str, append_max_bytes: int
) -> None:
    """Files that stay as they are lie between others."""
    files = new_disk()
    batches, expected = [], []
    for number, of_file in enumerate(given_codecs):
        sizes = [100 + 300 * (number % 5) + place for place in range(len(of_file))]
        batches.append([batch(value_bytes=n, codec=c) for n, c in zip(sizes, of_file, strict=True)])
        expected += [bytes(size) for size in sizes]
    staged = stage(files, *batches)

    config = topic(compression_type=compression_type)
    checked = check(files, staged, config, append_max_bytes=append_max_bytes)

    assert values(files, checked) == expected
    wanted = Codec.from_name(compression_type)
    for each in checked.files:
        headers = read_headers(files.contents(each.path))
        assert {header.codec_id for header in headers} == {wanted}
        assert each.size_bytes <= SEGMENT_BYTES or not each.name.startswith("merged")
        assert files.exists(each.beside(".index")) is checked.is_adopted
    is_little = checked.size_bytes < append_max_bytes
    assert is_little or checked.is_adopted
    assert not (is_little and len(checked.files) == 1) or not checked.is_adopted


# --- appended, or segments --------------------------------------------------------------------


def test_what_is_much_once_it_is_written_is_not_appended() -> None:
    files = new_disk()
    staged = stage(files, [batch(**PACKED)] * 2)
    config = topic(compression_type="uncompressed", internal_segment_bytes=1 << 20)

    checked = check(files, staged, config, append_max_bytes=3_000)

    assert checked.is_adopted
    assert files.exists(checked.files[0].beside(".index"))
    assert not check(files, staged, config, append_max_bytes=4_000).is_adopted


def test_what_is_little_once_it_is_written_is_appended() -> None:
    files = new_disk()
    staged = stage(files, *[[batch(value_bytes=1_500)]] * 20)
    config = topic(compression_type="zstd")

    checked = check(files, staged, config, append_max_bytes=3_000)

    assert not checked.is_adopted
    assert [each.batch_count for each in checked.files] == [20]
    assert not files.exists(checked.files[0].beside(".index"))


# --- memory -----------------------------------------------------------------------------------


def test_batches_are_written_as_they_come_and_not_held_until_a_piece_ends(tmp_path: Path) -> None:
    files = OsFileSystem()
    directory = tmp_path / "orders-0"
    directory.mkdir()
    value_bytes, count = 1_000_000, 60
    one = batch(value_bytes=value_bytes, codec=Codec.ZSTD)
    staged = stage(files, [one] * count, directory=str(directory), segment_bytes=1 << 30)
    config = TopicConfig(compression_type="uncompressed")

    tracemalloc.start()
    try:
        (checked,) = check_partition(
            files,
            str(directory),
            part_of(staged),
            config,
            staging_id="5f" * 16,
            now_ms=NOW_MS,
            append_max_bytes=0,
        ).files
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert checked.size_bytes > count * value_bytes
    assert peak_bytes < count * value_bytes / 4
