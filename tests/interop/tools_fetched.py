"""Clients that other people wrote, fetched from where they are published into ``.interop/``.

Nothing is installed on the machine: a Debian package is unpacked, Node's and Python's packages lie
under directories of their own, jars are copied. What cannot be had here raises
ToolUnavailableError, whose sentence is the reason that a skipped test gives.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from apache_kafka import CACHE, HERE

FETCH_SECONDS = 300
KCAT_PACKAGES = ["kcat", "librdkafka1", "libyajl2"]
KAFKAJS = HERE / "kafkajs"
KAFKA_TIERED_POM = HERE / "kafka" / "tiered.pom.xml"
SPARK_POM = HERE / "spark" / "pom.xml"
LAKES_POM = HERE / "lakes" / "pom.xml"
ICEBERG_SPARK = HERE / "lakes" / "pyspark.txt"
YARN_POM = HERE / "yarn" / "pom.xml"


class ToolUnavailableError(Exception):
    """This machine neither has the tool nor can fetch it; the message says why."""


class Command(NamedTuple):
    """How a fetched program is run."""

    words: list[str]
    environment: Mapping[str, str]


def kcat() -> Command:
    """The kcat of the machine, or Debian's, unpacked."""
    if found := shutil.which("kcat") or shutil.which("kafkacat"):
        return Command([found], os.environ)
    home = _fetched("kcat", " ".join(KCAT_PACKAGES).encode(), _unpack_kcat)
    libraries = {str(path.parent) for path in home.glob("usr/lib/**/*.so*")}
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))}
    return Command([str(home / "usr" / "bin" / "kcat")], environment)


def kafkajs(script: Path) -> Command:
    """Node running ``script`` where it finds the KafkaJS that package.json pins."""
    node = shutil.which("node")
    if node is None:
        raise ToolUnavailableError("no node on the PATH")
    home = _fetched("kafkajs", (KAFKAJS / "package.json").read_bytes(), _install_kafkajs)
    environment = {**os.environ, "NODE_PATH": str(home / "node_modules")}
    return Command([node, str(script)], environment | {"KAFKAJS_NO_PARTITIONER_WARNING": "1"})


def spark_connector() -> list[Path]:
    """The jars of Spark's Kafka connector, which pyspark does not bring."""
    return _jars("spark", SPARK_POM)


def kafka_tiered() -> list[Path]:
    """Apache Kafka's remote storage for tests, which its own jars lack."""
    return _jars("kafka-tiered", KAFKA_TIERED_POM)


def lake_jars() -> list[Path]:
    """Delta's and Iceberg's for Spark, and Spark's own for Avro."""
    return _jars("lakes", LAKES_POM)


def yarn_jars() -> list[Path]:
    """A resource manager and a node manager of Hadoop's."""
    return _jars("yarn", YARN_POM)


def iceberg_spark() -> Command:
    """This Python with the PySpark that Iceberg is made for before the one that is installed."""
    home = _fetched("pyspark", ICEBERG_SPARK.read_bytes(), _install_pyspark)
    places = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    environment.pop("SPARK_HOME", None)  # another Spark's jars
    return Command([sys.executable], environment)


def _jars(name: str, pom: Path) -> list[Path]:
    home = _fetched(name, pom.read_bytes(), lambda home: _copy_jars(pom, home))
    return sorted(home.glob("*.jar"))


def _fetched(name: str, identity: bytes, fetch: Callable[[Path], None]) -> Path:
    home = CACHE / f"{name}-{hashlib.sha256(identity).hexdigest()[:12]}"
    if home.is_dir():
        return home
    partial = home.with_name(f"{home.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        fetch(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    if home.is_dir():  # another process was faster; its copy is as good
        shutil.rmtree(partial)
    else:
        partial.rename(home)
    return home


def _unpack_kcat(home: Path) -> None:
    apt, dpkg = _found("apt-get"), _found("dpkg-deb")
    try:
        _run([apt, "download", *KCAT_PACKAGES], home)
    except ToolUnavailableError:
        # A machine that never asked has no list of packages yet; only root may fetch it.
        _run([apt, "update"], home)
        _run([apt, "download", *KCAT_PACKAGES], home)
    for package in home.glob("*.deb"):
        _run([dpkg, "-x", package.name, "."], home)
        package.unlink()


def _install_kafkajs(home: Path) -> None:
    npm = _found("npm")
    shutil.copy(KAFKAJS / "package.json", home)
    _run([npm, "install", "--no-package-lock", "--ignore-scripts", "--silent"], home)


def _install_pyspark(home: Path) -> None:
    # What else it needs is installed: the same PyArrow and pandas serve both.
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", "."]
    _run([*pip, "--requirement", str(ICEBERG_SPARK)], home)
    # Workers would import this one, and compile all of it at every start; the other is compiled.
    (home / "pyspark" / "python" / "lib" / "pyspark.zip").unlink()


def _copy_jars(pom: Path, home: Path) -> None:
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={home}", "-DincludeScope=runtime"]
    _run([_found("mvn"), "-q", "-B", "-f", str(pom), *goal], home)


def _found(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ToolUnavailableError(f"no {program} on the PATH")
    return found


def _run(command: Sequence[str], home: Path) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=home,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        waited = f"no answer in {FETCH_SECONDS} s: {' '.join(command)}"
        raise ToolUnavailableError(waited) from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()[-500:]
        raise ToolUnavailableError(f"{' '.join(command)} failed: {said}")
