"""Exports to Delta and Iceberg, and values decoded from Avro, with the jars that others publish.

What landed is read by something else than what wrote it: Delta's log is JSON, and its files are
Parquet. Each export is a process of its own: jars and extensions are for a JVM that starts.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from apache_kafka import HERE
from tools_fetched import ToolUnavailableError, lake_jars

import stratalog
from stratalog import Record

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]

PARTITIONS, RECORDS = 2, 30
EXPORT_SECONDS = 600
# What the JVM says when classes were compiled against another Spark.
LINKAGE = ("NoSuchMethodError", "IncompatibleClassChangeError", "NoClassDefFoundError")


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


def exported(jars: str, home: Path, format_name: str, mode: str = "once") -> Any:
    program = [sys.executable, str(HERE / "lake_exporting.py"), jars, str(home), format_name, mode]
    done = subprocess.run(
        program, capture_output=True, text=True, timeout=EXPORT_SECONDS, check=False
    )
    if any(name in done.stderr for name in LINKAGE):
        pytest.skip(f"the newest {format_name} that is published does not run on this Spark")
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


@pytest.mark.parametrize("mode", ["once", "batch"])
def test_an_iceberg_table_has_every_record_once(jars: str, home: Path, mode: str) -> None:
    result = exported(jars, home, "iceberg", mode)

    assert result["rows"] == PARTITIONS * RECORDS
    assert result["landed"] == every_offset()


def test_avro_is_decoded_by_sparks_own_function(jars: str, home: Path) -> None:
    result = exported(jars, home, "avro")

    assert result["rows"] == PARTITIONS * RECORDS
    files = [str(path) for path in (home / "decoded").glob("date=*/*.parquet")]
    table = pyarrow.dataset.dataset(files).to_table()
    assert sorted(table["id"].to_pylist()) == sorted(list(range(RECORDS)) * PARTITIONS)
