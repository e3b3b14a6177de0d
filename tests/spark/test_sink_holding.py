"""The lease of a staging: what tasks of a write hold together, also while they wait for rows."""

import time
from dataclasses import replace

import pyarrow as pa
import pytest
from sink_plans import make_plan, make_topic, staged_records

from stratalog.spark.sink_plan import TaskPlace
from stratalog.spark.sink_tasks import stage_rows
from stratalog.storage.commits.staging import open_staging, staging_until_ms
from stratalog.storage.files import OsFileSystem
from stratalog.testing import ManualClock

NOW_MS = 1_700_000_000_123
ROWS = pa.record_batch({"value": [b"v"]})


class Watched(OsFileSystem):
    """A disk that counts how often a lease was looked for."""

    looks = 0

    def stat(self, path):
        self.looks += ".stratalog-staging-" in path
        return super().stat(path)


def become(condition):
    """Give a thread the time to do what it is there for."""
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until


def plan_in(path, **more):
    # Held for no time at all from each moment on: it is renewed without a pause.
    topic = make_topic(path, "orders", 1)
    return make_plan(path, topic, columns=("value",), topic="orders", staging_seconds=0, **more)


def opened(plan, clock):
    open_staging(
        OsFileSystem(), plan.path, holder="", seconds=0, clock=clock, staging_id=plan.staging_id
    )


@pytest.mark.parametrize("by_the_driver", [True, False])
def test_what_others_hold_is_renewed_by_a_task_that_waits_for_its_first_row(
    tmp_path, by_the_driver
):
    plan = plan_in(tmp_path, is_opened=by_the_driver)
    files, clock = OsFileSystem(), ManualClock(NOW_MS)
    opened(plan, clock)  # by the driver, or by another task of a micro-batch

    def rows():
        clock.advance(60_000)
        become(
            lambda: staging_until_ms(files, plan.path, plan.staging_id) == NOW_MS + 60_000  # now
        )
        yield ROWS

    staged = stage_rows(rows(), plan, TaskPlace(task=0, attempt=0), files, clock)

    assert len(staged_records(plan, staged)) == 1


def test_a_task_that_waits_is_not_told_that_what_nobody_has_opened_yet_is_lost(tmp_path):
    plan = plan_in(tmp_path)
    files = Watched()

    def rows():
        become(lambda: files.looks > 3)
        yield ROWS

    place = TaskPlace(task=0, attempt=0)
    staged = stage_rows(rows(), plan, place, files, ManualClock(NOW_MS))

    assert len(staged_records(plan, staged)) == 1


def test_what_others_hold_is_renewed_by_a_task_without_rows(tmp_path):
    """Of very many short ones, one after the other."""
    plan = replace(plan_in(tmp_path, is_opened=True), staging_seconds=60)
    files, clock = OsFileSystem(), ManualClock(NOW_MS)
    opened(plan, clock)

    stage_rows(iter(()), plan, TaskPlace(task=0, attempt=0), files, clock)

    assert staging_until_ms(files, plan.path, plan.staging_id) == NOW_MS + 60_000
