"""Starting Spark: what is missing is said before Spark trips over it."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stratalog.spark.session import (
    SparkUnavailableError,
    check_java,
    executor_slots,
    session,
)

pytestmark = pytest.mark.xdist_group("spark")


def test_a_session_that_runs_is_the_one_that_is_used(spark: Any) -> None:
    assert session() is spark


def test_workers_run_the_python_that_runs_us(spark: Any) -> None:
    seen = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()

    assert [Path(each).samefile(sys.executable) for each in seen] == [True]


def test_arrow_goes_through_without_a_warning(spark: Any) -> None:
    frame = spark.range(10).mapInArrow(lambda batches: batches, "id long")

    assert frame.toArrow().num_rows == 10
    assert len(frame.toPandas()) == 10


def test_a_missing_java_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(SparkUnavailableError, match=r"no java on the PATH.*Install Java 17"):
        check_java()


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(SparkUnavailableError, match=f"JAVA_HOME={tmp_path}"):
        check_java()


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "11.0.22" 2024-01-16', 11),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "17.0.15" 2025-04-15', None),
        ('openjdk version "21" 2023-09-19', None),
    ],
)
def test_a_java_that_is_too_old_is_refused(
    told: str, version: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    if version is None:
        check_java()
    else:
        with pytest.raises(SparkUnavailableError, match=f"is Java {version}, and Spark 4 needs"):
            check_java()


def test_a_java_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(SparkUnavailableError, match="-version failed"):
        check_java()


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({"master": "local"}, 1),
        ({"master": "local[6]", "executor.cores": "2"}, 6),
        ({"master": "local[6, 3]", "task.cpus": "2"}, 3),
        ({"master": "local[*]"}, os.cpu_count()),
        ({"master": "spark://there:7077", "executor.cores": "4"}, 4),
        ({"master": "spark://there:7077", "executor.cores": "5", "task.cpus": "2"}, 2),
        ({"master": "spark://there:7077"}, 40),
        ({"master": "yarn"}, 1),
        ({"master": "k8s://https://there", "executor.cores": "2", "task.cpus": "4"}, 1),
    ],
)
def test_tasks_that_share_an_executor_are_counted(settings: dict[str, str], slots: int) -> None:
    conf = {f"spark.{name}": value for name, value in settings.items()}
    told: Any = SimpleNamespace(
        conf=SimpleNamespace(get=conf.get), sparkContext=SimpleNamespace(defaultParallelism=40)
    )
    assert executor_slots(told) == slots


def test_tasks_of_a_local_session_are_its_threads(spark: Any) -> None:
    assert executor_slots(spark) == 2
