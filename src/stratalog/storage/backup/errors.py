"""What can go wrong with a backup."""

from stratalog.errors import StorageError


class BackupError(StorageError):
    """Nothing was backed up or restored, for a reason that a person can do something about."""


class BackupDamagedError(BackupError):
    """A file of a backup that is not what it was when it was written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"backup file {self.path}: {self.reason}"
