"""What can go wrong with a write. All of them survive pickling: tasks run in other processes."""

from stratalog.errors import StratalogError


class SinkError(StratalogError):
    """A write that cannot be planned or finished."""


class SinkRowError(SinkError):
    """A row that cannot be written, and which one it is. Nothing of its write is committed.

    ``column`` is None if it is about no single one of them."""

    ending = "Nothing was written"

    def __init__(self, task: int, row: int, column: str | None, reason: str) -> None:
        super().__init__(task, row, column, reason)
        self.task = task
        self.row = row
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        column = "" if self.column is None else f", column {self.column!r}"
        return (
            f"row {self.row} of Spark's partition {self.task}{column}: {self.reason}. {self.ending}"
        )


class ProducedRowError(SinkRowError):
    """The same over the wire, where nothing is undone."""

    ending = "Rows before it may have been written: over the wire nothing is undone"


class UntoldRowsError(SinkError):
    """Spark wants to commit what a task never told of: nobody has seen the rows of that task."""

    def __init__(self, task: int, batch_id: int | None) -> None:
        super().__init__(task, batch_id)
        self.task = task
        self.batch_id = batch_id

    def __str__(self) -> str:
        what = "a write" if self.batch_id is None else f"batch {self.batch_id}"
        return (
            f"Spark commits {what} without what task {self.task} wrote: its rows were not written. "
            "trigger(continuous=...) hands no rows to sinks in Python; use "
            "trigger(processingTime=...) or trigger(availableNow=True), with a new checkpoint"
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
