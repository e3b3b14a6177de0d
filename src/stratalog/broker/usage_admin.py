"""What takes the disk of this broker's log directories, over the admin port: JSON as bytes.

Listing ten thousand partitions takes a good part of a second, so a worker does it.
"""

import json
import os

from stratalog.broker.services import Services
from stratalog.errors import DiskError
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.leases import Lease
from stratalog.storage.readonly import ReadOnlyFileSystem
from stratalog.storage.usage import Owner
from stratalog.storage.usage_listing import look_at_usage


async def usage(services: Services) -> bytes:
    """The directories that are online, as ``stratalog log usage -o json`` prints them."""
    paths = [each.path for each in services.logs.directories if each.is_online]
    leases = tuple(services.logs.leases.book.leases.values())
    now_ms = services.clock.now_ms()
    return await services.loop.run_in_executor(
        services.workers, _told, ReadOnlyFileSystem(OsFileSystem()), paths, now_ms, leases
    )


def _told(files: FileSystem, paths: list[str], now_ms: int, leases: tuple[Lease, ...]) -> bytes:
    found = []
    for path in paths:
        try:
            value = look_at_usage(
                files,
                path,
                owner=Owner.STRATALOG,
                now_ms=now_ms,
                owner_pid=os.getpid(),
                leases=leases,
            ).to_json()
        except DiskError as error:
            value = {"log_directory": path, "error": str(error)}
        found.append(value)
    return json.dumps({"directories": found}, separators=(",", ":")).encode()
