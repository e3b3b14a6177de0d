"""Where files of a job are: paths of this machine, or URIs of any file system that Hadoop knows.

A URI has a scheme and an absolute path: ``file:/lake`` is one as ``file:///lake`` is.
"""

import re
from pathlib import Path

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/")


def absolute(place: str) -> str:
    """Spark's processes may have another working directory than this one."""
    return place if _URI.match(place) else str(Path(place).absolute())


def local_path(place: str) -> str | None:
    """None if it is not on this machine."""
    found = _URI.match(place)
    if found is None:
        return place
    return place[found.end("scheme") + 1 :] if found["scheme"].lower() == "file" else None
