"""What an interrupted swap or delete leaves, finished or undone."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import DIRECTORY, log_file, new_disk, produced

from stratalog.storage.sweep import sweep
from stratalog.testing import CrashMode, PowerLoss, SimulatedFileSystem

KINDS = (".log", ".index", ".timeindex", ".txnindex")


@dataclass(frozen=True)
class Swap:
    """Old segments, and the new ones that take their place: base offsets, and where each ends."""

    old: tuple[tuple[int, int], ...]
    new: tuple[tuple[int, int], ...]


ONE_FOR_ONE = Swap(old=((0, 10),), new=((0, 10),))
THREE_TO_ONE = Swap(old=((10, 20), (20, 30), (30, 40)), new=((10, 40),))
SPLIT = Swap(old=((10, 40),), new=((10, 20), (20, 30), (30, 40)))
UNTOUCHED = ((0, 10), (40, 50))  # segments on both sides that a swap must leave alone


def batch(base_offset: int, end_offset: int, text: str) -> bytes:
    return produced(text, count=end_offset - base_offset, base_offset=base_offset)


def put_segment(files: SimulatedFileSystem, span: tuple[int, int], text: str, suffix: str) -> None:
    for kind in KINDS:
        content = batch(*span, text) if kind == ".log" else f"{text}{kind}".encode()
        files.put(log_file(span[0], kind + suffix), content)


def before(swap: Swap) -> SimulatedFileSystem:
    """The old segments, their neighbours, and files that are nobody's business."""
    files = new_disk()
    for span in (*swap.old, *(UNTOUCHED if swap is not ONE_FOR_ONE else ())):
        put_segment(files, span, "old", "")
    files.put(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n0\n")
    files.put(f"{DIRECTORY}/partition.metadata", b"version: 0\n")
    return files


def steps(files: SimulatedFileSystem, swap: Swap) -> None:
    """The cleaner's order: 8.9."""
    for span in swap.new:
        put_segment(files, span, "new", ".cleaned")
    for base, _ in reversed(swap.new):
        rename(files, base, ".cleaned", ".swap")
    for base, _ in swap.old:
        rename(files, base, "", ".deleted")
    for base, _ in swap.new:
        rename(files, base, ".swap", "")
    for base, _ in swap.old:
        for kind in KINDS:
            files.unlink(log_file(base, kind + ".deleted"))


def rename(files: SimulatedFileSystem, base: int, source: str, target: str) -> None:
    for kind in KINDS:
        files.rename(log_file(base, kind + source), log_file(base, kind + target))


def logs(files: SimulatedFileSystem) -> dict[str, bytes]:
    return {name: data for name, data in files.tree(DIRECTORY).items() if name.endswith(".log")}


def interrupted(swap: Swap, number: int) -> SimulatedFileSystem:
    files = before(swap)
    files.crash_at(files.operations + number)
    with pytest.raises(PowerLoss):
        steps(files, swap)
    return files.after_crash(CrashMode.KEEP_ALL)


def operations(swap: Swap) -> int:
    files = before(swap)
    start = files.operations
    steps(files, swap)
    return files.operations - start


SWAPS = pytest.mark.parametrize("swap", [ONE_FOR_ONE, THREE_TO_ONE, SPLIT])


@SWAPS
def test_after_a_crash_at_any_step_of_a_swap_the_log_is_all_old_or_all_new(swap: Swap) -> None:
    finished = before(swap)
    steps(finished, swap)
    old, new = logs(before(swap)), logs(finished)
    outcomes = []
    for number in range(1, operations(swap) + 1):
        files = interrupted(swap, number)
        sweep(files, DIRECTORY)
        assert logs(files) in (old, new)
        outcomes.append(logs(files) == new)
    assert outcomes == sorted(outcomes), "once the new segments stand, they stand"
    assert {True, False} == set(outcomes)


@SWAPS
def test_nothing_is_left_over_after_a_sweep(swap: Swap) -> None:
    for number in range(1, operations(swap) + 1):
        files = interrupted(swap, number)
        sweep(files, DIRECTORY)
        names = files.tree(DIRECTORY)
        assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
        assert {"leader-epoch-checkpoint", "partition.metadata"} <= set(names)


@SWAPS
@pytest.mark.parametrize("mode", [CrashMode.KEEP_ALL, CrashMode.LOST_ENTRY])
def test_a_sweep_that_is_itself_interrupted_ends_the_same_way(swap: Swap, mode: CrashMode) -> None:
    for number in range(1, operations(swap) + 1):
        whole = interrupted(swap, number)
        sweep(whole, DIRECTORY)
        for crash in range(1, whole.operations + 1):
            files = interrupted(swap, number)
            files.crash_at(crash)
            with pytest.raises(PowerLoss):
                sweep(files, DIRECTORY)
            files = files.after_crash(mode, crash)
            sweep(files, DIRECTORY)
            assert logs(files) == logs(whole)
            if mode is CrashMode.KEEP_ALL:
                assert files.tree(DIRECTORY) == whole.tree(DIRECTORY), "with the new indexes"


@given(
    st.dictionaries(
        st.tuples(st.sampled_from([0, 10, 20, 30]), st.sampled_from([*KINDS, ".snapshot"])),
        st.sets(st.sampled_from(["", ".cleaned", ".swap", ".deleted"]), min_size=1),
    )
)
def test_every_mixture_of_left_overs_is_swept_and_a_second_sweep_changes_nothing(
    found: dict[tuple[int, str], set[str]],
) -> None:
    files = new_disk()
    for (base, kind), suffixes in found.items():
        for suffix in suffixes:
            files.put(log_file(base, kind + suffix), batch(base, base + 10, suffix))
    sweep(files, DIRECTORY)
    swept = files.tree(DIRECTORY)
    assert not [name for name in swept if name.endswith((".cleaned", ".swap", ".deleted"))]
    sweep(files, DIRECTORY)
    assert files.tree(DIRECTORY) == swept


# --- row by row -----------------------------------------------------------------------------------


def swept(**names: bytes) -> dict[str, bytes]:
    """The directory after a sweep; ``log_10_swap`` stands for ``…10.log.swap``."""
    files = new_disk()
    for name, content in names.items():
        kind, base, *state = name.split("_")
        files.put(log_file(int(base), "".join(f".{part}" for part in (kind, *state))), content)
    sweep(files, DIRECTORY)
    left = files.tree(DIRECTORY).items()
    return {f"{int(name[:20])}{name[20:]}": data for name, data in left}


def test_deleted_files_go() -> None:
    assert swept(log_0_deleted=b"", snapshot_5_deleted=b"", log_0=b"x") == {"0.log": b"x"}


def test_cleaned_files_go_and_the_old_ones_stay() -> None:
    assert swept(log_0=b"old", log_0_cleaned=b"new", index_0_cleaned=b"") == {"0.log": b"old"}


def test_swap_files_from_the_smallest_cleaned_offset_on_are_an_incomplete_set_and_go() -> None:
    left = swept(
        log_0_swap=batch(0, 10, "complete"),
        log_10_cleaned=b"",
        log_10_swap=batch(10, 20, "incomplete"),
        index_20_swap=b"incomplete",
        log_10=b"old",
    )
    assert left == {"0.log": batch(0, 10, "complete"), "10.log": b"old"}


def test_plain_files_in_the_range_of_the_swapped_logs_go_whatever_their_kind() -> None:
    left = swept(
        log_10_swap=batch(10, 40, "new"),
        log_10=b"old",
        log_20=b"old",
        index_20=b"old",
        snapshot_39=b"old",
        log_0=b"before",
        snapshot_9=b"before",
        log_40=b"behind",
        snapshot_40=b"behind",
    )
    assert left == {
        "10.log": batch(10, 40, "new"),
        "0.log": b"before",
        "9.snapshot": b"before",
        "40.log": b"behind",
        "40.snapshot": b"behind",
    }


def test_only_logs_define_that_range() -> None:
    left = swept(index_10_swap=b"new", timeindex_30_swap=b"new", log_10=b"old", index_10=b"old")
    assert left == {"10.index": b"new", "30.timeindex": b"new", "10.log": b"old"}


def test_the_range_ends_behind_the_last_batch_of_the_last_swapped_log() -> None:
    two = batch(10, 15, "a") + batch(15, 25, "b")
    left = swept(log_10_swap=two, log_24=b"old", log_25=b"behind")
    assert left == {"10.log": two, "25.log": b"behind"}


def test_a_swapped_log_larger_than_one_read_is_walked_to_its_end() -> None:
    large = b"".join(
        produced("x" * 400_000, count=1, base_offset=offset) for offset in range(10, 16)
    )
    huge = produced("x" * 3_000_000, count=1, base_offset=16)
    left = swept(log_10_swap=large + huge, log_16=b"old", log_17=b"behind")
    assert set(left) == {"10.log", "17.log"}


def test_every_swap_file_takes_its_plain_name() -> None:
    left = swept(
        log_10_swap=batch(10, 20, "new"), index_10_swap=b"i", timeindex_10_swap=b"t", log_30=b"x"
    )
    assert left == {
        "10.log": batch(10, 20, "new"),
        "10.index": b"i",
        "10.timeindex": b"t",
        "30.log": b"x",
    }


def test_the_order_is_deleted_then_swap_then_cleaned_then_range_then_renames() -> None:
    files = new_disk()
    put_segment(files, (0, 10), "new", ".swap")
    put_segment(files, (0, 5), "old", "")
    put_segment(files, (20, 30), "new", ".swap")
    put_segment(files, (20, 30), "new", ".cleaned")
    put_segment(files, (30, 40), "old", ".deleted")
    start = len(files.trace)
    sweep(files, DIRECTORY)
    order = [(each.kind, each.path.rpartition(".")[2]) for each in files.trace[start:]]
    plain = [(kind, "plain" if f".{suffix}" in KINDS else suffix) for kind, suffix in order]
    assert list(dict.fromkeys(plain)) == [
        ("unlink", "deleted"),
        ("unlink", "swap"),
        ("unlink", "cleaned"),
        ("unlink", "plain"),
        ("rename", "swap"),
    ]


def test_a_sweep_of_a_tidy_directory_touches_nothing() -> None:
    files = before(THREE_TO_ONE)
    start = files.operations
    sweep(files, DIRECTORY)
    assert files.operations == start
