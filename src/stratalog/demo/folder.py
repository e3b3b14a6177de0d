"""The folder in which a demo runs and which it leaves behind.

    .stratalog-demo   says that the folder is a demo's, and is locked while one runs
    data/             the log directory
    parquet/          what a stream has landed
    broker.log        the broker's events, a JSON object a line
    other.log         what Spark and other libraries have printed
    spark/            Spark's own files; gone at the end

A second run replaces the first. Nothing is removed that is not a demo's, and nothing that a broker
has open.
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stratalog.demo.errors import DemoError
from stratalog.storage.layout import LOCK_FILE
from stratalog.storage.readonly import lock_owner

MARKER = ".stratalog-demo"
# What a run leaves and needs on the way, and what a broker keeps free for itself.
FREE_BYTES_MIN = 1 << 30


class DemoFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.parquet = path / "parquet"
        self.spark = path / "spark"
        self.events = path / "broker.log"
        self.others = path / "other.log"


@contextmanager
def open_folder(path: Path) -> Iterator[DemoFolder]:
    """An empty folder that is ours until the end of the block."""
    folder = DemoFolder(path)
    try:
        if path.exists() and not path.is_dir():
            raise DemoError(f"{path} is not a directory: name another with --dir.")
        if path.is_dir() and any(path.iterdir()) and not (path / MARKER).exists():
            raise DemoError(f"{path} holds other things than a demo: name another with --dir.")
        path.mkdir(parents=True, exist_ok=True)
        marker = (path / MARKER).open("ab")
    except OSError as error:
        raise DemoError(f"{path} cannot be used: {error.strerror}. Try --dir DIR.") from error
    with marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DemoError(f"Another demo runs in {path}: name another with --dir.") from None
        _clear(folder)
        yield folder


def _clear(folder: DemoFolder) -> None:
    if folder.data.is_dir():
        owner = lock_owner(str(folder.data / LOCK_FILE))
        if owner is not None:
            raise DemoError(
                f"Process {owner} serves {folder.data}: stop it, or name another with --dir."
            )
    for each in (folder.data, folder.parquet, folder.spark):
        if each.exists():
            shutil.rmtree(each)
    for each in (folder.events, folder.others):
        each.unlink(missing_ok=True)
    free = shutil.disk_usage(folder.path).free
    if free < FREE_BYTES_MIN:
        raise DemoError(
            f"{folder.path} has {free >> 20} MB free, and the demo needs {FREE_BYTES_MIN >> 20}: "
            "name another with --dir."
        )
