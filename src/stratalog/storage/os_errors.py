"""The operating system's errors as ours."""

import errno

from stratalog.errors import (
    DiskError,
    DiskFullError,
    NotARegularFileError,
    OutOfMemoryError,
    TooManyOpenFilesError,
)

_KINDS: dict[int, type[DiskError]] = {
    errno.ENOSPC: DiskFullError,
    errno.EDQUOT: DiskFullError,
    errno.EMFILE: TooManyOpenFilesError,
    errno.ENFILE: TooManyOpenFilesError,
    errno.ENOMEM: OutOfMemoryError,
    errno.EISDIR: NotARegularFileError,
    errno.ELOOP: NotARegularFileError,
    errno.ENXIO: NotARegularFileError,  # a socket
}


def disk_error(operation: str, path: str, error: OSError) -> DiskError:
    kind = _KINDS.get(error.errno or 0, DiskError)
    return kind(operation, path, error.errno or 0, error.strerror or str(error))
