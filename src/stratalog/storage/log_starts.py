"""Log starts that DeleteRecords has raised, made durable: planned on the owner's thread, written on
any, noted on the owner's.

One write of ``log-start-offset-checkpoint`` serves all logs of a directory. That file is Kafka's
own, so Apache Kafka too, started on the directory after a crash, begins where DeleteRecords said.
The copy in the partition, which stands in for a lost file, follows with the next periodic write.
"""

from dataclasses import dataclass
from typing import Self

from stratalog.storage.directory import Checkpoint, LogDirectory
from stratalog.storage.log import Log


@dataclass(frozen=True, slots=True)
class LogStartTask:
    """No crash lowers ``starts`` once ``run`` has returned: a log, where it starts, and how often
    it had been cut when the task was planned."""

    checkpoint: Checkpoint
    starts: tuple[tuple[Log, int, int], ...]

    @classmethod
    def plan(cls, directory: LogDirectory) -> Self:
        checkpoint = directory.plan_log_start_offsets(with_copies=False)
        return cls(
            checkpoint,
            tuple(
                (log, log.log_start_offset, log.truncation_count)
                for key, log in directory.logs.items()
                if key in checkpoint.offsets
            ),
        )

    def run(self) -> None:
        self.checkpoint.write()

    def complete(self) -> None:
        for log, start_offset, truncations in self.starts:
            log.note_durable_start(start_offset, truncations)
