"""What can go wrong with a handover, beyond what the owner refuses. They survive pickling."""

from stratalog.errors import StorageError


class HandoverError(StorageError):
    """Nothing was handed over: the directory has an owner that takes no commits, or none can be
    had."""


class CommitUnknownError(HandoverError):
    """It is not known whether the commit was made: whoever asks again with the same id learns."""

    def __init__(self, manifest_id: str, log_dir: str, seconds: float, reason: str) -> None:
        super().__init__(manifest_id, log_dir, seconds, reason)
        self.manifest_id = manifest_id
        self.log_dir = log_dir
        self.seconds = seconds
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"commit {self.manifest_id} of {self.log_dir}: no definite answer in "
            f"{self.seconds:g} s ({self.reason}). It may have been made; ask again with the same "
            "id, which commits it at most once"
        )
