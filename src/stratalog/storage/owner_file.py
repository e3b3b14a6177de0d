"""``.stratalog-owner``: how to reach the broker that owns a log directory, and the right to.

    {"pid": 4711, "admin": "http://127.0.0.1:40123", "token": "..."}

Only its user may read it (0600), for who has the token may change things. It is written when the
admin port is open and removed at a clean stop; one that a killed broker left is replaced. It is no
lock, and nothing depends on it being there.
"""

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from stratalog.errors import CorruptFileError, LogDirectoryError
from stratalog.storage.layout import OWNER_FILE
from stratalog.storage.os_errors import disk_error

_SIZE_BYTES_MAX = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """``admin`` is the address of the admin port, empty where there is none."""

    pid: int
    admin: str
    token: str

    def __repr__(self) -> str:
        return f"<Owner process {self.pid} at {self.admin}>"  # never the token


def new_token() -> str:
    return secrets.token_urlsafe(32)


def write_owner_files(log_dirs: Iterable[str], owner: Owner) -> None:
    """Say in each directory who owns it, all at once for whoever reads it."""
    content = json.dumps(asdict(owner)).encode()
    for log_dir in log_dirs:
        path = Path(log_dir) / OWNER_FILE
        temporary = path.with_name(f"{OWNER_FILE}.tmp")
        try:
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(descriptor, content)
            finally:
                os.close(descriptor)
            temporary.rename(path)
        except OSError as error:
            raise disk_error("write", str(path), error) from error


def remove_owner_files(log_dirs: Iterable[str]) -> None:
    """Of a process that stops; what cannot be removed is found out of date by its pid."""
    for log_dir in log_dirs:
        with suppress(OSError):
            (Path(log_dir) / OWNER_FILE).unlink()


def read_owner(log_dir: str) -> Owner:
    """The broker that runs on ``log_dir``."""
    path = Path(log_dir) / OWNER_FILE
    try:
        with path.open("rb") as file:
            content = file.read(_SIZE_BYTES_MAX)
    except FileNotFoundError:
        raise LogDirectoryError(f"no broker runs on {log_dir}: there is no {OWNER_FILE}") from None
    except OSError as error:
        raise disk_error("read", str(path), error) from error
    try:
        found = json.loads(content)
        owner = Owner(pid=int(found["pid"]), admin=str(found["admin"]), token=str(found["token"]))
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(str(path), "is not what a broker writes there") from error
    if not _is_running(owner.pid):
        raise LogDirectoryError(
            f"no broker runs on {log_dir}: its last owner, process {owner.pid}, has ended"
        )
    return owner


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return pid > 0
    return True
