"""Numbered operations that die or fail as a test tells them to."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from stratalog.errors import DiskError
from stratalog.storage.os_errors import disk_error

# The errors of the real file system carry the name of the call behind an operation.
_SYSTEM_NAMES = {
    "sync": "fsync",
    "sync_directory": "fsync",
    "create": "open",
    "sync_file_system": "syncfs",
    "open_directory": "open",
}


class PowerLoss(BaseException):
    """The machine stopped. Not an ``Exception``: nothing on the way up may handle it."""


class Operation(NamedTuple):
    number: int
    kind: str
    path: str
    detail: tuple[object, ...]


@dataclass(slots=True)
class Fault:
    """Which operations fail, how, and how often."""

    at: int | Callable[[Operation], bool]
    error: int
    times: int
    written_bytes: int
    """For a write: how much of it reaches the file before the error."""
    cut_back: bool
    """For a write: whether the file could be cut back to where the write began."""

    def hits(self, operation: Operation) -> bool:
        if self.times <= 0:
            return False
        if isinstance(self.at, int):
            return operation.number == self.at
        return self.at(operation)


class OperationCounter:
    """Counts, keeps and breaks the operations of a simulated disk."""

    def __init__(self, *, count_reads: bool, count_resources: bool = False) -> None:
        self.operations = 0
        self.trace: list[Operation] = []
        self.observer: Callable[[Operation], None] | None = None
        self._count_reads = count_reads
        self._count_resources = count_resources
        self._faults: list[Fault] = []
        self._crash_at = -1
        self._crash_inside = False
        self._dead = False

    def crash_at(self, number: int, *, inside: bool = False) -> None:
        """Cut the power before operation ``number``; or inside it, where a write is half done."""
        self._crash_at = number
        self._crash_inside = inside

    def fail(
        self,
        at: int | Callable[[Operation], bool],
        error: int = errno.EIO,
        *,
        times: int = 1,
        written_bytes: int = 0,
        cut_back: bool = True,
    ) -> Fault:
        """Let operations fail: by number, or those a predicate picks (it sees reads as well)."""
        fault = Fault(at, error, times, written_bytes, cut_back)
        self._faults.append(fault)
        return fault

    def heal(self) -> None:
        self._faults.clear()

    def begin(self, kind: str, path: str, *detail: object) -> Fault | None:
        """Number an operation, then let it die or fail as told. Only a write gets its fault
        back, since it happens in part; for the others the error is raised here."""
        if self._dead:
            raise PowerLoss(kind, path)
        self.operations += 1
        operation = Operation(self.operations, kind, path, detail)
        self.trace.append(operation)
        if self.observer is not None:
            self.observer(operation)
        if self.operations == self._crash_at:
            self._dead = True
            if kind == "write" and self._crash_inside:
                return None
            raise PowerLoss(kind, path)
        return self._raise_fault(operation)

    def begin_read(self, path: str, position: int, size: int) -> None:
        if self._dead:
            raise PowerLoss("read", path)
        if self._count_reads:
            self.begin("read", path, position, size)
        elif self._faults:
            self._raise_fault(Operation(-1, "read", path, (position, size)))

    def begin_resource(self, kind: str, path: str) -> None:
        """Before a call that takes a descriptor or a map and changes nothing."""
        if self._dead:
            raise PowerLoss(kind, path)
        if self._count_resources:
            self.begin(kind, path)

    def _raise_fault(self, operation: Operation) -> Fault | None:
        for fault in self._faults:
            if fault.hits(operation):
                fault.times -= 1
                if operation.kind == "write":
                    return fault
                called = _SYSTEM_NAMES.get(operation.kind, operation.kind)
                raise failure(called, operation.path, fault.error)
        return None


def failure(operation: str, path: str, code: int) -> DiskError:
    return disk_error(operation, path, OSError(code, os.strerror(code)))
