"""What takes the disk of a log directory: every byte counts once, and each says why it stays."""

import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stratalog
from stratalog.records import Record
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition
from stratalog.storage.leases import Lease
from stratalog.storage.usage import (
    ListedFile,
    Owner,
    Stay,
    Surroundings,
    Usage,
    UsageKind,
    plan_usage,
)
from stratalog.storage.usage_listing import look_at_usage

NOW_MS = 1_700_000_000_000
ID = "0123456789abcdef0123456789abcdef"
BASE = "00000000000000000042"
NAMES = {
    f"orders-0/{BASE}.log": UsageKind.LOG,
    f"orders-0/{BASE}.timeindex": UsageKind.INDEX,
    f"orders-0/{BASE}.snapshot": UsageKind.STATE,
    "orders-0/leader-epoch-checkpoint": UsageKind.STATE,
    "orders-0/.stratalog/rolls": UsageKind.STATE,
    "meta.properties": UsageKind.STATE,
    ".stratalog-metadata.db-wal": UsageKind.STATE,
    f"orders-0/{BASE}.log.cleaned": UsageKind.CLEANING,
    f"orders-0/{BASE}.index.deleted": UsageKind.DELETING,
    f"orders-1.{ID}-delete/{BASE}.log": UsageKind.DELETING,
    f"orders-0/.stratalog/leased/{BASE}-{BASE}-0.log": UsageKind.LEASED,
    f"orders-0/.stratalog/staging/{ID}/00007-0-00000.log": UsageKind.STAGED,
    ".stratalog-restoring/orders-0/part": UsageKind.STAGED,
    f"orders-0/.stratalog/cut/{BASE}.log.0.20240501": UsageKind.KEPT_ASIDE,
    f"orders-1.{ID}-stray/{BASE}.log": UsageKind.OTHERS,
    f"orders-1.{ID}-future/{BASE}.log": UsageKind.OTHERS,
    "remote-log-index-cache/1_abc.index": UsageKind.OTHERS,
    "orders-0/notes.txt": UsageKind.OTHERS,
    "lost+found/x": UsageKind.OTHERS,
    "core.1234": UsageKind.OTHERS,
}


def used(*names: str, **around: object) -> Usage:
    files = [ListedFile(name, 10, 4096) for name in names]
    return plan_usage(files, Surroundings(log_directory="/logs", now_ms=NOW_MS, **around))  # type: ignore[arg-type]


def the_stay(usage: Usage) -> Stay:
    (found,) = usage.stays
    return found


@pytest.mark.parametrize(("name", "kind"), NAMES.items())
def test_every_name_has_a_kind(name: str, kind: UsageKind) -> None:
    (row,) = used(name).rows

    assert row.kind is kind
    assert row.topic == ("orders" if name.startswith("orders") else "")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(NAMES)) | st.text("abc-0./", min_size=1),
            st.integers(0, 2**40),
            st.integers(0, 2**40),
        )
    )
)
def test_every_byte_counts_once_by_topic_and_once_by_reason(
    files: list[tuple[str, int, int]],
) -> None:
    usage = plan_usage([ListedFile(*each) for each in files], Surroundings(log_directory="/logs"))

    sizes = [sum(column) for column in zip(*[(1, *each[1:]) for each in files], strict=True)]
    assert list(usage.total) == (sizes or [0, 0, 0])
    for slot in range(3):
        assert sum(stay.amount[slot] for stay in usage.stays) == usage.total[slot]


def test_holes_are_preallocated_and_take_no_disk() -> None:
    usage = plan_usage(
        [ListedFile(f"orders-0/{BASE}.index", 10_485_760, 4096)], Surroundings(log_directory="/l")
    )

    amounts = {row.kind: row.amount for row in usage.rows}
    assert amounts[UsageKind.INDEX] == (1, 4096, 4096)
    assert amounts[UsageKind.PREALLOCATED] == (0, 10_485_760 - 4096, 0)


def test_a_lease_is_named_with_its_holder_and_the_command_that_ends_it() -> None:
    lease = Lease(
        lease_id=ID,
        holder="spark",
        created_ms=0,
        until_ms=NOW_MS + 1,
        ranges={TopicPartition("orders", 0): (0, 100)},
    )
    leased = f"orders-0/.stratalog/leased/{42:020d}-{99:020d}-0.log"

    held = the_stay(used(leased, leases=(lease,)))
    over = the_stay(used(leased, leases=(lease.until(NOW_MS),)))

    assert held.why.startswith("kept for 'spark' until 2023-11-14")
    assert held.command == f"stratalog lease release --log-dir /logs {ID}"
    assert (over.why, over.command) == (
        "no lease holds it any more; its next owner removes it",
        None,
    )
    deleted = used(f"orders-0.{ID}-delete/{BASE}.log", leases=(lease,))
    assert the_stay(deleted).kind is UsageKind.LEASED


def test_what_waits_for_deletion_goes_by_itself_only_if_somebody_owns_the_directory() -> None:
    name = f"orders-0/{BASE}.log.deleted"

    assert the_stay(used(name, owner=Owner.KAFKA)).command is None
    assert the_stay(used(name)).command == "stratalog serve --log-dir /logs"


def test_a_file_without_a_name_counts_while_its_owner_has_it_open(tmp_path: Path) -> None:
    def looked_at() -> dict[UsageKind, int]:
        usage = look_at_usage(
            OsFileSystem(),
            str(tmp_path),
            owner=Owner.STRATALOG,
            now_ms=NOW_MS,
            owner_pid=os.getpid(),
        )
        return {row.kind: row.amount.disk_bytes for row in usage.rows if row.topic == "orders"}

    path = tmp_path / "orders-0" / f"{BASE}.log.deleted"
    path.parent.mkdir()
    with path.open("wb") as held, path.open("rb"):
        held.write(bytes(10_000))
        held.flush()
        disk_bytes = path.stat().st_blocks * 512
        path.unlink()
        assert looked_at() == {UsageKind.STILL_OPEN: disk_bytes}
    assert looked_at() == {}


def test_what_is_staged_is_held_until_its_time() -> None:
    name = f"orders-0/.stratalog/staging/{ID}/0.log"

    assert "held until" in the_stay(used(name, staged_until_ms={ID: NOW_MS + 1})).why
    assert "never committed" in the_stay(used(name, staged_until_ms={ID: NOW_MS})).why


def test_the_largest_places_are_named_and_the_rest_together() -> None:
    usage = plan_usage(
        [ListedFile(f"it's-{number}.tmp", number, number) for number in range(25)],
        Surroundings(log_directory="/logs"),
    )

    assert len(usage.stays) == 21
    assert shlex.split(usage.stays[0].command or "") == ["rm", "-r", "/logs/it's-24.tmp"]
    assert usage.stays[-1].place == "5 more"
    assert usage.stays[-1].amount == (5, 0 + 1 + 2 + 3 + 4, 10)


def test_a_listing_agrees_with_the_disk_and_counts_hard_links_once(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path, create=True) as logs:
        logs.create("orders").append([Record(b"key", bytes(100_000))])
        (tmp_path / "orders-0" / "copy").hardlink_to(next(tmp_path.glob("orders-0/*.log")))
        usage = look_at_usage(OsFileSystem(), str(tmp_path), owner=Owner.STRATALOG, now_ms=NOW_MS)

        found = {path.stat().st_ino: path.stat() for path in tmp_path.rglob("*") if path.is_file()}
        assert usage.total.disk_bytes == sum(each.st_blocks * 512 for each in found.values())
        assert usage.total.files == len(found) + 1


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        (f"orders-1.{ID}-future/{BASE}.log", Owner.KAFKA),
        (f"orders-1.{ID}-future/{BASE}.log", Owner.UNKNOWN),
        (".stratalog-restoring/orders-0/part", Owner.NONE),
        (".stratalog-restoring/orders-0/part", Owner.STRATALOG),
        ("lost+found/x", Owner.NONE),
    ],
)
def test_nobody_is_told_to_remove_what_somebody_may_be_writing(name: str, owner: Owner) -> None:
    assert the_stay(used(name, owner=owner)).command is None


def test_a_move_that_nobody_goes_on_with_can_be_removed() -> None:
    name = f"orders-1.{ID}-future/{BASE}.log"

    assert the_stay(used(name)).command == f"rm -r /logs/orders-1.{ID}-future"
