"""Restores into topics that are broken off or fail: what was committed stays, nothing else."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from backup_worlds import (
    backed_up,
    log_bytes,
    produced,
    rows,
    served,
    store_at,
    write,
)

from broker_fixture import running_broker
from stratalog.cli.backup import _delete_topics, _make_topics
from stratalog.errors import LogDirectoryError
from stratalog.handover import handover as asking
from stratalog.handover.errors import CommitUnknownError, HandoverError
from stratalog.handover.handover import Handover
from stratalog.handover.owning import owned, owner_config
from stratalog.handover.restoring import restore_directory
from stratalog.handover.restoring_commit import restore_topics
from stratalog.metadata.topics import NewTopic
from stratalog.storage.backup.choosing import choose_backup
from stratalog.storage.backup.errors import BackupDamagedError, BackupError
from stratalog.storage.backup.restore_plan import plan_restore
from stratalog.storage.backup.staging import BackupStaging
from stratalog.storage.check import check
from stratalog.storage.commits.errors import CommitBusyError, CommitRefusedError
from stratalog.storage.commits.one_commit import Commit
from stratalog.storage.commits.restoring import RestoreWork
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.owner_file import Owner


def restore(
    target: Path, log_dir: Path, *, files: FileSystem | None = None, **named: object
) -> None:
    store = store_at(target)
    plan = plan_restore(store, choose_backup(store).manifest)
    restore_topics(store, plan, str(log_dir), files=files, **named)  # type: ignore[arg-type]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two partitions; ``backups`` beside it has a backup, and ``other`` the same topic, empty."""
    source, other = tmp_path / "logs", tmp_path / "other"
    write(source, {("orders", p): [rows(p * 100 + 4 * n, 4) for n in range(4)] for p in (0, 1)})
    backed_up(source, tmp_path / "backups")
    served(other, "orders", partitions=2)
    return source


def opened_again(log_dir: Path) -> dict[str, bytes]:
    """What a log directory holds once its next owner has had it."""
    with owned(owner_config(str(log_dir), {})):
        pass
    assert check(str(log_dir)) == []
    return log_bytes(log_dir)


def breaking_off(
    owner: type, step: str, *, after: bool, times: int = 1
) -> tuple[Callable[..., object], list[str]]:
    """A step that is interrupted the given time, before or behind what it does."""
    run, seen = getattr(owner, step), []

    def interrupted(*arguments: object, **named: object) -> object:
        seen.append(step)
        if len(seen) == times and not after:
            raise KeyboardInterrupt
        found = run(*arguments, **named)
        if len(seen) == times:
            raise KeyboardInterrupt
        return found

    return interrupted, seen


STEPS = [
    (BackupStaging, "stage", 1, False),
    (BackupStaging, "stage", 2, False),
    (Handover, "commit", 1, True),
    (Commit, "check", 1, False),
    (Commit, "stop", 1, False),
    (Commit, "settle", 1, True),
    (RestoreWork, "place", 1, True),
    (RestoreWork, "place", 2, True),
    (Commit, "apply", 1, True),
    (Commit, "complete", 1, True),
    (Commit, "finish", 1, True),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "step", "times", "is_made"), STEPS)
def test_an_interrupt_at_any_step_leaves_all_of_a_restore_or_nothing(
    tmp_path: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    step: str,
    times: int,
    is_made: bool,
    after: bool,
) -> None:
    interrupted, seen = breaking_off(owner, step, after=after, times=times)
    monkeypatch.setattr(owner, step, interrupted)

    with pytest.raises(KeyboardInterrupt):
        restore(tmp_path / "backups", tmp_path / "other")

    assert len(seen) == times
    monkeypatch.undo()
    is_before = step in ("commit", "settle") and not after
    wanted = log_bytes(source) if is_made and not is_before else {}
    assert opened_again(tmp_path / "other") == wanted
    if not wanted:
        restore(tmp_path / "backups", tmp_path / "other")
        assert log_bytes(tmp_path / "other") == log_bytes(source)


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_interrupt_while_the_broker_commits_takes_nothing_from_it(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    ask, other = asking.ask_commit, tmp_path / "other"
    is_recorded, is_over = threading.Event(), threading.Event()
    place, asked = RestoreWork.place, []

    def place_later(work: RestoreWork) -> None:
        is_recorded.set()
        assert is_over.wait(60)
        assert not is_killed
        place(work)

    def interrupted(owner: Owner, content: bytes) -> object:
        asked.append(threading.Thread(target=ask, args=(owner, content)))
        asked[0].start()
        assert is_recorded.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(RestoreWork, "place", place_later)
    monkeypatch.setattr(asking, "ask_commit", interrupted)
    with running_broker(other):
        with pytest.raises(KeyboardInterrupt):
            restore(tmp_path / "backups", other)
        is_over.set()
        asked[0].join(60)

    monkeypatch.undo()
    assert opened_again(other) == log_bytes(source)


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (CommitRefusedError("it does not"), True),
        (HandoverError("nobody takes it"), True),
        (CommitBusyError("it is being committed"), False),
        (CommitUnknownError("id", "other", 1.0, "nobody answers"), False),
        (OSError("anything else"), False),
    ],
)
def test_what_was_staged_is_removed_only_if_somebody_said_that_nothing_was_committed(
    tmp_path: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    is_told: bool,
) -> None:
    def commit(*_: object) -> None:
        raise error

    monkeypatch.setattr(Handover, "commit", commit)
    with pytest.raises(type(error)):
        restore(tmp_path / "backups", tmp_path / "other")

    left = list((tmp_path / "other").glob("orders-?/.stratalog/staging/*/*.log"))
    assert bool(left) is not is_told
    assert bool(list((tmp_path / "other").glob(".stratalog-staging-*"))) is not is_told


# --- topics that were made ----------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Backups of ``orders`` and ``payments``, whose configs are known; one stored byte is wrong."""
    source, target = tmp_path / "logs", tmp_path / "backups"
    served(source, "orders", "payments", partitions=2)
    with running_broker(source) as broker:
        produced(broker.bootstrap_server, "orders", 5)
        produced(broker.bootstrap_server, "payments", 5)
    backed_up(source, target)
    stored = next(each for each in (target / "files").glob("*/*") if b"p3." in each.read_bytes())
    content = bytearray(stored.read_bytes())
    content[70] ^= 1
    stored.write_bytes(content)
    return target


def topics_of(log_dir: Path) -> set[str]:
    with owned(owner_config(str(log_dir), {})) as opened:
        return set(opened.store.image.topics)


def test_a_restore_that_fails_takes_the_topics_that_it_has_made_away_again(
    tmp_path: Path, damaged: Path
) -> None:
    other = tmp_path / "other"
    served(other, "orders", partitions=2)

    with pytest.raises(BackupDamagedError):
        restore(damaged, other)

    assert topics_of(other) == {"orders"}
    assert not list(other.glob("payments-?"))
    assert not list(other.glob(".stratalog-staging-*"))


@pytest.mark.parametrize("is_used", [False, True])
def test_a_running_broker_keeps_none_of_them_but_those_that_somebody_uses(
    tmp_path: Path, damaged: Path, is_used: bool
) -> None:
    other = tmp_path / "other"
    served(other, "before")
    with running_broker(other) as broker:

        def make(wanted: list[NewTopic]) -> None:
            _make_topics(wanted, broker.bootstrap_server, None)
            if is_used and wanted[0].name == "orders":
                produced(broker.bootstrap_server, "orders", 1)

        with pytest.raises((BackupDamagedError, CommitRefusedError)):
            restore(
                damaged,
                other,
                make_topics=make,
                delete_topics=lambda names: _delete_topics(names, broker.bootstrap_server, None),
            )

    assert topics_of(other) == {"before", *(["orders"] if is_used else [])}


def test_a_topic_that_somebody_else_has_made_first_is_left_to_him(
    tmp_path: Path, damaged: Path
) -> None:
    other, deleted = tmp_path / "other", []
    served(other, "before")

    def make(wanted: list[NewTopic]) -> None:
        if wanted[0].name == "payments":
            raise BackupError("there is one")

    with running_broker(other), pytest.raises(BackupError, match="there is one"):
        restore(damaged, other, make_topics=make, delete_topics=deleted.extend)
    assert deleted == []


def test_what_cannot_be_restored_for_want_of_files_or_room_makes_no_topic(
    tmp_path: Path, damaged: Path
) -> None:
    class Small(OsFileSystem):
        def free_bytes(self, path: str) -> int:
            return 1 << 20

    other = tmp_path / "other"
    served(other, "before")
    before = {path.name for path in other.iterdir()}

    with pytest.raises(BackupError, match=r"log.dir.reserve.bytes=\d+ stay free: make room"):
        restore(damaged, other, files=Small())
    for each in (damaged / "files").glob("*/*"):
        each.unlink()
    with pytest.raises(BackupDamagedError, match="missing"):
        restore(damaged, other)

    assert {path.name for path in other.iterdir()} == before


# --- into a directory of its own ----------------------------------------------------------------


class Stops(OsFileSystem):
    """Is interrupted when a checkpoint is written."""

    def rename(self, source: str, target: str) -> None:
        if target.endswith("replication-offset-checkpoint"):
            raise KeyboardInterrupt
        super().rename(source, target)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_restore_that_is_interrupted_leaves_no_directory_that_it_has_made(
    tmp_path: Path, source: Path, is_there: bool
) -> None:
    store, new = store_at(tmp_path / "backups"), tmp_path / "new"
    plan = plan_restore(store, choose_backup(store).manifest)
    if is_there:
        new.mkdir()

    with pytest.raises(KeyboardInterrupt):
        restore_directory(store, plan, str(new), files=Stops())

    assert {each.name for each in new.glob("*")} <= {".lock"}
    assert new.exists() is is_there
    restore_directory(store, plan, str(new))
    assert log_bytes(new) == log_bytes(source)


def test_a_broker_says_of_an_unfinished_restore_what_it_is_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "new" / ".stratalog-restoring").mkdir(parents=True)

    with (
        pytest.raises(LogDirectoryError, match="did not come to its end"),
        owned(owner_config(str(tmp_path / "new"), {}), is_remembered=True),
    ):
        raise AssertionError("it was opened")

    assert not (tmp_path / "new" / ".lock").exists()
