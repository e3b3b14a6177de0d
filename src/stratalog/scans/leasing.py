"""Holding the files of a scan: asking the owner of a log directory for a lease, or leaving one.

    our broker runs        it is asked over its admin port
    it cannot be asked     a lease is left as a file, which it takes up in half a minute
    nobody owns it         the same, for whoever owns it next
    Apache Kafka owns it   nothing can be held

A scan without a lease is a scan all the same: it fails, with the exact range, only if something
takes its files away. So nothing here raises for want of a permission or of an answer; it says why
nothing is held.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stratalog.clock import Clock, SystemClock
from stratalog.directories.owner_client import Answer, ask
from stratalog.directories.owners import find_owner
from stratalog.errors import DiskError, StorageError
from stratalog.scans.slices import ScanTask
from stratalog.scans.snapshot import DirectorySnapshot
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.layout import LOCK_FILE, META_PROPERTIES, TopicPartition, lease_file
from stratalog.storage.leases import (
    Lease,
    cut_holder,
    is_lease_id,
    list_lease_files,
    new_lease_id,
    ranges_to_json,
    remove_lease,
    renew_lease_file,
    write_lease,
)
from stratalog.storage.owner_file import Owner, read_owner

SECONDS = 600
_CONNECT_SECONDS = 5
_RENEWALS_A_LEASE = 3


@dataclass(frozen=True, slots=True)
class Holding:
    """What a scan holds. ``why_not`` is a sentence where that is nothing, and empty else."""

    lease_ids: tuple[str, ...] = ()
    why_not: str = ""

    @property
    def is_held(self) -> bool:
        return bool(self.lease_ids)


# --- for whoever plans a scan -----------------------------------------------------------------


def hold(
    snapshot: DirectorySnapshot,
    ranges: Mapping[TopicPartition, tuple[int, int]] | None = None,
    *,
    seconds: float = SECONDS,
    holder: str,
    files: FileSystem | None = None,
    clock: Clock | None = None,
) -> Holding:
    """Hold the offsets [from, end) of ``ranges``, or all that the snapshot shows."""
    if ranges is None:
        ranges = {
            key: (each.start_offset, each.high_watermark)
            for key, each in snapshot.partitions.items()
        }
    return hold_ranges(
        snapshot.path, ranges, seconds=seconds, holder=holder, files=files, clock=clock
    )


def hold_tasks(
    tasks: Sequence[ScanTask], *, seconds: float = SECONDS, holder: str, clock: Clock | None = None
) -> Holding:
    """Hold what ``tasks``, which are of one scan, are going to read."""
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for task in tasks:
        for each in task.slices:
            known = ranges.get(each.topic_partition, (each.start_offset, each.end_offset))
            ranges[each.topic_partition] = (
                min(known[0], each.start_offset),
                max(known[1], each.end_offset),
            )
    if not ranges:
        return Holding(why_not="there is nothing to be read")
    return hold_ranges(tasks[0].log_directory, ranges, seconds=seconds, holder=holder, clock=clock)


def hold_ranges(
    log_directory: str,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    *,
    seconds: float = SECONDS,
    holder: str,
    files: FileSystem | None = None,
    clock: Clock | None = None,
) -> Holding:
    wanted = {key: held for key, held in ranges.items() if held[0] < held[1]}
    if not wanted:
        return Holding(why_not="there is nothing to be read")
    files = files or OsFileSystem()
    ownership, owner = find_owner(log_directory)
    if owner is not None:
        body = {"holder": holder, "seconds": seconds, "ranges": ranges_to_json(wanted)}
        answer = _ask(owner, "/v1/leases", body)
        lease_id = answer.body.get("id")
        if isinstance(lease_id, str) and is_lease_id(lease_id):
            return Holding((lease_id,))
        if answer.status:
            return Holding(why_not=f"process {owner.pid} gives no lease: {answer.reason}")
    if ownership.kind == "kafka":
        return Holding(
            why_not=f"process {ownership.pid} owns {log_directory} and keeps no files for others"
        )
    if not any(files.exists(f"{log_directory}/{name}") for name in (META_PROPERTIES, LOCK_FILE)):
        return Holding(why_not=f"{log_directory} never had an owner: nobody would keep the lease")
    return _leave(files, log_directory, wanted, seconds, holder, clock or SystemClock())


def _leave(
    files: FileSystem,
    log_directory: str,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    seconds: float,
    holder: str,
    clock: Clock,
) -> Holding:
    now_ms = clock.now_ms()
    lease = Lease(
        lease_id=new_lease_id(),
        holder=cut_holder(holder),
        created_ms=now_ms,
        until_ms=now_ms + int(seconds * 1000),
        ranges=ranges,
    )
    try:
        write_lease(files, log_directory, lease)
    except DiskError as error:
        return Holding(why_not=f"no lease can be left: {error}")
    _tidy(files, log_directory, now_ms)
    return Holding((lease.lease_id,))


def _tidy(files: FileSystem, log_directory: str, now_ms: int) -> None:
    """Where nobody owns the directory, nobody else removes leases that are over."""
    with suppress(DiskError):
        for lease_id, until_ms in list_lease_files(files, log_directory).items():
            if until_ms <= now_ms:
                remove_lease(files, log_directory, lease_id)


# --- for whoever reads ------------------------------------------------------------------------


def renew(
    log_directory: str,
    lease_ids: Sequence[str],
    seconds: float = SECONDS,
    *,
    files: FileSystem | None = None,
    clock: Clock | None = None,
) -> bool:
    """Let leases last so long from now; whether all of them do."""
    now_ms = (clock or SystemClock()).now_ms()
    owner = _reach(log_directory)
    is_held = bool(lease_ids)
    for lease_id in lease_ids:
        if owner is not None:
            answer = _ask(owner, f"/v1/leases/{lease_id}/renew", {"seconds": seconds})
            if answer.status:
                is_held &= answer.status == 200
                continue
        is_held &= _move(files or OsFileSystem(), log_directory, lease_id, now_ms, seconds)
    return is_held


def _move(
    files: FileSystem, log_directory: str, lease_id: str, now_ms: int, seconds: float
) -> bool:
    try:
        found = files.stat(lease_file(log_directory, lease_id))
        if found is None or found.modified_ms <= now_ms:
            return False
        until_ms = max(now_ms + int(seconds * 1000), found.modified_ms)
        renew_lease_file(files, log_directory, lease_id, until_ms)
    except DiskError:
        return False
    return True


def release(
    log_directory: str, lease_ids: Sequence[str], *, files: FileSystem | None = None
) -> bool:
    """End leases now; whether all of them were there."""
    owner = _reach(log_directory)
    files = files or OsFileSystem()
    is_released = True
    for lease_id in lease_ids:
        if owner is not None:
            answer = _ask(owner, f"/v1/leases/{lease_id}/release", {})
            if answer.status:
                is_released &= answer.status == 200
                continue
        try:
            is_released &= files.exists(lease_file(log_directory, lease_id))
            remove_lease(files, log_directory, lease_id)
        except DiskError:
            is_released = False
    return is_released


class LeaseRenewal:
    """Renews leases while somebody reads: to be called again and again, as often as one likes."""

    def __init__(
        self,
        log_directory: str,
        lease_ids: Sequence[str],
        seconds: float = SECONDS,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log_directory = log_directory
        self._lease_ids = lease_ids
        self._seconds = seconds
        self._monotonic = monotonic
        # At once: a task may begin long after its scan was planned.
        self._due = monotonic()

    def maybe_renew(self) -> None:
        """Renew what is held, if a third of its time is over; nothing if that fails."""
        if not self._lease_ids or self._monotonic() < self._due:
            return
        self._due = self._monotonic() + self._seconds / _RENEWALS_A_LEASE
        renew(self._log_directory, self._lease_ids, self._seconds)


# --- asking -----------------------------------------------------------------------------------


def _reach(log_directory: str) -> Owner | None:
    try:
        owner = read_owner(log_directory)
    except StorageError:
        return None
    return owner if owner.admin else None


def ask_leases(log_directory: str) -> list[dict[str, Any]] | None:
    """What the owner of a directory says of its leases; None if there is none that can be asked."""
    owner = _reach(log_directory)
    if owner is None:
        return None
    leases = _ask(owner, "/v1/leases").body.get("leases")
    return leases if isinstance(leases, list) else None


def _ask(owner: Owner, path: str, body: dict[str, Any] | None = None) -> Answer:
    # Whoever connects is given all the time there is: a broker that is busy still keeps leases, and
    # a file beside its own would be a second one.
    content = None if body is None else json.dumps(body).encode()
    return ask(owner, path, content, connect_seconds=_CONNECT_SECONDS)
