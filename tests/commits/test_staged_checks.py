"""What the owner finds out about staged files before any of it is part of a log."""

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staging_harness import (
    DIRECTORY,
    NOW_MS,
    STAGING_ID,
    batch,
    changed,
    check,
    new_disk,
    part_of,
    put_staged,
    stage,
    staged_path,
    stamped,
    topic,
)

from stratalog.config import TopicConfig
from stratalog.records import Codec, Record, TimestampType, build_batch, read_headers
from stratalog.storage.commits.checking import check_partition
from stratalog.storage.commits.errors import StagedFileError
from stratalog.testing import CrashMode, strategies
from stratalog.testing.legacy import legacy_message_set

OLD = 2**62  # timestamps may be anything
ANY_TIME = {"message_timestamp_before_max_ms": OLD, "message_timestamp_after_max_ms": OLD}


def refused(
    content: bytes, config: TopicConfig | None = None, *, at: int = 0, **fields: Any
) -> str:
    """Why a file with this content is refused, with the position that goes with it."""
    files = new_disk()
    staged = changed(put_staged(files, content), **fields)
    before = files.tree()
    with pytest.raises(StagedFileError) as caught:
        check(files, [staged], config)
    assert caught.value.path == staged_path(staged.name)
    assert caught.value.position == at
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert files.tree() == before, "what is refused leaves nothing behind"
    return caught.value.reason


# --- what is taken ----------------------------------------------------------------------------


@given(st.lists(strategies.batches(), min_size=1, max_size=8))
def test_a_file_of_whole_batches_is_taken_as_it_is(batches: list[bytes]) -> None:
    files = new_disk()
    staged = stage(files, batches)

    checked = check(files, staged, topic(**ANY_TIME))

    (one,) = checked.files
    headers = read_headers(stamped(batches))
    assert (one.name, one.size_bytes) == (staged[0].name, staged[0].size_bytes)
    assert one.record_count == checked.record_count == staged[0].record_count
    assert list(one.positions) == [each.position for each in headers]
    assert list(one.offsets) == [each.base_offset for each in headers]
    assert one.max_timestamp_ms == max(each.max_timestamp_ms for each in headers)
    assert one.first_timestamp_ms == headers[0].max_timestamp_ms
    assert files.contents(one.path) == stamped(batches)


@given(st.lists(strategies.batches(), min_size=1, max_size=5), st.data())
def test_offsets_and_epochs_that_an_interrupted_commit_left_do_not_matter(
    batches: list[bytes], data: st.DataObject
) -> None:
    files, others = new_disk(), new_disk()
    staged = stage(files, batches)
    stage(others, batches)
    content = bytearray(others.contents(staged_path(staged[0].name)))
    for header in read_headers(bytes(content)):
        if data.draw(st.booleans()):
            offset = data.draw(st.integers(0, 2**62)).to_bytes(8, "big")
            content[header.position : header.position + 8] = offset
        if data.draw(st.booleans()):
            epoch = data.draw(st.integers(0, 2**31 - 1)).to_bytes(4, "big")
            content[header.position + 12 : header.position + 16] = epoch
    others.put(staged_path(staged[0].name), bytes(content))

    config = topic(**ANY_TIME)
    assert check(files, staged, config) == check(others, staged, config)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=12))
def test_batches_of_any_size_are_read_whatever_a_piece_holds(sizes: list[int]) -> None:
    files = new_disk()
    batches = [build_batch([Record(b"k", bytes(size), (), NOW_MS)]) for size in sizes]
    staged = stage(files, batches, segment_bytes=1 << 30)

    (checked,) = check(files, staged, TopicConfig()).files

    assert checked.batch_count == len(batches)
    assert checked.size_bytes == sum(map(len, batches))


def test_a_batch_larger_than_a_piece_is_read_whole() -> None:
    files = new_disk()
    batches = [batch(value_bytes=size) for size in (10, 3 << 20, 10, 5 << 20)]
    staged = stage(files, batches, segment_bytes=1 << 30)

    assert check(files, staged, TopicConfig(max_message_bytes=8 << 20)).record_count == 4


def test_names_are_durable_all_the_way_once_a_check_is_done() -> None:
    files = new_disk()
    files.sync_directory("/logs")
    files.sync_directory("/")
    staged = stage(files, [batch()])

    (checked,) = check(files, staged).files

    after = files.after_crash(CrashMode.LOSE_UNSYNCED)
    for suffix in (".log", ".index", ".timeindex"):
        assert after.contents(checked.beside(suffix)) == files.contents(checked.beside(suffix))


def test_little_that_is_staged_is_to_be_appended_and_gets_no_indexes() -> None:
    files = new_disk()
    staged = stage(files, [batch()])

    checked = check(files, staged, append_max_bytes=1_000)

    assert not checked.is_adopted
    assert not files.exists(checked.files[0].beside(".index"))
    assert check(files, staged, append_max_bytes=checked.size_bytes).is_adopted


# --- bytes that are wrong ---------------------------------------------------------------------

CONTENT = stamped([batch(2), batch(3, codec=Codec.GZIP)])


@pytest.mark.parametrize("position", range(len(CONTENT)))
def test_a_bit_that_flipped_is_found_wherever_it_counts(position: int) -> None:
    files = new_disk()
    staged = put_staged(files, CONTENT)
    expected = check(files, [staged])
    starts = [each.position for each in read_headers(CONTENT)]
    # No CRC covers a batch's offset and leader epoch, and the log gives its own.
    is_given = any(0 <= position - start < 8 or 12 <= position - start < 16 for start in starts)

    for bit in range(8):
        flipped = bytearray(CONTENT)
        flipped[position] ^= 1 << bit
        files.put(staged_path(staged.name), bytes(flipped))
        try:
            assert check(files, [staged]) == expected
        except StagedFileError:
            assert not is_given or (position in starts and bit == 7)  # below 0 is no offset
        else:
            assert is_given


@pytest.mark.parametrize("size", range(len(CONTENT)))
def test_a_file_that_was_cut_is_refused_whatever_the_manifest_says(size: int) -> None:
    files = new_disk()
    whole = put_staged(files, CONTENT)
    files.put(staged_path(whole.name), CONTENT[:size])

    with pytest.raises(StagedFileError, match=f"it has {size} bytes"):
        check(files, [whole])
    with pytest.raises(StagedFileError):
        check(files, [changed(whole, size_bytes=size)])


@pytest.mark.parametrize("more", [b"\0", bytes(61), b"x" * 200, CONTENT])
def test_a_file_that_has_grown_is_refused(more: bytes) -> None:
    files = new_disk()
    staged = put_staged(files, CONTENT)
    files.put(staged_path(staged.name), CONTENT + more)

    with pytest.raises(StagedFileError, match="and the manifest says"):
        check(files, [staged])
    with pytest.raises(StagedFileError):
        check(files, [changed(staged, size_bytes=len(CONTENT + more))])


def test_counts_and_digest_are_compared() -> None:
    assert "2 records, and the manifest says 3" in refused(batch(2), at=-1, record_count=3)
    assert "the manifest says 00000000" in refused(batch(2), at=-1, digest="00000000")


def test_a_file_without_bytes_is_refused() -> None:
    files = new_disk()
    staged = put_staged(files, b"")

    with pytest.raises(StagedFileError, match="its size is 0"):
        check(files, [staged])


def test_batches_in_another_order_are_another_file() -> None:
    files = new_disk()
    staged = stage(files, [batch(1), batch(2)])[0]
    files.put(staged_path(staged.name), stamped([batch(2), batch(1)]))

    with pytest.raises(StagedFileError, match="digest"):
        check(files, [staged])


def test_a_file_that_is_cut_while_it_is_read_is_refused() -> None:
    files = new_disk()
    staged = stage(files, [batch(value_bytes=900)] * 3_000, segment_bytes=1 << 30)
    opened = files.open(staged_path(staged[0].name))

    with pytest.raises(StagedFileError, match="it was cut while it was read"):
        check_partition(
            files,
            DIRECTORY,
            part_of(staged),
            topic(),
            staging_id=STAGING_ID,
            now_ms=NOW_MS,
            append_max_bytes=0,
            progress=lambda _bytes: opened.truncate(1_000) is not None,
        )


# --- batches that nobody may stage ------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"control": True}, "a control batch"),
        ({"transactional": True, "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}, "7"),
        ({"transactional": True}, "what is loaded has no producer"),
        ({"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}, "of producer 7"),
        ({"timestamp_type": TimestampType.LOG_APPEND_TIME}, "more than a compression codec"),
        ({"delete_horizon_ms": 5}, "more than a compression codec"),
        ({"last_offset_delta": 5}, "for 2 records"),
    ],
)
def test_a_batch_that_a_load_cannot_have_is_refused(options: dict[str, Any], reason: str) -> None:
    good = batch()
    assert reason in refused(stamped([good]) + batch(2, **options), at=len(good))


def test_a_batch_without_records_is_refused() -> None:
    assert refused(build_batch([])) == "a batch without records"


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_refused(magic: int) -> None:
    content = legacy_message_set([(b"k", b"v", NOW_MS)], magic=magic)
    assert f"magic {magic}" in refused(content)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("deltas", [(1, 2, 3), (0, 2, 1), (0, 0, 2), (0, 1, 3)])
def test_records_that_do_not_count_from_0_are_refused(
    codec: Codec, deltas: tuple[int, ...]
) -> None:
    rows = [Record(b"k", b"v", (), NOW_MS)] * 3
    assert refused(build_batch(rows, codec=codec, offset_deltas=deltas, last_offset_delta=2))


def test_contents_that_contradict_a_right_crc_are_refused() -> None:
    from stratalog.records._kernels import seal_batch

    fields = {"base_offset": 0, "last_offset_delta": 0, "record_count": 1, "attributes": 2}
    times = {"base_timestamp_ms": NOW_MS, "max_timestamp_ms": NOW_MS}
    producer = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    for codec_id, body in ((0, b"\x05abc"), (2, b"no snappy"), (5, b"x"), (7, b"x")):
        made = seal_batch(
            body,
            **{**fields, **times, **producer, "attributes": codec_id},
            partition_leader_epoch=-1,
        )
        assert refused(bytes(made))


# --- the topic's rules ------------------------------------------------------------------------


def test_a_batch_over_max_message_bytes_is_refused_and_one_of_that_size_is_not() -> None:
    large = batch(value_bytes=500)
    assert "max.message.bytes" in refused(large, topic(max_message_bytes=len(large) - 1))

    files = new_disk()
    check(files, stage(files, [large]), topic(max_message_bytes=len(large)))


def test_a_batch_over_segment_bytes_is_refused() -> None:
    large = batch(value_bytes=500)
    assert refused(large, topic(internal_segment_bytes=len(large) - 1))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_compacted_topic_takes_no_record_without_a_key(codec: Codec) -> None:
    rows = [Record(b"k", b"v", (), NOW_MS), Record(None, b"v", (), NOW_MS)]
    content = stamped([batch(), build_batch(rows, codec=codec)])

    reason = refused(content, topic(cleanup_policy=["compact"]), at=len(batch()))

    assert "record 1: a compacted topic takes no record without a key" in reason
    files = new_disk()
    check(files, [put_staged(files, content)])


@pytest.mark.parametrize(
    ("ahead_ms", "is_taken"), [(-10, True), (10, True), (-11, False), (11, False)]
)
def test_timestamps_are_as_near_to_now_as_the_topic_says(ahead_ms: int, is_taken: bool) -> None:
    config = topic(message_timestamp_before_max_ms=10, message_timestamp_after_max_ms=10)
    content = batch(at_ms=NOW_MS + ahead_ms)
    if is_taken:
        files = new_disk()
        check(files, [put_staged(files, content)], config)
    else:
        assert "record 0: timestamp" in refused(content, config)


# --- what a leader would change ---------------------------------------------------------------


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_topic_of_log_append_time_gets_the_time_of_the_commit(codec: Codec) -> None:
    files = new_disk()
    staged = stage(files, [batch(2, at_ms=5, codec=codec), batch(1, at_ms=9, codec=codec)])
    before = files.contents(staged_path(staged[0].name))

    config = topic(message_timestamp_type="LogAppendTime", message_timestamp_before_max_ms=1)
    (checked,) = check(files, staged, config).files

    assert checked.name == "merged.00000.log"
    headers = read_headers(files.contents(checked.path))
    assert [each.is_log_append_time for each in headers] == [True, True]
    assert [each.max_timestamp_ms for each in headers] == [NOW_MS, NOW_MS]
    assert [each.base_offset for each in headers] == [0, 2]
    assert checked.max_timestamp_ms == NOW_MS
    assert files.contents(staged_path(staged[0].name)) == before, "it can be checked again"


def test_a_topic_with_a_codec_of_its_own_gets_every_batch_in_it() -> None:
    files = new_disk()
    given_codecs = [Codec.LZ4, Codec.LZ4, Codec.NONE, Codec.ZSTD]
    staged = stage(files, [batch(3, value_bytes=300, codec=codec) for codec in given_codecs])

    (checked,) = check(files, staged, topic(compression_type="lz4")).files

    headers = read_headers(files.contents(checked.path))
    assert {each.codec_id for each in headers} == {Codec.LZ4}
    assert [each.base_offset for each in headers] == [0, 3, 6, 9]
    assert list(checked.positions) == [each.position for each in headers]
    assert checked.size_bytes == len(files.contents(checked.path))


def test_a_file_in_the_codec_of_its_topic_is_taken_as_it_is() -> None:
    files = new_disk()
    staged = stage(files, [batch(3, codec=Codec.LZ4)])

    assert check(files, staged, topic(compression_type="lz4")).files[0].name == staged[0].name
