"""What the pages show of a standalone cluster, on one: two hosts that lack the package.

Spark's defaults are set by a file, as an administrator would, so that commands run as they are
shown but for the master's address and the paths.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from doc_pages import block_of, run_script
from spark_cluster import HOSTS, Cluster, running_cluster
from spark_fixture import SETTINGS
from stratalog.spark.session import SparkUnavailableError, check_available

# Not the group of the shared session: these have processes of their own.
pytestmark = pytest.mark.xdist_group("spark-daemons")

ORDERS = 76  # that Apache Kafka wrote
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
DEFAULTS = {
    **SETTINGS,
    "spark.driver.memory": "700m",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.executor.memory": "512m",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        check_available()
    except SparkUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    with running_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def environment(cluster: Cluster, page_directory: Path) -> Mapping[str, str]:
    """That of a driver on the first host; ``python`` is another one on each machine."""
    settings = page_directory / "spark-conf" / "spark-defaults.conf"
    settings.parent.mkdir()
    settings.write_text("".join(f"{name} {value}\n" for name, value in DEFAULTS.items()))
    return {
        "PYSPARK_PYTHON": "python",
        "SPARK_CONF_DIR": str(settings.parent),
        "SPARK_LOCAL_DIRS": str(page_directory / "local"),
        "SPARK_LOCAL_IP": HOSTS[0],
    }


def test_a_session_on_a_cluster_that_is_sent_the_package(
    cluster: Cluster, page_directory: Path, environment: Mapping[str, str]
) -> None:
    printed = run_script(
        block_of("docs/spark-clusters.md", "from stratalog.spark.session"),
        instead={
            "/mnt/stratalog": str(page_directory / "kafka-logs"),
            "/tmp/stratalog.zip": str(page_directory / "stratalog.zip"),
            "spark://master:7077": cluster.master,
        },
        environment=environment,
    )

    assert str(ORDERS) in printed.split()


def test_sql_on_a_cluster_that_is_sent_the_package(
    cluster: Cluster, page_directory: Path, environment: Mapping[str, str]
) -> None:
    printed = run_script(
        block_of("docs/spark-clusters.md", "stratalog spark sql"),
        instead={
            "/mnt/stratalog": str(page_directory / "kafka-logs"),
            "spark://master:7077": cluster.master,
        },
        environment=environment,
    )

    assert str(ORDERS) in printed.split()


def test_sql_on_a_cluster_whose_hosts_have_the_package(
    cluster: Cluster, page_directory: Path, environment: Mapping[str, str]
) -> None:
    """Hosts that have what the driver has: their Python is that of the driver."""
    printed = run_script(
        block_of("docs/spark.md", "stratalog spark sql"),
        instead={
            "/var/lib/stratalog": str(page_directory / "kafka-logs"),
            "spark://master:7077": cluster.master,
            "spark.executor.memory=4g": "spark.executor.memory=512m",
        },
        environment={**environment, "PYSPARK_PYTHON": sys.executable},
    )

    assert str(ORDERS) in printed.split()
