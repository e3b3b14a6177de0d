"""A broker killed within a commit: whoever asked gets a definite answer, and one copy is there.

There is no hook to be killed at: the files tell how far it has come, and it is killed as soon as
they do. Where exactly that is does not matter; what comes of it must always be the same.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from killing import KilledBroker

import stratalog
from handover_staging import rows, stage, staged_left
from stratalog.handover import open_handover
from stratalog.storage.commits.committing import CommitResult
from stratalog.storage.commits.manifest import AppVersion, Manifest

SECONDS = 120
RECORDS = 40
SIZES = {0: 20, 1: 1}  # batches of each partition: one is adopted, one is appended


@contextmanager
def broker_on(path: Path) -> Iterator[KilledBroker]:
    path.mkdir()
    broker = KilledBroker(
        path,
        log_dir_reserve_bytes="0",
        log_commit_append_max_bytes="1000000",
        log_initial_task_delay_ms="3600000",  # what is staged is older than a week, and stays
    )
    broker.start()
    broker.wait_until_ready()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_server, "log_level": 0})
        config = {"segment.bytes": "4000000", "max.message.bytes": "2000000"}
        admin.create_topics([NewTopic("orders", 2, 1, config=config)])["orders"].result(SECONDS)
        yield broker
    finally:
        broker.make_sure_it_is_gone()


def staged(path: Path, version: int) -> Manifest:
    return stage(
        open_handover(path),
        "orders",
        {each: [rows(0, RECORDS, 15_000)] * count for each, count in SIZES.items()},
        app=AppVersion(name="q", version=version),
    )


def journal(path: Path) -> bytes:
    try:
        return (path / ".stratalog-commits").read_bytes()
    except FileNotFoundError:
        return b""


# How far it has come, by what can be seen of it.
POINTS: dict[str, Callable[[Path], bool]] = {
    "asked": lambda path: bool(staged_left(path)),
    "checking": lambda path: any(each.suffix == ".index" for each in staged_left(path)),
    "checked": lambda path: bool(journal(path)),
    "committed": lambda path: b'"type":"commit"' in journal(path),
    "placed": lambda path: len(list((path / "orders-0").glob("*.log"))) > 1,
    "done": lambda path: b'"type":"done"' in journal(path),
}


def wait_for(is_there: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not is_there():
        assert time.monotonic() < until, "it does not come that far"


def records_in(path: Path) -> dict[int, int]:
    """How many there are of each partition; all that was staged is there in order, and whole."""
    found = {}
    batch = [b"s%d" % number for number in range(RECORDS)]
    with stratalog.open_directory(path, topics={"orders": {}}) as logs:
        assert logs.check() == []
        for partition in SIZES:
            keys = logs.log("orders", partition).to_arrow(columns=["key"])["key"].to_pylist()
            assert keys == batch * (len(keys) // RECORDS)
            found[partition] = len(keys)
    return found


def commit_and_kill(
    path: Path, broker: KilledBroker, manifest: Manifest, is_there: Callable[[], bool]
) -> tuple[threading.Thread, list[CommitResult | Exception]]:
    answers: list[CommitResult | Exception] = []

    def ask() -> None:
        try:
            answers.append(open_handover(path).commit(manifest, seconds=SECONDS))
        except Exception as error:  # noqa: BLE001 - looked at by the test
            answers.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    wait_for(is_there)
    broker.kill()
    return thread, answers


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Side by side, brokers share what Python compiles for the first of them."""
    return tmp_path_factory.mktemp("kills")


@pytest.mark.parametrize(("number", "point"), list(enumerate(POINTS)))
def test_a_broker_killed_within_a_commit_leaves_it_made_once(
    places: Path, number: int, point: str
) -> None:
    path, comes_back = places / point, number % 2 == 0
    with broker_on(path) as broker:
        manifest = staged(path, version=0)
        thread, answers = commit_and_kill(path, broker, manifest, lambda: POINTS[point](path))
        if comes_back:
            broker.start()
            broker.wait_until_ready()
        thread.join(SECONDS)
        (answer,) = answers
        assert isinstance(answer, CommitResult), answer
        handover = open_handover(path)
        assert handover.commit(manifest).status == "already committed"
        handover.commit(staged(path, version=0))  # another id, the same version of the stream
        if comes_back:
            broker.stop()
    assert records_in(path) == {each: count * RECORDS for each, count in SIZES.items()}


@pytest.mark.deep
def test_fifty_commits_with_a_kill_at_any_time_of_each_are_all_made_once(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    dice = random.Random(11)
    with broker_on(path) as broker:
        for version in range(50):
            manifest = staged(path, version)
            kill_at = time.monotonic() + dice.random() * 0.8
            thread, answers = commit_and_kill(
                path, broker, manifest, lambda at=kill_at: time.monotonic() >= at
            )
            broker.start()
            broker.wait_until_ready()
            thread.join(SECONDS)
            assert [type(each) for each in answers] == [CommitResult], answers
        broker.stop()
    assert records_in(path) == {each: 50 * count * RECORDS for each, count in SIZES.items()}
