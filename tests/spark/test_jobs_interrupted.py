"""An interrupt in the middle of a job: the JVM is asked for nothing more, which would wait."""

import errno
import logging
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from stratalog.cli.failures import CommandError
from stratalog.cli.spark_session import SparkChoice, spark_for
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


def test_what_py4j_raises_is_not_logged_with_its_stacks_as_well(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with spark_for(SparkChoice.of(None, None), "test"):
        logging.error("KeyboardInterrupt while sending command.")
        logging.error("something else")

    assert caplog.messages == ["something else"]


@pytest.mark.parametrize(
    "error",
    [
        Py4JError("Gateway must be connected to send cancel cmd."),
        Py4JNetworkError("Answer from Java side is empty"),
        OSError(errno.ENOTCONN, "Transport endpoint is not connected"),
        CommandError("cannot be done"),
    ],
)
def test_an_interrupt_is_one_whatever_comes_on_the_way_out(spark: Any, error: Exception) -> None:
    def failed() -> None:
        with spark_for(SparkChoice.of(None, None), "test"):
            raise error

    def interrupted() -> None:
        with spark_for(SparkChoice.of(None, None), "test"):
            try:
                raise KeyboardInterrupt
            finally:
                raise error

    with pytest.raises((type(error), CommandError)):
        failed()
    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_a_jvm_that_is_gone_is_told_in_one_sentence(spark: Any) -> None:
    def asked() -> None:
        with spark_for(SparkChoice.of(None, None), "test"):
            raise Py4JNetworkError("Error while sending or receiving")

    with pytest.raises(CommandError, match="Java process went away"):
        asked()
