"""Files that wait to be unlinked."""

from hypothesis import given
from hypothesis import strategies as st

from stratalog.storage.deletion import PendingDeletes
from stratalog.storage.layout import TopicPartition
from stratalog.testing import SimulatedFileSystem

ORDERS = TopicPartition("orders", 0)


def disk(*names: str) -> SimulatedFileSystem:
    files = SimulatedFileSystem()
    for name in names:
        files.put(f"/{name}", b"")
    return files


def pending_deletes(files: SimulatedFileSystem) -> PendingDeletes:
    return PendingDeletes(files, ORDERS, set())


@given(st.lists(st.integers(0, 20), max_size=10), st.integers(0, 20))
def test_a_file_is_unlinked_when_its_time_has_come_and_not_before(
    due: list[int], now_ms: int
) -> None:
    files = disk(*(f"{number}.log.deleted" for number in range(len(due))))
    pending = pending_deletes(files)
    for number, due_ms in enumerate(due):
        pending.add([f"/{number}.log.deleted"], due_ms)
    went = [number for number, due_ms in enumerate(due) if due_ms <= now_ms]
    assert pending.run(now_ms) == len(went)
    assert len(pending) == len(due) - len(went)
    left = {f"{number}.log.deleted" for number in range(len(due)) if number not in went}
    assert set(files.tree()) == left


def test_the_files_of_one_segment_go_in_the_order_they_were_given() -> None:
    paths = [f"/0.{kind}.deleted" for kind in ("log", "index", "timeindex", "txnindex")]
    files = disk(*(path[1:] for path in paths))
    pending = pending_deletes(files)
    pending.add(paths, 5)
    pending.run(5)
    assert [operation.path for operation in files.trace] == paths


def test_a_file_that_is_gone_already_is_no_mistake() -> None:
    files = disk("b.deleted")
    pending = pending_deletes(files)
    pending.add(["/a.deleted", "/b.deleted"], 0)
    pending.run(0)
    assert files.tree() == {}
    assert len(pending) == 0


def test_adding_nothing_waits_for_nothing() -> None:
    pending = pending_deletes(disk())
    pending.add([], 0)
    assert len(pending) == 0
    assert pending.run(10) == 0


def test_a_log_is_noted_when_something_begins_to_wait() -> None:
    noted: set[TopicPartition] = set()
    pending = PendingDeletes(disk("a.deleted"), ORDERS, noted)
    pending.add([], 0)
    assert noted == set()
    pending.add(["/a.deleted"], 0)
    assert noted == {ORDERS}
