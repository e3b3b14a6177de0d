"""Starts programs out of PySpark's own jars, and stops them."""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 600  # a JVM, on a machine that has others to run

JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k"


@contextmanager
def running_daemon(
    place: Path,
    program: str,
    arguments: Sequence[str],
    *,
    ready: str,
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Run ``bin/<program>`` in ``place``; yields what ``ready`` matched of its log.

    ``environment`` comes on top of ours, without what it says about PySpark.
    """
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    place.mkdir(parents=True, exist_ok=True)
    inherited = {name: each for name, each in os.environ.items() if "PYSPARK" not in name}
    log = place / "daemon.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            [str(spark_home / "bin" / program), *arguments],
            cwd=place,
            env={**inherited, "SPARK_HOME": str(spark_home), **environment},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _wait_for(ready, log, process)
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(ready: str, log: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if found := re.search(ready, log.read_text(errors="replace")):
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.05)  # another program's start: its log is all there is to wait for
    raise AssertionError(f"a Spark daemon did not start:\n{log.read_text(errors='replace')}")
