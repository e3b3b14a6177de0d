"""Files of a log directory that have no name any more, and are still open in the owner's process.

The disk gets their room back when the last descriptor is closed: a slow reader's, or one of a
process that holds on to it by mistake. Linux tells them under ``/proc/<process id>/fd``; of another
user's process it tells nothing, and then there is nothing to tell.
"""

import os
from contextlib import suppress

from stratalog.storage.usage import ListedFile

_DELETED = " (deleted)"
_BLOCK_BYTES = 512


def unlinked_files(process_id: int, log_directory: str) -> list[ListedFile]:
    """Those that lay in ``log_directory``, each once."""
    root = os.path.realpath(log_directory) + "/"
    descriptors = f"/proc/{process_id}/fd"
    found: dict[tuple[int, int], ListedFile] = {}
    with suppress(OSError):
        for name in os.listdir(descriptors):
            link = f"{descriptors}/{name}"
            with suppress(OSError):  # closed meanwhile
                target = os.readlink(link)
                if not target.startswith(root) or not target.endswith(_DELETED):
                    continue
                told = os.stat(link)
                found[told.st_dev, told.st_ino] = ListedFile(
                    target[len(root) :].removesuffix(_DELETED),
                    told.st_size,
                    told.st_blocks * _BLOCK_BYTES,
                )
    return sorted(found.values())
