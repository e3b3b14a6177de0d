"""A broker in a thread of this process, for tests that talk to it as clients do."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stratalog.broker.broker_loop import BrokerLoop
from stratalog.broker.server import Broker
from stratalog.clock import Clock
from stratalog.config import BrokerConfig
from stratalog.storage.files import FileSystem

START_SECONDS = 120

# What makes a test quick, and the same on a slow machine: half a minute after its start, a broker
# deletes what is older than a week, and records of tests are of any year.
QUICK = {
    "log.initial.task.delay.ms": "3600000",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "log.dir.reserve.bytes": "0",
}


class RunningBroker:
    """``call`` runs a function on the broker's loop, which owns all that a test may look at."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self._loop = loop

    @property
    def bootstrap_server(self) -> str:
        return f"{self.broker.endpoint.host}:{self.broker.endpoint.port}"

    def call(self, function: Any, *arguments: Any) -> Any:
        async def run() -> Any:
            result = function(*arguments)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(START_SECONDS)


@contextmanager
def running_broker(
    log_dir: Path,
    *,
    files: FileSystem | None = None,
    clock: Clock | None = None,
    is_config_known: bool = False,
    **settings: str,
) -> Iterator[RunningBroker]:
    """``settings`` are Kafka's, with ``_`` for ``.``: ``num_partitions="3"``."""
    named = {name.replace("_", "."): value for name, value in settings.items()}
    config = BrokerConfig.from_properties({"log.dirs": str(log_dir), **QUICK, **named})
    started: list[RunningBroker | BaseException] = []
    is_started = threading.Event()
    stop = threading.Event()
    failures: list[BaseException] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        broker = Broker(config, files=files, clock=clock, is_config_known=is_config_known)
        try:
            await broker.start()
        except BaseException as error:
            started.append(error)
            is_started.set()
            raise
        started.append(RunningBroker(broker, loop))
        is_started.set()
        try:
            await loop.run_in_executor(None, stop.wait)
        finally:
            await broker.stop()

    def in_thread() -> None:
        try:
            with asyncio.Runner(loop_factory=BrokerLoop) as runner:
                runner.run(run())
        except BaseException as error:  # noqa: BLE001 - raised again where the test waits
            failures.append(error)

    thread = threading.Thread(target=in_thread, name="broker", daemon=True)
    thread.start()
    assert is_started.wait(START_SECONDS), "the broker did not start in time"
    found = started[0]
    if isinstance(found, BaseException):
        thread.join(START_SECONDS)
        raise found
    try:
        yield found
    finally:
        stop.set()
        thread.join(START_SECONDS)
        assert not thread.is_alive(), "the broker did not stop in time"
        if failures:
            raise failures[0]
