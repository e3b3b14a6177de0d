"""The batch writer: rows of a DataFrame become records of a log, all of them or none.

Tasks stage, the driver commits. Without ``txnAppId`` a write that is run again writes again;
with it, and ``txnVersion``, no version is written twice, whatever was killed on the way.
"""

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from stratalog.spark.plain import plainly
from stratalog.spark.sink_columns import check_columns
from stratalog.spark.sink_options import SinkOptions
from stratalog.spark.sink_plan import SinkPlan, StagedRows, TaskPlace, told_by_tasks
from stratalog.spark.workers import freeze_imports, settle_in

if TYPE_CHECKING:
    import pyarrow


class StratalogWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        from stratalog.spark.sink_commit import plan_sink

        self._options = options
        self._plan = plan_sink(options, check_columns(schema, options.topic), opens_staging=True)

    @plainly
    def write(  # type: ignore[override]  # rows are Arrow's, as PySpark has it too
        self, iterator: Iterator["pyarrow.RecordBatch"]
    ) -> WriterCommitMessage:
        return stage_in_task(iterator, self._plan)

    @plainly
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from stratalog.spark.sink_commit import (
            batch_app,
            commit_staged,
            release,
            tell_result,
        )

        freeze_imports()
        staged = told_by_tasks(messages, StagedRows)
        result = commit_staged(self._options, staged, uuid.uuid4().hex, batch_app(self._options))
        tell_result(self._options, result)
        if result is None:
            release(self._plan.path, [self._plan.staging_id])

    @plainly
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        from stratalog.spark.sink_commit import release

        # A task that told nothing has failed, and then nothing was ever committed. Else it is the
        # commit that failed: it has removed what was refused, and left what may be committed.
        if any(each is None for each in messages):
            release(self._plan.path, [self._plan.staging_id])


def stage_in_task(iterator: Iterator["pyarrow.RecordBatch"], plan: SinkPlan) -> StagedRows:
    """In a task of Spark's: what it is given, staged."""
    from stratalog.spark.sink_tasks import stage_rows
    from stratalog.storage.files import OsFileSystem

    settle_in()
    return stage_rows(iterator, plan, task_place(), OsFileSystem())


def task_place() -> TaskPlace:
    context = TaskContext.get()
    assert context is not None, "rows are written in tasks"
    return TaskPlace(
        task=context.partitionId(),
        attempt=context.taskAttemptId(),
        query_id=context.getLocalProperty("sql.streaming.queryId") or "",
    )
