"""A project of ``stratalog pipeline init``, looked at and run twice by ``spark-pipelines``."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet
import pytest
from sink_topics import left_behind, make_topics, values_in
from topics import record

import stratalog
from stratalog.cli.app import run

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(find_spec("yaml") is None, reason="spark-pipelines needs PyYAML"),
]

# A cold JVM, three times over, beside whatever else runs.
SECONDS = 600


@pytest.fixture
def project(tmp_path: Path) -> tuple[Path, Path]:
    """Its directory, and a log directory with the topics ``orders`` and ``copies``."""
    log_dir, place = tmp_path / "logs", tmp_path / "lines"
    make_topics(log_dir, {"orders": 2, "copies": 1})
    command = ["pipeline", "init", str(place), "--topic", "orders", "--log-dir", str(log_dir)]
    sinks = ["--sink", "stratalog", "--to-topic", "copies", "--sink", "parquet"]
    assert run([*command, *sinks]) == 0
    return place, log_dir


def append(log_dir: Path, first: int, count: int) -> list[bytes]:
    """To both partitions of ``orders``; and a tombstone, which the view leaves out."""
    topics = {"orders": {}, "copies": {}}
    rows = [record(number) for number in range(first, first + count)]
    with stratalog.open_directory(log_dir, topics=topics) as logs:
        logs.log("orders", 0).append([*rows[::2], rows[0]._replace(value=None)])
        logs.log("orders", 1).append(rows[1::2])
    return [row.value for row in rows if row.value is not None]


def spark_pipelines(verb: str, place: Path) -> str:
    programs = Path(sys.executable).parent
    environment = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Spark's server for a local run takes one port for all of the machine, but for this.
        "SPARK_TESTING": "0",
    }
    done = subprocess.run(
        [
            *(str(programs / "spark-pipelines"), "--remote", "local[2]"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=1g"),
            *("--conf", "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1"),
            *(verb, "--spec", str(place / "spark-pipeline.yml")),
        ],
        cwd=place,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-20_000:]
    return said


def flows_of(said: str) -> list[str]:
    """What the flows came to, in the order in which a run told it."""
    return re.findall(r"Flow \S+ (?:is|has) (RUNNING|COMPLETED)", said)


def landed(place: Path) -> list[str]:
    table = pyarrow.parquet.read_table(
        [str(each) for each in (place / "landed").glob("*.parquet")], columns=["value"]
    )
    return sorted(table.column("value").to_pylist())


def test_a_dry_run_writes_nothing_and_a_second_run_takes_only_what_is_new(
    project: tuple[Path, Path],
) -> None:
    place, log_dir = project
    expected = append(log_dir, 0, 10)

    assert "Run is COMPLETED" in spark_pipelines("dry-run", place)
    assert values_in(log_dir, "copies") == []
    assert not (place / "landed").exists()

    for first in (10, 20):
        said = spark_pipelines("run", place)
        assert "Run is COMPLETED" in said
        assert flows_of(said) == ["RUNNING", "COMPLETED"] * 2  # never two that begin at once
        copies = [value or b"" for value in values_in(log_dir, "copies")]
        assert sorted(copies) == sorted(expected)
        assert landed(place) == sorted(value.decode() for value in expected)
        assert left_behind(log_dir) == []
        if first == 10:
            expected += append(log_dir, first, 7)
