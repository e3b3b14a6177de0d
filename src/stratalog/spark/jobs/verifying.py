"""``verify``: is everything in these log directories what it should be? Read by all of a cluster.

What ``stratalog log verify`` does on one machine, for any number of directories that all workers
see: every CRC, record, index, snapshot and checkpoint is checked, nothing is changed, and the
directories may be in use. The driver lists and plans, tasks read, and what only shows when
directories are put side by side is looked at in the end.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, Any

from stratalog.directories.known_directory import not_compacted_topics
from stratalog.spark.jobs.arguments import check_path
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.fleet import check_fleet, distinct
from stratalog.spark.jobs.progress import Progress, told
from stratalog.spark.jobs.verify_plan import (
    ReplicaToCheck,
    VerifyPlan,
    plan_verify,
    replicas_of,
)
from stratalog.spark.jobs.verify_tasks import (
    FACTS_SCHEMA,
    FINDING_COLUMNS,
    REPLICA_SCHEMA,
    arrow_columns,
    check_parts,
    check_whole,
    finding_row,
    read_parts,
    replica_batch,
)
from stratalog.spark.session import task_slots
from stratalog.storage.check_directory import DirectoryIdentity, check_directory
from stratalog.storage.check_looks import (
    LOOK_AGAIN_AFTER_S,
    find_each,
    foreign_findings,
    read_checkpoints,
)
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.findings import Finding, Severity
from stratalog.storage.inspection import Found
from stratalog.storage.layout import LOCK_FILE, parse_replica_directory
from stratalog.storage.readonly import ReadOnlyFileSystem, lock_owner

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

FINDINGS_SCHEMA = "directory string, topic string, partition int, " + ", ".join(
    f"{name} {kind}" for name, kind in FINDING_COLUMNS.items()
)


def verify(
    spark: SparkSession,
    *paths: str | os.PathLike[str],
    is_live: bool | None = None,
    progress: Progress | None = None,
) -> VerifyResult:
    """Check log directories, or single topic-partitions, that driver and workers see.

    ``is_live`` None: each directory's lock says whether somebody may be writing to it. Say True
    where locks do not reach, as on some network file systems. A path that names no log is a
    finding; if none of them does, that is a ``LogDirectoryError``.
    """
    started = time.monotonic()
    if not paths:
        raise JobOptionError("paths", paths, "name the log directories to check")
    for path in paths:
        check_path("paths", path)
    if is_live not in (None, True, False):
        raise JobOptionError("is_live", is_live, "expected True, False or None")
    files = ReadOnlyFileSystem(OsFileSystem())
    directories = [
        _Directory(path, False, DirectoryIdentity(path), [], [found])
        if isinstance(found, Finding)
        else _look_at(files, found, is_live)
        for path, found in find_each(files, distinct(paths)).items()
    ]
    plan = plan_verify(
        files, (each for found in directories for each in found.replicas), cores=task_slots(spark)
    )
    with told(spark, progress):
        rows = _run(spark, plan)
    order = {each.path: number for number, each in enumerate(directories)}
    rows.sort(key=lambda row: (order[row["directory"]], row["topic"], row["partition"]))
    told_of = [(each.path, finding) for each in directories for finding in each.findings]
    told_of += check_fleet([each.identity for each in directories], rows)
    return VerifyResult(
        spark,
        {each.path: each.is_live for each in directories},
        rows,
        [_directory_row(path, finding) for path, finding in told_of],
        time.monotonic() - started,
    )


@dataclass(frozen=True)
class VerifyResult:
    """What was checked and found. ``replicas`` are rows as ``REPLICA_SCHEMA`` has them;
    ``fleet_findings`` those that belong to no replica, or to several."""

    spark: SparkSession
    directories: dict[str, bool]
    replicas: list[dict[str, Any]]
    fleet_findings: list[dict[str, Any]]
    seconds: float

    columns = (
        "directory", "live", "replicas", "segments", "bytes", "records", "errors", "warnings",
    )  # fmt: skip

    @cached_property
    def findings(self) -> list[dict[str, Any]]:
        """All of them, by directory and file, as rows of ``FINDINGS_SCHEMA``."""
        found = list(self.fleet_findings)
        for row in self.replicas:
            whose = {name: row[name] for name in ("directory", "topic", "partition")}
            found += ({**whose, **finding} for finding in row["findings"])
        return sorted(
            found,
            key=lambda each: (each["directory"], each["file"], each["position"] or -1),
        )

    def dataframe(self) -> DataFrame:
        """The findings, to be filtered, joined or written."""
        return self.spark.createDataFrame(_findings_table(self.findings), FINDINGS_SCHEMA)

    def replicas_dataframe(self) -> DataFrame:
        """What was read of every replica, with its findings in a column."""
        import pyarrow

        table = pyarrow.Table.from_batches([replica_batch(self.replicas)])
        return self.spark.createDataFrame(table, REPLICA_SCHEMA)

    @property
    def errors(self) -> int:
        return sum(each["severity"] == Severity.ERROR for each in self.findings)

    @property
    def warnings(self) -> int:
        return sum(each["severity"] == Severity.WARNING for each in self.findings)

    @property
    def is_clean(self) -> bool:
        return not self.findings

    @property
    def verdict(self) -> str:
        return "errors" if self.errors else "warnings" if self.warnings else "nothing wrong"

    @property
    def size_bytes(self) -> int:
        return sum(row["size_bytes"] for row in self.replicas)

    def rows(self) -> list[tuple[object, ...]]:
        """One for each directory, under ``columns``."""
        severities = Counter((each["directory"], each["severity"]) for each in self.findings)
        return [
            (
                path,
                "yes" if is_live else "no",
                *self._sums(path),
                severities[path, Severity.ERROR.value],
                severities[path, Severity.WARNING.value],
            )
            for path, is_live in self.directories.items()
        ]

    def _sums(self, path: str) -> tuple[int, int, int, int]:
        own = [row for row in self.replicas if row["directory"] == path]
        names = ("segments", "size_bytes", "record_count")
        segments, size_bytes, record_count = (sum(row[name] for row in own) for name in names)
        return len(own), segments, size_bytes, record_count

    def to_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "errors": self.errors,
            "warnings": self.warnings,
            "size_bytes": self.size_bytes,
            "seconds": round(self.seconds, 3),
            "directories": [
                dict(zip(self.columns, row, strict=True)) | {"live": self.directories[str(row[0])]}
                for row in self.rows()
            ],
            "findings": self.findings,
        }


# --- on the driver -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Directory:
    path: str
    is_live: bool
    identity: DirectoryIdentity
    replicas: list[ReplicaToCheck]
    findings: list[Finding]


def _look_at(files: FileSystem, found: Found, is_live: bool | None) -> _Directory:
    root = found.log_directory
    if is_live is None:
        is_live = lock_owner(f"{root}/{LOCK_FILE}") is not None
    beside = check_directory(
        files,
        root,
        is_live=is_live,
        read_metadata=not_compacted_topics,
        wait=lambda: time.sleep(LOOK_AGAIN_AFTER_S),
    )
    # Before anything is listed that may have moved on.
    offsets, wrong = read_checkpoints(files, root)
    replicas = replicas_of(
        root,
        found.replicas,
        offsets,
        is_live=is_live,
        directory_id=beside.identity.directory_id,
        not_compacted=beside.not_compacted,
    )
    findings = [*beside.findings, *wrong, *foreign_findings(found.foreign)]
    return _Directory(root, is_live, beside.identity, replicas, findings)


def _run(spark: SparkSession, plan: VerifyPlan) -> list[dict[str, Any]]:
    frames = []
    if plan.whole:
        numbers = spark.range(0, len(plan.whole), 1, len(plan.whole))
        frames.append(numbers.mapInArrow(partial(check_whole, plan.whole), REPLICA_SCHEMA))
    if plan.parts:
        numbers = spark.range(0, len(plan.parts), 1, len(plan.parts))
        facts = numbers.mapInArrow(partial(read_parts, plan.parts), FACTS_SCHEMA)
        split = plan.split
        # PySpark reads the hints of what it is given, and cannot resolve those of a partial.
        together = facts.groupBy("path").applyInArrow(
            lambda key, table: check_parts(split, key, table), REPLICA_SCHEMA
        )
        frames.append(together)
    if not frames:
        return []
    found: list[dict[str, Any]] = reduce(_union, frames).toArrow().to_pylist()
    return found


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other)


def _directory_row(log_directory: str, finding: Finding) -> dict[str, Any]:
    from stratalog.errors import TopicNameError

    row = finding_row(finding, log_directory)
    whose: dict[str, Any] = {"directory": log_directory, "topic": None, "partition": None}
    try:
        replica = parse_replica_directory(row["file"].partition("/")[0])
        whose |= replica.topic_partition._asdict()
    except TopicNameError:
        pass  # it is about the log directory
    return whose | row


def _findings_table(findings: list[dict[str, Any]]) -> pyarrow.Table:
    import pyarrow

    whose = {"directory": "string", "topic": "string", "partition": "int"}
    schema = pyarrow.schema(arrow_columns({**whose, **FINDING_COLUMNS}))
    return pyarrow.Table.from_pylist(findings, schema=schema)
