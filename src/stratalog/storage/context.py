"""What a log is given by its owner: the disk, the time, the broker's settings."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from stratalog.clock import Clock, SystemClock
from stratalog.storage.files import FileSystem, OsFileSystem
from stratalog.storage.handles import HandleCache
from stratalog.storage.layout import TopicPartition
from stratalog.storage.sync_failures import SyncFailures

if TYPE_CHECKING:
    from stratalog.storage.lease_book import LeaseBook
    from stratalog.storage.log import Log


class DiskState(Enum):
    """What appends to a log directory meet; one value is shared by all its logs."""

    ONLINE = "online"
    FULL = "full"
    OFFLINE = "offline"


@dataclass(slots=True)
class DirectoryState:
    """The state of the log directory a log lives in. Its manager changes it."""

    state: DiskState = DiskState.ONLINE
    reason: str = ""
    # Why the last append found no room although there seemed to be some: a quota, inodes, files
    # that may be open. Appends are tried all the same, and the first that finds room ends it.
    refused: str = ""
    # Looks at the free space. Beside its regular turn it is asked after so many bytes, and when an
    # append finds no room: a fast producer would use up the reserve between two turns.
    check_space: Callable[[], None] = lambda: None
    check_after_bytes: int = 2**63 - 1
    unchecked_bytes: int = 0
    syncs: SyncFailures = field(default_factory=SyncFailures)
    # Its logs that have files to be removed some time.
    with_waste: set[TopicPartition] = field(default_factory=set)

    def appended(self, size_bytes: int) -> None:
        if self.refused:
            self.refused = ""
        self.unchecked_bytes += size_bytes
        if self.unchecked_bytes >= self.check_after_bytes:
            self.unchecked_bytes = 0
            self.check_space()


@dataclass(slots=True)
class LogContext:
    """What a log is given by its owner: the disk, the time, and the broker's settings."""

    files: FileSystem
    clock: Clock
    handles: HandleCache
    directory_state: DirectoryState
    flush_on_ack: bool = True
    producer_expiration_ms: int = 86_400_000
    # transaction.partition.verification.enable: a transaction begins with its coordinator's word.
    verify_transactions: bool = False
    # Told of a roll where acknowledgements do not wait for the disk; whether it sees to the flush
    # of what was rolled, so that the owner's thread need not wait for a whole segment.
    flush_later: "Callable[[Log], bool]" = lambda _log: False
    # What readers hold of segments that go; None where nobody can hold anything.
    leases: "LeaseBook | None" = None
    # Called before a log is cut: what is on disk must not stay above the cut.
    checkpoint_recovery_points: Callable[[], None] = lambda: None
    checkpoint_log_start_offsets: Callable[[], None] = lambda: None

    @classmethod
    def default(cls) -> "LogContext":
        return cls(OsFileSystem(), SystemClock(), HandleCache(), DirectoryState())
