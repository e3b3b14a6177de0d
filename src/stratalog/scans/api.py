"""``stratalog.scan``: the records of topics as Arrow, from their files, in this process.

reader = stratalog.scan("/var/lib/kafka", "orders", columns=["offset", "value"])
polars.DataFrame(reader)     # or duckdb.from_arrow, reader.read_pandas(), a loop over batches
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from stratalog.scans.columns import KAFKA_COLUMNS, check_columns, gap_schema, scan_schema
from stratalog.scans.condition_check import check_condition
from stratalog.scans.errors import ScanOptionError, TieredError
from stratalog.scans.leasing import hold_tasks, release
from stratalog.scans.planning import ScanPlan, plan_scan
from stratalog.scans.reading import ScanReport, read_task
from stratalog.scans.replica_copies import replicas_read
from stratalog.scans.scan_reader import ScanReader
from stratalog.scans.selection import Selection, Subscribe, SubscribePattern
from stratalog.scans.slices import ReadMode, ReadOptions, ScanIsolation
from stratalog.scans.snapshot import DirectorySnapshot, PartitionSnapshot, take_snapshot
from stratalog.scans.times import offset_for_timestamp
from stratalog.scans.where import Where, parse_where
from stratalog.storage.files import OsFileSystem
from stratalog.storage.layout import TopicPartition

if TYPE_CHECKING:
    import pyarrow

# An offset for all partitions, one for each, a moment, or "earliest" or "latest".
Place = int | str | datetime | Mapping[int, int]

_EPOCH_UTC = "1970-01-01T00:00:00+00:00"


def scan(
    path: str | os.PathLike[str],
    topic: str | Iterable[str] | None = None,
    *,
    start: Place | None = None,
    end: Place | None = None,
    columns: str | Sequence[str] = KAFKA_COLUMNS,
    isolation: str = "read_uncommitted",
    where: str | Where | None = None,
    key: bytes | None = None,
    gaps: bool = False,
    mode: str = "failfast",
    max_lateness: timedelta | None = None,
    time_zone: str = "UTC",
    report: ScanReport | None = None,
) -> ScanReader:
    """The records of a topic, or of several, or of all but Kafka's own, as Arrow record batches.

    ``path`` is a log directory, of stratalog's or of Apache Kafka's making, live or cold, or one
    partition's directory in or out of it. What is there now is what is returned, whatever is
    appended while it is read.

    ``start`` and ``end`` are offsets (``end`` is not returned), one for all or one a partition;
    or moments, which stand for the first record that is not older. They choose a stretch of each
    log. Records by their time are chosen by ``where``, a condition in Spark's SQL on offset,
    timestamp, partition, topic and key, e.g. ``"timestamp >= '2026-01-01' AND partition = 3"``
    (local times are of ``time_zone``). What it cannot contain is refused.

    ``key`` is a condition too, and the promise that producers left it to Kafka's default
    partitioner where a key goes: only that partition is read. ``max_lateness`` promises that no
    record is older by more than that than one before it: then upper bounds of time prune without
    time ranges. ``gaps`` returns what is missing instead of what is there. ``mode="permissive"``
    passes over damage; ``report`` then tells how much of it there was.

    The reader is read once. Offsets that are asked for and are not there are a ``DataLostError``,
    and never fewer rows.
    """
    how = _isolation(isolation)
    names = (columns,) if isinstance(columns, str) else columns
    read_options = ReadOptions(
        columns=check_columns(names), isolation=how, gaps=gaps, mode=_mode(mode)
    )
    wanted = _where(where, key, time_zone)
    snapshot = take_snapshot(os.fspath(path), _selection(topic), isolation=how)
    replicas_read.note(OsFileSystem(), snapshot.path, snapshot.partitions)
    planned = _plan(snapshot, start, end, how, wanted, max_lateness, gaps=gaps)
    if not gaps:
        _check_complete(planned, read_options.mode, report)
        read_options = replace(read_options, row_filter=wanted.row_filter())
    return _reader(planned, read_options, report, is_held=snapshot.owner.kind == "stratalog")


def plan(
    path: str | os.PathLike[str],
    topic: str | Iterable[str] | None = None,
    *,
    start: Place | None = None,
    end: Place | None = None,
    isolation: str = "read_uncommitted",
    where: str | Where | None = None,
    key: bytes | None = None,
    max_lateness: timedelta | None = None,
    time_zone: str = "UTC",
) -> ScanPlan:
    """What ``scan`` with the same arguments would read; ``explain_plan`` puts it in words."""
    how = _isolation(isolation)
    snapshot = take_snapshot(os.fspath(path), _selection(topic), isolation=how)
    return _plan(snapshot, start, end, how, _where(where, key, time_zone), max_lateness)


def _plan(
    snapshot: DirectorySnapshot,
    start: Place | None,
    end: Place | None,
    isolation: ScanIsolation,
    where: Where,
    max_lateness: timedelta | None,
    *,
    gaps: bool = False,
) -> ScanPlan:
    lateness_ms = None
    if max_lateness is not None:
        if not isinstance(max_lateness, timedelta) or max_lateness < timedelta():
            reason = "it must be a timedelta that is not negative"
            raise ScanOptionError("max_lateness", repr(max_lateness), reason)
        lateness_ms = max_lateness // timedelta(milliseconds=1)  # timestamps are whole ones too
    return plan_scan(
        snapshot,
        ranges=_ranges(snapshot, start, end, isolation),
        isolation=isolation,
        where=where,
        max_lateness_ms=lateness_ms,
        gaps=gaps,
    )


def _check_complete(plan: ScanPlan, mode: ReadMode, report: ScanReport | None) -> None:
    """Refuse a plan that would return fewer rows than it was asked for."""
    for lost in plan.lost:
        if mode is not ReadMode.PERMISSIVE or isinstance(lost, TieredError):
            raise lost
        if report is not None:
            report.offsets_missing += lost.end_offset - lost.start_offset


def _reader(
    plan: ScanPlan, options: ReadOptions, report: ScanReport | None, *, is_held: bool
) -> ScanReader:
    schema = gap_schema() if options.gaps else scan_schema(options.columns)
    batches = _batches(plan, options, report, is_held=is_held)
    return ScanReader(schema, batches)


def _batches(
    plan: ScanPlan, options: ReadOptions, report: ScanReport | None, *, is_held: bool
) -> Iterator[pyarrow.RecordBatch]:
    if not plan.tasks:
        return
    lease_ids: tuple[str, ...] = ()
    if is_held:
        # Our broker is asked to keep the files; what nobody cleans needs no lease, and a
        # directory that is only looked at is not written to.
        lease_ids = hold_tasks(plan.tasks, holder="stratalog.scan").lease_ids
    try:
        for task in plan.tasks:
            yield from read_task(replace(task, lease_ids=lease_ids), options, report=report)
    finally:
        if lease_ids:
            release(plan.tasks[0].log_directory, lease_ids)


# --- arguments --------------------------------------------------------------------------------


def _selection(topic: str | Iterable[str] | None) -> Selection:
    if topic is None:
        return SubscribePattern("")
    return Subscribe((topic,) if isinstance(topic, str) else tuple(topic))


def _isolation(name: str) -> ScanIsolation:
    try:
        return ScanIsolation(name.lower())
    except ValueError:
        choices = " or ".join(each.value for each in ScanIsolation)
        raise ScanOptionError("isolation", name, f"it must be {choices}") from None


def _mode(name: str) -> ReadMode:
    try:
        return ReadMode(name.lower())
    except ValueError:
        choices = " or ".join(each.value for each in ReadMode)
        raise ScanOptionError("mode", name, f"it must be {choices}") from None


def _where(given: str | Where | None, key: bytes | None, time_zone: str) -> Where:
    found = Where() if given is None else given
    if not isinstance(found, (str, Where)):
        raise ScanOptionError("where", repr(given), "it must be a condition in SQL, or a Where")
    if key is not None and not isinstance(key, bytes):
        raise ScanOptionError("key", repr(key), "keys are bytes; a text needs .encode()")
    if isinstance(found, str):
        check_condition(found)
        parsed = parse_where(found, time_zone)
        if parsed.left:
            raise ScanOptionError(
                "where",
                str(given),
                f"this cannot be told from offset, timestamp, partition, topic and key: "
                f"{'; '.join(parsed.left)}. Leave it out, and filter what the scan returns",
            )
        found = parsed.where
    if key is not None:
        found = found.intersect(Where(keys=frozenset((key,)), is_partitioned_by_key=True))
    return found


def _ranges(
    snapshot: DirectorySnapshot, start: Place | None, end: Place | None, isolation: ScanIsolation
) -> dict[TopicPartition, tuple[int, int]] | None:
    if start is None and end is None:
        return None
    for option, place in (("start", start), ("end", end)):
        if isinstance(place, Mapping):
            _check_partitions(option, place, snapshot)
    return {
        key: (
            _offset("start", start, partition, isolation, default="earliest"),
            _offset("end", end, partition, isolation, default="latest"),
        )
        for key, partition in snapshot.partitions.items()
    }


def _check_partitions(option: str, places: Mapping[int, int], snapshot: DirectorySnapshot) -> None:
    """Offsets of partitions that are not there would silently have no effect."""
    known = {key.partition for key in snapshot.partitions}
    for partition in places:
        if partition not in known:
            raise ScanOptionError(
                option, repr(partition), "the topic has no such partition in this directory"
            )


def _offset(
    option: str,
    place: Place | None,
    partition: PartitionSnapshot,
    isolation: ScanIsolation,
    *,
    default: str,
) -> int:
    if isinstance(place, Mapping):
        place = place.get(partition.topic_partition.partition)
    place = default if place is None else place
    if isinstance(place, datetime):
        found = offset_for_timestamp(partition, _milliseconds(option, place))
        return partition.end_offset(isolation) if found is None else found
    if isinstance(place, str):
        if place not in ("earliest", "latest"):
            raise ScanOptionError(option, place, "it must be an offset, a time, earliest or latest")
        is_first = place == "earliest"
        return partition.first_offset if is_first else partition.known_end_offset(isolation)
    if not isinstance(place, int) or isinstance(place, bool):
        raise ScanOptionError(option, repr(place), "an offset is a whole number")
    return place


def _milliseconds(option: str, moment: datetime) -> int:
    """The first whole millisecond that is not before ``moment``."""
    if moment.tzinfo is None:
        raise ScanOptionError(
            option, moment.isoformat(), "it needs a time zone: datetime(…, tzinfo=…)"
        )
    return -((datetime.fromisoformat(_EPOCH_UTC) - moment) // timedelta(milliseconds=1))
