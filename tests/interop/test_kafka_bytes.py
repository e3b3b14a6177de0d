"""The same appends, given to Apache Kafka and to us, leave the same bytes in every file.

After clean stops, after ``kill -9``, and after each side's own recovery of a damaged directory.
"""

from pathlib import Path

import pytest
from apache_kafka import KafkaDistribution
from kafka_runs import KafkaRun, copy_tree
from replaying import (
    KafkaPartition,
    contents,
    difference,
    in_use,
    recover,
    replay_clean,
    replay_crashed,
    segment_base_below,
)
from scenarios import SCENARIOS

from stratalog.storage.layout import DELETED_SUFFIX

pytestmark = pytest.mark.interop


@pytest.fixture(params=[scenario.name for scenario in SCENARIOS])
def kafkas(kafka_run: KafkaRun, request: pytest.FixtureRequest) -> KafkaPartition:
    return kafka_run.partition(request.param)


def recovered(kafka_run: KafkaRun, kafkas: KafkaPartition) -> dict[str, bytes]:
    """What Kafka's recovery has left, without the segments that it took away: there they wait for
    their deletion, and our recovery keeps them aside in a directory of their own."""
    before = contents(kafka_run.damaged / f"{kafkas.topic}-0")
    after = contents(kafka_run.recovered / f"{kafkas.topic}-0")
    return {
        name: data
        for name, data in after.items()
        if name in before or not name.endswith(DELETED_SUFFIX)
    }


def test_the_same_appends_leave_the_same_bytes_after_a_clean_stop(
    kafkas: KafkaPartition, tmp_path: Path
) -> None:
    ours = replay_clean(kafkas, tmp_path / f"{kafkas.topic}-0")

    assert difference(contents(ours.directory), contents(kafkas.clean)) == []


def test_the_same_appends_leave_the_same_bytes_after_a_crash(
    kafkas: KafkaPartition, tmp_path: Path
) -> None:
    ours = replay_crashed(kafkas, tmp_path / f"{kafkas.topic}-0", flushed=True)

    assert difference(in_use(ours.directory), in_use(kafkas.crashed)) == []


def test_recovery_of_kafkas_directory_leaves_what_its_own_recovery_leaves(
    kafka_run: KafkaRun, kafkas: KafkaPartition, tmp_path: Path
) -> None:
    directory = tmp_path / f"{kafkas.topic}-0"
    copy_tree(kafka_run.damaged / f"{kafkas.topic}-0", directory)
    ours = kafka_run.adopt(directory, kafkas.topic)
    ours.recovery_point = segment_base_below(directory, ours.recovery_point)

    recover(ours, kafkas.started_ms[3])

    assert difference(contents(directory), recovered(kafka_run, kafkas)) == []


def test_recovery_inside_a_segment_differs_in_the_hints_of_its_flushed_part_only(
    kafka: KafkaDistribution, kafka_run: KafkaRun, kafkas: KafkaPartition, tmp_path: Path
) -> None:
    directory = tmp_path / f"{kafkas.topic}-0"
    copy_tree(kafka_run.damaged / f"{kafkas.topic}-0", directory)
    ours = kafka_run.adopt(directory, kafkas.topic)
    base_offset = segment_base_below(directory, ours.recovery_point)

    recover(ours, kafkas.started_ms[3])

    kafkas_recovered = recovered(kafka_run, kafkas)
    hints = {f"{base_offset:020d}.index", f"{base_offset:020d}.timeindex"}
    left = {name: data for name, data in contents(directory).items() if name not in hints}
    right = {name: data for name, data in kafkas_recovered.items() if name not in hints}
    assert difference(left, right) == []
    assert kafka.dump_log(sorted(hints), "--verify-index-only", cwd=directory).stderr == ""
