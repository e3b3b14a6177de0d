"""The sink, with a place where the process that works for it dies, or fails.

A query writes with ``format("dying")``, its options are the sink's own, and besides:

    stratalog.dies    where: a name below
    stratalog.home    a directory to leave marks in
    stratalog.group   the process group of the driver and its JVM, which die too; 0: this one alone

    task        a task, in its first attempt, when it has staged some of its rows
    staged      the driver, when every task has staged and no commit was asked for
    before      the driver, when the commit is asked for
    settling    the driver, being the owner, when all is ready for the journal's record
    journaled   the driver, being the owner, when the record is written and nothing else
    applied     the driver, being the owner, when the records are in the logs, before it is noted
    after       the driver, when the commit is made, before Spark is told
    failing     nobody: the commit is made and then fails, so that Spark aborts it

Each happens at its first opportunity, and once.
"""

import os
import signal
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter

from stratalog.spark.source import StratalogDataSource

STEPS = {"settling": "settle", "journaled": "apply", "applied": "complete"}


class DyingDataSource(StratalogDataSource):
    @classmethod
    def name(cls):
        return "dying"

    def streamWriter(self, schema, overwrite):
        told = {name.removeprefix("stratalog."): value for name, value in self.options.items()}
        return DyingWriter(
            super().streamWriter(schema, overwrite),
            told.get("dies", ""),
            Path(told["home"]),
            int(told.get("group", "0")),
        )


class DyingWriter(DataSourceStreamArrowWriter):
    def __init__(self, inner, point, home, group):
        self.inner = inner
        self.point = point
        self.home = home
        self.group = group

    def write(self, iterator):
        context = TaskContext.get()
        if self.point == "task" and context.partitionId() == 1 and not context.attemptNumber():
            iterator = self._until_the_second(iterator)
        told = self.inner.write(iterator)
        if self.point == "staged":
            (self.home / f"staged-{context.partitionId()}").touch()
            if len(list(self.home.glob("staged-*"))) == 2:
                self._die()
        return told

    def _until_the_second(self, iterator):
        """A first record batch, which is written; and then the end of this process."""
        yield next(iterator)
        (self.home / "task-died").touch()
        os._exit(1)

    def commit(self, messages, batchId):
        if self.point == "before":
            self._die()
        if self.point in STEPS:
            self._die_in_step(STEPS[self.point])
        self.inner.commit(messages, batchId)
        if self.point == "after":
            self._die()
        if self.point == "failing" and self._is_first():
            raise OSError("the answer was lost")

    def abort(self, messages, batchId):
        (self.home / f"aborted-{len(messages)}").touch()
        self.inner.abort(messages, batchId)

    def _die_in_step(self, step):
        from stratalog.storage.commits.committing import Commit

        setattr(Commit, step, lambda _commit: self._die())

    def _is_first(self):
        try:
            (self.home / f"done-{self.point}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _die(self):
        if not self._is_first():
            return
        if self.group:
            os.killpg(self.group, signal.SIGKILL)
        os._exit(9)
