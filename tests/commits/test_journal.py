"""The commit journal by itself: what it remembers, and what a crash or a bad disk may do to it."""

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.errors import CorruptFileError, DiskError
from stratalog.records._kernels import crc32c
from stratalog.storage.commits.journal import CommitJournal, PendingCommit
from stratalog.storage.commits.manifest import AppVersion
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.testing import CrashMode, SimulatedFileSystem

LOG_DIR = "/data"
PATH = f"{LOG_DIR}/.stratalog-commits"
ORDERS = TopicPartition("orders", 0)


def new_disk() -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    files.make_directory(LOG_DIR)
    files.sync_directory("/")
    return files


def opened(files: SimulatedFileSystem, **options: int) -> CommitJournal:
    journal = CommitJournal(files, LOG_DIR, **options)
    journal.load()
    return journal


def commit(name: str, *, version: int | None = None, at_ms: int = 0) -> PendingCommit:
    return PendingCommit(
        manifest_id=name if version is None else f"{name}:{version}",
        kind="append",
        staging_id="ab" * 16,
        app=None if version is None else AppVersion(name=name, version=version),
        at_ms=at_ms,
        work=(
            {
                "topic": "orders",
                "partition": 0,
                "mode": "append",
                "first_offset": 10,
                "end_offset": 30,
            },
        ),
    )


def made(files: SimulatedFileSystem, *commits: PendingCommit, **options: int) -> CommitJournal:
    journal = opened(files, **options)
    journal.prepare()
    for each in commits:
        journal.commit(each)
        journal.done(each.manifest_id)
    return journal


def test_what_was_committed_is_known_to_the_next_start_and_what_is_left_to_do() -> None:
    files = new_disk()
    journal = made(files, commit("a"))
    journal.commit(commit("b"))
    again = opened(files)
    assert list(again.pending) == ["b"]
    assert again.pending["b"] == commit("b")
    for name in "ab":
        found = again.find(name, None)
        assert found is not None
        assert found.offsets == {ORDERS: (10, 30)}
    assert again.find("c", None) is None


def test_a_version_of_an_application_is_committed_if_it_or_a_later_one_was() -> None:
    files = new_disk()
    journal = made(files, commit("query", version=3), commit("query", version=5))
    for known in (journal, opened(files)):
        for version, offsets in ((3, {}), (4, {}), (5, {ORDERS: (10, 30)}), (0, {})):
            found = known.find("another id", AppVersion(name="query", version=version))
            assert found is not None
            assert found.offsets == offsets
        assert known.find("query:6", AppVersion(name="query", version=6)) is None
        assert known.find("other:0", AppVersion(name="other", version=0)) is None
        assert known.find("query:5", None) is not None


def test_a_directory_without_commits_has_no_journal() -> None:
    files = new_disk()
    opened(files)
    assert files.tree(LOG_DIR) == {}


@given(st.integers(min_value=0, max_value=10_000), st.binary(max_size=40))
def test_a_record_cut_anywhere_was_not_made_and_those_before_it_were(cut: int, rest: bytes) -> None:
    files = new_disk()
    journal = made(files, commit("a"))
    before = len(files.contents(PATH))
    journal.commit(commit("b"))
    whole = files.contents(PATH)
    kept = before + cut % (len(whole) - before)
    files.put(PATH, whole[:kept] + rest.replace(b"\n", b"?"))
    again = opened(files)
    assert files.contents(PATH) == whole[:before], "what was cut short is gone"
    assert again.find("a", None) is not None
    assert again.find("b", None) is None
    assert not again.pending
    again.commit(commit("c"))
    last = opened(files)
    assert list(last.pending) == ["c"], "what was cut off does not stand in its way"
    assert files.contents(PATH).count(b"\n") == whole.count(b"\n")


def test_a_byte_that_was_turned_in_the_middle_keeps_the_directory_from_opening() -> None:
    files = new_disk()
    made(files, commit("a"), commit("b"))
    whole = files.contents(PATH)
    last = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for position in range(last):
        found = new_disk()
        found.put(PATH, whole[:position] + bytes([whole[position] ^ 0x20]) + whole[position + 1 :])
        with pytest.raises(CorruptFileError, match="commits"):
            opened(found)


def test_a_line_that_was_lost_in_the_middle_keeps_it_from_opening_too() -> None:
    files = new_disk()
    made(files, commit("a"), commit("b"))
    lines = files.contents(PATH).splitlines(keepends=True)
    for missing in range(1, len(lines) - 1):
        files.put(PATH, b"".join(lines[:missing] + lines[missing + 1 :]))
        with pytest.raises(CorruptFileError):
            opened(files)


@pytest.mark.parametrize("content", [b"", b"\n", b"0" * 100, bytes(512), b"{}\n"])
def test_a_file_that_is_no_journal_keeps_it_from_opening(content: bytes) -> None:
    files = new_disk()
    files.put(PATH, content)
    with pytest.raises(CorruptFileError):
        opened(files)


@given(st.binary(max_size=2000))
def test_garbage_is_refused_and_breaks_nothing(content: bytes) -> None:
    files = new_disk()
    files.put(PATH, content)
    with pytest.raises(CorruptFileError):
        opened(files)


# --- rewriting --------------------------------------------------------------------------------


def test_a_rewritten_journal_forgets_old_ids_and_keeps_the_last_version_of_everybody() -> None:
    files = new_disk()
    journal = made(
        files,
        commit("old", at_ms=10),
        commit("new", at_ms=100),
        *(commit("query", version=version, at_ms=10) for version in range(20)),
        kept_ids=1,
    )
    journal.commit(commit("pending", at_ms=5))
    before = len(files.contents(PATH))
    journal.compact(forget_before_ms=50)
    assert len(files.contents(PATH)) < before
    for known in (journal, opened(files)):
        assert known.find("old", None) is None
        assert known.find("new", None) is not None
        found = known.find("x", AppVersion(name="query", version=19))
        assert found is not None
        assert found.offsets == {ORDERS: (10, 30)}
        assert known.find("x", AppVersion(name="query", version=3)) is not None
        assert list(known.pending) == ["pending"]
    journal.done("pending")
    assert not opened(files).pending
    assert journal.find("pending", None) is not None


def test_the_newest_ids_are_kept_whatever_a_clock_said() -> None:
    """Of those that were too old only that they were committed, so that they take little room."""
    files = new_disk()
    journal = made(
        files,
        *(commit(f"early-{number}", at_ms=10) for number in range(4)),
        commit("in time", at_ms=100),
        *(commit(f"late-{number}", at_ms=10) for number in range(3)),
        *(commit(f"query-{number}", version=1, at_ms=10) for number in range(9)),
        kept_ids=3,
    )
    journal.compact(forget_before_ms=50)
    again = opened(files, kept_ids=3)
    again.compact(forget_before_ms=50)
    for known in (journal, again, opened(files)):
        for number in range(4):
            assert known.find(f"early-{number}", None) is None
        for number in range(3):
            found = known.find(f"late-{number}", None)
            assert found is not None
            assert not found.offsets
        found = known.find("in time", None)
        assert found is not None
        assert found.offsets == {ORDERS: (10, 30)}


def rewritten() -> tuple[bytes, bytes]:
    """A journal that was rewritten, and what was written behind that."""
    files = new_disk()
    journal = made(files, commit("a"), commit("query", version=3))
    journal.commit(commit("pending"))
    journal.compact(forget_before_ms=0)
    whole = files.contents(PATH)
    journal.done("pending")
    return whole, files.contents(PATH).removeprefix(whole)


def test_no_crash_takes_the_end_of_what_a_journal_was_rewritten_with() -> None:
    whole, _ = rewritten()
    turned = [whole[:at] + bytes([whole[at] ^ 0x20]) + whole[at + 1 :] for at in range(len(whole))]
    for content in (*turned, *(whole[:size_bytes] for size_bytes in range(len(whole)))):
        files = new_disk()
        files.put(PATH, content)
        with pytest.raises(CorruptFileError, match="commits"):
            opened(files)
        assert files.contents(PATH) == content


@pytest.mark.parametrize("says", [b',"records":3', b""], ids=["now", "of an earlier version"])
def test_what_a_crash_left_behind_them_is_cut_off_all_the_same(says: bytes) -> None:
    whole, done = rewritten()
    first, _, rest = whole.partition(b"\n")
    body = first[9:].replace(b',"records":3', says)
    whole = b"%08x %s\n%s" % (crc32c(body), body, rest)
    for size_bytes in range(len(done)):
        files = new_disk()
        files.put(PATH, whole + done[:size_bytes])
        assert list(opened(files).pending) == ["pending"]
        assert files.contents(PATH) == whole


def test_a_journal_stays_short_whatever_the_number_of_commits() -> None:
    files = new_disk()
    journal = made(files, rewrite_bytes=2_000)
    for version in range(300):
        each = commit("query", version=version)
        journal.commit(each)
        journal.done(each.manifest_id)
    assert len(files.contents(PATH)) < 3_000
    assert opened(files).find("x", AppVersion(name="query", version=299)) is not None


def test_who_opens_it_for_each_commit_does_not_rewrite_it_for_each() -> None:
    """As drivers do where no broker runs."""
    files = new_disk()
    made(files, *(commit(f"{number}") for number in range(40)), rewrite_bytes=2_000)
    before = len(files.contents(PATH))
    assert before > 4_000
    rewritten = 0
    for number in range(40, 120):
        journal = opened(files, rewrite_bytes=2_000)
        journal.commit(commit(f"{number}"))
        was = len(files.contents(PATH))
        journal.done(f"{number}")
        rewritten += len(files.contents(PATH)) < was
    assert 1 <= rewritten <= 3
    assert all(journal.find(f"{number}", None) is not None for number in range(120))


def test_a_crash_while_it_is_rewritten_forgets_nothing() -> None:
    files = new_disk()
    moments: list[tuple[SimulatedFileSystem, int]] = []
    done = 0
    files.observer = lambda _operation: moments.append((files.clone(), done))
    journal = made(files, rewrite_bytes=600)
    for version in range(12):
        each = commit("query", version=version)
        journal.commit(each)
        done = version + 1
        journal.done(each.manifest_id)
    for index, (moment, count) in enumerate(moments):
        for mode in CrashMode:
            found = opened(moment.after_crash(mode, index))
            for version in range(count):
                assert found.find("x", AppVersion(name="query", version=version)) is not None
            assert found.find("x", AppVersion(name="query", version=count + 1)) is None
    assert any("rename" in operation.kind for operation in files.trace)


@given(st.sets(st.integers(min_value=1, max_value=3)), st.booleans())
def test_the_last_version_is_known_whichever_are_pending_when_it_is_rewritten(
    done: set[int], is_done_later: bool
) -> None:
    files = new_disk()
    journal = made(files)
    commits = [commit("query", version=version) for version in (1, 2, 3)]
    for each in commits:
        journal.commit(each)
    for version in done:
        journal.done(f"query:{version}")
    left = [f"query:{version}" for version in (1, 2, 3) if version not in done]
    journal.compact(forget_before_ms=0)
    journal = opened(files)
    assert list(journal.pending) == left
    if is_done_later:
        for name in left:
            journal.done(name)
        journal.compact(forget_before_ms=0)
        journal = opened(files)
    for version, offsets in ((1, {}), (2, {}), (3, {ORDERS: (10, 30)})):
        found = journal.find("x", AppVersion(name="query", version=version))
        assert found is not None
        assert found.offsets == offsets
    assert journal.find("x", AppVersion(name="query", version=4)) is None


def test_a_disk_that_is_full_keeps_it_from_being_rewritten_and_from_nothing_else() -> None:
    files = new_disk()
    journal = made(files, commit("a"), rewrite_bytes=0)
    files.fail(lambda each: each.path.endswith(".tmp"), errno.ENOSPC, times=100)
    each = commit("b")
    journal.commit(each)
    journal.done("b")
    assert journal.failure is None
    files.heal()
    made_again = opened(files)
    assert made_again.find("b", None) is not None


def test_nothing_is_written_once_nobody_knows_which_file_a_crash_will_leave() -> None:
    files = new_disk()
    journal = made(files, commit("a"))
    files.fail(lambda each: each.kind == "sync_directory", errno.EIO)
    with pytest.raises(DiskError):
        journal.compact(forget_before_ms=0)
    files.heal()
    with pytest.raises(DiskError):
        journal.commit(commit("b"))


@pytest.mark.parametrize("step", ["write", "sync"])
def test_a_record_that_could_not_be_written_was_not_made_unless_nobody_knows(step: str) -> None:
    files = new_disk()
    journal = made(files, commit("a"))
    files.fail(lambda each: each.kind == step, errno.EIO)
    with pytest.raises(DiskError):
        journal.commit(commit("b"))
    files.heal()
    assert (journal.failure is None) == (step == "write")
    if step == "write":
        assert journal.find("b", None) is None
        journal.commit(commit("b"))
        assert opened(files).find("b", None) is not None
    else:
        with pytest.raises(DiskError):
            journal.commit(commit("b"))


def test_a_record_that_was_taken_back_does_not_return(tmp_path: Path) -> None:
    """The write said that it failed, and the bytes were there all the same."""
    files = new_disk()
    journal = made(files, commit("a"))
    files.fail(lambda each: each.kind == "write", errno.EIO, written_bytes=1 << 20, cut_back=False)
    with pytest.raises(DiskError):
        journal.commit(commit("b"))
    assert journal.failure is None
    for mode in CrashMode:
        for seed in range(10):
            assert opened(files.after_crash(mode, seed)).find("b", None) is None


def test_it_works_the_same_on_a_real_disk(tmp_path: Path) -> None:
    journal = CommitJournal(OsFileSystem(), str(tmp_path))
    journal.load()
    journal.prepare()
    journal.commit(commit("a"))
    again = CommitJournal(OsFileSystem(), str(tmp_path))
    again.load()
    assert list(again.pending) == ["a"]
