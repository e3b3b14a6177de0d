"""Kafka's Java clients, its Admin and its shell tools, in one process that is asked by lines.

``kafka/Driver.java`` and the classes beside it are compiled once into ``.interop/``, under a name
made from their own bytes and the pom's.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from apache_kafka import (
    CACHE,
    HERE,
    POM,
    KafkaDistribution,
    KafkaFailedError,
    KafkaUnavailableError,
)
from asked_java import AskedJava

SOURCES = [
    HERE / "kafka" / f"{name}.java" for name in ("Driver", "JavaClients", "JavaAdmin", "KafkaTools")
]
COMPILE_SECONDS = 300


class Printed(NamedTuple):
    """What one run of a shell tool printed."""

    stdout: str
    stderr: str
    exit_code: int

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


class JavaDriver(AskedJava):
    """The process; ``told`` is one question about any of its three parts."""

    def __init__(self, distribution: KafkaDistribution) -> None:
        classpath = f"{_compiled(distribution)}{os.pathsep}{distribution.classpath}"
        super().__init__(distribution, "Driver", classpath=classpath)

    def told(self, who: str, **question: object) -> Any:
        """The answer; what was thrown is one, with ``error`` and ``message``."""
        return self.answer_to({"who": who, **question})

    def tool(self, main_class: str, *arguments: str, stdin: str = "") -> Printed:
        """Run the class that a shell script of Kafka's runs."""
        answer = self.told("tool", **{"class": main_class}, arguments=arguments, stdin=stdin)
        if "error" in answer:
            return Printed("", f"{answer['error']}: {answer['message']}", 1)
        return Printed(**answer)


class JavaClient:
    """The clients of a driver, for one broker; answers that tell of an error are values too."""

    def __init__(self, driver: JavaDriver, bootstrap_server: str) -> None:
        self._driver = driver
        self.bootstrap_server = bootstrap_server

    def client(self, op: str, configs: Mapping[str, str] | None = None, **rest: object) -> Any:
        everything = {"bootstrap.servers": self.bootstrap_server, **(configs or {})}
        return self._driver.told("client", op=op, configs=everything, **rest)

    def admin(self, call: str, **rest: object) -> Any:
        return self._driver.told("admin", call=call, bootstrap_server=self.bootstrap_server, **rest)

    def create(self, topic: str, partitions: int = 1, **configs: str) -> str:
        """Make a topic, configs with ``_`` for ``.``, and tell its id."""
        named = {name.replace("_", "."): value for name, value in configs.items()}
        wanted = {"name": topic, "partitions": partitions, "configs": named}
        made = self.admin("createTopics", topics=[wanted])
        assert "id" in made.get(topic, {}), made
        return str(made[topic]["id"])

    def produce(
        self, topic: str, values: Iterable[str], configs: Mapping[str, str] | None = None
    ) -> list[Any]:
        """Produce to partition 0; where each record lies, or why it does not."""
        records = [{"partition": 0, "value": value} for value in values]
        answer = self.client("produce", configs, topic=topic, records=records)
        return list(answer["placed"])


def eventually(ask: Callable[[], Any], is_enough: Callable[[Any], bool]) -> Any:
    """The first answer that is enough, or the last: some of Kafka's changes come a bit later."""
    for _ in range(1200):
        answer = ask()
        if is_enough(answer):
            break
        time.sleep(0.05)
    return answer


def _compiled(distribution: KafkaDistribution) -> Path:
    compiler = shutil.which("javac")
    if compiler is None:
        raise KafkaUnavailableError("no javac on the PATH")
    content = b"".join(each.read_bytes() for each in [POM, *SOURCES])
    home = CACHE / f"java-{hashlib.sha256(content).hexdigest()[:12]}"
    if home.is_dir():
        return home
    partial = home.with_name(f"{home.name}.{os.getpid()}.partial")
    done = subprocess.run(
        [compiler, "-nowarn", "-d", str(partial), "-cp", distribution.classpath, *SOURCES],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMPILE_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(partial, ignore_errors=True)
        raise KafkaFailedError(f"javac refused the driver: {done.stderr[-3000:]}")
    if home.is_dir():  # another process was faster; its classes are as good
        shutil.rmtree(partial)
    else:
        partial.rename(home)
    return home
