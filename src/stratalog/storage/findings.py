"""What a check of a log has found, as values: where, what kind, and a sentence for a person."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

NOWHERE = -1


class Severity(StrEnum):
    """An error has lost or may lose data, or lets a reader see what it should not. A warning
    costs time: a hint that is wrong, or the rest of an interrupted write, and whoever opens the
    log next puts it right."""

    ERROR = "error"
    WARNING = "warning"


class Kind(StrEnum):
    """What a finding is about; names are stable, sentences are not."""

    BATCH = "batch"
    TAIL = "tail"
    OVERLAP = "overlap"
    RECORD_OFFSETS = "record-offsets"
    GAP = "gap"
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    TRANSACTION_INDEX = "transaction-index"
    MISSING_FILE = "missing-file"
    ORPHAN_FILE = "orphan-file"
    NOT_A_FILE = "not-a-file"
    SNAPSHOT = "snapshot"
    LEADER_EPOCHS = "leader-epochs"
    CHECKPOINT = "checkpoint"
    METADATA = "metadata"
    COMMIT_JOURNAL = "commit-journal"
    DIRECTORY = "directory"
    UNREADABLE = "unreadable"
    MEMORY = "memory"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class Finding:
    """``position`` is a byte of ``path`` and ``offset`` a record's; -1 where there is none."""

    severity: Severity
    path: str
    position: int
    offset: int
    kind: Kind
    sentence: str

    def __str__(self) -> str:
        where = f" at position {self.position}" if self.position >= 0 else ""
        which = f" (offset {self.offset})" if self.offset >= 0 else ""
        return f"{self.severity}: {self.path}{where}{which}: {self.sentence}"

    @property
    def identity(self) -> tuple[str, Kind, int, int]:
        """Equal for two looks at the same trouble, though its numbers may have moved on."""
        return self.path, self.kind, self.position, self.offset


def error(
    kind: Kind, path: str, sentence: str, *, position: int = NOWHERE, offset: int = NOWHERE
) -> Finding:
    return Finding(Severity.ERROR, path, position, offset, kind, sentence)


def warning(
    kind: Kind, path: str, sentence: str, *, position: int = NOWHERE, offset: int = NOWHERE
) -> Finding:
    return Finding(Severity.WARNING, path, position, offset, kind, sentence)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """By place, so that the same trouble is told in the same order every time."""
    return sorted(findings, key=lambda each: (each.path, each.position, each.offset, each.kind))
