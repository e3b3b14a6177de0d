"""What can go wrong with a scan. All of them survive pickling: tasks run in other processes."""

from stratalog.errors import StratalogError
from stratalog.storage.layout import TopicPartition


class ScanError(StratalogError):
    """A scan cannot be planned or read."""


class ScanOptionError(ScanError):
    """An option of a scan that nobody can act on."""

    def __init__(self, option: str, value: str, reason: str) -> None:
        super().__init__(option, value, reason)
        self.option = option
        self.value = value
        self.reason = reason

    def __str__(self) -> str:
        return f"option {self.option!r} is {self.value!r}: {self.reason}"


class DataLostError(ScanError):
    """Offsets that a scan was to return are gone: exactly these."""

    def __init__(
        self, topic_partition: TopicPartition, start_offset: int, end_offset: int, reason: str
    ) -> None:
        super().__init__(topic_partition, start_offset, end_offset, reason)
        self.topic_partition = topic_partition
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.topic_partition} has lost the offsets {self.start_offset} to "
            f"{self.end_offset - 1} ({self.end_offset - self.start_offset} of them): {self.reason}"
        )


class TieredError(DataLostError):
    """Offsets that a scan was to return are in remote storage, which is not read."""

    def __str__(self) -> str:
        return (
            f"{self.topic_partition} has the offsets {self.start_offset} to "
            f"{self.end_offset - 1} ({self.end_offset - self.start_offset} of them) in remote "
            f"storage, and not in this directory: {self.reason}"
        )


class ScanReadError(ScanError):
    """A scan's reader was used a second time."""

    def __str__(self) -> str:
        return (
            "this scan has been read, and a reader is read once: call scan again for its rows, or "
            "keep the table that read_all() returns"
        )


class WrongDirectoryError(ScanError):
    """The path is there on this host, and is not the directory that the plan was made for."""

    def __init__(self, path: str, host: str, reason: str) -> None:
        super().__init__(path, host, reason)
        self.path = path
        self.host = host
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.path} on host {self.host} is not what this scan was planned for: {self.reason}"
        )


class MissingTopicError(ScanError):
    """A topic, or a partition of one, that the log directory does not hold."""

    def __init__(self, topic: str, partition: int, path: str) -> None:
        super().__init__(topic, partition, path)
        self.topic = topic
        self.partition = partition
        self.path = path

    def __str__(self) -> str:
        what = f"partition {self.partition} of topic" if self.partition >= 0 else "topic"
        return (
            f"{self.path} holds no {what} {self.topic!r}; check the name, or whether another log "
            "directory of the broker holds it"
        )
