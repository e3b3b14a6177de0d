"""What can go wrong with a write. All of them survive pickling: tasks run in other processes."""

from stratalog.errors import StratalogError


class SinkError(StratalogError):
    """A write that cannot be planned or finished."""


class SinkRowError(SinkError):
    """A row that cannot be written, and which one it is. Nothing of its write is committed."""

    def __init__(self, task: int, row: int, column: str, reason: str) -> None:
        super().__init__(task, row, column, reason)
        self.task = task
        self.row = row
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"row {self.row} of Spark's partition {self.task}, column {self.column!r}: "
            f"{self.reason}. Nothing was written"
        )


class StagingLostError(SinkError):
    """What a task was staging is no longer held."""

    def __init__(self, path: str, staging_id: str, seconds: int) -> None:
        super().__init__(path, staging_id, seconds)
        self.path = path
        self.staging_id = staging_id
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"staging {self.staging_id} in {self.path} is gone: it was not renewed for "
            f"{self.seconds} s, or its write was given up. Raise the option stagingSeconds if "
            "machines stand still for that long"
        )
