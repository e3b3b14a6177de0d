"""The metadata store of a log directory that nobody owns, read without touching it.

Opening a store takes its lock and may roll its write-ahead log forward, which is for the owner of
the directory alone. So both files are copied, and the copy is opened.
"""

import tempfile
from pathlib import Path
from typing import NamedTuple

from stratalog.config import BrokerConfig
from stratalog.errors import CorruptFileError, DiskError
from stratalog.metadata.controller_changes import FollowedController
from stratalog.metadata.image import MetadataImage
from stratalog.metadata.sqlite_store import METADATA_FILE, SqliteMetadataStore

_WRITE_AHEAD = "-wal"


class KeptStore(NamedTuple):
    """``followed`` is what Kafka's controller had written when its log was last read."""

    image: MetadataImage
    followed: FollowedController | None


def read_kept_store(log_dir: str) -> KeptStore | None:
    """What the store holds; None if there is none, if nobody has said yet whose it is, or if an
    owner came and wrote to it meanwhile. CorruptFileError where an owner could not open it."""
    path = f"{log_dir}/{METADATA_FILE}"
    try:
        before = _state(path)
        if not before:
            return None
        with tempfile.TemporaryDirectory(prefix="stratalog-") as directory:
            copy = f"{directory}/{METADATA_FILE}"
            for suffix in ("", _WRITE_AHEAD):
                if Path(path + suffix).is_file():
                    Path(copy + suffix).write_bytes(Path(path + suffix).read_bytes())
            if _state(path) != before:
                return None
            with SqliteMetadataStore.open(copy, broker=BrokerConfig()) as store:
                return KeptStore(store.image, store.followed) if store.is_initialized else None
    except CorruptFileError as corrupt:
        raise CorruptFileError(path, corrupt.reason) from corrupt
    except OSError as error:
        raise DiskError("read", path, error.errno or 0, error.strerror or str(error)) from error


def _state(path: str) -> list[tuple[int, int, int]]:
    """Another one after anybody has written to the store."""
    found = []
    for name in (path, path + _WRITE_AHEAD):
        if Path(name).is_file():
            stat = Path(name).stat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
    return found
