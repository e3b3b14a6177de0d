"""How far a job is, told while it runs: tasks that are done, of those that Spark knows of.

Spark's status tracker is asked from a thread beside the job, by the name of the job's group. A
session over Spark Connect has no tracker, and then nothing is told.
"""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_EVERY_S = 0.2
_GROUP = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """``known`` grows while a job goes on: stages come one after the other."""

    done: int = 0
    running: int = 0
    known: int = 0


Progress = Callable[[TaskCounts], None]


@contextmanager
def told(spark: "SparkSession", progress: Progress | None) -> Iterator[None]:
    """While the block runs, ``progress`` hears of the jobs that this thread starts in it."""
    context = _context(spark)
    if progress is None or context is None:
        yield
        return
    group = f"stratalog-{uuid.uuid4().hex}"
    before = context.getLocalProperty(_GROUP)
    context.setLocalProperty(_GROUP, group)
    restored = not_when_interrupted(lambda: context.setLocalProperty(_GROUP, before))
    with watching(spark, group, progress), restored:
        yield


@contextmanager
def not_when_interrupted(restore: Callable[[], object]) -> Iterator[None]:
    """``restore`` asks the JVM for something, so it is not called after an interrupt: this thread's
    way there still waits for the answer of what was interrupted, which would come first."""
    try:
        yield
    except Exception:
        restore()
        raise
    restore()


@contextmanager
def watching(spark: "SparkSession", group: str, progress: Progress | None) -> Iterator[None]:
    """While the block runs, ``progress`` hears of the jobs of ``group``, whoever starts them."""
    context = _context(spark)
    if progress is None or context is None:
        yield
        return
    is_over = threading.Event()
    asker = threading.Thread(
        target=_ask, args=(context.statusTracker(), group, progress, is_over), daemon=True
    )
    asker.start()
    try:
        yield
    finally:
        is_over.set()
        asker.join()


def _ask(tracker: Any, group: str, progress: Progress, is_over: threading.Event) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    while not is_over.wait(ASK_EVERY_S):
        # The tracker forgets, and a session may be stopped: a bar is not worth an error.
        with suppress(Py4JError, OSError):
            progress(count_tasks(tracker, group))


def count_tasks(tracker: Any, group: str) -> TaskCounts:
    """All stages of all jobs of ``group``, as far as the tracker remembers them."""
    jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(group)]
    stage_ids = {stage for job in jobs if job is not None for stage in job.stageIds}
    stages = [tracker.getStageInfo(each) for each in stage_ids]
    counted = [each for each in stages if each is not None]
    return TaskCounts(
        sum(each.numCompletedTasks for each in counted),
        sum(each.numActiveTasks for each in counted),
        sum(each.numTasks for each in counted),
    )


def _context(spark: "SparkSession") -> Any:
    """None where the session is a client of a server."""
    from pyspark.errors import PySparkException

    with suppress(PySparkException, AttributeError):
        return spark.sparkContext
    return None
