"""The demo's Spark: one local session, which starts while other things are shown.

A JVM takes seconds to start. Whatever was set in the shell for another Spark does not count here:
the demo brings its own, with the Python that runs it.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stratalog.demo.errors import DemoError
from stratalog.demo.folder import DemoFolder
from stratalog.demo.screen import Screen
from stratalog.spark.counting import LOGGING_SETTING
from stratalog.spark.session import SparkUnavailableError, check_available, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
START_SECONDS = 300.0
STOP_SECONDS = 30.0
JAVA_PACKAGE = "openjdk-17-jre-headless"
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    LOGGING_SETTING: "true",  # tasks tell what they read
}
# Of another Spark, or of the program that started us.
_NOT_OURS = (
    "MASTER", "PYSPARK_DRIVER_PYTHON", "PYSPARK_DRIVER_PYTHON_OPTS", "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_CONNECT_MODE",
    "SPARK_HOME", "SPARK_REMOTE",
)  # fmt: skip


def settle_environment() -> None:
    """For this process and its children."""
    for name in _NOT_OURS:
        os.environ.pop(name, None)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def check_spark() -> None:
    """Before anything is started: is there what Spark needs?"""
    try:
        check_available()
    except SparkUnavailableError as error:
        if "PySpark" in error.reason:
            raise DemoError(f"The demo runs Spark: {error.reason}") from error
        raise DemoError(
            "The demo runs Spark, which needs Java 17 or newer: install the Debian package "
            f"{JAVA_PACKAGE} ({error.reason.rstrip('.')})."
        ) from error


class SparkInBackground:
    def __init__(self, folder: DemoFolder) -> None:
        self._folder = folder
        self._spark: SparkSession | None = None
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._start, name="spark-start", daemon=True)

    def start(self) -> None:
        """Returns at once; ``get`` waits."""
        self._thread.start()

    def _start(self) -> None:
        home = self._folder.spark
        places = {
            "spark.local.dir": str(home / "local"),
            "spark.sql.warehouse.dir": str(home / "warehouse"),
        }
        try:
            home.mkdir()
            spark = session(f"local[{CORES}]", app_name="stratalog demo", configs=SETTINGS | places)
            # The first query of a session pays for much that later ones find done.
            spark.range(CORES).selectExpr("from_json('{}', 'a int')").collect()
            self._spark = spark
        except Exception as error:  # noqa: BLE001 - told where somebody waits for the session
            self._failure = error

    def get(self, screen: Screen) -> "SparkSession":
        """The session, as soon as there is one."""
        if self._thread.is_alive():
            self._wait(screen)
        if self._spark is None:
            why = self._failure or f"it was not ready after {START_SECONDS:.0f} s"
            raise DemoError(f"Spark did not start: {why} (see {self._folder.others}).")
        _make_active(self._spark)
        return self._spark

    def _wait(self, screen: Screen) -> None:
        began = time.monotonic()
        with screen.progress("Spark is starting, seconds") as update:
            while self._thread.is_alive() and time.monotonic() - began < START_SECONDS:
                self._thread.join(0.1)
                update(int(time.monotonic() - began), None)

    def stop(self, *, is_hurried: bool) -> None:
        """End the session and its JVM; in a hurry nobody waits for what it is doing."""
        if self._spark is not None and not is_hurried:
            with suppress(Exception):
                self._spark.stop()
        end_children(STOP_SECONDS)
        # One that was about to start its JVM has started it since.
        give_up = time.monotonic() + STOP_SECONDS
        while self._thread.is_alive() and time.monotonic() < give_up:
            self._thread.join(0.1)
            end_children(STOP_SECONDS)


def _make_active(spark: "SparkSession") -> None:
    """Spark knows a session by the thread that made it, and finds formats for writing only there;
    PySpark has no public name for telling it of another thread."""
    classes = type(spark)._get_j_spark_session_class(spark._jvm)
    classes.setActiveSession(spark._jsparkSession)


def end_children(seconds: float) -> None:
    """What still runs of the processes that this one has started: Spark's JVM, in whatever state
    it is. It would end by itself when this process does, and its port and files a little later."""
    pids = list(_children())
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + seconds
        while pids and time.monotonic() < deadline:
            pids = [pid for pid in pids if not _has_ended(pid)]
            time.sleep(0.02)
        if not pids:
            return


def _children() -> Iterator[int]:
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            yield from map(int, (task / "children").read_text().split())


def _has_ended(pid: int) -> bool:
    """A zombie has; whoever started it reaps it, and would be at a loss if somebody else did."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
