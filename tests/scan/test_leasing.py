"""Holding the files of a scan: who is asked, what is left where nobody can be, and why not."""

import fcntl
import multiprocessing
import os
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

import stratalog
from stratalog import Record
from stratalog.clock import SystemClock
from stratalog.scans import leasing
from stratalog.scans.leasing import Holding, LeaseRenewal
from stratalog.scans.selection import Subscribe
from stratalog.scans.slices import FileIdentity, ScanSlice, ScanTask
from stratalog.scans.snapshot import take_snapshot
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition, lease_file
from stratalog.storage.leases import read_lease
from stratalog.storage.owner_file import Owner, write_owner_files

ORDERS = TopicPartition("orders", 0)
CONFIG = {"internal.segment.bytes": "600", "retention.ms": "-1", "file.delete.delay.ms": "0"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A directory that was written and that nobody owns now."""
    place = tmp_path / "data"
    with stratalog.open_directory(place, create=True) as logs:
        orders = logs.create("orders", config=CONFIG)
        for number in range(12):
            orders.append([Record(b"k", b"v%d" % number * 50)])
    return str(place)


def hold(path: str, seconds: float = 600) -> Holding:
    return leasing.hold_ranges(path, {ORDERS: (0, 12)}, seconds=seconds, holder="a test")


def until_ms(path: str, holding: Holding) -> int:
    found = OsFileSystem().stat(lease_file(path, holding.lease_ids[0]))
    assert found is not None
    return found.modified_ms


def test_where_nobody_owns_the_directory_a_lease_is_left_as_a_file(path: str) -> None:
    before_ms = SystemClock().now_ms()
    holding = leasing.hold(
        take_snapshot(path, Subscribe(("orders",))), seconds=60, holder="x" * 300
    )
    assert holding.is_held
    lease = read_lease(OsFileSystem(), path, holding.lease_ids[0])
    assert lease is not None
    assert lease.ranges == {ORDERS: (0, 12)}
    assert lease.holder == "x" * 200
    assert 60_000 <= lease.until_ms - before_ms < 120_000


def test_it_is_renewed_and_released_as_a_file(path: str) -> None:
    holding = hold(path, seconds=60)
    before_ms = until_ms(path, holding)
    assert leasing.renew(path, holding.lease_ids, 600)
    assert until_ms(path, holding) >= before_ms + 500_000
    assert leasing.renew(path, holding.lease_ids, 1), "never shorter"
    assert until_ms(path, holding) >= before_ms + 500_000
    assert leasing.release(path, holding.lease_ids)
    assert not leasing.release(path, holding.lease_ids)
    assert not leasing.renew(path, holding.lease_ids)


def test_a_lease_that_is_over_is_not_renewed_and_goes_when_the_next_is_left(path: str) -> None:
    over = hold(path)
    os.utime(lease_file(path, over.lease_ids[0]), (1, 1))
    assert not leasing.renew(path, over.lease_ids)
    assert hold(path).is_held
    assert not Path(lease_file(path, over.lease_ids[0])).exists()


def test_the_next_owner_keeps_what_it_holds(path: str) -> None:
    before = {each.name: each.read_bytes() for each in Path(path).glob("orders-0/*.log")}
    holding = hold(path)
    with stratalog.open_directory(path, topics={"orders": CONFIG}) as logs:
        logs.log("orders").delete_records(12)
        logs._manager.check_retention(logs._manager.get(ORDERS), SystemClock().now_ms())
        kept = [each.read_bytes() for each in sorted(Path(path).glob("*/.stratalog/leased/*.log"))]
        assert kept == list(dict(sorted(before.items())).values())[: len(kept)]
        assert len(kept) == len(before) - 1, "the last is still the log's"
        leasing.release(path, holding.lease_ids)
        logs.maintain()
        logs._manager.delete_due(SystemClock().now_ms())
        assert not list(Path(path).glob("*/.stratalog/leased/*"))


def test_an_owner_in_the_same_process_takes_up_what_is_left_when_it_maintains(path: str) -> None:
    with stratalog.open_directory(path, topics={"orders": CONFIG}) as logs:
        holding = hold(path)
        assert holding.is_held, holding.why_not
        logs.maintain()
        assert set(holding.lease_ids) == set(logs._manager.leases.book.leases)


def own(path: str, is_owned: Event, is_over: Event) -> None:
    """As Apache Kafka does: the lock, and no owner file of ours."""
    with Path(path, ".lock").open("r+b") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        is_owned.set()
        is_over.wait(240)


def test_under_apache_kafka_nothing_is_held_and_nothing_is_left(path: str) -> None:
    methods = multiprocessing.get_context("spawn")
    is_owned, is_over = methods.Event(), methods.Event()
    owner = methods.Process(target=own, args=(path, is_owned, is_over), daemon=True)
    owner.start()
    try:
        assert is_owned.wait(120)
        holding = hold(path)
    finally:
        is_over.set()
        owner.join(120)
    assert not holding.is_held
    assert f"process {owner.pid} owns {path}" in holding.why_not
    assert not list(Path(path).glob(".stratalog-lease-*"))


def test_a_copy_that_never_had_an_owner_is_not_littered(path: str, tmp_path: Path) -> None:
    place = tmp_path / "copies"
    place.mkdir()
    (Path(path) / "orders-0").rename(place / "orders-0")
    holding = hold(str(place))
    assert not holding.is_held
    assert "never had an owner" in holding.why_not
    assert [each.name for each in place.iterdir()] == ["orders-0"]


def test_without_the_right_to_write_it_says_why_nothing_is_held(path: str) -> None:
    class Refusing(OsFileSystem):
        def open(self, path: str, *, create: bool = False, writable: bool = True):  # type: ignore[no-untyped-def]
            if create:
                path = "/proc/1/none"
            return super().open(path, create=create, writable=writable)

    holding = leasing.hold_ranges(path, {ORDERS: (0, 12)}, holder="a test", files=Refusing())
    assert not holding.is_held
    assert "no lease can be left" in holding.why_not


def test_nothing_is_held_where_there_is_nothing_to_read(path: str) -> None:
    holding = leasing.hold_ranges(path, {ORDERS: (5, 5)}, holder="a test")
    assert (holding.is_held, holding.why_not) == (False, "there is nothing to be read")
    assert leasing.hold_tasks([], holder="a test").why_not == "there is nothing to be read"


def test_an_owner_that_has_gone_is_no_reason_to_wait(path: str) -> None:
    gone = Owner(pid=os.getpid(), admin="http://127.0.0.1:9", token="x")
    write_owner_files([path], gone)
    assert hold(path).is_held, "its port is closed, and it has no lock: nobody owns the directory"
    Path(path, ".stratalog-owner").write_text("garbled")
    assert hold(path).is_held


def test_tasks_hold_what_they_read_of_each_partition(path: str) -> None:
    def task(*offsets: tuple[int, int]) -> ScanTask:
        identity = FileIdentity(1, 2, 3)
        slices = tuple(
            ScanSlice(ORDERS, f"{path}/orders-0", "", 0, identity, start, end, 0, 1)
            for start, end in offsets
        )
        return ScanTask(slices, path)

    holding = leasing.hold_tasks([task((6, 8), (8, 9)), task((2, 4))], holder="a test")
    lease = read_lease(OsFileSystem(), path, holding.lease_ids[0])
    assert lease is not None
    assert lease.ranges == {ORDERS: (2, 9)}


def test_a_task_renews_at_once_and_then_three_times_a_lease(path: str) -> None:
    holding = hold(path, seconds=600)
    now = [0.0]
    renewal = LeaseRenewal(path, holding.lease_ids, 900, monotonic=lambda: now[0])
    moved = []
    for at in (0.0, 1.0, 299.0, 300.0, 301.0, 600.0):
        now[0] = at
        os.utime(lease_file(path, holding.lease_ids[0]), (time.time() + 5, time.time() + 5))
        renewal.maybe_renew()
        if until_ms(path, holding) > (time.time() + 60) * 1000:
            moved.append(at)
    assert moved == [0.0, 300.0, 600.0]
    LeaseRenewal(path, ()).maybe_renew()
