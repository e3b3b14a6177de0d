"""A standalone Spark cluster from PySpark's own jars: a master, and workers on two hosts.

The hosts are 127.0.0.1 and 127.0.0.2. The workers' Python has what PySpark needs and nothing of
ours, as on machines that somebody else has set up. A driver runs in a process of its own, since one
process has one session.
"""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_daemons import JAVA_OPTIONS, running_daemon

HOSTS = ("127.0.0.1", "127.0.0.2")
JOB_SECONDS = 600

OURS = ("stratalog", "pyspark_stratalog")
# Ours, and what comes with us: machines of others do not have it.
_NOT_ON_WORKERS = (*OURS, "cramjam", "sqlglot", "confluent_kafka")


@dataclass(frozen=True, slots=True)
class Cluster:
    """``worker_directories`` are by host; an executor's working directory is two levels below."""

    master: str
    worker_directories: dict[str, Path]
    home: Path

    def run_job(self, script: Path, *arguments: str, cwd: Path | None = None) -> str:
        """Run a driver to its end; returns what it printed. Fails with all that it said."""
        environment = {
            **os.environ,
            # Found by the PATH of each machine: what one machine has is not at the same place,
            # nor the same, on another.
            "PYSPARK_PYTHON": "python",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SPARK_LOCAL_IP": HOSTS[0],
            "SPARK_LOCAL_DIRS": str(self.home / "local"),
        }
        done = subprocess.run(
            [sys.executable, str(script), self.master, *arguments],
            cwd=cwd or self.home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=JOB_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{script.name} failed:\n{done.stdout}\n{done.stderr}"
        return done.stdout


@contextmanager
def running_cluster(home: Path) -> Iterator[Cluster]:
    python = make_worker_python(home / "worker-python")
    with ExitStack() as daemons:
        master = daemons.enter_context(
            _daemon(
                "master.Master",
                ["--port", "0"],
                place=home / "master",
                host=HOSTS[0],
                python=python,
                ready=r"Starting Spark master at (\S+)",
            )
        )
        directories = {host: home / f"worker-{host}" for host in HOSTS}
        for host, directory in directories.items():
            daemons.enter_context(
                _daemon(
                    "worker.Worker",
                    ["-c", "1", "-m", "700m", "-d", str(directory), master],
                    place=directory,
                    host=host,
                    python=python,
                    ready=r"(registered with master)",
                )
            )
        yield Cluster(master, directories, home)


def _daemon(
    name: str, arguments: Sequence[str], *, place: Path, host: str, python: Path, ready: str
) -> AbstractContextManager[str]:
    environment = {
        "PATH": f"{python}:{os.environ['PATH']}",
        "SPARK_LOCAL_IP": host,
        "SPARK_LOCAL_DIRS": str(place / "local"),
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
    }
    command = [f"org.apache.spark.deploy.{name}", "--host", host, "--webui-port", "0", *arguments]
    return running_daemon(place, "spark-class", command, ready=ready, environment=environment)


def make_worker_python(place: Path) -> Path:
    """An environment with the packages of this one but for ours; returns its ``bin``."""
    venv.create(place, with_pip=False, symlinks=True)
    share_packages(place, but_for=_NOT_ON_WORKERS)
    return place / "bin"


def share_packages(place: Path, *, but_for: Sequence[str]) -> None:
    """Link this environment's packages into another, where it lacks them."""
    ours = Path(next(path for path in sys.path if path.endswith("site-packages")))
    theirs = next((place / "lib").glob("python*/site-packages"))
    for entry in ours.iterdir():
        name = re.split(r"[-.]", entry.name)[0]
        is_there = (theirs / entry.name).exists()
        if name not in but_for and not is_there and not entry.name.endswith(".pth"):
            (theirs / entry.name).symlink_to(entry)
