"""An interrupt in the middle of a job: the JVM is asked for nothing more, which would wait."""

from typing import Any

import pytest

from stratalog.spark.jobs.progress import told

GROUP = "spark.jobGroup.id"


def raising(spark: Any, error: BaseException) -> None:
    with told(spark, lambda _counts: None):
        raise error


@pytest.mark.parametrize(
    ("error", "is_restored"), [(ValueError("wrong"), True), (KeyboardInterrupt(), False)]
)
def test_the_jobs_group_is_given_back_unless_the_job_was_interrupted(
    spark: Any, error: BaseException, is_restored: bool
) -> None:
    context = spark.sparkContext
    context.setLocalProperty(GROUP, "mine")
    try:
        with pytest.raises(type(error)):
            raising(spark, error)
        assert (context.getLocalProperty(GROUP) == "mine") is is_restored
    finally:
        context.setLocalProperty(GROUP, None)
