"""The Spark that is measured: one session on two cores, quiet, and only on this machine."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.broker_processes import installed
from benchmarks.peers import connector_jars, why_no_connector
from benchmarks.timing import wall_s


@contextmanager
def spark_session(root: Path, *, memory: str = "4g", with_connector: bool = False) -> Iterator[Any]:
    """Its Python processes are as those of an installed package; with Spark's Kafka connector on
    it where that can be had."""
    from stratalog.spark.session import session

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(installed(root))
    os.environ["SPARK_LOCAL_DIRS"] = str(root / "local")
    configs = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.showConsoleProgress": "false",
    }
    if with_connector and why_no_connector() is None:
        configs["spark.jars"] = ",".join(map(str, connector_jars()))
    spark = session(master="local[2]", app_name="benchmark", configs=configs)
    try:
        yield spark
    finally:
        spark.stop()


def in_turns(
    ways: Mapping[str, Callable[[], object]],
    *,
    warm_ups: int,
    runs: int,
    after: Callable[[], object] = lambda: None,
) -> dict[str, list[float]]:
    """Seconds of each way, one after the other again and again; ``after`` tidies up each time."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(warm_ups + runs):
        for name, work in ways.items():
            spent = wall_s(work)
            after()
            if number >= warm_ups:
                seconds[name].append(spent)
    return seconds
