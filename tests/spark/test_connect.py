"""Spark Connect: the source runs in the server, and a client without a JVM reads through it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from topics import write_topic

from free_ports import free_port
from spark_daemons import JAVA_OPTIONS, running_daemon
from spark_fixture import skip_without_spark

# Not the group of the shared session: these have processes of their own.
pytestmark = pytest.mark.xdist_group("spark-daemons")

JOB = Path(__file__).parent / "jobs" / "connect_client.py"
CLIENT_SECONDS = 600


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    skip_without_spark()
    address = f"127.0.0.1:{free_port()}"  # it tells no port of its own choice
    arguments = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    arguments += ["--master", "local[2]", "--driver-memory", "700m"]
    arguments += ["--driver-java-options", JAVA_OPTIONS]
    for name, value in {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": address.partition(":")[2],
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
    }.items():
        arguments += ["--conf", f"{name}={value}"]
    with running_daemon(
        tmp_path_factory.mktemp("connect"),
        "spark-submit",
        arguments,
        ready=r"(Spark Connect server started)",
        environment={"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    ):
        yield f"sc://{address}"


@pytest.fixture(scope="module")
def seen(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one client saw. It runs on its own: a process with a JVM's session cannot connect."""
    home = tmp_path_factory.mktemp("client")
    write_topic(home / "log", "orders", 4, 5)
    told = home / "seen.json"
    # No Java for the client: it must not need one.
    environment = {**os.environ, "JAVA_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, str(JOB), server, str(home / "log"), str(told)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(told.read_text()))


def test_a_client_reads_without_registering_anything(seen: dict[str, Any]) -> None:
    assert seen["client"] == "pyspark.sql.connect.session"
    assert seen["counted"] == 20
    assert seen["columns"][:2] == ["key", "value"]


def test_one_frame_with_two_filters_has_the_right_rows(seen: dict[str, Any]) -> None:
    assert seen["two filters"] == [5, 10, 20]


def test_temporary_views_work(seen: dict[str, Any]) -> None:
    assert seen["temp view"] == 8
    assert seen["view by sql"] == 4


def test_the_scan_helper_works(seen: dict[str, Any]) -> None:
    assert seen["scan"] == [3, 4]
    assert seen["scan columns"] == ["offset"]


def test_a_failure_of_the_source_reaches_the_client_in_our_words(seen: dict[str, Any]) -> None:
    assert "no topic 'nothing'" in seen["failure"]


def test_jobs_run_on_a_server_as_well(seen: dict[str, Any]) -> None:
    assert seen["jobs"] == ["nothing wrong", 20, 20, 20]


def test_the_command_line_can_be_a_client(seen: dict[str, Any]) -> None:
    assert seen["command"] == '{"records": 20}\n'
