"""What takes the disk of a log directory: bytes by topic and kind, and why each kind stays.

A pure function of a listing and of what surrounds it: who owns the directory, which leases there
are, until when staged files are held. Every byte of every file counts once, under one kind:

===================  ==========================================================================
log, index           the segments of the logs
preallocated         the holes of both: ls counts them, the disk does not
state                producer snapshots, checkpoints, time ranges, metadata
cleaning             what the cleaner writes, until it takes the place of segments
waiting_for_deletion segments and partitions that are gone from the log
leased               the same, but kept for readers
staged               files of loads that are not committed, and of an unfinished restore
still_open           files without a name that the owner's process has open
kept_aside           bytes that recovery or a repair has cut out
others               whatever is not of a log, and partitions that nobody knows
===================  ==========================================================================
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from stratalog.errors import TopicNameError
from stratalog.storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    CUT_DIRECTORY,
    DELETE_DIRECTORY,
    DELETED_SUFFIX,
    FUTURE_DIRECTORY,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    LOG_SUFFIX,
    META_PROPERTIES,
    OFFSET_CHECKPOINTS,
    OWN_DIRECTORY,
    PARTITION_METADATA,
    REMOTE_INDEX_CACHE,
    RESTORING_DIRECTORY,
    SNAPSHOT_SUFFIX,
    TopicPartition,
    parse_leased_file,
    parse_replica_directory,
    parse_segment_file,
)
from stratalog.storage.leases import Lease

OWN_PREFIX = ".stratalog"
# What Apache Kafka's controllers keep beside the segments of their metadata log.
_KRAFT_FILES = frozenset(("quorum-state", "bootstrap.checkpoint"))
_STATE_FILES = frozenset(
    (
        *(META_PROPERTIES, LOCK_FILE, CLEAN_SHUTDOWN_FILE, *OFFSET_CHECKPOINTS),
        *(LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA, *_KRAFT_FILES),
    )
)
_PLACES_MAX = 20


class UsageKind(Enum):
    """In the order in which they are shown."""

    LOG = "log"
    INDEX = "index"
    PREALLOCATED = "preallocated"
    STATE = "state"
    CLEANING = "cleaning"
    DELETING = "waiting_for_deletion"
    LEASED = "leased"
    STILL_OPEN = "still_open"
    STAGED = "staged"
    KEPT_ASIDE = "kept_aside"
    OTHERS = "others"


class Owner(Enum):
    """Who holds the lock of the directory."""

    STRATALOG = "stratalog"
    KAFKA = "kafka"
    NONE = "none"
    UNKNOWN = "unknown"


class ListedFile(NamedTuple):
    """One file; ``path`` begins in the log directory."""

    path: str
    size_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the names of files do not tell. ``staged_until_ms`` is by the id of what is staged."""

    log_directory: str
    owner: Owner = Owner.NONE
    now_ms: int = 0
    leases: tuple[Lease, ...] = ()
    staged_until_ms: Mapping[str, int] = field(default_factory=dict)
    free_bytes: int | None = None
    # No listing has these.
    unlinked: tuple[ListedFile, ...] = ()


class Amount(NamedTuple):
    """``disk_bytes`` is what the disk would get back."""

    files: int = 0
    size_bytes: int = 0
    disk_bytes: int = 0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(
            self.files + other.files,
            self.size_bytes + other.size_bytes,
            self.disk_bytes + other.disk_bytes,
        )


@dataclass(frozen=True, slots=True)
class UsageRow:
    """``topic`` is empty for what belongs to none."""

    topic: str
    kind: UsageKind
    amount: Amount


@dataclass(frozen=True, slots=True)
class Stay:
    """Why bytes of one kind are still there, and the command that frees them or says more."""

    kind: UsageKind
    place: str
    amount: Amount
    why: str
    command: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """What takes the disk of one log directory. ``note`` says what is not known of it."""

    log_directory: str
    owner: Owner
    free_bytes: int | None
    rows: tuple[UsageRow, ...]
    stays: tuple[Stay, ...] = ()
    note: str | None = None

    @property
    def total(self) -> Amount:
        return _sum(row.amount for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        return {
            "log_directory": self.log_directory,
            "owner": self.owner.value,
            **self.total._asdict(),
            "free_bytes": self.free_bytes,
            "note": self.note,
            "usage": [_json(row, "topic") for row in self.rows],
            "stays": [_json(stay, "place", "why", "command") for stay in self.stays],
        }


def _json(value: UsageRow | Stay, *names: str) -> dict[str, Any]:
    told = {name: getattr(value, name) for name in names}
    return {"kind": value.kind.value, **value.amount._asdict(), **told}


def _sum(amounts: Iterable[Amount]) -> Amount:
    total = Amount()
    for each in amounts:
        total = total.plus(each)
    return total


def plan_usage(files: Iterable[ListedFile], around: Surroundings) -> Usage:
    """Count ``files`` by topic and kind, and say of each kind why it stays."""
    rows: dict[tuple[str, UsageKind], Amount] = defaultdict(Amount)
    places: dict[UsageKind, dict[str, Amount]] = {kind: defaultdict(Amount) for kind in UsageKind}

    def count(topic: str, kind: UsageKind, place: str, amount: Amount) -> None:
        rows[topic, kind] = rows[topic, kind].plus(amount)
        places[kind][place] = places[kind][place].plus(amount)

    for file in files:
        topic, kind, place = _belongs(file.path, around)
        hole = max(0, file.size_bytes - file.disk_bytes) if kind in _WITH_HOLES else 0
        count(topic, kind, place, Amount(1, file.size_bytes - hole, file.disk_bytes))
        if hole:
            # The file itself is counted above.
            count(topic, UsageKind.PREALLOCATED, "", Amount(0, hole, 0))
    for file in around.unlinked:
        topic, _, _ = _belongs(file.path, around)
        amount = Amount(1, file.size_bytes, file.disk_bytes)
        count(topic, UsageKind.STILL_OPEN, "", amount)
    order = list(UsageKind)
    found = sorted(rows, key=lambda key: (key[0], order.index(key[1])))
    return Usage(
        around.log_directory,
        around.owner,
        around.free_bytes,
        tuple(UsageRow(topic, kind, rows[topic, kind]) for topic, kind in found),
        tuple(stay for kind in UsageKind for stay in _stays(kind, places[kind], around)),
    )


_WITH_HOLES = (UsageKind.LOG, UsageKind.INDEX)


# --- what a file belongs to -------------------------------------------------------------------


def _belongs(path: str, around: Surroundings) -> tuple[str, UsageKind, str]:
    """The topic, the kind, and the place that is named if it stays for a reason of its own."""
    top, _, below = path.partition("/")
    if not below:
        is_ours = top.removesuffix(".tmp") in _STATE_FILES or top.startswith(OWN_PREFIX)
        return ("", UsageKind.STATE, "") if is_ours else ("", UsageKind.OTHERS, top)
    if top == RESTORING_DIRECTORY:
        return "", UsageKind.STAGED, top
    try:
        name = parse_replica_directory(top)
    except TopicNameError:
        return "", UsageKind.OTHERS, top
    key = name.topic_partition
    if name.state == DELETE_DIRECTORY:
        held = _holders(key, 0, 2**63 - 1, around)
        kind = UsageKind.LEASED if held else UsageKind.DELETING
        return key.topic, kind, held
    if name.state:
        return key.topic, UsageKind.OTHERS, top
    kind, place = _in_replica(key, top, below, around)
    return key.topic, kind, place


def _in_replica(
    key: TopicPartition, top: str, below: str, around: Surroundings
) -> tuple[UsageKind, str]:
    inner, _, rest = below.partition("/")
    if inner == OWN_DIRECTORY:
        return _of_ours(key, top, rest, around)
    known = parse_segment_file(below)
    if known is None:
        is_state = below.removesuffix(".tmp") in _STATE_FILES or below.endswith(".checkpoint")
        return (UsageKind.STATE, "") if is_state else (UsageKind.OTHERS, f"{top}/{inner}")
    if known.state == DELETED_SUFFIX:
        return UsageKind.DELETING, ""
    if known.state:
        return UsageKind.CLEANING, ""
    if known.kind == SNAPSHOT_SUFFIX:
        return UsageKind.STATE, ""
    return (UsageKind.LOG if known.kind == LOG_SUFFIX else UsageKind.INDEX), ""


def _of_ours(
    key: TopicPartition, top: str, path: str, around: Surroundings
) -> tuple[UsageKind, str]:
    """In ``<partition>/.stratalog``."""
    inner, _, rest = path.partition("/")
    if not rest:
        return UsageKind.STATE, ""
    if inner == "leased":
        leased = parse_leased_file(rest)
        span = (0, 2**63 - 1) if leased is None else (leased.base_offset, leased.end_offset)
        return UsageKind.LEASED, _holders(key, *span, around)
    if inner == "staging":
        return UsageKind.STAGED, rest.partition("/")[0]
    if f"{OWN_DIRECTORY}/{inner}" == CUT_DIRECTORY:
        return UsageKind.KEPT_ASIDE, f"{top}/{OWN_DIRECTORY}/{inner}"
    return UsageKind.OTHERS, f"{top}/{OWN_DIRECTORY}/{inner}"


def _holders(key: TopicPartition, start: int, end: int, around: Surroundings) -> str:
    """The leases that hold these offsets now, as one text."""
    return " ".join(
        sorted(
            lease.lease_id
            for lease in around.leases
            if lease.until_ms > around.now_ms and lease.covers(key, start, end)
        )
    )


# --- why it stays -----------------------------------------------------------------------------


def _stays(kind: UsageKind, places: Mapping[str, Amount], around: Surroundings) -> Iterable[Stay]:
    """One for each place of a kind, the largest first; those beyond a number together."""

    def rank(place: str) -> tuple[int, int, str]:
        return -places[place].disk_bytes, -places[place].size_bytes, place

    largest = sorted(places, key=rank)
    for place in largest[:_PLACES_MAX]:
        yield Stay(kind, place, places[place], *_reason(kind, place, around))
    if rest := largest[_PLACES_MAX:]:
        why, _ = _reason(kind, rest[0], around)
        yield Stay(kind, f"{len(rest)} more", _sum(places[each] for each in rest), why, None)


def _reason(kind: UsageKind, place: str, around: Surroundings) -> tuple[str, str | None]:
    at = shlex.quote(around.log_directory)
    if kind is UsageKind.LOG:
        return _PLAIN[kind], f"stratalog retention explain {at}"
    if kind in _PLAIN:
        return _PLAIN[kind], None
    if kind is UsageKind.LEASED:
        return _why_leased(place, around)
    if kind is UsageKind.STAGED:
        return _why_staged(place, around)
    path = shlex.quote(f"{around.log_directory}/{place}")
    if kind is UsageKind.KEPT_ASIDE:
        why = (
            "bytes cut out of a log: by recovery, which keeps them for 7 days, or by a repair, "
            "whose nothing removes by itself"
        )
        return why, f"rm -r {path}"
    if kind is UsageKind.OTHERS:
        return _why_others(place), _free_others(place, path, around)
    return _why_leaving(kind, at, around)


_PLAIN = {
    UsageKind.LOG: "records, until retention or compaction lets them go",
    UsageKind.INDEX: "goes with its segment",
    UsageKind.PREALLOCATED: (
        "room for entries that are still to come: ls counts it, the disk does not"
    ),
    UsageKind.STATE: "goes with its log or its directory",
    UsageKind.STILL_OPEN: (
        "has no name any more, but the owner's process has it open: freed when that closes it"
    ),
}


def _why_leaving(kind: UsageKind, at: str, around: Surroundings) -> tuple[str, str | None]:
    is_deleting = kind is UsageKind.DELETING
    if around.owner is Owner.NONE:
        what = "has left its log" if is_deleting else "a cleaning that was interrupted"
        return (
            f"{what}; nobody owns the directory, and its next owner tidies up when it starts",
            f"stratalog serve --log-dir {at}",
        )
    if is_deleting:
        return "has left its log; its owner removes it file.delete.delay.ms later", None
    return "the cleaner writes it, and puts it in the place of what it cleans", None


def _why_leased(place: str, around: Surroundings) -> tuple[str, str | None]:
    from stratalog.storage.moments import moment_text

    if not place:
        by = "its next owner" if around.owner is Owner.NONE else "its owner"
        return f"no lease holds it any more; {by} removes it", None
    ids = place.split()
    held = [lease for lease in around.leases if lease.lease_id in ids]
    holders = ", ".join(sorted({repr(lease.holder) for lease in held}))
    until = moment_text(max(lease.until_ms for lease in held))
    at = shlex.quote(around.log_directory)
    return (
        f"kept for {holders} until {until}",
        f"stratalog lease release --log-dir {at} {place}",
    )


def _why_staged(place: str, around: Surroundings) -> tuple[str, str | None]:
    from stratalog.storage.moments import moment_text

    if place == RESTORING_DIRECTORY:
        # Without that mark what is there would be taken for a whole directory.
        return "a restore that runs, or did not come to its end: begin it again", None
    until_ms = around.staged_until_ms.get(place)
    by = "the directory's next owner" if around.owner is Owner.NONE else "the owner"
    if until_ms is None or until_ms <= around.now_ms:
        return f"a load that was never committed; {by} removes it", None
    return f"a load that is not committed yet, held until {moment_text(until_ms)}", None


def _why_others(place: str) -> str:
    if place == REMOTE_INDEX_CACHE:
        return "Apache Kafka's cache of the indexes of tiered segments"
    top, _, below = place.partition("/")
    if below:
        return "a file that is not of the log"
    try:
        state = parse_replica_directory(top).state
    except TopicNameError:
        return "it is not of a log"
    if state == FUTURE_DIRECTORY:
        return "Apache Kafka moves a partition here from another directory, or did not finish"
    return "a partition that the broker's metadata does not know"


def _free_others(place: str, path: str, around: Surroundings) -> str | None:
    if place == REMOTE_INDEX_CACHE or place == "lost+found":
        return None
    # Who owns the directory may be writing there: without it, Kafka takes the directory offline.
    is_moving = place.endswith(FUTURE_DIRECTORY) and around.owner is not Owner.NONE
    return None if is_moving else f"rm -r {path}"
