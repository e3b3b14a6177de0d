"""One byte of a log directory is flipped, each in turn, before a clean or an unclean start.

Whatever it is, nothing but our own errors is raised, no flushed byte is deleted, and no wrong key
or value passes a consumer's CRC check. Indexes and snapshots are hints: flipping them changes no
answer at all. Kafka's formats leave some fields unprotected; which of them change an answer
without anybody noticing is written down here and in docs/concepts/bit-flips.md.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from flipping import Observation, observe, small_directory

from stratalog.records import read_header
from stratalog.testing import SimulatedFileSystem

RECOVERY_POINT = 7

BATCH_FIELDS = (
    (8, "base offset"),
    (12, "batch length"),
    (16, "partition leader epoch"),
    (17, "magic"),
    (21, "CRC"),
    (1 << 30, "under the CRC"),
)
TRANSACTION_FIELDS = (
    (2, "version"),
    (10, "producer id"),
    (18, "first offset"),
    (26, "last offset"),
    (34, "last stable offset"),
)

# What nobody notices: the file, the field, and what may be wrong then.
UNDETECTED = {
    (".log", "base offset"),
    (".log", "partition leader epoch"),
    (".txnindex", "first offset"),
    ("leader-epoch-checkpoint", ""),
    ("replication-offset-checkpoint", ""),
    ("partition.metadata", ""),
}
COVERED = {(".log", "under the CRC"), (".snapshot", ""), ("rolls", "")}
HINTS = (".index", ".timeindex", ".snapshot", "rolls", ".kafka_cleanshutdown")


def field_of(path: str, data: bytes, position: int) -> tuple[str, str]:
    name = path.rpartition("/")[2]
    kind = name[20:] if name[:20].isdigit() else name
    if kind == ".txnindex":
        return kind, next(field for end, field in TRANSACTION_FIELDS if position % 34 < end)
    if kind != ".log":
        return kind, ""
    start = 0
    while True:
        header = read_header(data, start)
        assert header is not None, "the files are whole before the flip"
        if position < start + header.size_bytes:
            return kind, next(field for end, field in BATCH_FIELDS if position - start < end)
        start += header.size_bytes


def flips(files: SimulatedFileSystem, *, masks: int) -> Iterator[tuple[str, int, int]]:
    """Each byte of each file, with ``masks`` of its eight bits.

    Of offset indexes always all, since few of their bits make an entry that looks right. With
    one mask, only every fourth of the bytes that a CRC covers or that nothing reads.
    """
    for path, data in files.tree().items():
        for position in range(len(data)):
            covered = field_of(path, data, position) in COVERED
            if masks == 1 and covered and position % 4:
                continue
            for bit in range(8 if path.endswith(".index") else masks):
                yield path, position, 1 << ((position + bit) % 8)


def check_flip(
    original: SimulatedFileSystem, truth: Observation, flip: tuple[str, int, int], *, clean: bool
) -> set[str]:
    """The answers that are wrong though nothing has been noticed."""
    path, position, mask = flip
    files = original.clone()
    files.flip(f"/{path}", position, mask)
    flipped = files.tree()
    seen = observe(files)  # anything but a StratalogError ends the test here
    check_nothing_deleted(flipped, files, clean=clean)
    wrong = {q for q, answer in seen.answers.items() if answer != truth.answers.get(q)}
    noticed = set(seen.errors) - set(truth.errors)
    noticed |= {q for q in wrong if seen.answers[q] == "consumer: corrupt"}
    if field_of(path, original.contents(f"/{path}"), position)[0] in HINTS:
        assert not wrong
        assert not noticed
    for question in wrong - noticed:
        if question.startswith("read "):
            check_records(seen.answers[question], truth)
    return set() if noticed else wrong


def check_nothing_deleted(
    before: dict[str, bytes], files: SimulatedFileSystem, *, clean: bool
) -> None:
    for path, data in before.items():
        if path.endswith(".log"):
            flushed = len(data)
            if not clean:
                flushed = flushed_bytes(path, small_directory(clean=False).contents(f"/{path}"))
            assert files.contents(f"/{path}")[:flushed] == data[:flushed], path


def flushed_bytes(path: str, data: bytes) -> int:
    position = 0
    while (header := read_header(data[position:])) is not None:
        if header.base_offset >= RECOVERY_POINT:
            break
        position += header.size_bytes
    return position


def check_records(answer: object, truth: Observation) -> None:
    """Keys and values that pass the CRC are those of some batch that was written."""
    if isinstance(answer, tuple):
        known = {each[2] for each in truth.answers.values() if isinstance(each, tuple) and each[2:]}
        known |= {first_batch_bytes()}
        assert answer[2] in known


def first_batch_bytes() -> bytes:
    """The batch below the log start, which nobody reads unless the start is lost."""
    data = small_directory(clean=True).contents("/data/t-0/00000000000000000000.log")
    header = read_header(data)
    assert header is not None
    return data[17 : header.size_bytes]


def run_flips(*, clean: bool, masks: int) -> dict[tuple[str, str], set[str]]:
    original = small_directory(clean=clean)
    truth = observe(original.clone())
    undetected: dict[tuple[str, str], set[str]] = defaultdict(set)
    for flip in flips(original, masks=masks):
        path, position, mask = flip
        try:
            wrong = check_flip(original, truth, flip, clean=clean)
        except Exception as error:
            error.add_note(f"{path}, byte {position}, mask {mask:#04x}, clean={clean}")
            raise
        if wrong:
            undetected[field_of(path, original.contents(f"/{path}"), position)] |= wrong
    return undetected


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
def test_a_flipped_byte_deletes_nothing_and_only_the_documented_ones_go_unnoticed(
    clean: bool,
) -> None:
    assert set(run_flips(clean=clean, masks=1)) <= UNDETECTED


@pytest.mark.deep
def test_the_documented_list_is_exactly_what_goes_unnoticed() -> None:
    found = run_flips(clean=True, masks=8).keys() | run_flips(clean=False, masks=8).keys()
    assert found == UNDETECTED


def test_the_documentation_lists_every_undetected_field() -> None:
    page = Path(__file__).parents[2] / "docs" / "concepts" / "bit-flips.md"
    text = page.read_text()
    rows = {
        (cells[0].strip().strip("`"), cells[1].strip())
        for line in text.splitlines()
        if line.startswith("| `") and (cells := line.strip("|").split("|"))[3].strip() == "nothing"
    }
    assert rows == UNDETECTED


def test_the_transaction_index_entry_has_the_fields_that_are_flipped() -> None:
    assert struct.calcsize(">hqqqq") == TRANSACTION_FIELDS[-1][0]
