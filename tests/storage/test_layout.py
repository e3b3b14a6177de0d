"""Names of files and directories."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import TopicNameError
from stratalog.storage.layout import (
    ReplicaDirectoryName,
    SegmentFileName,
    TopicPartition,
    base_offset_of,
    parse_replica_directory,
    parse_segment_file,
    replica_directory,
    segment_file,
    suffixed_directory,
    validate_topic_name,
)

OFFSETS = st.integers(0, 2**63 - 1)
KINDS = st.sampled_from([".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
STATES = st.sampled_from(["", ".deleted", ".cleaned", ".swap"])
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(
    lambda name: name not in (".", "..")
)
TOPIC_PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))

# --- files of a replica ---------------------------------------------------------------------------


@given(OFFSETS, KINDS, STATES)
def test_a_segment_files_name_is_parsed_into_what_it_was_built_from(
    offset: int, kind: str, state: str
) -> None:
    name = segment_file("d", offset, kind + state).removeprefix("d/")
    assert parse_segment_file(name) == SegmentFileName(offset, kind, state)
    assert base_offset_of("/data/t-0/" + name) == offset


def test_a_base_offset_is_printed_with_twenty_digits() -> None:
    assert segment_file("/d/t-0", 42, ".log") == "/d/t-0/00000000000000000042.log"
    assert segment_file("t-0", 2**63 - 1, ".index") == "t-0/09223372036854775807.index"


def test_a_suffix_comes_after_the_whole_name() -> None:
    assert segment_file("t", 0, ".log.deleted") == "t/00000000000000000000.log.deleted"
    parsed = parse_segment_file("00000000000000000007.timeindex.cleaned")
    assert parsed == SegmentFileName(7, ".timeindex", ".cleaned")


@pytest.mark.parametrize(
    "name",
    [
        "leader-epoch-checkpoint",
        "partition.metadata",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000000.checkpoint",
        "00000000000000000000",
        "00000000000000000000.log.tmp",
        "00000000000000000000.log.deleted.swap",
        "00000000000000000000.log\n",
        "0.log",
        "x00000000000000000000.log",
        "-0000000000000000001.log",
    ],
)
def test_any_other_file_name_is_no_segment_file(name: str) -> None:
    assert parse_segment_file(name) is None
    assert base_offset_of(name) == -1


@pytest.mark.parametrize("number", ["99999999999999999999", "9" * 40, "٠" * 20])
def test_a_number_that_no_offset_can_be_makes_no_segment_file(number: str) -> None:
    assert parse_segment_file(number + ".log") is None


# --- directories of replicas ----------------------------------------------------------------------


@given(TOPIC_PARTITIONS)
def test_a_replicas_directory_is_topic_dash_partition(key: TopicPartition) -> None:
    name = replica_directory(key)
    assert name == f"{key.topic}-{key.partition}"
    if not name.endswith(("-delete", "-future", "-stray")):
        assert parse_replica_directory(name) == ReplicaDirectoryName(key, "")


@given(TOPIC_PARTITIONS, st.sampled_from(["-delete", "-future", "-stray"]))
def test_a_suffixed_name_has_the_topic_the_partition_and_a_unique_id(
    key: TopicPartition, state: str
) -> None:
    name = suffixed_directory(key, state)
    assert re.fullmatch(rf".*-{key.partition}\.[0-9a-f]{{32}}{state}", name)
    assert name != suffixed_directory(key, state)
    parsed = parse_replica_directory(name)
    assert parsed.state == state
    assert parsed.topic_partition.partition == key.partition
    assert key.topic.startswith(parsed.topic_partition.topic)


@pytest.mark.parametrize("state", ["-delete", "-stray"])
def test_a_long_topic_is_cut_so_that_the_whole_name_fits_a_file_name(state: str) -> None:
    name = suffixed_directory(TopicPartition("t" * 249, 12345), state)
    assert len(name) == 255
    assert parse_replica_directory(name).topic_partition.partition == 12345
    short = suffixed_directory(TopicPartition("orders", 3), state)
    assert parse_replica_directory(short).topic_partition == TopicPartition("orders", 3)


def test_a_future_directorys_name_is_never_cut() -> None:
    name = suffixed_directory(TopicPartition("t" * 249, 0), "-future")
    assert len(name) > 255
    assert parse_replica_directory(name).topic_partition == TopicPartition("t" * 249, 0)


def test_the_last_dash_parts_topic_and_partition() -> None:
    parsed = parse_replica_directory("a-b--7")
    assert parsed.topic_partition == TopicPartition("a-b-", 7)


def test_the_part_before_the_last_dot_of_a_suffixed_name_is_topic_and_partition() -> None:
    parsed = parse_replica_directory("a.b-c-7.0123-delete")
    assert parsed == ReplicaDirectoryName(TopicPartition("a.b-c", 7), "-delete")


@pytest.mark.parametrize(
    "name",
    [
        "orders",
        "-0",
        "orders-",
        "orders-x",
        "orders-1.5",
        "orders-٣",
        "orders-2147483648",
        "orders-0-delete",
        "orders.id-delete",
        "-0.id-delete",
        "orders-.id-stray",
        "or ders-0.id-future",
        "lost+found",
        ".stratalog",
    ],
)
def test_a_directory_that_is_not_called_like_a_replica_is_refused_by_name(name: str) -> None:
    with pytest.raises(TopicNameError) as raised:
        parse_replica_directory(name)
    assert name in str(raised.value) or repr(name) in str(raised.value)


# --- topics ---------------------------------------------------------------------------------------


@given(TOPICS)
def test_letters_digits_dot_underscore_and_dash_make_a_topic_name(name: str) -> None:
    assert validate_topic_name(name) == name


@given(st.text(min_size=1, max_size=20).filter(lambda t: not re.fullmatch(r"[a-zA-Z0-9._-]+", t)))
def test_any_other_character_is_refused(name: str) -> None:
    with pytest.raises(TopicNameError, match="letters, digits"):
        validate_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "t" * 250])
def test_empty_dot_dotdot_and_overlong_topic_names_are_refused(name: str) -> None:
    with pytest.raises(TopicNameError):
        validate_topic_name(name)


def test_a_topic_name_of_249_characters_is_the_longest() -> None:
    assert validate_topic_name("t" * 249)
