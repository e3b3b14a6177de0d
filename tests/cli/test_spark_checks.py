"""What needs no Spark to be seen is refused before its JVM starts, by every command of it."""

import gc
from pathlib import Path

import pytest

import stratalog
from command_line import run_stratalog
from stratalog.cli.failures import CommandError
from stratalog.cli.java_errors import JavaErrors
from stratalog.cli.spark_checks import check_files
from stratalog.records import Record

pytest.importorskip("pyspark")

JAVA = """#!/bin/sh
case "$*" in
  -version) echo 'openjdk version "17.0.1"' >&2 ;;
  *) touch {started}; echo 'no memory for this heap' >&2; exit 1 ;;
esac
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log directory ``logs`` and a file ``rows.json``, with a Java that only tells whether it
    was started."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(started=tmp_path / "started"))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.json").write_text('{"value": "one"}\n')
    with stratalog.open_directory(tmp_path / "logs", create=True) as logs:
        logs.create("orders").append([Record(b"key", b"value")])
    return tmp_path


@pytest.mark.parametrize(
    ("line", "exit_code", "told"),
    [
        ("load rows.json --format json --topic missing", 1, "there is no topic 'missing'"),
        ("load rows.json --format json --topic orders", 1, "'stratalog topic adopt'"),
        ("load rows.json --topic orders --write-option topic=x", 2, "the option topic"),
        ("load rows.json --topic orders --write-option compresion=x", 2, "compresion"),
        ("export lake --topic missing", 1, "no topic 'missing'"),
        ("export lake --topic orders --mode twice", 2, "once, continuous, batch"),
        ("export logs/lake --topic orders", 2, "inside the log directory"),
        ("export lake --topic orders --option startingOffset=1", 2, "startingOffset"),
        ("compact --topic missing", 1, "no topic 'missing'"),
        ("compact --topic orders --strategy best", 2, "shuffle"),
        ("compact --topic orders --memory much", 2, "512m"),
        ("stats --topic missing", 1, "no topic 'missing'"),
        ("stats --bucket week", 2, "minute, hour, day"),
        ("stats --propose segment.ms=1", 2, "retention.ms"),
        ("sql SELECT --topic missing", 1, "no topic 'missing'"),
        ("sql SELECT --topic orders --option startingOffsets=latest", 2, "latest"),
        ("sql SELECT", 1, "names no topic"),
    ],
)
def test_what_spark_would_refuse_in_the_end_is_refused_before_java_starts(
    place: Path, line: str, exit_code: int, told: str
) -> None:
    ran = run_stratalog("spark", *line.split(), "--log-dir", "logs")

    assert (ran.exit_code, ran.stdout) == (exit_code, b""), ran
    assert told in ran.stderr
    assert len(ran.stderr.splitlines()) == 1, ran.stderr
    assert not (place / "started").exists()


@pytest.mark.parametrize("path", ["nothing.json", "file:/nowhere/rows.json"])
def test_a_file_that_is_not_there_is_refused(place: Path, path: str) -> None:
    with pytest.raises(CommandError, match=f"^{path}: there is no such file or directory"):
        check_files([path], "json", {})


@pytest.mark.parametrize(
    ("path", "format_name", "configs"),
    [
        ("rows.json", "json", {}),
        ("day=*/[ab].json", "json", {}),
        ("s3a://bucket/rows.json", None, {}),
        ("lake.orders", "iceberg", {}),
        ("/shared/rows", None, {"spark.hadoop.fs.defaultFS": "hdfs://name:8020"}),
    ],
)
def test_a_path_that_spark_alone_can_look_for_is_left_to_it(
    place: Path, path: str, format_name: str | None, configs: dict[str, str]
) -> None:
    check_files([path], format_name, configs)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_java_that_ends_at_once_is_told_with_what_it_said(place: Path) -> None:
    ran = run_stratalog("spark", "sql", "SELECT * FROM orders", "--log-dir", "logs")

    gc.collect()  # PySpark has left a pipe to a process that is gone
    assert ran.exit_code == 1
    told = ran.stderr.splitlines()
    assert (told[0], told[-1]) == (
        "no memory for this heap",
        "Spark's Java process did not start.",
    )


def test_of_what_java_says_the_last_lines_are_kept_without_its_greetings() -> None:
    errors = JavaErrors()
    with open(errors.descriptor, "w", closefd=False) as told:
        told.write("WARNING: Using incubator modules: jdk.incubator.vector\n")
        told.writelines(f"line {number}\n" for number in range(100))
    errors.close()

    assert errors.last_lines(wait_seconds=60) == [f"line {number}" for number in range(80, 100)]
