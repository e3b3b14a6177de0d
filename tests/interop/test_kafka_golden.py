"""Our files against Apache Kafka's, without Apache Kafka: its own are kept in the repository."""

from pathlib import Path

import pytest
from dumping import DUMPS, dump_files, our_dump
from golden import KINDS, TOPICS, Golden, unpack
from kafka_runs import copy_tree
from replaying import (
    KafkaPartition,
    OurPartition,
    contents,
    difference,
    in_use,
    recover,
    replay_clean,
    replay_crashed,
    segment_base_below,
)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Golden:
    return unpack(tmp_path_factory.mktemp("golden"))


@pytest.fixture(params=TOPICS)
def kafkas(golden: Golden, request: pytest.FixtureRequest) -> KafkaPartition:
    topic = request.param
    return KafkaPartition(
        topic,
        golden.partition_dir("clean", topic),
        golden.partition_dir("crashed", topic),
        golden.started_ms,
    )


def test_the_same_appends_leave_kafkas_bytes_after_a_clean_stop(
    kafkas: KafkaPartition, tmp_path: Path
) -> None:
    ours = replay_clean(kafkas, tmp_path / f"{kafkas.topic}-0")

    assert difference(contents(ours.directory), contents(kafkas.clean)) == []


def test_the_same_appends_leave_kafkas_bytes_after_a_crash(
    kafkas: KafkaPartition, tmp_path: Path
) -> None:
    ours = replay_crashed(kafkas, tmp_path / f"{kafkas.topic}-0", flushed=True)

    assert difference(in_use(ours.directory), in_use(kafkas.crashed)) == []


def test_recovery_leaves_what_kafkas_recovery_leaves(
    golden: Golden, kafkas: KafkaPartition, tmp_path: Path
) -> None:
    directory = tmp_path / f"{kafkas.topic}-0"
    copy_tree(golden.partition_dir("damaged", kafkas.topic), directory)
    recovery_point = segment_base_below(directory, golden.recovery_point(kafkas.topic))
    ours = OurPartition(directory, kafkas.topic, recovery_point=recovery_point)

    recover(ours, golden.started_ms[3])

    recovered = golden.partition_dir("recovered", kafkas.topic)
    assert difference(contents(directory), contents(recovered)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_our_dump_prints_what_kafkas_printed(golden: Golden, kind: str) -> None:
    dump = DUMPS[kind]
    log_dir = golden.root / "clean"

    ours = our_dump(dump_files(log_dir, TOPICS, dump.suffixes), *dump.flags, cwd=log_dir)

    assert ours.stdout.splitlines() == golden.dump(kind).splitlines()
