"""A condition that no filter could understand is refused with the word that is wrong."""

from pathlib import Path

import pytest

import stratalog
from command_line import run_stratalog
from stratalog.scans.condition_check import check_condition
from stratalog.scans.errors import ScanOptionError
from stratalog.scans.where import parse_where


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("offst > 3", "'offst' is no column; did you mean 'offset'?"),
        ("partition = 1 AND (tipic = 'a' OR offset > 3)", "did you mean 'topic'?"),
        ("colour = 'red'", "'colour' is no column; there are key, value, topic, "),
        ("orders.offset > 3", "'orders' is no column"),
        ("no SQL at all", "it is no condition in SQL: 'at' is not expected there (column 9)"),
        ("hello", "'hello' is no column"),
        ("offset", "'offset' is no condition: nothing in it is true or false"),
        ("NOT (offset + 1)", "'offset + 1' is no condition"),
        ("3", "'3' is no condition"),
        ("SELECT 1", "'SELECT 1' is no condition"),
        ("offset > 3 x", "'x' is not expected there"),
        ("offset > 3 AND", "something is missing after 'AND' (column 14)"),
        ("offset > (3", "')' is missing after '3' (column 11)"),
        ("offset > > 3", "'offset >> 3' is no condition"),
        ("key = 'a", "a quote in it is not closed"),
        ("offset = 1; DROP TABLE t", "it is 2 statements"),
        ("where offset > 3", "'where' is not expected there"),
        *((text, "there is no condition in it") for text in (";", "-- offset > 3", "/* x */")),
    ],
)
def test_a_condition_that_is_none_is_refused_with_the_word(sql: str, told: str) -> None:
    with pytest.raises(ScanOptionError) as refused:
        check_condition(sql)

    assert told in str(refused.value)


@pytest.mark.parametrize(
    "sql",
    [
        *("OFFSET > 3", "`timestampType` = 0", "value IS NULL", "key RLIKE 'a+'", "offset <> 1;"),
        *("headers[0].key = 'a'", "exists(headers, h -> h.key = 'a')", "headers.key IS NULL"),
        *("isTransactional", "NOT isTransactional OR producerId = 7", "some_function(value)"),
        *("offset IN (SELECT id FROM elsewhere)", "CASE WHEN offset > 3 THEN true END", "NULL"),
        *("topic = '${spark.app.name}'", "topic = 'a\\'", "true", "offset = 1 -- the first"),
        "(" * 3_000 + "offset = 1" + ")" * 3_000,
    ],
)
def test_a_condition_that_only_spark_may_understand_is_left_to_it(sql: str) -> None:
    check_condition(sql)
    parse_where(sql)


@pytest.mark.parametrize(
    ("sql", "word"), [("offst > 3", "'offst'"), ("no SQL at all", "'at'"), ("offset >", "'>'")]
)
def test_a_scan_and_its_explanation_refuse_it(tmp_path: Path, sql: str, word: str) -> None:
    with stratalog.open_directory(tmp_path / "logs", create=True) as logs:
        logs.create("orders")

    ran = run_stratalog("scan", "explain", "--log-dir", f"{tmp_path}/logs", "--where", sql)

    assert (ran.exit_code, ran.stdout) == (2, b"")
    assert word in ran.stderr
    with pytest.raises(ScanOptionError, match=word):
        stratalog.scan(tmp_path / "logs", "orders", where=sql)


def test_what_cannot_prune_is_told_by_the_explanation(tmp_path: Path) -> None:
    with stratalog.open_directory(tmp_path / "logs", create=True) as logs:
        logs.create("orders")

    ran = run_stratalog(
        *("scan", "explain", "--log-dir", f"{tmp_path}/logs"),
        *("--where", "length(value) > 3 AND offset >= 0"),
    )

    assert ran.exit_code == 0
    assert "left to a filter of rows: LENGTH(value) > 3" in ran.text
