"""The small text files."""

import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CorruptFileError
from stratalog.storage.checkpoint import (
    EpochEntry,
    format_id,
    parse_id,
    read_epochs,
    read_offsets,
    read_topic_id,
    write_epochs,
    write_offsets,
    write_topic_id,
)
from stratalog.storage.layout import TopicPartition
from stratalog.testing import CrashMode, PowerLoss, SimulatedFileSystem

PATH = "/checkpoint"
KEYS = st.builds(
    TopicPartition,
    st.from_regex(r"[a-zA-Z0-9._-]{1,30}", fullmatch=True),
    st.integers(0, 2**31 - 1),
)
LONGS = st.integers(0, 2**63 - 1)
IDS = st.uuids().filter(lambda each: each.int != 0)


def disk(content: bytes | None = None) -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    if content is not None:
        files.put(PATH, content)
    return files


# --- offsets and epochs ---------------------------------------------------------------------------


@given(st.dictionaries(KEYS, LONGS, max_size=20))
def test_offsets_are_read_back_as_they_were_written(offsets: dict[TopicPartition, int]) -> None:
    files = disk()
    write_offsets(files, PATH, offsets)
    assert read_offsets(files, PATH) == offsets


@given(st.lists(st.builds(EpochEntry, st.integers(0, 2**31 - 1), LONGS), max_size=20))
def test_epochs_are_read_back_as_they_were_written(entries: list[EpochEntry]) -> None:
    files = disk()
    write_epochs(files, PATH, entries)
    assert read_epochs(files, PATH) == entries


def test_a_checkpoint_is_a_version_a_count_and_a_line_for_each_entry() -> None:
    files = disk()
    offsets = {TopicPartition("topicA", 0): 1234, TopicPartition("topicB", 3): 99}
    write_offsets(files, PATH, offsets)
    assert files.contents(PATH) == b"0\n2\ntopicA 0 1234\ntopicB 3 99\n"
    write_epochs(files, PATH, [EpochEntry(0, 0), EpochEntry(7, 1234)])
    assert files.contents(PATH) == b"0\n2\n0 0\n7 1234\n"
    write_epochs(files, PATH, [])
    assert files.contents(PATH) == b"0\n0\n"


@pytest.mark.parametrize("content", [None, b"", b"0\n", b"0", b"0\n0\n"])
def test_a_missing_or_empty_file_or_only_a_version_holds_no_entries(content: bytes | None) -> None:
    assert read_offsets(disk(content), PATH) == {}
    assert read_epochs(disk(content), PATH) == []


def test_entries_are_split_at_runs_of_blanks() -> None:
    files = disk(b"0\n1\n  topicA \t 0   1234 \n")
    assert read_offsets(files, PATH) == {TopicPartition("topicA", 0): 1234}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"1\n0\n", id="another version"),
        pytest.param(b"-1\n0\n", id="negative version"),
        pytest.param(b" 0\n0\n", id="blank before the version"),
        pytest.param(b"0 \n0\n", id="blank behind the version"),
        pytest.param(b"0\n 1\na 0 1\n", id="blank before the count"),
        pytest.param(b"0\n1 \na 0 1\n", id="blank behind the count"),
        pytest.param(b"zero\n0\n", id="version no number"),
        pytest.param(b"0\nmany\na 0 1\n", id="count no number"),
        pytest.param(b"0\n2\na 0 1\n", id="fewer entries than announced"),
        pytest.param(b"0\n0\na 0 1\n", id="more entries than announced"),
        pytest.param(b"0\n-1\n", id="negative count"),
        pytest.param(b"0\n1\na 0\n", id="too few fields"),
        pytest.param(b"0\n1\na 0 1 2\n", id="too many fields"),
        pytest.param(b"0\n1\n\n", id="empty line"),
        pytest.param(b"0\n1\na x 1\n", id="partition no number"),
        pytest.param(b"0\n1\na 0 x\n", id="offset no number"),
        pytest.param(b"0\n1\na 0 9223372036854775808\n", id="offset beyond 8 bytes"),
        pytest.param(b"0\n1\n\xff\xfe 0 1\n", id="not UTF-8"),
    ],
)
def test_a_checkpoint_that_breaks_its_format_is_an_error_that_names_the_file(
    content: bytes,
) -> None:
    with pytest.raises(CorruptFileError, match=PATH):
        read_offsets(disk(content), PATH)


@given(st.binary(max_size=60))
def test_whatever_the_bytes_are_they_are_entries_or_a_corrupt_file(content: bytes) -> None:
    for read in (read_offsets, read_epochs, read_topic_id):
        with suppress(CorruptFileError):
            read(disk(content), PATH)


# --- replacing ------------------------------------------------------------------------------------

WRITERS: list[Callable[[SimulatedFileSystem], None]] = [
    lambda files: write_offsets(files, PATH, {TopicPartition("new", 0): 1}),
    lambda files: write_epochs(files, PATH, [EpochEntry(1, 1)]),
    lambda files: write_topic_id(files, PATH, uuid.UUID(int=5)),
]


@pytest.mark.parametrize("write", WRITERS)
def test_a_small_file_is_written_aside_synced_renamed_and_its_directory_synced(
    write: Callable[[SimulatedFileSystem], None],
) -> None:
    files = disk(b"old")
    write(files)
    steps = [(each.kind, each.path, each.detail[:1]) for each in files.trace]
    assert [step[:2] for step in steps] == [
        ("create", PATH + ".tmp"),
        ("write", PATH + ".tmp"),
        ("sync", PATH + ".tmp"),
        ("rename", PATH + ".tmp"),
        ("sync_directory", "/"),
    ]
    assert steps[3][2] == (PATH,)
    assert files.is_synced(PATH)


@pytest.mark.parametrize("write", WRITERS)
def test_a_left_over_temporary_file_is_written_from_empty(
    write: Callable[[SimulatedFileSystem], None],
) -> None:
    files, expected = disk(), disk()
    files.put(PATH + ".tmp", b"x" * 1000)
    write(files)
    write(expected)
    assert files.tree() == expected.tree()


@pytest.mark.parametrize("mode", CrashMode)
@pytest.mark.parametrize("write", WRITERS)
def test_after_a_crash_a_small_file_holds_the_old_content_or_the_new(
    write: Callable[[SimulatedFileSystem], None], mode: CrashMode
) -> None:
    done = disk(b"old")
    write(done)
    new = done.contents(PATH)
    for number in range(1, done.operations + 1):
        for inside in (False, True):
            files = disk(b"old")
            files.crash_at(number, inside=inside)
            with pytest.raises(PowerLoss):
                write(files)
            assert files.after_crash(mode, number).contents(PATH) in (b"old", new)
    assert done.after_crash(mode).contents(PATH) == new


# --- topic ids ------------------------------------------------------------------------------------


@given(st.uuids())
def test_an_id_is_22_characters_of_base64url_and_read_back(value: uuid.UUID) -> None:
    text = format_id(value)
    assert len(text) == 22
    assert not set(text) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert parse_id(text) == value


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 23, "A" * 21 + "!", "A" * 21 + "=", "é" * 22])
def test_any_other_text_is_no_id(text: str) -> None:
    with pytest.raises(ValueError):
        parse_id(text)


@given(IDS)
def test_a_topic_id_is_read_back_as_it_was_written(topic_id: uuid.UUID) -> None:
    files = disk()
    write_topic_id(files, PATH, topic_id)
    assert read_topic_id(files, PATH) == topic_id


def test_partition_metadata_is_two_lines_without_a_last_newline() -> None:
    files = disk()
    write_topic_id(files, PATH, uuid.UUID(bytes=bytes(range(16))))
    assert files.contents(PATH) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert len(files.contents(PATH)) == 43


def test_without_partition_metadata_there_is_no_topic_id() -> None:
    assert read_topic_id(disk(), PATH) is None


def test_any_version_from_zero_on_is_accepted() -> None:
    for version in (0, 1, 17):
        files = disk(b"version: %d\ntopic_id: AAECAwQFBgcICQoLDA0ODw" % version)
        assert read_topic_id(files, PATH) == uuid.UUID(bytes=bytes(range(16)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"topic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: -1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAECAwQF",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: \xff",
    ],
)
def test_partition_metadata_without_a_version_or_a_real_id_is_corrupt(content: bytes) -> None:
    with pytest.raises(CorruptFileError, match=PATH):
        read_topic_id(disk(content), PATH)
