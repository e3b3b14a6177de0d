"""One way to start Spark, for commands, notebooks and jobs alike.

Everything that Spark would only complain about later, in the words of another program, is looked at
here first: whether PySpark is installed, whether there is a Java that it runs on, and that the
workers run the Python that runs us. What the caller sets wins over what is set here, and a master
that nobody names is whatever ``spark-submit`` or ``spark-defaults.conf`` says, else ``local[*]``.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from stratalog.errors import StratalogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSION_MIN = 17
# Between a worker and its JVM go all the rows that a source reads: a socket of the file system and
# larger reads from it make a full scan a fifth quicker. Arrow's checks in the JVM are of memory
# that Arrow itself has laid out, and cost another twentieth.
QUICK_SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.buffer.size": str(1 << 20),
}
QUICK_ENVIRONMENT = {
    "ARROW_ENABLE_UNSAFE_MEMORY_ACCESS": "true",
    "ARROW_ENABLE_NULL_CHECK_FOR_GET": "false",
}
_JAVA_SECONDS = 30
# Spark's name of one that is this process: local, local[4], local[*], local[4,2].
_LOCAL_MASTER = re.compile(r"local(?:\[(?P<threads>\*|\d+)(?:, *\d+)?\])?")
# Where nobody says otherwise, their executors have one core each.
_ONE_CORE_MASTERS = ("yarn", "k8s:")
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class SparkUnavailableError(StratalogError):
    """Spark cannot run here, and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"Spark cannot be started: {self.reason}"


def session(
    master: str | None = None,
    *,
    app_name: str = "stratalog",
    configs: Mapping[str, str] | None = None,
    java_stderr: int | None = None,
) -> "SparkSession":
    """The running Spark session, or a new one.

    ``master`` is a master's URL as ``spark-submit`` takes it, or ``sc://host:port`` for a Spark
    Connect server; ``configs`` are Spark's own settings, passed on as they are. ``java_stderr`` is
    a descriptor that a JVM started here writes to in place of this process's standard error.
    """
    is_remote = master is not None and master.startswith("sc://")
    check_available(needs_java=not is_remote)
    _choose_python()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app_name)
    if master is not None:
        builder = builder.remote(master) if is_remote else builder.master(master)
    settings = {**_quick(is_remote=is_remote), **(configs or {})}
    for name, value in settings.items():
        builder = builder.config(name, value)
    if java_stderr is not None and not is_remote and not _has_jvm():
        named = {"spark.app.name": app_name} | ({} if master is None else {"spark.master": master})
        _start_jvm({**named, **settings}, java_stderr)
    return builder.getOrCreate()


def _start_jvm(settings: Mapping[str, str], stderr: int) -> None:
    """The JVM that the next session takes, as that would start it but for where it complains."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    # Told at its start: some settings are too late for a JVM that runs.
    conf = SparkConf().setAll(list(settings.items()))
    gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _quick(*, is_remote: bool) -> dict[str, str]:
    """Settings for a JVM that is about to start; one that runs has been told what it is to be."""
    if is_remote or _has_jvm():
        return {}
    for name, value in QUICK_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    executors = {f"spark.executorEnv.{name}": os.environ[name] for name in QUICK_ENVIRONMENT}
    return {**QUICK_SETTINGS, **executors}


def _has_jvm() -> bool:
    from pyspark import SparkContext

    return "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None


def check_available(*, needs_java: bool = True) -> None:
    """Raises ``SparkUnavailableError`` if PySpark, or a Java that is new enough, is missing."""
    if find_spec("pyspark") is None:
        raise SparkUnavailableError(
            "PySpark is not installed. Install it with: pip install 'stratalog[spark]'"
        )
    # A driver that spark-submit has started has its JVM already.
    if needs_java and "PYSPARK_GATEWAY_PORT" not in os.environ:
        check_java()


def check_java() -> None:
    java = _java()
    version = _java_version(java)
    if version < JAVA_VERSION_MIN:
        raise SparkUnavailableError(
            f"{java} is Java {version}, and Spark 4 needs Java {JAVA_VERSION_MIN} or newer. "
            f"Point JAVA_HOME at one."
        )


def _java() -> str:
    """The program that Spark's launcher will run: it looks in the same two places."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118
    if java is None or not os.access(java, os.X_OK):
        place = f"in JAVA_HOME={home}" if home else "on the PATH, and JAVA_HOME is not set"
        raise SparkUnavailableError(
            f"there is no java {place}. Install Java {JAVA_VERSION_MIN} or newer, for "
            "Debian the package openjdk-17-jre-headless."
        )
    return java


def _java_version(java: str) -> int:
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SparkUnavailableError(f"{java} -version failed: {error}") from error
    found = _VERSION.search(told.stderr + told.stdout)
    if found is None:
        raise SparkUnavailableError(f"{java} -version does not tell a version.")
    return int(found[1])


def _choose_python() -> None:
    """Workers run the Python that runs us, unless somebody chose another.

    Left alone, Spark takes the ``python3`` of the PATH, which without an activated environment is
    one that lacks PyArrow and us: workers then die without a word.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def task_slots(spark: "SparkSession") -> int:
    """How many tasks run at one time; over Spark Connect, as many as this machine has cores."""
    from pyspark.errors import PySparkException

    try:
        return max(spark.sparkContext.defaultParallelism, 1)
    except (PySparkException, AttributeError):
        return os.cpu_count() or 1


def executor_slots(spark: "SparkSession") -> int:
    """How many tasks run at one time in one executor, and share its memory."""
    master = spark.conf.get("spark.master", "") or ""
    if (local := _LOCAL_MASTER.fullmatch(master)) is not None:
        threads = local["threads"] or "1"
        cores = os.cpu_count() or 1 if threads == "*" else int(threads)
    elif given := spark.conf.get("spark.executor.cores", ""):
        cores = int(given)
    elif master.startswith(_ONE_CORE_MASTERS):
        cores = 1
    else:
        return task_slots(spark)  # it has all cores of its machine: no more than there are
    return max(cores // int(spark.conf.get("spark.task.cpus", "1") or 1), 1)
