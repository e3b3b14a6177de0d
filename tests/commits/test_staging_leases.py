"""The lease that keeps staged files, and the sweep of those that nobody keeps."""

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from staging_harness import DIRECTORY, LOG_DIR, NOW_MS, STAGING_ID, batch, new_disk, stage

from stratalog.errors import DiskError
from stratalog.storage.commits.staged_log import StagedLogWriter
from stratalog.storage.commits.staging import (
    STAGING_MS_MAX,
    open_staging,
    release_staging,
    release_unused_staging,
    renew_staging,
    staged_partitions,
    staging_directory,
    staging_until_ms,
    sweep_staging,
)
from stratalog.storage.files import Entry, FileSystem, OsFile, OsFileSystem
from stratalog.storage.layout import TopicPartition, staging_file
from stratalog.testing import ManualClock, SimulatedFileSystem

OTHER = "/logs/orders-1"
IDS = [f"{number:032x}" for number in range(6)]
CLOCK = ManualClock(NOW_MS)


@pytest.fixture(params=["simulated", "real"])
def files_and_log_dir(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[FileSystem, str]]:
    if request.param == "simulated":
        yield new_disk(), LOG_DIR
    else:
        (tmp_path / "orders-0").mkdir()
        yield OsFileSystem(), str(tmp_path)


def test_a_lease_lasts_as_long_as_it_was_asked_for(
    files_and_log_dir: tuple[FileSystem, str],
) -> None:
    files, log_dir = files_and_log_dir

    staging_id = open_staging(files, log_dir, holder="spark load", seconds=60, clock=CLOCK)

    assert staging_until_ms(files, log_dir, staging_id) == NOW_MS + 60_000
    assert sweep_staging(files, log_dir, now_ms=NOW_MS + 59_999, in_use=()) == []
    assert sweep_staging(files, log_dir, now_ms=NOW_MS + 60_000, in_use=()) == [staging_id]
    assert staging_until_ms(files, log_dir, staging_id) is None


def test_a_lease_that_cannot_be_made_leaves_nothing() -> None:
    before = new_disk().tree()
    for failing in range(1, 10):
        files = new_disk()
        files.fail(files.operations + failing, errno.ENOSPC)
        try:
            open_staging(files, LOG_DIR, holder="spark load", seconds=60, clock=CLOCK)
        except DiskError:
            assert files.tree() == before
        else:
            break

    assert failing > 2


def test_the_file_of_a_lease_says_whose_it_is() -> None:
    files = new_disk()
    staging_id = open_staging(files, LOG_DIR, holder="a\nb", seconds=60, clock=CLOCK)

    told = json.loads(files.contents(staging_file(LOG_DIR, staging_id)))

    assert told == {"version": 1, "holder": "a b", "created_ms": NOW_MS}


def test_a_renewal_never_makes_a_lease_shorter(files_and_log_dir: tuple[FileSystem, str]) -> None:
    files, log_dir = files_and_log_dir
    staging_id = open_staging(files, log_dir, holder="", seconds=60, clock=CLOCK)

    assert renew_staging(files, log_dir, staging_id, 10, CLOCK)
    assert staging_until_ms(files, log_dir, staging_id) == NOW_MS + 60_000
    assert renew_staging(files, log_dir, staging_id, 90, CLOCK)
    assert staging_until_ms(files, log_dir, staging_id) == NOW_MS + 90_000


def test_who_renews_what_was_swept_is_told(files_and_log_dir: tuple[FileSystem, str]) -> None:
    files, log_dir = files_and_log_dir
    staging_id = open_staging(files, log_dir, holder="", seconds=1, clock=CLOCK)
    sweep_staging(files, log_dir, now_ms=NOW_MS + 1_000, in_use=())

    assert not renew_staging(files, log_dir, staging_id, 60, CLOCK)
    assert staging_until_ms(files, log_dir, staging_id) is None


def test_a_lease_with_a_given_id_is_made_once_and_prolonged_by_the_next() -> None:
    files = new_disk()
    later = ManualClock(NOW_MS + 5_000)

    for clock in (CLOCK, later):
        assert (
            open_staging(files, LOG_DIR, holder="", seconds=60, clock=clock, staging_id=STAGING_ID)
            == STAGING_ID
        )

    assert staging_until_ms(files, LOG_DIR, STAGING_ID) == NOW_MS + 65_000
    assert json.loads(files.contents(staging_file(LOG_DIR, STAGING_ID)))["created_ms"] == NOW_MS
    assert [each for each in files.tree(LOG_DIR) if each.endswith(".tmp")] == []


def test_no_lease_lasts_longer_than_a_day() -> None:
    files = new_disk()
    staging_id = open_staging(files, LOG_DIR, holder="", seconds=10**9, clock=CLOCK)

    assert staging_until_ms(files, LOG_DIR, staging_id) == NOW_MS + STAGING_MS_MAX


def test_after_a_clock_was_set_back_a_lease_still_ends() -> None:
    files = new_disk()
    staging_id = open_staging(files, LOG_DIR, holder="", seconds=60, clock=CLOCK)
    was_ms = NOW_MS - 400 * 24 * 3_600_000

    assert sweep_staging(files, LOG_DIR, now_ms=was_ms, in_use=()) == []
    assert sweep_staging(files, LOG_DIR, now_ms=was_ms + STAGING_MS_MAX, in_use=()) == [staging_id]


def test_what_was_left_of_a_lease_is_removed_whatever_a_clock_said() -> None:
    """Killed before it got its name, or while it was aside."""
    files = new_disk()
    left = f"{staging_file(LOG_DIR, STAGING_ID)}.{'ab' * 16}.tmp"
    for ahead_ms, is_kept in (
        (STAGING_MS_MAX, True),
        (STAGING_MS_MAX + 1, False),
        (400 * 24 * 3_600_000, False),
    ):
        files.put(left, b"{}")
        files.set_modified(left, NOW_MS + ahead_ms)
        sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=())
        assert files.exists(left) == is_kept


def disk_with(until: dict[str, int], places: set[tuple[str, str]]) -> SimulatedFileSystem:
    """Leases that have so many milliseconds left, and what was staged, by directory and id."""
    files = new_disk(OTHER)
    for staging_id, ahead in until.items():
        open_staging(files, LOG_DIR, holder="", seconds=9, clock=CLOCK, staging_id=staging_id)
        files.set_modified(staging_file(LOG_DIR, staging_id), NOW_MS + ahead)
    for directory, staging_id in places:
        stage(files, [batch()], directory=directory, staging_id=staging_id)
    return files


def staged_ids(files: FileSystem) -> set[tuple[str, str]]:
    return set(staged_partitions(files, LOG_DIR))


leases = st.dictionaries(st.sampled_from(IDS), st.integers(-3, 3))
staged = st.sets(st.tuples(st.sampled_from((DIRECTORY, OTHER)), st.sampled_from(IDS)))


@given(leases, staged, st.sets(st.sampled_from(IDS)))
def test_a_sweep_takes_what_is_over_or_has_no_lease_and_nothing_that_is_in_use(
    until: dict[str, int], places: set[tuple[str, str]], in_use: set[str]
) -> None:
    files = disk_with(until, places)

    swept = sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=in_use)

    kept = {each for each in IDS if each in in_use or until.get(each, -1) > 0}
    known = set(until) | {each for _, each in places}
    assert set(swept) == known - kept
    assert staged_ids(files) == {each for each in places if each[1] in kept}
    assert {each for each in IDS if files.exists(staging_file(LOG_DIR, each))} == kept & set(until)


@given(leases, staged)
def test_nobody_is_asked_about_staging_that_is_held(
    until: dict[str, int], places: set[tuple[str, str]]
) -> None:
    files = disk_with(until, places)
    asked: list[str] = []

    class Asked:
        def __contains__(self, staging_id: object) -> bool:
            asked.append(str(staging_id))
            return False

    swept = sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=Asked())

    assert sorted(asked) == swept


def test_what_is_staged_while_a_sweep_looks_around_stays() -> None:
    files = new_disk()
    listed = files.list
    staging_id = IDS[1]

    def list_and_stage(path: str) -> list[Entry]:
        found = listed(path)
        if path == LOG_DIR and not files.exists(staging_file(LOG_DIR, staging_id)):
            open_staging(files, LOG_DIR, holder="", seconds=60, clock=CLOCK, staging_id=staging_id)
            files.make_directory(f"{DIRECTORY}/.stratalog")
            files.make_directory(f"{DIRECTORY}/.stratalog/staging")
            files.make_directory(staging_directory(DIRECTORY, staging_id))
        return found

    files.list = list_and_stage  # type: ignore[method-assign]
    assert sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=()) == []
    assert files.exists(staging_directory(DIRECTORY, staging_id))


def test_a_staging_that_was_half_removed_is_swept_at_last() -> None:
    files = new_disk(OTHER)
    for directory in (DIRECTORY, OTHER):
        stage(files, [batch()] * 3, directory=directory, segment_bytes=100)
    last = f"{staging_directory(OTHER, STAGING_ID)}/00000-0-00002.log"
    files.fail(lambda each: (each.kind, each.path) == ("unlink", last))

    assert sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=()) == []
    assert staged_ids(files) == {(OTHER, STAGING_ID)}
    assert sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=()) == [STAGING_ID]
    assert staged_ids(files) == set()


def test_a_lease_that_cannot_be_removed_keeps_its_files() -> None:
    files = new_disk()
    open_staging(files, LOG_DIR, holder="", seconds=0, clock=CLOCK, staging_id=STAGING_ID)
    stage(files, [batch()])
    lease = staging_file(LOG_DIR, STAGING_ID)
    files.fail(lambda each: (each.kind, each.path) == ("unlink", lease))

    assert sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=()) == []
    assert staged_ids(files) == {(DIRECTORY, STAGING_ID)}


def test_the_lease_goes_before_the_files_so_that_nobody_renews_half_of_them() -> None:
    files = new_disk()
    open_staging(files, LOG_DIR, holder="", seconds=0, clock=CLOCK, staging_id=STAGING_ID)
    stage(files, [batch()])
    before = len(files.trace)

    sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=())

    removed = [each.path for each in files.trace[before:] if each.kind == "unlink"]
    assert removed[0] == staging_file(LOG_DIR, STAGING_ID)
    assert len(removed) == 2


def test_a_release_takes_everything_of_its_own_and_nothing_else() -> None:
    files = new_disk(OTHER)
    for staging_id in IDS[:2]:
        open_staging(files, LOG_DIR, holder="", seconds=60, clock=CLOCK, staging_id=staging_id)
        for directory in (DIRECTORY, OTHER):
            stage(files, [batch()], directory=directory, staging_id=staging_id)

    release_staging(files, LOG_DIR, IDS[0])
    release_staging(files, LOG_DIR, IDS[0])

    assert staged_ids(files) == {(DIRECTORY, IDS[1]), (OTHER, IDS[1])}
    assert not files.exists(staging_file(LOG_DIR, IDS[0]))
    assert files.exists(staging_file(LOG_DIR, IDS[1]))


def test_a_release_that_knows_its_partitions_leaves_the_rest_to_the_sweep() -> None:
    files = new_disk(OTHER)
    open_staging(files, LOG_DIR, holder="", seconds=60, clock=CLOCK, staging_id=STAGING_ID)
    for directory in (DIRECTORY, OTHER):
        stage(files, [batch()], directory=directory)

    release_staging(files, LOG_DIR, STAGING_ID, partitions=[TopicPartition("orders", 1)])

    assert staged_ids(files) == {(DIRECTORY, STAGING_ID)}
    assert sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=()) == [STAGING_ID]


def test_logs_that_were_deleted_or_strayed_are_left_alone() -> None:
    stray = f"/logs/orders-2.{'a' * 32}-stray"
    files = new_disk(stray)
    stage(files, [batch()], directory=stray)
    before = files.tree(stray)

    assert sweep_staging(files, LOG_DIR, now_ms=NOW_MS, in_use=()) == []
    assert files.tree(stray) == before


def test_a_lease_that_was_never_finished_is_removed_an_hour_later() -> None:
    files = SimulatedFileSystem(now_ms=lambda: NOW_MS)
    files.make_directory(LOG_DIR)
    # Neither given its name nor taken back: whoever made it was killed.
    files.fail(lambda each: each.kind in ("rename", "unlink"), times=2)
    with pytest.raises(DiskError):
        open_staging(files, LOG_DIR, holder="", seconds=0, clock=CLOCK)
    assert len(files.tree(LOG_DIR)) == 1

    sweep_staging(files, LOG_DIR, now_ms=NOW_MS + 3_600_000, in_use=())
    assert len(files.tree(LOG_DIR)) == 1
    sweep_staging(files, LOG_DIR, now_ms=NOW_MS + 3_600_001, in_use=())
    assert files.tree(LOG_DIR) == {}


def test_a_link_in_the_place_of_staging_is_not_followed(tmp_path: Path) -> None:
    files = OsFileSystem()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"kept")
    staging = tmp_path / "logs/orders-0/.stratalog/staging"
    staging.mkdir(parents=True)
    (staging / STAGING_ID).symlink_to(precious)
    (staging / IDS[1]).mkdir()
    (staging / IDS[1] / "link").symlink_to(precious)

    swept = sweep_staging(files, str(tmp_path / "logs"), now_ms=NOW_MS, in_use=())

    assert swept == [IDS[1]]
    assert (precious / "file").read_bytes() == b"kept"


# --- one of several fails, and goes ---------------------------------------------------------------


class Interleaved(OsFileSystem):
    """A disk on which somebody else does all of theirs just before the operation of that number;
    and where one operation fails, so many behind it."""

    def __init__(self, number: int, other: Callable[[], None], fails_behind: int | None) -> None:
        self._left = number
        self._other = other
        self._fails_at = None if fails_behind is None else -1 - fails_behind

    @property
    def is_over(self) -> bool:
        """Whether there was such an operation."""
        return self._left < 0

    def _step(self) -> None:
        self._left -= 1
        if self._left == -1:
            self._other()
        if self._left == self._fails_at:
            raise DiskError("look into", "a directory", errno.EMFILE, "too many open files")

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> OsFile:
        self._step()
        return super().open(path, create=create, writable=writable)

    def exists(self, path: str) -> bool:
        self._step()
        return super().exists(path)

    def stat(self, path: str) -> Entry | None:
        self._step()
        return super().stat(path)

    def list(self, path: str) -> list[Entry]:
        self._step()
        return super().list(path)

    def make_directory(self, path: str) -> None:
        self._step()
        super().make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._step()
        super().remove_directory(path)

    def unlink(self, path: str, *, missing_ok: bool = False) -> None:
        self._step()
        super().unlink(path, missing_ok=missing_ok)


class Lost(Exception):
    pass


GOES, STAGES = "the one that goes", "the one that stages"


@pytest.mark.parametrize(
    ("who_is_interrupted", "fails_behind"),
    [(GOES, None), (STAGES, None), *((GOES, behind) for behind in range(8))],
)
def test_who_goes_takes_the_lease_or_the_other_keeps_it_wherever_they_meet(
    tmp_path: Path, who_is_interrupted: str, fails_behind: int | None
) -> None:
    outcomes = set()
    for number in range(100):
        log_dir = tmp_path / f"{number}"
        for partition in range(3):
            (log_dir / f"orders-{partition}").mkdir(parents=True)
        staging_id = open_staging(
            OsFileSystem(), str(log_dir), holder="", seconds=60, clock=ManualClock()
        )
        is_whole = _meet(log_dir, staging_id, number, who_is_interrupted, fails_behind)
        if is_whole is None:
            break
        outcomes.add(is_whole)
        files = [each for each in log_dir.rglob("*") if each.is_file() and each.suffix != ".tmp"]
        lease = Path(staging_file(str(log_dir), staging_id))
        if is_whole:
            assert lease in files
            assert len(files) == 2
        elif fails_behind is None:
            assert files == []
        else:
            assert files in ([], [lease])  # who cannot look leaves it
    assert number > 3
    assert outcomes == {True, False}


def _meet(
    log_dir: Path,
    staging_id: str,
    number: int,
    who_is_interrupted: str,
    fails_behind: int | None,
) -> bool | None:
    """Whether what was staged is held; None if there are no more moments to meet at."""
    written: list[bool] = []

    def go(files: FileSystem) -> None:
        with suppress(DiskError):
            release_unused_staging(files, str(log_dir), staging_id)

    def stage(files: FileSystem) -> None:
        def check_held() -> None:
            if staging_until_ms(files, str(log_dir), staging_id) is None:
                raise Lost

        directory = staging_directory(f"{log_dir}/orders-1", staging_id)
        writer = StagedLogWriter(
            files, directory, "00000-0", segment_bytes=1 << 20, check_held=check_held
        )
        try:
            writer.append(batch())
            writer.finish()
            written.append(True)
        except Lost:
            writer.discard()
            written.append(False)

    first, second = (stage, go) if who_is_interrupted == STAGES else (go, stage)
    disk = Interleaved(number, lambda: second(OsFileSystem()), fails_behind)
    first(disk)
    return written[0] if disk.is_over else None
