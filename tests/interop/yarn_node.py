"""A YARN cluster of one node, from jars that are fetched, for what pages show of YARN."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apache_kafka import HERE
from tools_fetched import ToolUnavailableError, yarn_jars

SOURCE = HERE / "yarn" / "Yarn.java"
READY = "YARN is ready"
STOP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class YarnNode:
    """``environment`` is what a client of it needs; containers write below ``home``."""

    home: Path
    environment: Mapping[str, str]

    def outputs(self) -> str:
        """What the containers' programs have printed."""
        found = sorted(self.home.glob("target/test/data/**/stdout"))
        return "\n".join(path.read_text(errors="replace") for path in found)


@contextmanager
def running_yarn(home: Path) -> Iterator[YarnNode]:
    java = shutil.which("java")
    if java is None:
        raise ToolUnavailableError("no java on the PATH")
    classpath = os.pathsep.join(map(str, yarn_jars()))
    inherited = {name: each for name, each in os.environ.items() if "PYSPARK" not in name}
    settings = home / "hadoop-conf"
    settings.mkdir(parents=True)
    log = home / "yarn.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [
                *(java, "-XX:+UseSerialGC", "-Xmx512m", "-cp", classpath, str(SOURCE)),
                str(settings / "yarn-site.xml"),
            ],
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=inherited,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = ""
        while READY not in said:
            line = process.stdout.readline()
            assert line, f"YARN did not start:\n{log.read_text()[-5000:]}"
            said += line
        yield YarnNode(home, {"HADOOP_CONF_DIR": str(settings)})
    finally:
        process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def hadoop_of_pyspark(jars: Path) -> str:
    """The version of Hadoop that Spark speaks to YARN with."""
    (name,) = [path.name for path in jars.glob("hadoop-client-api-*.jar")]
    found = re.fullmatch(r"hadoop-client-api-(.*)\.jar", name)
    assert found is not None
    return found[1]
