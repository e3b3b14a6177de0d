"""Records of ``__consumer_offsets``: Kafka's bytes, written and read."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.coordinator import log_records as codec
from stratalog.coordinator.log_records import CommittedOffset, StoredGroup, StoredMember
from stratalog.coordinator.record_schemas import GROUP_KEYS, GROUP_VALUES
from stratalog.errors import CorruptBatchError, RecordTooLargeError
from stratalog.records.messages import decode_message

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
IDS = st.binary(min_size=16, max_size=16)

OFFSETS = st.builds(
    CommittedOffset,
    offset=INT64,
    leader_epoch=INT32,
    metadata=st.just("") | TEXT,
    commit_timestamp_ms=INT64,
    expire_timestamp_ms=st.just(-1) | st.integers(0, 2**62),
    topic_id=st.just(bytes(16)) | IDS,
)
MEMBERS = st.builds(
    StoredMember,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout_ms=st.integers(0, 2**31 - 1),
    session_timeout_ms=INT32,
    subscription=st.binary(max_size=60),
    assignment=st.binary(max_size=60),
)
GROUPS = st.builds(
    StoredGroup,
    protocol_type=TEXT,
    generation_id=INT32,
    protocol_name=st.none() | TEXT,
    leader_id=st.none() | TEXT,
    state_timestamp_ms=INT64,
    members=st.lists(MEMBERS, max_size=4),
)


def by_schema(schemas: dict[int, Any], kind: int, data: bytes, version: int) -> dict[str, Any]:
    return decode_message(schemas[kind], data, 2, version)


def version_of(value: bytes) -> int:
    return int.from_bytes(value[:2], "big", signed=True)


def test_a_commit_has_the_bytes_that_kafka_4_3_1_writes() -> None:
    key = codec.offset_key("g1", "t", 3)
    committed = CommittedOffset(5, 0, "", 1_700_000_000_000, topic_id=bytes(range(16)))

    assert key.hex() == "00010002673100017400000003"
    assert codec.offset_value(committed).hex() == (
        "0004" "0000000000000005" "00000000" "01" "0000018bcfe56800"
        "01" "00" "10" "000102030405060708090a0b0c0d0e0f"
    )  # fmt: skip


def test_a_commit_with_a_retention_of_its_own_is_written_as_version_1() -> None:
    value = codec.offset_value(CommittedOffset(5, 7, "m", 1, 2))

    assert value.hex() == "0001000000000000000500016d00000000000000010000000000000002"


@given(group=TEXT, topic=TEXT, partition=INT32)
def test_keys_of_offsets_are_read_as_they_were_written(
    group: str, topic: str, partition: int
) -> None:
    key = codec.offset_key(group, topic, partition)

    assert codec.record_type(key) == 1
    assert codec.read_offset_key(key) == (group, topic, partition)
    assert by_schema(GROUP_KEYS, 1, key, 0) == {
        "group": group, "topic": topic, "partition": partition
    }  # fmt: skip


@given(OFFSETS)
def test_offsets_are_read_as_they_were_written(committed: CommittedOffset) -> None:
    found = codec.read_offset_value(codec.offset_value(committed))

    if committed.expire_timestamp_ms != -1:  # version 1 has neither epoch nor topic id
        committed = committed._replace(leader_epoch=-1, topic_id=bytes(16))
    assert found == committed


@given(OFFSETS)
def test_the_schema_reads_the_same_from_an_offset(committed: CommittedOffset) -> None:
    value = codec.offset_value(committed)

    fields = by_schema(GROUP_VALUES, 1, value, version_of(value))

    assert fields["offset"] == committed.offset
    assert fields["metadata"] == committed.metadata
    assert fields["commitTimestamp"] == committed.commit_timestamp_ms
    if version_of(value) == 4:
        topic_id = base64.urlsafe_b64encode(committed.topic_id).rstrip(b"=").decode()
        assert fields["leaderEpoch"] == committed.leader_epoch
        assert fields.get("topicId", "A" * 22) == topic_id
    else:
        assert fields["expireTimestamp"] == committed.expire_timestamp_ms


@given(GROUPS, TEXT)
def test_groups_are_read_as_they_were_written(group: StoredGroup, group_id: str) -> None:
    key, value = codec.group_key(group_id), codec.group_value(group)

    assert codec.record_type(key) == 2
    assert codec.read_group_key(key) == group_id
    assert version_of(value) == 3
    assert codec.read_group_value(value) == group


@pytest.mark.parametrize("text", ["x" * 32_767, "\u20ac" * 10_922])
def test_text_as_long_as_a_record_can_say_is_written(text: str) -> None:
    assert codec.read_group_key(codec.group_key(text)) == text
    with pytest.raises(RecordTooLargeError, match="over the limit of 32767"):
        codec.group_key(text + "\u20ac")
    with pytest.raises(RecordTooLargeError, match="over the limit of 32767"):
        codec.group_value(StoredGroup("", 1, text + "\u20ac", None, 1, []))


@pytest.mark.parametrize("metadata", ["", "x", "y" * 200, "ä" * 10_000])
def test_offsets_of_any_metadata_are_read(metadata: str) -> None:
    committed = CommittedOffset(5, 3, metadata, 1, topic_id=bytes(range(16)))

    assert codec.read_offset_value(codec.offset_value(committed)) == committed


@pytest.mark.parametrize(
    "value",
    [
        "0004 0000000000000005 00000009 00 0000000000000001 00",  # no metadata at all
        "0004 0000000000000005 00000009 ffffffffffff 0000000000000001 00",  # a varint of 6 bytes
    ],
)
def test_an_offset_that_contradicts_its_schema_is_corrupt(value: str) -> None:
    with pytest.raises(CorruptBatchError):
        codec.read_offset_value(bytes.fromhex(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000 0000000000000005 00016d 0000000000000001", CommittedOffset(5, -1, "m", 1)),
        ("0002 0000000000000005 00016d 0000000000000001", CommittedOffset(5, -1, "m", 1)),
        ("0003 0000000000000005 00000009 00016d 0000000000000001", CommittedOffset(5, 9, "m", 1)),
        # An unknown tag, before and without the one that is known.
        (
            "0004 0000000000000005 00000009 026d 0000000000000001 01 05 02 abcd",
            CommittedOffset(5, 9, "m", 1),
        ),
    ],
)
def test_every_version_of_an_offset_is_read(value: str, expected: CommittedOffset) -> None:
    assert codec.read_offset_value(bytes.fromhex(value)) == expected


def test_a_member_without_a_rebalance_timeout_has_its_session_timeout() -> None:
    value = bytes.fromhex(
        "0000" "0001 63" "00000001" "0001 70" "0001 6c" "00000001"
        "0001 6d" "0001 63" "0001 68" "00000bb8" "00000000" "00000000"
    )  # fmt: skip

    (member,) = codec.read_group_value(value).members

    assert member.rebalance_timeout_ms == member.session_timeout_ms == 3_000


@given(OFFSETS, GROUPS, st.data())
def test_what_is_cut_off_or_of_no_known_version_is_corrupt_and_nothing_worse(
    committed: CommittedOffset, group: StoredGroup, data: st.DataObject
) -> None:
    value = codec.offset_value(committed)
    stored = codec.group_value(group)
    short = value[: data.draw(st.integers(0, len(value) - 1))]
    short_group = stored[: data.draw(st.integers(0, len(stored) - 1))]

    with pytest.raises(CorruptBatchError):
        codec.read_group_value(short_group)
    with pytest.raises(CorruptBatchError):
        codec.read_offset_value(b"\x00\x05" + value[2:])
    with pytest.raises(CorruptBatchError):
        codec.read_offset_value(short)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    readers = (
        codec.record_type,
        codec.read_offset_key,
        codec.read_group_key,
        codec.read_offset_value,
        codec.read_group_value,
    )
    for read in readers:
        try:
            read(data)
        except CorruptBatchError:
            continue


@given(st.lists(st.tuples(st.binary(max_size=50), st.none() | st.binary(max_size=50)), max_size=40))
def test_chunks_hold_every_record_once_and_in_order(records: list[Any]) -> None:
    chunks = list(codec.chunks_of_records(records, 200))

    assert [record for chunk in chunks for record in chunk] == records
    assert all(chunks)
    assert all(len(chunk) == 1 or sum(32 for _ in chunk[:-1]) < 200 for chunk in chunks)
