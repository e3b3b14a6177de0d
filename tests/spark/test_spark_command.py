"""``stratalog spark sql``: topics as tables, rows as tables or JSON, failures as one sentence."""

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from topics import write_topic

from stratalog.cli.app import run
from stratalog.cli.spark import plain

pytestmark = pytest.mark.xdist_group("spark")


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def sql(query: str, *arguments: str) -> Done:
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        exit_code = run(["spark", "sql", query, *arguments])
    return Done(exit_code, stdout.getvalue(), stderr.getvalue())


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("asked") / "log"
    write_topic(path, "orders", 3, 10)
    write_topic(path, "old.orders-v1", 1, 4)
    return str(path)


def test_a_topic_is_a_table_by_its_name(spark: Any, log_dir: str) -> None:
    query = "SELECT partition, count(*) AS records FROM orders GROUP BY partition ORDER BY 1"

    done = sql(query, "--log-dir", log_dir)

    assert done.exit_code == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [["partition", "records"], ["0", "10"], ["1", "10"], ["2", "10"]]


def test_names_with_dots_and_dashes_are_quoted(spark: Any, log_dir: str) -> None:
    done = sql(
        "SELECT max(offset) AS last FROM `old.orders-v1`", "--log-dir", log_dir, "-o", "json"
    )

    assert (done.exit_code, done.stdout) == (0, '{"last": 3}\n')


def test_json_has_a_row_a_line_with_bytes_as_text_and_times_in_utc(
    spark: Any, log_dir: str
) -> None:
    query = "SELECT * FROM orders WHERE partition = 1 ORDER BY offset LIMIT 2"

    done = sql(query, "--log-dir", log_dir, "--option", "includeHeaders=true", "-o", "json")

    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["value"] for row in rows] == ["v10", "v11"]
    assert rows[0]["timestamp"] == "2023-11-14T22:13:30.000+00:00"
    assert rows[0]["headers"] == [{"key": "n", "value": "h"}]


@pytest.mark.parametrize(
    ("query", "arguments", "sentence"),
    [
        ("SELECT nothing FROM orders", [], "`nothing` cannot be resolved"),
        ("SELEKT 1 FROM orders", [], "PARSE_SYNTAX_ERROR"),
        ("SELECT 1 FROM payments", [], "names no topic of"),
        ("SELECT 1 FROM payments", ["--topic", "payments"], "no topic 'payments'"),
        ("SELECT 1 FROM orders", ["--option", "startingOffsets=latest"], "latest"),
        ("SELECT 1 FROM orders", ["--conf", "spark.driver.memory"], "not of the form NAME=VALUE"),
    ],
)
def test_what_goes_wrong_is_told_without_a_stack(
    spark: Any, log_dir: str, query: str, arguments: list[str], sentence: str
) -> None:
    done = sql(query, "--log-dir", log_dir, *arguments)

    assert done.exit_code == (2 if arguments and "--topic" not in arguments else 1)
    assert done.stdout == ""
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr
    assert len(done.stderr.splitlines()) < 8, done.stderr


def test_a_directory_that_is_none_is_refused_before_spark_starts(tmp_path: Path) -> None:
    done = sql("SELECT 1 FROM orders", "--log-dir", str(tmp_path / "nowhere"))

    assert done.exit_code == 1
    assert "does not exist" in done.stderr


def test_a_query_that_succeeds_says_nothing_but_its_rows(log_dir: str) -> None:
    query = "SELECT offset FROM orders WHERE partition = 1 LIMIT 3"
    command = ("-m", "stratalog", "spark", "sql", query, "--log-dir", log_dir)

    done = subprocess.run(
        [sys.executable, *command, "--master", "local[2]", "-o", "json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3


def test_bytes_that_are_no_text_can_be_seen() -> None:
    assert plain(bytearray(b"a\xff\x00")) == "a\\xff\x00"
    assert plain({b"k": [None, 1.5]}) == {"k": [None, 1.5]}
