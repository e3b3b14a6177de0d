"""Spark reads logs: the data source behind ``format("stratalog")``, and helpers for Python.

    stratalog.spark.scan(spark, "/var/lib/stratalog", topic="orders", where="offset >= 100")

Nothing here is imported before it is asked for: PySpark is an extra, and the command line has to be
able to say that it is missing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratalog.spark.api import Snapshot as Snapshot
    from stratalog.spark.api import explain as explain
    from stratalog.spark.api import scan as scan
    from stratalog.spark.api import snapshot as snapshot
    from stratalog.spark.counting import reads as reads
    from stratalog.spark.progress import lag as lag

_PLACES = {
    "Snapshot": "stratalog.spark.api",
    "explain": "stratalog.spark.api",
    "lag": "stratalog.spark.progress",
    "reads": "stratalog.spark.counting",
    "scan": "stratalog.spark.api",
    "snapshot": "stratalog.spark.api",
}

__all__ = ["Snapshot", "explain", "lag", "reads", "scan", "snapshot"]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(place), name)
