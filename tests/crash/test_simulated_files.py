"""The simulated disk: with no crash it is the real file system, with one it keeps its promises."""

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stratalog.errors import DiskError, DiskFullError, LogDirectoryError
from stratalog.storage.files import FileSystem, OsFileSystem, read_file, replace_file
from stratalog.testing import CrashMode, ManualClock, PowerLoss, SimulatedFileSystem

FILE = "/d/f"

# --- the same operations, the same result as the real file system ----------------------------

NAMES = ("a", "b", "d", "d/a", "d/b", "e", "e/a", "d/e", "d/e/a")
names = st.sampled_from(NAMES)
positions = st.integers(0, 600)
payloads = st.binary(max_size=300)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), names, positions, st.lists(payloads, max_size=3)),
        st.tuples(st.just("truncate"), names, positions),
        st.tuples(st.just("read"), names, positions, st.integers(0, 700)),
        st.tuples(st.just("map"), names, st.integers(1, 300), payloads),
        st.tuples(st.just("read_only"), names),
        st.tuples(st.just("mkdir"), names),
        st.tuples(st.just("rmdir"), names),
        st.tuples(st.just("rename"), names, names),
        st.tuples(st.just("unlink"), names, st.booleans()),
        st.tuples(st.just("open_unlinked"), names),
        st.tuples(st.just("sync"), names),
        st.tuples(st.just("stat"), names),
    ),
    max_size=30,
)


def _write(files: FileSystem, path: str, position: int, buffers: list[bytes]) -> object:
    file = files.open(path, create=True)
    file.write_at(position, buffers)
    return file.size_bytes(), file.read_at(0, 2000)


def _truncate(files: FileSystem, path: str, size: int) -> object:
    file = files.open(path)
    file.truncate(size)
    return file.read_at(0, 2000)


def _read(files: FileSystem, path: str, position: int, size: int) -> object:
    file = files.open(path, writable=False)
    buffer = bytearray(size)
    count = file.read_into(position, buffer)
    assert file.read_at(position, size) == bytes(buffer[:count])
    return bytes(buffer), count


def _map(files: FileSystem, path: str, size: int, payload: bytes) -> object:
    file = files.open(path)
    size = min(size, file.size_bytes())
    if size == 0:
        return None
    view = memoryview(file.map(size))
    before = bytes(view)
    file.write_at(0, [payload[: file.size_bytes()]])
    return before, bytes(view)


def _read_only(files: FileSystem, path: str) -> object:
    file = files.open(path, writable=False)
    refusals = []
    for action in (lambda: file.write_at(0, [b"x"]), lambda: file.truncate(0)):
        with pytest.raises(DiskError) as refused:
            action()
        refusals.append(refused.value.errno)
    return refusals


def _open_unlinked(files: FileSystem, path: str) -> object:
    file = files.open(path)
    files.unlink(path)
    file.write_at(0, [b"still here"])
    return file.read_at(0, 2000), files.exists(path)


def _sync(files: FileSystem, path: str) -> object:
    files.open(path).sync()
    files.sync_directory(path.rpartition("/")[0])
    return None


def _stat(files: FileSystem, path: str) -> object:
    found = files.stat(path)
    if found is None or found.is_directory:
        return found is None, files.exists(path)
    files.set_modified(path, 12_345)
    return files.stat(path)


ACTIONS: dict[str, Callable[..., object]] = {
    "write": _write,
    "truncate": _truncate,
    "read": _read,
    "map": _map,
    "read_only": _read_only,
    "mkdir": lambda files, path: files.make_directory(path),
    "rmdir": lambda files, path: files.remove_directory(path),
    "rename": lambda files, source, target: files.rename(source, target),
    "unlink": lambda files, path, missing_ok: files.unlink(path, missing_ok=missing_ok),
    "open_unlinked": _open_unlinked,
    "sync": _sync,
    "stat": _stat,
}


def _outcome(files: FileSystem, root: str, step: tuple[object, ...]) -> object:
    action, *arguments = step
    placed = [f"{root}/{a}" if a in NAMES else a for a in arguments]
    try:
        return ACTIONS[str(action)](files, *placed)
    except DiskError as error:
        return type(error), error.operation, error.errno


def _visible(files: FileSystem, root: str, path: str = "") -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for entry in files.list(f"{root}/{path}"):
        inside = f"{path}/{entry.name}" if path else entry.name
        if entry.is_directory:
            found[inside] = None
            found.update(_visible(files, root, inside))
        else:
            found[inside] = read_file(files, f"{root}/{inside}")
            assert len(found[inside] or b"") == entry.size_bytes
    return found


@given(steps)
@example([("mkdir", "d"), ("rename", "d", "d/a"), ("rename", "d", "e"), ("rename", "e", "e")])
def test_without_a_crash_it_behaves_as_the_real_file_system(
    taken: list[tuple[object, ...]],
) -> None:
    simulated = SimulatedFileSystem()
    simulated.make_directory("/root")
    with tempfile.TemporaryDirectory() as real_root:
        for step in taken:
            if (
                step[0] in ("write", "read_only", "read", "sync", "truncate", "map")
                and (Path(real_root) / str(step[1])).is_dir()
            ):
                continue  # a descriptor of a directory is of no use to anybody
            expected = _outcome(OsFileSystem(), real_root, step)
            assert _outcome(simulated, "/root", step) == expected, step
        assert _visible(simulated, "/root") == _visible(OsFileSystem(), real_root)


# --- durability ------------------------------------------------------------------------------


def _disk(**options: object) -> SimulatedFileSystem:
    files = SimulatedFileSystem(**options)  # type: ignore[arg-type]
    files.make_directory("/d")
    files.sync_directory("/")
    return files


@given(st.sampled_from(CrashMode), st.integers(0, 1000), st.lists(payloads, min_size=1, max_size=6))
def test_what_was_synced_survives_every_crash(
    mode: CrashMode, seed: int, appended: list[bytes]
) -> None:
    files = _disk()
    file = files.open(FILE, create=True)
    for payload in appended[:-1]:
        file.write_at(file.size_bytes(), [payload])
    file.sync()
    files.sync_directory("/d")
    synced = file.read_at(0, 10_000)
    file.write_at(file.size_bytes(), [appended[-1]])
    assert files.after_crash(mode, seed).contents(FILE).startswith(synced)


@given(st.integers(0, 10_000), st.lists(st.tuples(positions, payloads), max_size=5))
def test_after_a_reordering_each_sector_is_as_it_once_was(
    seed: int, writes: list[tuple[int, bytes]]
) -> None:
    files = _disk()
    file = files.open(FILE, create=True)
    files.sync_directory("/d")
    moments = [b""]
    for position, payload in writes:
        file.write_at(position, [payload])
        moments.append(file.read_at(0, 10_000))
    survived = files.after_crash("reorder", seed).contents(FILE)
    assert len(survived) in {len(moment) for moment in moments}
    for start in range(0, len(survived), 512):
        sector = survived[start : start + 512]
        known = [moment[start : start + 512].ljust(512, b"\0") for moment in moments]
        assert any(once.startswith(sector) for once in known)


def test_a_kill_loses_nothing_and_power_loss_all_that_was_not_synced() -> None:
    files = _disk()
    file = files.open(FILE, create=True)
    file.write_at(0, [b"synced"])
    file.sync()
    files.sync_directory("/d")
    file.write_at(6, [b" not"])
    files.open("/d/new", create=True)
    assert files.after_crash("keep_all").tree() == {"d/f": b"synced not", "d/new": b""}
    assert files.after_crash("lose_unsynced").tree() == {"d/f": b"synced"}


def test_a_synced_file_is_lost_with_a_name_that_was_not() -> None:
    files = _disk()
    file = files.open(FILE, create=True)
    file.write_at(0, [b"bytes"])
    file.sync()
    assert files.after_crash("lose_unsynced").tree() == {}
    assert not files.is_synced(FILE)


def test_as_on_ext4_a_sync_may_persist_the_name_too() -> None:
    files = _disk(sync_persists_names=True)
    file = files.open(FILE, create=True)
    file.write_at(0, [b"bytes"])
    file.sync()
    assert files.after_crash("lose_unsynced").tree() == {"d/f": b"bytes"}
    assert files.is_synced(FILE)


def test_a_sync_of_the_file_system_saves_all_bytes_and_names_or_loses_them() -> None:
    for fails, left in ((False, {"d/f": b"bytes", "d/e/g": b""}), (True, {})):
        files = _disk()
        files.make_directory("/d/e")
        files.open("/d/e/g", create=True)
        files.open(FILE, create=True).write_at(0, [b"bytes"])
        if fails:
            files.fail(files.operations + 1)
            with pytest.raises(DiskError):
                files.sync_file_system("/d")
        files.sync_file_system("/d")
        assert files.after_crash("lose_unsynced").tree() == left


def test_an_unlinked_or_renamed_file_comes_back_until_its_directory_is_synced() -> None:
    files = _disk()
    files.put(FILE, b"old")
    files.put("/d/g", b"other")
    files.unlink(FILE)
    files.rename("/d/g", "/d/h")
    assert files.after_crash("lose_unsynced").tree() == {"d/f": b"old", "d/g": b"other"}
    files.sync_directory("/d")
    assert files.after_crash("lose_unsynced").tree() == {"d/h": b"other"}


def test_the_names_of_a_directory_persist_in_order() -> None:
    files = _disk()
    for name in "abc":
        files.open(f"/d/{name}", create=True)
    found = {tuple(files.after_crash("lost_entry", seed).tree()) for seed in range(40)}
    assert found == {(), ("d/a",), ("d/a", "d/b"), ("d/a", "d/b", "d/c")}


def test_a_torn_write_ends_anywhere_or_in_zeros() -> None:
    files = _disk()
    file = files.open(FILE, create=True)
    files.sync_directory("/d")
    file.write_at(0, [b"x" * 1500])
    found = {files.after_crash("torn", seed).contents(FILE) for seed in range(200)}
    assert {512, 1024} <= {len(data) for data in found}
    assert any(len(data) % 512 for data in found if len(data) < 1500)
    assert any(len(data) == 1500 and data.endswith(b"\0") for data in found)
    assert all(data.rstrip(b"\0") == b"x" * data.count(b"x") for data in found)


@given(st.sampled_from(CrashMode), st.integers(0, 200), st.integers(1, 8))
def test_an_atomic_replace_leaves_the_old_content_or_the_new(
    mode: CrashMode, seed: int, number: int
) -> None:
    files = _disk()
    files.put(FILE, b"old content")
    files.crash_at(files.operations + number, inside=bool(seed % 2))
    try:
        replace_file(files, FILE, b"new content, longer")
        expected = {b"new content, longer"}
    except PowerLoss:
        expected = {b"old content", b"new content, longer"}
    survived = files.after_crash(mode, seed)
    assert survived.contents(FILE) in expected
    assert set(survived.tree()) <= {"d/f", "d/f.tmp"}


def test_after_a_crash_nothing_is_locked_and_the_same_seed_gives_the_same_disk() -> None:
    files = _disk()
    files.lock("/d/.lock")
    with pytest.raises(LogDirectoryError):
        files.lock("/d/.lock")
    file = files.open(FILE, create=True)
    for position in range(0, 5000, 70):
        file.write_at(position, [b"y" * 100])
    assert files.after_crash("mixed", 7).tree() == files.after_crash("mixed", 7).tree()
    files.after_crash("keep_all").lock("/d/.lock").release()


# --- crashes and faults on demand ------------------------------------------------------------


def test_power_is_cut_before_or_inside_the_operation_and_stays_off() -> None:
    for inside, left in ((False, b""), (True, b"ab")):
        files = _disk()
        file = files.open(FILE, create=True)
        files.crash_at(files.operations + 1, inside=inside)
        with pytest.raises(PowerLoss):
            file.write_at(0, [b"ab", b"cd"])
        with pytest.raises(PowerLoss):
            file.sync()
        with pytest.raises(PowerLoss):
            file.read_at(0, 1)
        with pytest.raises(PowerLoss):
            files.list("/")
        assert files.after_crash("keep_all").contents(FILE) == left


def test_operations_are_numbered_and_the_observer_sees_each_before_it_happens() -> None:
    files = SimulatedFileSystem()
    seen = []
    files.observer = lambda operation: seen.append((operation, files.clone().tree()))
    files.make_directory("/d")
    files.open(FILE, create=True).write_at(0, [b"x"])
    files.rename(FILE, "/d/g")
    assert [(o.number, o.kind, o.path) for o, _ in seen] == [
        (1, "mkdir", "/d"),
        (2, "create", FILE),
        (3, "write", FILE),
        (4, "rename", FILE),
    ]
    assert [tree for _, tree in seen] == [{}, {}, {"d/f": b""}, {"d/f": b"x"}]
    assert files.trace == [operation for operation, _ in seen]


def test_a_failed_sync_loses_its_writes_for_good_though_reads_show_them() -> None:
    files = _disk()
    file = files.open(FILE, create=True)
    files.sync_directory("/d")
    file.write_at(0, [b"lost"])
    files.fail(lambda operation: operation.kind == "sync")
    with pytest.raises(DiskError) as failed:
        file.sync()
    assert failed.value.errno == errno.EIO
    file.write_at(4, [b"kept"])
    file.sync()  # reports success, as Linux does
    assert file.read_at(0, 8) == b"lostkept"
    assert not files.is_synced(FILE)
    assert files.after_crash("lose_unsynced").contents(FILE) == b"\0\0\0\0kept"


def test_a_short_write_is_cut_back_unless_that_failed_too() -> None:
    for cut_back, left in ((True, b"1234"), (False, b"1234ab")):
        files = _disk()
        file = files.open(FILE, create=True)
        file.write_at(0, [b"1234"])
        files.fail(files.operations + 1, errno.ENOSPC, written_bytes=2, cut_back=cut_back)
        with pytest.raises(DiskFullError):
            file.write_at(4, [b"abcd"])
        assert file.read_at(0, 100) == left
        file.write_at(4, [b"abcd"])
        assert file.read_at(0, 100) == b"1234abcd"


def test_reads_fail_when_a_predicate_says_so() -> None:
    files = _disk()
    files.put(FILE, b"data")
    files.fail(lambda operation: operation.kind == "read", times=2)
    for _ in range(2):
        with pytest.raises(DiskError):
            read_file(files, FILE)
    assert read_file(files, FILE) == b"data"


def test_a_full_disk_refuses_new_blocks_even_in_a_hole() -> None:
    files = _disk(capacity_bytes=8 * 4096)
    sparse = files.open("/d/sparse", create=True)
    sparse.truncate(100 * 4096)
    assert files.free_bytes("/d") == 8 * 4096
    file = files.open(FILE, create=True)
    file.write_at(0, [bytes(7 * 4096)])
    with pytest.raises(DiskFullError):
        file.write_at(7 * 4096, [bytes(2 * 4096)])
    assert file.size_bytes() == 7 * 4096
    sparse.write_at(50 * 4096, [b"x"])
    with pytest.raises(DiskFullError):
        sparse.write_at(60 * 4096, [b"x"])
    sparse.write_at(50 * 4096, [b"again"])
    assert files.free_bytes("/d") == 0
    file.truncate(4096)
    assert files.free_bytes("/d") == 6 * 4096
    files.unlink(FILE)
    assert files.free_bytes("/d") == 6 * 4096, "open, so still there"
    file.close()
    assert files.free_bytes("/d") == 7 * 4096


def test_a_flipped_bit_is_on_the_disk_and_in_the_cache() -> None:
    files = _disk()
    files.put(FILE, b"\x00\x01")
    files.flip(FILE, 1, 0x80)
    assert files.contents(FILE) == files.after_crash("lose_unsynced").contents(FILE) == b"\x00\x81"


def test_a_clone_goes_its_own_way() -> None:
    files = _disk()
    files.open(FILE, create=True).write_at(0, [b"one"])
    clone = files.clone()
    clone.open(FILE).write_at(0, [b"two"])
    assert (files.contents(FILE), clone.contents(FILE)) == (b"one", b"two")
    assert clone.after_crash("lose_unsynced").tree() == {}


def test_the_clock_stands_until_it_is_moved() -> None:
    clock = ManualClock(5)
    files = _disk(now_ms=clock.now_ms)
    file = files.open(FILE, create=True)
    clock.advance(10)
    file.write_at(0, [b"x"])
    entry = files.stat(FILE)
    assert (clock.now_ms(), entry and entry.modified_ms) == (15, 15)
    clock.set(3)
    assert clock.now_ms() == 3
