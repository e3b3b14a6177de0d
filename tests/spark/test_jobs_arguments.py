"""Arguments of jobs that nobody could act on: one sentence each, before Spark is asked."""

from typing import Any

import pytest

from stratalog.spark.jobs import compact, export, stats, verify
from stratalog.spark.jobs.errors import JobOptionError
from stratalog.spark.jobs.exporting import Export

NO_SPARK: Any = None


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"topic": ""}, "topic is ''"),
        ({"topic": []}, r"topic is \[\]"),
        ({"topic": ["orders", ""]}, "every name has to be a text"),
        ({"topic": None}, "topic is None: expected a name"),
        ({"topic": b"orders"}, "topic is b'orders': expected a name"),
        ({"log_dir": ""}, "log_dir is '': the path is empty"),
        ({"log_dir": None}, "log_dir is None: expected a path"),
        ({"target": ""}, "target is '': the path is empty"),
        ({"target": 7}, "target is 7: expected a path"),
        ({"checkpoint": ""}, "checkpoint is '': the path is empty"),
        ({"columns": []}, r"columns is \[\]"),
        ({"columns": ["offset", 7]}, "every name has to be a text"),
        ({"where": ""}, "where is '': expected a text"),
        ({"where": 7}, "where is 7: expected a text"),
        ({"format": ""}, "format is '': expected a text"),
        ({"partition_by": [""]}, "partition_by is"),
        ({"transform": "value"}, "transform is 'value': expected a function"),
        ({"options": ["startingOffsets"]}, "expected options by their names"),
        ({"options": {"subscribe": "other"}}, "option subscribe is 'other': give it as the topic"),
        ({"options": {"PATH": "/x"}}, "option PATH is '/x': give it as the log directory"),
        ({"write_options": {"path": "/x"}}, "give it as the target"),
    ],
)
def test_an_export_that_cannot_be_is_refused_in_one_sentence(
    how: dict[str, Any], sentence: str
) -> None:
    asked = {"log_dir": "/log", "topic": "orders", "target": "/lake", **how}

    with pytest.raises(JobOptionError, match=sentence) as caught:
        export(NO_SPARK, **asked)
    assert len(str(caught.value).splitlines()) == 1


def test_values_of_options_may_be_numbers_and_columns_one_text() -> None:
    asked = Export(
        log_dir="/log",
        topic="orders",
        target="/lake",
        columns="offset",
        options={"maxOffsetsPerTrigger": 5, "failOnDataLoss": False},  # type: ignore[dict-item]
    )
    asked.check()

    assert asked.source_options()["maxOffsetsPerTrigger"] == "5"
    assert asked.source_options()["failOnDataLoss"] == "false"


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        ((), "name the log directories"),
        (("",), "the path is empty"),
        ((None,), "paths is None: expected a path"),
        ((["/a", "/b"],), r"paths is \['/a', '/b'\]: expected a path"),
    ],
)
def test_a_check_of_nothing_is_refused(paths: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(JobOptionError, match=sentence):
        verify(NO_SPARK, *paths)


@pytest.mark.parametrize(
    ("log_dir", "topic"), [("", "orders"), ("/log", ""), ("/log", []), (7, "a")]
)
def test_so_are_a_compaction_and_statistics_of_nothing(log_dir: Any, topic: Any) -> None:
    with pytest.raises(JobOptionError):
        compact(NO_SPARK, log_dir, topic)
    with pytest.raises(JobOptionError):
        stats(NO_SPARK, log_dir, topic)
