"""Whole jobs on Spark, each a function: check a fleet of log directories, land a topic in a lake,
load one from anything that Spark reads, say what is in it.

    from stratalog.spark.jobs import verify

    assert verify(spark, "/var/lib/stratalog").is_clean

A result tells itself: ``rows()`` under ``columns`` is its summary, ``to_json()`` all of it. Nothing
is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratalog.spark.jobs.compacting import compact as compact
    from stratalog.spark.jobs.exporting import export as export
    from stratalog.spark.jobs.exporting import start_export as start_export
    from stratalog.spark.jobs.loading import load as load
    from stratalog.spark.jobs.statistics import stats as stats
    from stratalog.spark.jobs.verifying import verify as verify

_PLACES = {
    "compact": "stratalog.spark.jobs.compacting",
    "export": "stratalog.spark.jobs.exporting",
    "load": "stratalog.spark.jobs.loading",
    "start_export": "stratalog.spark.jobs.exporting",
    "stats": "stratalog.spark.jobs.statistics",
    "verify": "stratalog.spark.jobs.verifying",
}

__all__ = ["compact", "export", "load", "start_export", "stats", "verify"]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(place), name)
