"""``stratalog serve``: a broker in the foreground, from its settings to its exit code.

One line on standard output says that it accepts, and where; events go to standard error. SIGTERM
and Ctrl-C stop it cleanly, with exit code 0; a second one ends it at once, which the next start has
to recover from and nothing acknowledged is lost by.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stratalog.broker.process import run_broker
from stratalog.cli.failures import UsageError, refused_as_usage
from stratalog.cli.values import pairs
from stratalog.config import BrokerConfig
from stratalog.config.broker_file import listen_instead, served_config
from stratalog.errors import ConfigError, StratalogError

if TYPE_CHECKING:
    from stratalog.broker.server import Broker

_DESCRIPTION = """\
Run a broker that Kafka clients talk to, until it is told to stop.

One line on standard output says that it accepts clients, and where; events go to standard error.
SIGTERM and Ctrl-C stop it cleanly."""
_EPILOG = """\
Examples:
  stratalog serve --log-dir data
  stratalog serve --log-dir data --listen 127.0.0.1:0 --set num.partitions=3
  stratalog serve --config /etc/kafka/server.properties
"""


class ServeError(StratalogError):
    """The broker was not started; the sentence says why."""


def main(arguments: Sequence[str]) -> int:
    """Run the command line after ``stratalog serve``; its exit code."""
    given = make_parser().parse_args(arguments)
    properties = read_settings(given.log_dirs, given.listen, given.config, given.settings)
    with refused_as_usage(ConfigError):
        _check_typed(pairs(given.settings, "--set"))
        served_config(properties)
    _make_parents(properties["log.dirs"].split(","))
    return run_broker(properties, is_config_known=given.config is not None, ready=_say_ready)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong as the other commands do: in one sentence."""

    def error(self, message: str) -> NoReturn:
        what = f"{message[:1].upper()}{message[1:]}."
        raise UsageError(f"{what}{_meant(message)} See 'stratalog serve --help'.")


def _meant(message: str) -> str:
    """A question, where what was not understood looks like an option that there is."""
    from difflib import get_close_matches

    typed = re.findall(r"unrecognized arguments:.*?(--[^\s=]+)", message)
    alike = get_close_matches(typed[0], option_names()) if typed else []
    return f" Did you mean {' or '.join(map(repr, alike))}?" if alike else ""


def make_parser() -> argparse.ArgumentParser:
    """Not typer's: to import that takes as long as half the broker."""
    parser = _Parser(
        prog="stratalog serve",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    add(
        "--listen",
        metavar="HOST:PORT",
        help="where clients connect; port 0 takes a free one [default: 127.0.0.1:9092]",
    )
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


def option_names() -> list[str]:
    """For completion: what the help lists."""
    return re.findall(r"^  (?:-h, )?(--[a-z-]+)", make_parser().format_help(), re.MULTILINE)


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
        with refused_as_usage(ConfigError):
            parse_address("--listen", listen)
            properties = listen_instead(properties, listen)
    properties |= pairs(settings, "--set")
    if log_dirs:
        if any("," in each for each in log_dirs):
            raise UsageError("A log directory has no comma in its name: log.dirs is a list.")
        properties["log.dirs"] = ",".join(log_dirs)
    stated = properties.get("log.dirs") or properties.get("log.dir")
    if not stated:
        raise UsageError("Say where the logs are: --log-dir DIR, or log.dirs in --config.")
    absolute = [str(Path(each.strip()).absolute()) for each in stated.split(",") if each.strip()]
    return {**properties, "log.dirs": ",".join(absolute)}


def _check_typed(settings: Mapping[str, str]) -> None:
    """A file may have settings of plug-ins. What is typed and means nothing is a mistake."""
    unknown = BrokerConfig.unknown_names(settings)
    BrokerConfig.from_properties({name: settings[name] for name in unknown})


def _make_parents(log_dirs: Sequence[str]) -> None:
    for each in log_dirs:
        try:
            Path(each).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServeError(f"{each} cannot be made: {error.strerror}.") from error


def _say_ready(broker: "Broker") -> None:
    """A broker goes on if nobody listens."""
    from stratalog.config.listeners import format_address

    address = format_address(broker.endpoint.host, broker.endpoint.port)
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            sys.stdout.write(f"stratalog is ready on {address}\n")
            sys.stdout.flush()
