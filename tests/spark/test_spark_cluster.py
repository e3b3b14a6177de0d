"""A standalone cluster of two hosts, whose machines do not have the package.

Every host sees the log directory under its path. Other paths lead to it on the driver and on one
host, and elsewhere on the other: an executor's working directory lies below its worker's, so that
a link through ``/proc/self/cwd`` leads every process to its own.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from topics import write_topic

from spark_cluster import HOSTS, Cluster, running_cluster
from spark_fixture import skip_without_spark

# Not the group of the shared session: these have processes of their own.
pytestmark = pytest.mark.xdist_group("spark-daemons")

JOB = Path(__file__).parent / "jobs" / "cluster_reader.py"
PARTITIONS = 3
RECORDS = 120

# Names below the link that leads to each worker's own directory.
OTHER_DIRECTORY, STALE_COPY, MISSING = "other", "stale", "missing"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    skip_without_spark()
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def seen(cluster: Cluster) -> dict[str, Any]:
    log_dir = make_directory(cluster.home / "log", directory_id="the-one-that-is-meant")
    other = make_directory(cluster.home / "other", directory_id="another-one")
    stale = cluster.home / "stale"
    shutil.copytree(log_dir, stale, copy_function=shutil.copyfile)  # and not the times
    driver = cluster.home / "driver" / "app" / "0"
    driver.mkdir(parents=True)
    for place in (driver.parents[1], cluster.worker_directories[HOSTS[0]]):
        for name in (OTHER_DIRECTORY, STALE_COPY, MISSING):
            (place / name).symlink_to(log_dir)
    wrong = cluster.worker_directories[HOSTS[1]]
    (wrong / OTHER_DIRECTORY).symlink_to(other)
    (wrong / STALE_COPY).symlink_to(stale)
    own = cluster.home / "own"
    own.symlink_to("/proc/self/cwd/../..")
    told = cluster.home / "seen.json"
    paths = [log_dir, own / OTHER_DIRECTORY, own / STALE_COPY, own / MISSING]
    cluster.run_job(JOB, str(cluster.home / "package.zip"), str(told), *map(str, paths), cwd=driver)
    return dict(json.loads(told.read_text()))


def make_directory(path: Path, *, directory_id: str) -> Path:
    write_topic(path, "orders", PARTITIONS, RECORDS, batch_records=20, codec="zstd")
    (path / "meta.properties").write_text(f"version=1\ndirectory.id={directory_id}\n")
    return path


def test_the_machines_do_not_have_the_package(cluster: Cluster) -> None:
    python = cluster.home / "worker-python" / "bin" / "python"
    has = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"

    def lacks(name: str) -> bool:
        return bool(subprocess.run([str(python), "-c", has, name], check=False).returncode)

    assert not lacks("pyarrow")
    assert lacks("stratalog")
    assert lacks("pyspark_stratalog")
    assert lacks("cramjam")


def test_every_row_is_read_once(seen: dict[str, Any]) -> None:
    expected = [[partition, offset] for partition in range(PARTITIONS) for offset in range(RECORDS)]

    assert seen["rows"] == expected
    assert seen["tasks"] > PARTITIONS


def test_both_hosts_run_tasks_with_the_package_that_was_sent(
    seen: dict[str, Any], cluster: Cluster
) -> None:
    assert sorted(each["host"] for each in seen["hosts"]) == list(HOSTS)
    for each in seen["hosts"]:
        assert each["python"] == str(cluster.home / "worker-python" / "bin" / "python")
        assert each["package"].startswith(str(cluster.worker_directories[each["host"]]))


def test_a_host_where_the_path_is_another_directory_is_named(seen: dict[str, Any]) -> None:
    failure = seen["failures"][OTHER_DIRECTORY]

    assert f"own/{OTHER_DIRECTORY}" in failure
    assert "is not what this scan was planned for" in failure
    assert "another-one" in failure
    assert HOSTS[1] in failure


def test_a_host_with_a_copy_of_the_files_is_named(seen: dict[str, Any]) -> None:
    failure = seen["failures"][STALE_COPY]

    assert "has lost the offsets" in failure
    assert HOSTS[1] in failure


def test_a_host_without_the_directory_is_named(seen: dict[str, Any]) -> None:
    failure = seen["failures"][MISSING]

    assert "is not there" in failure
    assert HOSTS[1] in failure
