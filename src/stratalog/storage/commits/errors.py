"""What can go wrong with a commit. All of them survive pickling: they cross processes."""

from stratalog.errors import StorageError


class CommitError(StorageError):
    """A commit that was refused: nothing has changed, and nothing of it is left in the log."""


class ManifestError(CommitError):
    """A manifest that is not what its writer made, or that nobody can act on."""

    def __init__(self, manifest_id: str, reason: str) -> None:
        super().__init__(manifest_id, reason)
        self.manifest_id = manifest_id
        self.reason = reason

    def __str__(self) -> str:
        return f"manifest {self.manifest_id or '(without an id)'}: {self.reason}"


class StagedFileError(CommitError):
    """A staged file that is not what its manifest says, or that breaks the topic's rules."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, position, reason)
        self.path = path
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        where = f" at position {self.position}" if self.position >= 0 else ""
        return f"staged file {self.path}{where}: {self.reason}"


class CommitRefusedError(CommitError):
    """The log does not take the commit as it is now: unknown topic, held, damaged, offline."""


class SourceChangedError(CommitRefusedError):
    """A segment that a rewrite was made from is not what it was then."""


class AppendsPausedError(StorageError):
    """The log takes no appends for a moment: a commit is about to put its records at the end."""


class CommitBusyError(CommitRefusedError):
    """Another commit of the same log, or of the same staged files, is under way: try again."""
