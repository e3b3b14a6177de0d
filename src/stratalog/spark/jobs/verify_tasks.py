"""What ``verify`` does in a task: reads segments, and tells what it found as rows of Arrow.

Only the read side of ``storage`` is imported here, through a file system that refuses to change
anything. A task makes sure that a path means the directory that was planned for before it says
that nothing is wrong with it.
"""

import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stratalog.errors import DiskError, StorageError
from stratalog.scans.errors import WrongDirectoryError
from stratalog.scans.opening import check_log_directory
from stratalog.spark.jobs.verify_plan import ReplicaToCheck, SegmentRun
from stratalog.spark.workers import settle_in
from stratalog.storage.check_looks import (
    LOOK_AGAIN_AFTER_S,
    ReplicaLooks,
    check_segments,
    unread_report,
)
from stratalog.storage.check_replica import ReplicaReport
from stratalog.storage.check_segment import SegmentFacts
from stratalog.storage.checkpoint import format_id, read_topic_id
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.findings import Finding
from stratalog.storage.inspection import replica_name
from stratalog.storage.layout import PARTITION_METADATA, parse_replica_directory
from stratalog.storage.readonly import ReadOnlyFileSystem

if TYPE_CHECKING:
    import pyarrow

FINDING_COLUMNS = {
    "file": "string",
    "position": "long",
    "offset": "long",
    "severity": "string",
    "code": "string",
    "message": "string",
}
REPLICA_COLUMNS = {
    "directory": "string",
    "replica": "string",
    "topic": "string",
    "partition": "int",
    "topic_id": "string",
    "segments": "long",
    "size_bytes": "long",
    "record_count": "long",
    "log_end_offset": "long",
}
_FINDINGS = ", ".join(f"{name}: {kind}" for name, kind in FINDING_COLUMNS.items())
REPLICA_SCHEMA = (
    ", ".join(f"{name} {kind}" for name, kind in REPLICA_COLUMNS.items())
    + f", findings array<struct<{_FINDINGS}>>"
)
FACTS_SCHEMA = "path string, facts binary"

Batches = Iterator["pyarrow.RecordBatch"]


def check_whole(tasks: Sequence[Sequence[ReplicaToCheck]], batches: Batches) -> Batches:
    """Replicas from beginning to end; ``batches`` hold the numbers of tasks."""
    settle_in()
    rows = [check_replica(replica, ()) for number in _numbers(batches) for replica in tasks[number]]
    yield replica_batch(rows)


def read_parts(tasks: Sequence[Sequence[SegmentRun]], batches: Batches) -> Batches:
    """Segments of replicas that several tasks read: their facts, for ``check_parts``."""
    import pyarrow

    settle_in()
    files = _files()
    columns: list[Any] = [("path", pyarrow.string()), ("facts", pyarrow.binary())]
    schema = pyarrow.schema(columns)
    for number in _numbers(batches):
        for run in tasks[number]:
            # A row also where nothing is left to read, or nobody would ask for the replica.
            facts: list[bytes | None] = [pickle.dumps(each) for each in _segments_there(files, run)]
            facts = facts or [None]
            paths = [run.replica.path] * len(facts)
            yield pyarrow.RecordBatch.from_pydict({"path": paths, "facts": facts}, schema)


def check_parts(
    replicas: Mapping[str, ReplicaToCheck], key: tuple[Any, ...], table: "pyarrow.Table"
) -> "pyarrow.Table":
    """One replica, of which others have read the segments."""
    import pyarrow

    settle_in()
    known = [pickle.loads(each) for each in table["facts"].to_pylist() if each is not None]
    (path,) = (each.as_py() for each in key)
    return pyarrow.Table.from_batches([replica_batch([check_replica(replicas[path], known)])])


def check_replica(
    replica: ReplicaToCheck,
    known: Sequence[SegmentFacts],
    *,
    wait: Callable[[], None] = lambda: time.sleep(LOOK_AGAIN_AFTER_S),
) -> dict[str, Any]:
    """A row of ``REPLICA_SCHEMA``."""
    files = _files()
    try:
        _check_place(files, replica)
    except DiskError as failure:  # this host sees it, and cannot read it
        return _row(replica, unread_report(replica.path, failure), "")
    looks = ReplicaLooks(
        files, is_live=replica.is_live, wait=wait, not_compacted=replica.not_compacted
    )
    look = looks.begin(replica.path, replica.offsets, known=known)
    return _row(replica, looks.settle(replica.path, replica.offsets, look), _topic_id(replica))


def _row(replica: ReplicaToCheck, report: ReplicaReport, topic_id: str) -> dict[str, Any]:
    name = replica_name(replica.path)
    topic_partition = parse_replica_directory(name).topic_partition
    return {
        "directory": replica.log_directory,
        "replica": name,
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "topic_id": topic_id,
        "segments": len(report.segments),
        "size_bytes": report.size_bytes,
        "record_count": sum(each.record_count for each in report.segments),
        "log_end_offset": report.log_end_offset,
        "findings": [finding_row(each, replica.log_directory) for each in report.findings],
    }


def finding_row(finding: Finding, log_directory: str) -> dict[str, Any]:
    """``file`` is told from the log directory on; what a finding has none of is null."""
    return {
        "file": finding.path.removeprefix(f"{log_directory}/"),
        "position": None if finding.position < 0 else finding.position,
        "offset": None if finding.offset < 0 else finding.offset,
        "severity": finding.severity.value,
        "code": finding.kind.value,
        "message": finding.sentence,
    }


def replica_batch(rows: Sequence[Mapping[str, Any]]) -> "pyarrow.RecordBatch":
    import pyarrow

    finding = pyarrow.struct(arrow_columns(FINDING_COLUMNS))
    columns = [*arrow_columns(REPLICA_COLUMNS), ("findings", pyarrow.list_(finding))]
    return pyarrow.RecordBatch.from_pylist(list(rows), schema=pyarrow.schema(columns))


def arrow_columns(columns: Mapping[str, str]) -> list[Any]:
    """The same columns in Arrow's types."""
    import pyarrow

    kinds = {"string": pyarrow.string(), "long": pyarrow.int64(), "int": pyarrow.int32()}
    return [(name, kinds[kind]) for name, kind in columns.items()]


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        numbers: list[Any] = batch.column(0).to_pylist()
        yield from numbers


def _files() -> FileSystem:
    return ReadOnlyFileSystem(OsFileSystem())


def _check_place(files: FileSystem, replica: ReplicaToCheck) -> None:
    check_log_directory(files, replica.log_directory, replica.directory_id)


def _segments_there(files: FileSystem, run: SegmentRun) -> Iterator[SegmentFacts]:
    try:
        _check_place(files, run.replica)
        yield from check_segments(files, run.replica.path, run.base_offsets)
    except WrongDirectoryError:
        raise
    except Exception:  # noqa: BLE001 - who puts the replica together reads what is missing, and tells
        return


def _topic_id(replica: ReplicaToCheck) -> str:
    """Empty where there is none, or where it cannot be read, which is a finding already."""
    try:
        found = read_topic_id(_files(), f"{replica.path}/{PARTITION_METADATA}")
    except StorageError:
        return ""
    return "" if found is None else format_id(found)
