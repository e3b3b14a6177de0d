"""The same appends, given to Apache Kafka and to us, leave the same bytes in every file.

After clean stops, after ``kill -9``, and after each side's own recovery of a damaged directory.
"""

from pathlib import Path

import pytest
from kafka_runs import KafkaRun, copy_tree, recovery_points
from replaying import (
    KafkaPartition,
    OurPartition,
    contents,
    difference,
    recover,
    replay_clean,
    replay_crashed,
)
from scenarios import SCENARIOS

pytestmark = pytest.mark.interop


@pytest.fixture(params=[scenario.name for scenario in SCENARIOS])
def kafkas(kafka_run: KafkaRun, request: pytest.FixtureRequest) -> KafkaPartition:
    return kafka_run.partition(request.param)


def test_the_same_appends_leave_the_same_bytes_after_a_clean_stop(
    kafkas: KafkaPartition, tmp_path: Path
) -> None:
    ours = replay_clean(kafkas, tmp_path / f"{kafkas.topic}-0")

    assert difference(contents(ours.directory), contents(kafkas.clean)) == []


def test_the_same_appends_leave_the_same_bytes_after_a_crash(
    kafkas: KafkaPartition, tmp_path: Path
) -> None:
    ours = replay_crashed(kafkas, tmp_path / f"{kafkas.topic}-0")

    assert difference(contents(ours.directory), contents(kafkas.crashed)) == []


def test_recovery_of_kafkas_directory_leaves_what_its_own_recovery_leaves(
    kafka_run: KafkaRun, kafkas: KafkaPartition, tmp_path: Path
) -> None:
    directory = tmp_path / f"{kafkas.topic}-0"
    copy_tree(kafka_run.damaged / f"{kafkas.topic}-0", directory)
    recovery_point = recovery_points(kafka_run.crashed)[kafkas.topic]
    ours = OurPartition(directory, kafkas.topic, recovery_point=recovery_point)

    recover(ours, kafkas.started_ms[3])

    recovered = kafka_run.recovered / f"{kafkas.topic}-0"
    assert difference(contents(directory), contents(recovered)) == []
