"""What the pages show of YARN, on a resource manager and a node manager of Hadoop's own.

Hosts have no stratalog: their Python is an environment with PySpark's needs alone, and the archive
that ``stratalog spark package`` makes is all they get.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
import pytest
from apache_kafka import HERE
from tools_fetched import ToolUnavailableError
from yarn_node import YarnNode, hadoop_of_pyspark, running_yarn

import stratalog
from doc_pages import block_of, run_script
from spark_cluster import make_worker_python
from spark_fixture import SETTINGS
from stratalog import Record

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark-daemons")]

PAGE = "docs/spark-clusters.md"
ORDERS = 41
JARS = Path(pyspark.__file__).parent / "jars"
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
DEFAULTS = {
    **SETTINGS,
    "spark.driver.memory": "700m",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.executor.instances": "1",
    "spark.executor.memory": "512m",
    "spark.yarn.am.extraJavaOptions": QUICK_START,
    "spark.yarn.am.memory": "512m",
    # Every host here has Spark at the same place, so that it need not be sent.
    "spark.yarn.jars": f"local:{JARS}/*",
}


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnNode]:
    try:
        home = tmp_path_factory.mktemp("yarn")
        make_worker_python(home / "worker-python")
        with running_yarn(home) as node:
            yield node
    except ToolUnavailableError as why:
        pytest.skip(str(why))


@pytest.fixture
def environment(
    yarn: YarnNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Mapping[str, str]:
    """That of somebody who submits from ``tmp_path``, where there are a job and a log directory."""
    monkeypatch.chdir(tmp_path)
    with stratalog.open_directory(tmp_path / "log", create=True) as logs:
        logs.create("orders").append([Record(b"k", b"%d" % number) for number in range(ORDERS)])
    job = block_of(PAGE, "from pyspark.sql import SparkSession")
    assert job.file == "job.py"
    Path("job.py").write_text(job.code.replace("/mnt/stratalog", str(tmp_path / "log")))
    settings = tmp_path / "spark-conf" / "spark-defaults.conf"
    settings.parent.mkdir()
    programs = f"{yarn.home / 'worker-python' / 'bin'}{os.pathsep}{os.defpath}"
    hosts = {
        f"{where}.{name}": value
        for where in ("spark.executorEnv", "spark.yarn.appMasterEnv")
        for name, value in (("PATH", programs), ("SPARK_LOCAL_IP", "127.0.0.1"))
    }
    # What is sent to containers lies in the home directory otherwise.
    told = {**DEFAULTS, **hosts, "spark.yarn.stagingDir": str(tmp_path / "staging")}
    settings.write_text("".join(f"{name} {value}\n" for name, value in told.items()))
    return {
        **yarn.environment,
        "SPARK_CONF_DIR": str(settings.parent),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_the_yarn_that_is_fetched_is_of_the_hadoop_that_spark_brings() -> None:
    pom = (HERE / "yarn" / "pom.xml").read_text()
    named = r"<artifactId>hadoop-client-minicluster</artifactId>\s*<version>(.*)</version>"

    assert re.findall(named, pom) == [hadoop_of_pyspark(JARS)]


def test_a_driver_here_has_its_tasks_on_yarn(environment: Mapping[str, str]) -> None:
    printed = run_script(
        block_of(PAGE, "export PYSPARK_PYTHON"), instead={}, environment=environment
    )

    assert f"{ORDERS} orders" in printed


def test_a_driver_on_yarn_has_the_package_and_plans_there(
    environment: Mapping[str, str], yarn: YarnNode
) -> None:
    assert f"{ORDERS} orders" not in yarn.outputs()

    run_script(block_of(PAGE, "spark-submit --master yarn"), instead={}, environment=environment)

    assert f"{ORDERS} orders" in yarn.outputs()
