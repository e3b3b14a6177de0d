"""Exports to Delta and Iceberg, and values decoded from Avro, with the jars that others publish.

What landed is read by something else than what wrote it: Delta's log is JSON, and its files are
Parquet. Iceberg's tables are read by Spark's SQL, and compared with what a scan finds in the log.
Each export is a process of its own: jars and extensions are for a JVM that starts. Iceberg's is one
with an older Spark, since no runtime of Iceberg's is published for ours.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from apache_kafka import HERE
from iceberg_exporting import LATE
from tools_fetched import ToolUnavailableError, iceberg_spark, lake_jars

import stratalog
from stratalog import Record

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]

PARTITIONS, RECORDS = 2, 30
EXPORT_SECONDS = 600
DAY_MS = 24 * 60 * 60 * 1000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with stratalog.open_directory(tmp_path / "log", create=True) as logs:
        for partition in range(PARTITIONS):
            log = logs.create("orders", partition)
            # A record of one long is that long in Avro: zigzag, as a varint.
            log.append([Record(b"k", bytes([2 * n])) for n in range(RECORDS)])
    return tmp_path


@pytest.fixture(scope="module")
def jars() -> str:
    try:
        return ",".join(map(str, lake_jars()))
    except ToolUnavailableError as why:
        pytest.skip(str(why))


def exported(jars: str, home: Path, format_name: str) -> Any:
    return told([sys.executable], "lake_exporting.py", jars, str(home), format_name)


def told(python: list[str], program: str, *words: str, env: Mapping[str, str] | None = None) -> Any:
    """What a program says last, which is JSON."""
    command = [*python, str(HERE / program), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=EXPORT_SECONDS, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def every_offset() -> list[list[int]]:
    return [[partition, offset] for partition in range(PARTITIONS) for offset in range(RECORDS)]


def delta_files(table: Path) -> list[str]:
    """Those that the table's log has added and not removed."""
    found: dict[str, None] = {}
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                found[action["add"]["path"]] = None
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
    return [str(table / path) for path in found]


def test_a_delta_table_has_every_record_once_however_often_it_is_exported(
    jars: str, home: Path
) -> None:
    first, again = exported(jars, home, "delta"), exported(jars, home, "delta")

    assert (first["rows"], again["rows"]) == (PARTITIONS * RECORDS, 0)
    table = pyarrow.dataset.dataset(delta_files(home / "delta")).to_table()
    rows = table.select(["partition", "offset"]).to_pylist()
    assert sorted([row["partition"], row["offset"]] for row in rows) == every_offset()
    assert list((home / "delta").glob("date=*"))


@pytest.fixture(scope="module")
def iceberg(jars: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A log directory, and what was said of its exports to Iceberg while it grew."""
    try:
        python, env = iceberg_spark()
    except ToolUnavailableError as why:
        pytest.skip(str(why))
    home = tmp_path_factory.mktemp("iceberg")
    with stratalog.open_directory(home / "log", create=True) as logs:
        for partition in range(PARTITIONS):
            logs.create("orders", partition).append(map(various, range(RECORDS)), codec="zstd")
    runtime = ",".join(each for each in jars.split(",") if "iceberg" in Path(each).name)
    return home / "log", told(python, "iceberg_exporting.py", runtime, str(home), env=env)


def various(n: int) -> Record:
    """Of three days, in turn; some without a key, some a tombstone."""
    key, value = b"k%d" % n if n % 7 else None, bytes([n, 0, 255]) if n % 5 else None
    return Record(key, value, timestamp_ms=1_700_000_000_000 + n % 3 * DAY_MS)


def scanned(log_dir: Path) -> list[list[Any]]:
    """The records, as the program tells those of a table."""
    columns = ["topic", "partition", "offset", "key", "value", "timestamp"]
    rows = stratalog.scan(log_dir, "orders", columns=columns).read_all().to_pylist()
    return sorted(
        [
            row["topic"],
            row["partition"],
            row["offset"],
            *(None if row[name] is None else row[name].hex().upper() for name in ("key", "value")),
            (row["timestamp"] - EPOCH) // timedelta(milliseconds=1),
            row["timestamp"].date().isoformat(),
        ]
        for row in rows
    )


def test_an_iceberg_table_has_every_record_of_the_moment_it_was_copied(
    iceberg: tuple[Path, Any],
) -> None:
    log_dir, said = iceberg

    assert said["copied"] == PARTITIONS * RECORDS
    assert said["rows of the copy"] == [row for row in scanned(log_dir) if row[2] < RECORDS]


def test_an_iceberg_table_that_follows_a_topic_has_every_record_once_however_often_it_is_exported(
    iceberg: tuple[Path, Any],
) -> None:
    log_dir, said = iceberg

    assert said["followed"] == [PARTITIONS * RECORDS, PARTITIONS * LATE, 0, 0]
    assert said["rows followed"] == scanned(log_dir)
    assert said["rows of the first snapshot"] == PARTITIONS * RECORDS


def test_avro_is_decoded_by_sparks_own_function(jars: str, home: Path) -> None:
    result = exported(jars, home, "avro")

    assert result["rows"] == PARTITIONS * RECORDS
    files = [str(path) for path in (home / "decoded").glob("date=*/*.parquet")]
    table = pyarrow.dataset.dataset(files).to_table()
    assert sorted(table["id"].to_pylist()) == sorted(list(range(RECORDS)) * PARTITIONS)
