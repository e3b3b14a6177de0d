"""Our own files inside a replica's directory."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.storage.damage import Damage
from stratalog.storage.ours import KnownDamage, OwnFiles
from stratalog.storage.rolling import RollCause, RollReason
from stratalog.testing import SimulatedFileSystem

DIRECTORY = "/t-0"


def disk() -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    files.make_directory(DIRECTORY)
    return files


@given(
    st.dictionaries(
        st.integers(0, 2**63 - 1), st.tuples(st.sampled_from(RollCause), st.text(max_size=20))
    )
)
def test_why_a_segment_was_begun_is_remembered(rolls: dict[int, tuple[RollCause, str]]) -> None:
    own = OwnFiles(disk(), DIRECTORY)
    for base_offset, (cause, explanation) in rolls.items():
        own.note_roll(base_offset, RollReason(cause, explanation), 5)
    assert own.rolls() == {base: RollReason(*why) for base, why in rolls.items()}


def test_everything_of_ours_lies_in_one_sub_directory() -> None:
    files = disk()
    own = OwnFiles(files, DIRECTORY)
    own.note_roll(1, RollReason(RollCause.SIZE, "full"), 5)
    own.note_damage(3, {0: [Damage(1, 2, 3, 4, "torn")]})
    assert sorted(files.tree()) == ["t-0/.stratalog/damage", "t-0/.stratalog/rolls"]


@given(st.binary(max_size=80))
def test_lines_about_rolls_that_cannot_be_read_are_passed_over(garbage: bytes) -> None:
    files = disk()
    own = OwnFiles(files, DIRECTORY)
    own.note_roll(1, RollReason(RollCause.SIZE, "full"), 5)
    line = files.contents(DIRECTORY + "/.stratalog/rolls")
    files.put(DIRECTORY + "/.stratalog/rolls", garbage + b"\n" + line)
    assert own.rolls()[1] == RollReason(RollCause.SIZE, "full")


def test_a_disk_that_refuses_the_explanation_does_not_refuse_the_roll() -> None:
    files = disk()
    files.fail(lambda operation: operation.kind != "read", errno.ENOSPC, times=10)
    OwnFiles(files, DIRECTORY).note_roll(1, RollReason(RollCause.SIZE, "full"), 5)
    files.heal()
    assert OwnFiles(files, DIRECTORY).rolls() == {}


def test_damage_is_remembered_durably_with_the_recovery_point_to_start_from() -> None:
    files = disk()
    OwnFiles(files, DIRECTORY).note_damage(17, {0: [Damage(10, 20, 3, 4, "torn")]})
    assert files.is_synced(DIRECTORY + "/.stratalog/damage")
    assert OwnFiles(files, DIRECTORY).known_damage() == KnownDamage(17, frozenset([0]))


def test_without_damage_there_is_no_such_recovery_point() -> None:
    own = OwnFiles(disk(), DIRECTORY)
    assert own.known_damage() is None
    own.note_damage(17, {})
    own.forget_damage()
    assert own.known_damage() is None


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b"\xff", b'{"recovery_point": "x"}', b"1"])
def test_a_garbled_note_of_damage_means_that_everything_is_read_again(content: bytes) -> None:
    files = disk()
    own = OwnFiles(files, DIRECTORY)
    own.note_damage(17, {})
    files.put(DIRECTORY + "/.stratalog/damage", content)
    assert own.known_damage() == KnownDamage(0, frozenset([0]))
