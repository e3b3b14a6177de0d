"""``stratalog serve``: a broker in the foreground, from its settings to its exit code.

One line on standard output says that it accepts, and where; events go to standard error. SIGTERM
and Ctrl-C stop it cleanly, with exit code 0; a second one ends it at once, which the next start has
to recover from and nothing acknowledged is lost by.
"""

import argparse
import asyncio
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from stratalog.errors import StratalogError

if TYPE_CHECKING:
    from stratalog.broker.server import Broker

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# What --listen takes the place of, if a file says something about it.
_LISTENING = (
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "listener.security.protocol.map",
)


class ServeError(StratalogError):
    """The broker was not started; the sentence says why."""


class _Stopped(BaseException):
    """A signal while the broker is starting."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main(arguments: Sequence[str]) -> int:
    """Run the command line after ``stratalog serve``; its exit code."""
    given = _parser().parse_args(arguments)
    properties = read_settings(given.log_dirs, given.listen, given.config, given.settings)
    _make_parents(properties["log.dirs"].split(","))
    return run_broker(properties, is_config_known=given.config is not None)


def _parser() -> argparse.ArgumentParser:
    """Not typer's: to import that takes as long as half the broker."""
    parser = argparse.ArgumentParser(
        prog="stratalog serve",
        description="Run a broker that Kafka clients talk to, until it is told to stop.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--log-dir",
        dest="log_dirs",
        metavar="DIR",
        action="append",
        default=[],
        help="a log directory; may be repeated",
    )
    add("--listen", metavar="HOST:PORT", help="where clients connect; 127.0.0.1:9092 if not set")
    add(
        "--config",
        metavar="FILE",
        help="a server.properties; to adopt a directory of Apache Kafka, its broker's own",
    )
    add(
        "--set",
        dest="settings",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a broker setting, over --config; may be repeated",
    )
    return parser


# --- settings -----------------------------------------------------------------------------------


def read_settings(
    log_dirs: Sequence[str], listen: str | None, config_file: str | None, settings: Sequence[str]
) -> dict[str, str]:
    """The broker's settings by name: what a file says, and over it what the command line does."""
    from stratalog.config.listeners import parse_address
    from stratalog.config.properties import parse_properties

    properties: dict[str, str] = {}
    if config_file is not None:
        try:
            properties = parse_properties(Path(config_file).read_bytes())
        except OSError as error:
            raise ServeError(f"--config {config_file}: {error.strerror}.") from error
    if listen is not None:
        parse_address("--listen", listen)
        for name in _LISTENING:
            properties.pop(name, None)
        properties["listeners"] = f"PLAINTEXT://{listen}"
    for each in settings:
        name, separator, value = each.partition("=")
        if not separator or not name.strip():
            raise ServeError(f"--set {each} is not of the form NAME=VALUE.")
        properties[name.strip()] = value
    if log_dirs:
        if any("," in each for each in log_dirs):
            raise ServeError("A log directory has no comma in its name: log.dirs is a list.")
        properties["log.dirs"] = ",".join(log_dirs)
    stated = properties.get("log.dirs") or properties.get("log.dir")
    if not stated:
        raise ServeError("Say where the logs are: --log-dir DIR, or log.dirs in --config.")
    absolute = [str(Path(each.strip()).absolute()) for each in stated.split(",") if each.strip()]
    return {**properties, "log.dirs": ",".join(absolute)}


def _make_parents(log_dirs: Sequence[str]) -> None:
    for each in log_dirs:
        try:
            Path(each).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServeError(f"{each} cannot be made: {error.strerror}.") from error


# --- running ------------------------------------------------------------------------------------


def run_broker(properties: Mapping[str, str], *, is_config_known: bool) -> int:
    """Run a broker until a signal says otherwise; the exit code."""
    before = {number: signal.signal(number, _stop_start) for number in _SIGNALS}
    _allow_open_files()
    try:
        from stratalog.broker.event_log import log_event, start_event_log, stop_event_log
        from stratalog.broker.loop_lag import BrokerLoop
        from stratalog.broker.server import Broker
        from stratalog.config import BrokerConfig

        config = BrokerConfig.from_properties(properties)
        handler = start_event_log(style=config.event_log_format)
        try:
            if unused := BrokerConfig.unused_names(properties):
                log_event("settings_unused", names=", ".join(unused))
            with asyncio.Runner(loop_factory=BrokerLoop) as runner:
                runner.run(_serve(lambda: Broker(config, is_config_known=is_config_known)))
        finally:
            stop_event_log(handler)
    except _Stopped as stopped:
        return 128 + stopped.number
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
    return 0


async def _serve(make_broker: "Callable[[], Broker]") -> None:
    from stratalog.config.listeners import format_address

    broker = make_broker()
    await broker.start()
    try:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, broker.stop_asked.set)
        _tune_process()
        _say(f"stratalog is ready on {format_address(broker.endpoint.host, broker.endpoint.port)}")
        await broker.stop_asked.wait()
        # The loop will be busy with closing logs: only a handler of Python's own is heard then.
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, _hurry)
    finally:
        await broker.stop()


def _allow_open_files() -> None:
    """As many as the system lets this user have: connections and segments are files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _tune_process() -> None:
    """This process is a broker and nothing else: the interpreter may know."""
    # What has been imported and opened stays; looking through it again and again finds nothing.
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    # A worker that computes lets the loop go on after half a millisecond instead of five.
    sys.setswitchinterval(0.0005)


def _say(line: str) -> None:
    """A broker goes on if nobody listens."""
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


def _stop_start(number: int, _frame: FrameType | None) -> None:
    raise _Stopped(number)


def _hurry(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)
