"""The streaming writer: every micro-batch is one commit, known by the query's id and the batch's.

Spark makes a writer for each batch's tasks and another one for its commit, which knows nothing but
what the tasks tell: staging and query travel in their messages. After a crash Spark runs its last
batch again and commits it again; the owner has its id, and the rows are there once.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from stratalog.spark.plain import plainly
from stratalog.spark.sink import stage_in_task
from stratalog.spark.sink_columns import check_columns
from stratalog.spark.sink_errors import SinkError
from stratalog.spark.sink_options import SinkOptions
from stratalog.spark.sink_plan import SinkPlan, StagedRows, told_by_tasks
from stratalog.spark.workers import freeze_imports

if TYPE_CHECKING:
    import pyarrow


class StratalogStreamWriter(DataSourceStreamArrowWriter):
    """``is_planned``: it is made for tasks, and not for a commit."""

    def __init__(self, options: SinkOptions, schema: StructType, *, is_planned: bool) -> None:
        columns = check_columns(schema, options.topic)
        self._options = options
        self._plan: SinkPlan | None = None
        if is_planned:
            from stratalog.spark.sink_commit import plan_sink

            self._plan = plan_sink(options, columns)

    @plainly
    def write(  # type: ignore[override]  # rows are Arrow's, as PySpark has it too
        self, iterator: Iterator["pyarrow.RecordBatch"]
    ) -> WriterCommitMessage:
        assert self._plan is not None, "tasks are planned for"
        return stage_in_task(iterator, self._plan)

    @plainly
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        from stratalog.spark.sink_commit import commit_staged
        from stratalog.storage.commits.manifest import AppVersion, stream_id

        freeze_imports()
        staged = told_by_tasks(messages, StagedRows, batchId)
        query_ids = {each.place.query_id for each in staged if each.files}
        if not query_ids:
            return  # Nothing to write; the next batch's version may be any higher one.
        query_id = query_ids.pop()
        if not query_id:
            raise SinkError("Spark told its tasks no query id: this is no streaming query")
        app = AppVersion(name=query_id, version=batchId)
        commit_staged(self._options, staged, stream_id(query_id, batchId), app)

    @plainly
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        from stratalog.spark.sink_commit import release, staged_rows

        # As in a batch write. Where no task told anything, the lease of what they staged ends.
        if any(each is None for each in messages):
            release(self._options.path, {each.staging_id for each in staged_rows(messages)})
