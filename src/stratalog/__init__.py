"""Kafka's log, in Python, open to Spark.

The public names. They are imported when first used, so that ``import stratalog`` costs nothing.
"""

TYPE_CHECKING = False  # to import typing takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from stratalog.embedded import LogsDirectory as LogsDirectory
    from stratalog.embedded import PartitionLog as PartitionLog
    from stratalog.embedded import open_directory as open_directory
    from stratalog.errors import StratalogError as StratalogError
    from stratalog.records import Record as Record
    from stratalog.scans.api import scan as scan
    from stratalog.storage.check import check as check

__version__ = "0.1.0"

_HOME = {
    "LogsDirectory": "stratalog.embedded",
    "PartitionLog": "stratalog.embedded",
    "Record": "stratalog.records",
    "StratalogError": "stratalog.errors",
    "check": "stratalog.storage.check",
    "open_directory": "stratalog.embedded",
    "scan": "stratalog.scans.api",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"stratalog has no {name!r}")
    return getattr(import_module(_HOME[name]), name)
