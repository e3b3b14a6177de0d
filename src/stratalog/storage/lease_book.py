"""The owner's side of leases: which there are, and what files are kept for them.

Whatever takes a segment out of a log (retention, truncation, compaction) asks ``keep`` first. If a
lease covers any of its offsets, its files go to ``<partition>/.stratalog/leased/``, under names of
which no two are alike: as ``.deleted`` files they would be swept away by the next start, and the
next segment of the same base offset would replace them. A deleted topic's ``-delete`` directory
stays as it is. When no lease covers them any more, ``take_unleased`` hands them out to be removed.

A lease ends when it is released, when nobody has renewed it in time, and before its time when it
keeps too much: above ``max_bytes`` in a log directory the oldest ends, and as many as are needed
when the directory runs out of space. A lease that ended is not revived.

Confined to the owner's thread, but for ``keep`` while logs are opened, which is asked about one log
on one thread. What waits for a disk to read or write a lease's own file is planned here and done by
any thread.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import count
from os.path import basename, dirname

from stratalog.clock import Clock
from stratalog.errors import DiskError, LeaseError, StratalogError
from stratalog.storage.files import FileSystem
from stratalog.storage.held_files import UNKNOWN_END, HeldFiles, find_held
from stratalog.storage.layout import (
    FILE_NAME_LENGTH_MAX,
    LEASED_DIRECTORY,
    OWN_DIRECTORY,
    SEGMENT_SUFFIXES,
    LeasedFileName,
    TopicPartition,
    leased_file,
    parse_segment_file,
    segment_file,
)
from stratalog.storage.leases import (
    LEASES_MAX,
    RANGES_MAX,
    Lease,
    Ranges,
    cut_holder,
    list_lease_files,
    new_lease_id,
    read_lease,
    renew_lease_file,
    write_lease,
)

_REMEMBERED_MAX = 10_000


class LeaseEnd(Enum):
    """Why a lease is over."""

    RELEASED = "released"
    EXPIRED = "nobody renewed it in time"
    BYTES = "more is held back than log.lease.max.bytes allows"
    SPACE = "the log directory has no space left"


@dataclass(frozen=True, slots=True)
class EndedLease:
    lease: Lease
    end: LeaseEnd
    held_bytes: int


@dataclass(frozen=True, slots=True)
class FoundLeases:
    """What a look at a log directory has found: until when each lease holds by its file, those
    that were not known, and the ids whose file is gone."""

    log_dir: str
    until_ms: dict[str, int]
    new: list[Lease]
    gone: frozenset[str]


class LeaseBook:
    """See the top of this file. ``do`` has something written to a lease's file, soon and in
    order."""

    def __init__(
        self,
        files: FileSystem,
        clock: Clock,
        *,
        max_bytes: int,
        max_ms: int,
        do: Callable[[Callable[[], None]], None],
    ) -> None:
        self.leases: dict[str, Lease] = {}
        # What has ended since somebody last took note of it.
        self.news: deque[EndedLease] = deque(maxlen=_REMEMBERED_MAX)
        self._files = files
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_ms = max_ms
        self._do = do
        self._held: dict[TopicPartition, list[HeldFiles]] = {}
        self._held_bytes: dict[str, int] | None = None  # by log directory; None: to be added up
        self._is_checked = True  # nothing of what is held can have become free
        # The log directories in which each lease has a file, as far as is known.
        self._places: dict[str, set[str]] = {}
        # Leases that ended; and of those their files, to be removed behind what they held.
        self._over: dict[str, None] = {}
        self._ended: list[tuple[str, str]] = []

    def __repr__(self) -> str:
        return f"<LeaseBook of {len(self.leases)} leases, {self.held_bytes()} bytes held>"

    # --- granting and ending ------------------------------------------------------------------

    def grant(self, holder: str, duration_ms: int, ranges: Ranges) -> Lease:
        """A new lease from now on, for at most ``max_ms``. An owner that comes after this one
        knows of it when ``plan_write`` has been done."""
        if len(self.leases) >= LEASES_MAX:
            raise LeaseError(f"there are {len(self.leases)} leases already, and no more are given")
        held = sum(len(each.ranges) for each in self.leases.values())
        if held + len(ranges) > RANGES_MAX:
            raise LeaseError(
                f"leases hold {held} partitions already, and {RANGES_MAX} are the most"
            )
        now_ms = self._clock.now_ms()
        lease = Lease(
            lease_id=new_lease_id(),
            holder=cut_holder(holder),
            created_ms=now_ms,
            until_ms=now_ms + self._bounded(duration_ms),
            ranges=ranges,
        )
        self.leases[lease.lease_id] = lease
        self._places[lease.lease_id] = set()
        return lease

    def plan_write(self, lease: Lease, log_dir: str) -> Callable[[], None]:
        """What writes a lease's file; any thread may run it, and then ``note_written`` counts."""
        return partial(write_lease, self._files, log_dir, lease)

    def note_written(self, lease: Lease, log_dir: str) -> None:
        if lease.lease_id in self.leases:
            self._places[lease.lease_id].add(log_dir)
        else:
            self._ended.append((log_dir, lease.lease_id))

    def _bounded(self, duration_ms: int) -> int:
        return max(0, min(duration_ms, self._max_ms))

    def renew(self, lease_id: str, duration_ms: int) -> Lease | None:
        """Let it last so long from now; never shorter than it would. None: it has ended."""
        lease = self.leases.get(lease_id)
        now_ms = self._clock.now_ms()
        if lease is None or lease.until_ms <= now_ms:
            return None
        until_ms = now_ms + self._bounded(duration_ms)
        if until_ms > lease.until_ms:
            lease = self.leases[lease_id] = lease.until(until_ms)
            for log_dir in self._places[lease_id]:
                self._do(partial(renew_lease_file, self._files, log_dir, lease_id, until_ms))
        return lease

    def release(self, lease_id: str) -> bool:
        """Whether there was such a lease."""
        if lease_id not in self.leases:
            return False
        self._end(lease_id, LeaseEnd.RELEASED)
        return True

    def end_expired(self, now_ms: int) -> None:
        for lease in [each for each in self.leases.values() if each.until_ms <= now_ms]:
            self._end(lease.lease_id, LeaseEnd.EXPIRED)

    def _end(self, lease_id: str, end: LeaseEnd) -> None:
        lease = self.leases[lease_id]
        self.news.append(EndedLease(lease, end, self.bytes_of(lease)))
        del self.leases[lease_id]
        self._ended.extend((log_dir, lease_id) for log_dir in self._places.pop(lease_id))
        self._over[lease_id] = None
        while len(self._over) > _REMEMBERED_MAX:
            del self._over[next(iter(self._over))]
        self._is_checked = False

    # --- files of segments --------------------------------------------------------------------

    def is_leased(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int
    ) -> bool:
        return any(
            lease.covers(topic_partition, start_offset, end_offset)
            for lease in self.leases.values()
        )

    def keep(
        self, topic_partition: TopicPartition, directory: str, base_offset: int, end_offset: int
    ) -> None:
        """A segment that owns [base_offset, end_offset) is about to go: if it is leased, move its
        files out of the way. What cannot be moved goes with the segment."""
        if self.leases and self.is_leased(topic_partition, base_offset, end_offset):
            paths = [segment_file(directory, base_offset, suffix) for suffix in SEGMENT_SUFFIXES]
            self.keep_files(topic_partition, directory, base_offset, end_offset, paths)

    def keep_files(
        self,
        topic_partition: TopicPartition,
        directory: str,
        base_offset: int,
        end_offset: int,
        paths: Sequence[str],
    ) -> None:
        """The same for files that are leased and may have other names by now."""
        moved: list[str] = []
        size_bytes = 0
        # Without room for a name, or on a disk that fails, the log must be able to go on.
        with suppress(DiskError):
            targets = self._free_names(directory, base_offset, end_offset)
            for path in paths:
                entry = self._files.stat(path)
                if entry is not None:
                    target = targets[_kind(path)]
                    self._files.rename(path, target)
                    moved.append(target)
                    size_bytes += entry.size_bytes
        if moved:
            log_dir = dirname(directory)
            self._add(
                HeldFiles(
                    topic_partition, log_dir, base_offset, end_offset, tuple(moved), size_bytes
                )
            )

    def _add(self, held: HeldFiles) -> None:
        self._held.setdefault(held.topic_partition, []).append(held)
        self._held_bytes = None

    def _free_names(self, directory: str, base_offset: int, end_offset: int) -> dict[str, str]:
        for name in (OWN_DIRECTORY, LEASED_DIRECTORY):
            if not self._files.exists(f"{directory}/{name}"):
                self._files.make_directory(f"{directory}/{name}")
        for number in count():
            names = {
                kind: leased_file(directory, LeasedFileName(base_offset, end_offset, number, kind))
                for kind in SEGMENT_SUFFIXES
            }
            if not any(self._files.exists(path) for path in names.values()):
                return names
        raise AssertionError("numbers do not end")

    def keep_tree(self, topic_partition: TopicPartition, path: str, before_ms: int) -> bool:
        """The directory of a deleted partition, which is to be removed from ``before_ms`` on:
        whether it is leased, and so stays for now."""
        held = HeldFiles(
            self._full_name(topic_partition, path),
            dirname(path),
            0,
            UNKNOWN_END,
            (path,),
            0,
            is_tree=True,
            before_ms=before_ms,
        )
        if not self._is_held(held):
            return False
        with suppress(DiskError):
            held = replace(held, size_bytes=self._size_of(path))
        self._add(held)
        return True

    def _full_name(self, topic_partition: TopicPartition, path: str) -> TopicPartition:
        """A directory that waits to be removed may tell only the beginning of its topic's name."""
        if len(basename(path)) < FILE_NAME_LENGTH_MAX:
            return topic_partition
        for lease in self.leases.values():
            for key in lease.ranges:
                if key.partition == topic_partition.partition and key.topic.startswith(
                    topic_partition.topic
                ):
                    return key
        return topic_partition

    def _size_of(self, directory: str) -> int:
        places = [directory, f"{directory}/{LEASED_DIRECTORY}"]
        return sum(
            entry.size_bytes
            for place in places
            if self._files.exists(place)
            for entry in self._files.list(place)
            if not entry.is_directory
        )

    def forget_held(self, topic_partition: TopicPartition, directory: str) -> None:
        """A partition's directory has been renamed to be removed as a whole: with what is kept in
        it, whose names are others now."""
        kept = self._held.pop(topic_partition, [])
        for held in kept:
            if not held.paths[0].startswith(f"{directory}/"):
                self._add(held)
        self._held_bytes = None

    def take_unleased(self) -> list[HeldFiles]:
        """What nobody holds any more: it is for the caller to remove it, before what
        ``take_ended`` gives."""
        if self._is_checked:
            return []
        self._is_checked = True
        free: list[HeldFiles] = []
        for key, kept in list(self._held.items()):
            staying = [held for held in kept if self._is_held(held)]
            if len(staying) < len(kept):
                free += [held for held in kept if held not in staying]
                self._held[key] = staying
            if not staying:
                del self._held[key]
        self._held_bytes = None
        return free

    def _is_held(self, held: HeldFiles) -> bool:
        return any(held.is_held_by(lease) for lease in self.leases.values())

    def take_ended(self) -> list[tuple[str, str]]:
        """Log directories and ids of leases whose file is to be removed. Behind what they held: as
        long as that is there, the next start should find a lease that tells of it."""
        ended, self._ended = self._ended, []
        return ended

    # --- how much -----------------------------------------------------------------------------

    def held_bytes(self, log_dir: str | None = None) -> int:
        """What would be gone without leases."""
        if self._held_bytes is None:
            self._held_bytes = {}
            for held in self._all_held():
                total = self._held_bytes.get(held.log_dir, 0) + held.size_bytes
                self._held_bytes[held.log_dir] = total
        if log_dir is None:
            return sum(self._held_bytes.values())
        return self._held_bytes.get(log_dir, 0)

    def _all_held(self) -> Iterator[HeldFiles]:
        for kept in self._held.values():
            yield from kept

    def bytes_of(self, lease: Lease) -> int:
        """What it holds back, be it together with others."""
        return sum(held.size_bytes for held in self._held_by(lease))

    def _held_by(self, lease: Lease) -> Iterator[HeldFiles]:
        few, many = sorted((lease.ranges.keys(), self._held.keys()), key=len)
        for key in few:
            if key in many:
                yield from (held for held in self._held[key] if held.is_held_by(lease))

    def enforce_limit(self, log_dir: str) -> None:
        """End the oldest leases until no more is held back in ``log_dir`` than may be."""
        excess = self.held_bytes(log_dir) - self._max_bytes
        if excess > 0:
            self._shed(log_dir, excess, LeaseEnd.BYTES)

    def make_room(self, log_dir: str, needed_bytes: int) -> int:
        """End the oldest leases, as far as that frees ``needed_bytes``; how much it does."""
        return self._shed(log_dir, needed_bytes, LeaseEnd.SPACE)

    def _shed(self, log_dir: str, needed_bytes: int, end: LeaseEnd) -> int:
        holders: dict[HeldFiles, int] = {}
        of_lease: dict[str, list[HeldFiles]] = {}
        for lease in self.leases.values():
            of_lease[lease.lease_id] = [
                held for held in self._held_by(lease) if held.log_dir == log_dir
            ]
            for held in of_lease[lease.lease_id]:
                holders[held] = holders.get(held, 0) + 1
        freed_bytes = 0
        for lease in sorted(self.leases.values(), key=lambda each: each.created_ms):
            if freed_bytes >= needed_bytes:
                break
            if of_lease[lease.lease_id]:
                self._end(lease.lease_id, end)
            for held in of_lease[lease.lease_id]:
                holders[held] -= 1
                freed_bytes += 0 if holders[held] else held.size_bytes
        return freed_bytes

    # --- what is found on disk ----------------------------------------------------------------

    def find_held(self, topic_partition: TopicPartition, directory: str) -> None:
        """At a start: what an earlier owner has kept of one partition, for leases or none."""
        for held in find_held(self._files, topic_partition, directory):
            self._add(held)
            self._is_checked = False

    def plan_look(self, log_dir: str) -> Callable[[], FoundLeases]:
        """What sees which leases have a file now, on any thread; ``take_found`` takes note."""
        written = frozenset(each for each, places in self._places.items() if log_dir in places)
        known = frozenset(self.leases) | frozenset(self._over)
        return partial(_look, self._files, log_dir, known, written)

    def take_found(self, found: FoundLeases) -> list[Lease]:
        """Leases that others have left begin, and are returned; what others did to files of
        leases counts."""
        now_ms = self._clock.now_ms()
        begun = [lease for lease in found.new if self._adopt(lease, now_ms)]
        for lease_id, until_ms in found.until_ms.items():
            if lease_id in self.leases:
                self._places[lease_id].add(found.log_dir)
                self._extend(lease_id, until_ms, now_ms)
            elif until_ms <= now_ms or lease_id in self._over:
                self._ended.append((found.log_dir, lease_id))
        for lease_id in found.gone & self.leases.keys():
            self._places[lease_id].discard(found.log_dir)
            if not self._places[lease_id]:
                self._end(lease_id, LeaseEnd.RELEASED)
        return begun

    def _adopt(self, lease: Lease, now_ms: int) -> bool:
        if lease.lease_id in self._over or lease.until_ms <= now_ms:
            return False
        is_new = lease.lease_id not in self.leases
        if is_new:
            if len(self.leases) >= LEASES_MAX:
                return False
            # How long it lasts is its file's to say, of which this may be an older state.
            created_ms = min(lease.created_ms, now_ms)
            self.leases[lease.lease_id] = replace(lease, created_ms=created_ms, until_ms=now_ms)
            self._places[lease.lease_id] = set()
        return is_new

    def _extend(self, lease_id: str, until_ms: int, now_ms: int) -> None:
        lease = self.leases[lease_id]
        until_ms = min(until_ms, now_ms + self._max_ms)
        if until_ms > lease.until_ms:
            self.leases[lease_id] = lease.until(until_ms)


def _look(
    files: FileSystem, log_dir: str, known: frozenset[str], written: frozenset[str]
) -> FoundLeases:
    until_ms = list_lease_files(files, log_dir)
    new: list[Lease] = []
    for lease_id in until_ms.keys() - known:
        # What is garbled holds nothing, and goes when its time is over.
        with suppress(StratalogError):
            lease = read_lease(files, log_dir, lease_id)
            if lease is not None:
                new.append(lease)
    return FoundLeases(log_dir, until_ms, new, written - until_ms.keys())


def _kind(path: str) -> str:
    name = parse_segment_file(basename(path))
    assert name is not None, f"{path} is no file of a segment"
    return name.kind
