"""Exactly once on a cluster of two hosts, where attempts of one task race and die."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sink_topics import left_behind, make_topics, rows_in

from spark_cluster import HOSTS, Cluster, running_cluster
from spark_fixture import skip_without_spark

pytestmark = pytest.mark.xdist_group("spark-daemons")

JOB = Path(__file__).parent / "jobs" / "cluster_writer.py"
ROWS = 4000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    skip_without_spark()
    with running_cluster(tmp_path_factory.mktemp("writing")) as running:
        yield running


@pytest.fixture(scope="module")
def written(cluster: Cluster) -> Path:
    log_dir = cluster.home / "log"
    make_topics(log_dir, {"racing": 3, "dying": 3})
    told = [str(cluster.home / "package.zip"), str(cluster.home / "marks"), str(log_dir)]
    cluster.run_job(JOB, *told)
    return log_dir


def keys(log_dir: Path, topic: str) -> list[int]:
    return [int(row["key"]) for row in rows_in(log_dir, topic)]


def marks(cluster: Cluster, fate: str) -> dict[str, Any]:
    return {each.name: each.read_text() for each in (cluster.home / "marks" / fate).iterdir()}


def test_two_attempts_of_a_task_stage_everything_and_one_of_them_counts(
    cluster: Cluster, written: Path
) -> None:
    seen = marks(cluster, "racing")

    assert sorted([seen["staged-0"], seen["staged-1"]]) == list(HOSTS)
    assert len(keys(written, "racing")) == ROWS
    assert set(keys(written, "racing")) == set(range(ROWS))


def test_a_task_whose_process_dies_is_done_again(cluster: Cluster, written: Path) -> None:
    seen = marks(cluster, "dying")

    died = [each.removeprefix("died-") for each in seen if each.startswith("died-")]
    staged = [each.removeprefix("staged-") for each in seen if each.startswith("staged-")]
    assert len(died) == 1
    assert staged
    assert set(died).isdisjoint(staged)
    assert len(keys(written, "dying")) == ROWS
    assert set(keys(written, "dying")) == set(range(ROWS))


def test_nothing_is_left_of_attempts_that_do_not_count(written: Path) -> None:
    assert left_behind(written) == []
