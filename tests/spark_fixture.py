"""The one Spark session of a test process, for tests of Spark and for pages that show it.

A JVM takes seconds to start and a gigabyte to run, so that all tests with a session share one:
they carry ``xdist_group("spark")``, which keeps them in one process of pytest.
"""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stratalog.spark.session import SparkUnavailableError, check_available, session

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def skip_without_spark() -> None:
    """For tests whose Spark runs in processes of its own."""
    try:
        check_available()
    except SparkUnavailableError as unavailable:
        pytest.skip(str(unavailable))


@contextmanager
def running_spark(home: Path, master: str = "local[2]", **more: str) -> Iterator[Any]:
    """A session whose files all lie in ``home``; ``more`` are settings with ``_`` for ``.``."""
    settings = {
        **SETTINGS,
        "spark.local.dir": str(home / "local"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.chdir(home)  # a catalog would put its files where the JVM was started
        try:
            with spark_warnings_aside():
                started = session(master, app_name="tests", configs=settings)
        except SparkUnavailableError as unavailable:
            pytest.skip(str(unavailable))
    try:
        yield started
    finally:
        with spark_warnings_aside():
            started.stop()


def collect_what_pyspark_left() -> None:
    """PySpark leaves sockets for the garbage collector, which warns of each: not in the middle of
    somebody else's test."""
    with spark_warnings_aside():
        gc.collect()


@contextmanager
def spark_warnings_aside() -> Iterator[None]:
    """PySpark warns about others' deprecations; nobody here can answer for them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
