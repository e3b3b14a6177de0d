"""Power is cut before every operation of these scenarios, and the log keeps what it promised.

One run of a scenario keeps a copy of the disk before each of its operations; each copy is crashed
in every mode, opened again, and looked at. The same is done to the recovery that follows.
"""

from collections.abc import Callable, Iterator

import pytest
from crash_scenario import Driver, Moment, Producer, check_after, open_after

from stratalog.records import Codec
from stratalog.testing import CrashMode, SimulatedFileSystem

FIXED = (CrashMode.LOSE_UNSYNCED, CrashMode.KEEP_ALL)


def appends_and_rolls(driver: Driver) -> None:
    for number in range(14):
        driver.append(1 + number % 3, codec=list(Codec)[number % 5])
        if number % 4 == 3:
            driver.flush()
        if number == 7:
            driver.checkpoint()
    driver.close()


def transactions(driver: Driver) -> None:
    first, second = Producer(7), Producer(8)
    for number in range(5):
        driver.append(2, producer=first, transactional=True)
        driver.append(1, producer=second, transactional=True)
        driver.append(1)
        driver.end_transaction(first, commit=bool(number % 2))
        if number % 2:
            driver.flush()
            driver.checkpoint()
        driver.end_transaction(second, commit=not number % 2)
    driver.flush()
    driver.append(1, producer=first, transactional=True)
    driver.close()


def an_abort_after_a_flush(driver: Driver) -> None:
    """The transaction index appears in a segment whose name was synced long before."""
    producer = Producer(7)
    driver.append(2, producer=producer, transactional=True)
    driver.flush()
    driver.checkpoint()
    driver.end_transaction(producer, commit=False)
    driver.flush()
    driver.checkpoint()
    driver.append(1)


def idempotent_producers_and_restarts(driver: Driver) -> None:
    producer = Producer(5)
    for _ in range(8):
        driver.append(2, producer=producer)
    driver.close()
    driver.reopen(clean=True)
    for _ in range(5):
        driver.append(2, producer=producer)
    driver.flush()
    driver.append(1, producer=producer)
    driver.log.abandon()
    driver.reopen(clean=False)
    driver.append(1)
    driver.close()
    driver.promise(clean=True)
    driver.keep("stopped cleanly")


def truncations(driver: Driver) -> None:
    for _ in range(14):
        driver.append(2)
    driver.flush()
    driver.checkpoint()
    driver.truncate(17)
    driver.append(2)
    driver.append(3)
    driver.append(2)
    driver.flush()
    driver.append(1)
    driver.truncate(4)
    driver.append(2)
    driver.append(3, size=60)
    driver.flush()
    driver.checkpoint()
    driver.append(2)
    driver.truncate(0)
    driver.append(2)
    driver.flush()
    driver.append(2)


def truncated_transactions(driver: Driver) -> None:
    """An abort is cut away and the transaction committed in its place."""
    first, second = Producer(7), Producer(8)
    driver.append(2, producer=first, transactional=True)
    driver.append(1, producer=second, transactional=True)
    driver.end_transaction(second, commit=False)
    driver.flush()
    driver.checkpoint()
    end_offset = driver.log.log_end_offset
    driver.end_transaction(first, commit=False)
    driver.flush()
    driver.truncate(end_offset)
    driver.end_transaction(first, commit=True)
    driver.flush()
    driver.append(1, producer=first, transactional=True)


def a_truncation_of_whole_segments(driver: Driver) -> None:
    """What is cut away lies in later segments; what is left is never rolled again."""
    for _ in range(14):
        driver.append(2)
    driver.flush()
    driver.checkpoint()
    driver.truncate(16)
    driver.append(1)
    driver.flush()
    driver.append(1)


def deletions(driver: Driver) -> None:
    for _ in range(22):
        driver.append(2)
    driver.flush()
    driver.checkpoint()
    driver.delete_to(13)
    driver.append(2)
    driver.checkpoint()
    driver.delete_to(30)
    driver.flush()
    driver.append(2)
    driver.append(2)
    driver.close()


def leader_epochs(driver: Driver) -> None:
    for epoch in range(6):
        driver.leader_epoch = epoch * 2
        driver.append(2)
        driver.append(2)
        if epoch % 2:
            driver.flush()
            driver.checkpoint()
    driver.truncate(9)
    driver.leader_epoch = 20
    driver.append(2)
    driver.flush()
    driver.append(1)


def work_after_a_crash(driver: Driver) -> None:
    """What recovery cut away stays away, also when nothing is left to flush in that segment."""
    driver.append(2)
    driver.flush()
    driver.checkpoint()
    for seed in range(6):
        driver.append(2, size=60)
        driver.crash(CrashMode.TORN, seed)
        driver.roll()
        driver.append(2)
        driver.flush()
        driver.checkpoint()


def much_that_waits_for_its_flush(driver: Driver) -> None:
    """Of several pages that were never synced, a later one may be kept and an earlier one lost."""
    driver.append(2, size=60)
    driver.flush()
    driver.checkpoint()
    producer = Producer(7)
    for _ in range(9):
        driver.append(2, producer=producer, transactional=True, size=120)
    driver.end_transaction(producer, commit=False)
    driver.append(2, size=300)
    driver.append(1)


SCENARIOS = (
    appends_and_rolls,
    transactions,
    an_abort_after_a_flush,
    idempotent_producers_and_restarts,
    truncations,
    truncated_transactions,
    a_truncation_of_whole_segments,
    deletions,
    leader_epochs,
    work_after_a_crash,
    much_that_waits_for_its_flush,
)


def run(scenario: Callable[[Driver], None]) -> Driver:
    driver = Driver()
    driver.observe()
    scenario(driver)
    driver.keep("end")
    return driver


def crashes(moments: list[Moment], seeds: int) -> Iterator[tuple[Moment, CrashMode, int]]:
    for moment in moments:
        for mode in CrashMode:
            for seed in range(1 if mode in FIXED else seeds):
                yield moment, mode, seed


def check_all(driver: Driver, points: Iterator[tuple[Moment, CrashMode, int]]) -> int:
    count = 0
    for moment, mode, seed in points:
        count += 1
        try:
            check_after(moment, mode, seed, driver)
        except Exception as error:
            index = driver.moments.index(moment)
            error.add_note(f"at moment {index} ({moment.name}), {mode}, seed {seed}")
            raise
    return count


def check_second_crashes(driver: Driver, *, every: int, seeds: int) -> int:
    """Crash, then crash again before every operation of the recovery."""
    count = 0
    points = list(crashes(driver.moments, 1))[::every]
    for moment, mode, seed in points:
        files = moment.files.after_crash(mode, seed)
        inner: list[SimulatedFileSystem] = []
        files.observer = lambda _, files=files, inner=inner: inner.append(files.clone())
        open_after(files, moment.promises)
        again = [Moment(f"{moment.name}, {mode}", each, moment.promises) for each in inner]
        for second, second_mode, second_seed in crashes(again, seeds):
            count += 1
            try:
                check_after(second, second_mode, second_seed, driver)
            except Exception as error:
                index = driver.moments.index(moment)
                error.add_note(
                    f"at moment {index} ({moment.name}), {mode}, seed {seed}; then at operation "
                    f"{again.index(second) + 1} of recovery, {second_mode}, seed {second_seed}"
                )
                raise
    return count


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_flushed_batches_survive_a_crash_at_any_operation_and_nothing_else_is_served(
    scenario: Callable[[Driver], None], capsys: pytest.CaptureFixture[str]
) -> None:
    driver = run(scenario)
    count = check_all(driver, crashes(driver.moments, 1))
    with capsys.disabled():
        print(f" {scenario.__name__}: {count} crash points", end="")
    assert count > 100


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_second_crash_inside_recovery_changes_nothing(
    scenario: Callable[[Driver], None], capsys: pytest.CaptureFixture[str]
) -> None:
    driver = run(scenario)
    count = check_second_crashes(driver, every=len(driver.moments) // 2, seeds=1)
    with capsys.disabled():
        print(f" {scenario.__name__}: {count} crash points inside recovery", end="")
    assert count > 30


def test_a_truncation_is_durable_before_anything_is_written_in_its_place() -> None:
    """Else old batches could come back behind a new one that did not arrive whole: damage."""
    driver = Driver()
    for _ in range(8):
        driver.append(2)
    driver.flush()
    driver.truncate(4)
    driver.append(2, size=300)  # over the sector that the old batches end in
    driver.keep("appended")
    for seed in range(300):
        log = check_after(driver.moments[-1], CrashMode.REORDER, seed, driver)
        assert not log.is_damaged


@pytest.mark.deep
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_whole_grid_of_crashes(
    scenario: Callable[[Driver], None], capsys: pytest.CaptureFixture[str]
) -> None:
    driver = run(scenario)
    count = check_all(driver, crashes(driver.moments, 30))
    count += check_second_crashes(driver, every=3, seeds=3)
    with capsys.disabled():
        print(f" {scenario.__name__}: {count} crash points", end="")
