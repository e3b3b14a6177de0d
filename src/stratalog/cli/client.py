"""How the commands reach a broker: options they share, a client, and its errors as sentences.

The client is librdkafka. It retries for minutes what will never work, so a broker is greeted first
over a socket of our own: whoever does not answer that is told at once, in one sentence.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from stratalog.cli.failures import CommandError, UsageError
from stratalog.cli.values import pairs
from stratalog.errors import StratalogError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient

    from stratalog.cli.client_wire import Wire

T = TypeVar("T")

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
REQUEST_SECONDS = 30.0
_PLAIN = "plaintext"

BootstrapOption = Annotated[
    str,
    typer.Option("--bootstrap-server", metavar="HOST:PORT,...", help="The broker to connect to."),
]


def command_config_option(*also: str) -> Any:
    """``also`` is what the option was called before Kafka's tools agreed on one name."""
    return typer.Option(
        "--command-config",
        *also,
        metavar="FILE",
        help="A properties file with settings of the client.",
    )


def command_property_option(*also: str) -> Any:
    return typer.Option(
        "--command-property",
        *also,
        metavar="NAME=VALUE",
        help="A setting of the client; may be repeated.",
    )


CommandConfigOption = Annotated[str | None, command_config_option()]
OfflineLogDirOption = Annotated[
    str | None,
    typer.Option(
        "--log-dir", metavar="DIR", help="Look at a log directory, without asking a broker."
    ),
]


class BrokerUnreachableError(StratalogError):
    """Nobody answers at the addresses that were given."""

    def __init__(self, bootstrap_server: str, reason: str) -> None:
        super().__init__(bootstrap_server, reason)
        self.bootstrap_server = bootstrap_server
        self.reason = reason

    def __str__(self) -> str:
        return f"No broker answers at {self.bootstrap_server}: {self.reason}."


class ClientError(StratalogError):
    """A request that the broker refused, or that got no answer."""

    def __init__(self, what: str, name: str, reason: str) -> None:
        super().__init__(what, name, reason)
        self.what = what
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.what}: {self.reason.rstrip('.')} ({self.name})."


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the broker is, and the client's settings from files and the command line."""

    bootstrap_server: str
    settings: Mapping[str, str] = field(default_factory=dict)

    def client_settings(self, extra: Mapping[str, Any]) -> dict[str, Any]:
        return {
            # What goes wrong is told by the command, once.
            "log_level": 0,
            "client.id": "stratalog",
            **extra,
            **self.settings,
            "bootstrap.servers": self.bootstrap_server,
        }

    def admin(self, client_id: str = "stratalog-admin") -> "AdminClient":
        from confluent_kafka.admin import AdminClient

        self.greet()
        with told("Connecting"):
            return AdminClient(self.client_settings({"client.id": client_id}))

    def producer(self, settings: Mapping[str, Any]) -> "Producer":
        from confluent_kafka import Producer

        self.greet()
        with told("Connecting"):
            return Producer(self.client_settings(settings))

    def consumer(self, settings: Mapping[str, Any]) -> "Consumer":
        from confluent_kafka import Consumer

        self.greet()
        with told("Connecting"):
            return Consumer(self.client_settings(settings))

    @property
    def is_plain(self) -> bool:
        return self.settings.get("security.protocol", _PLAIN).lower() == _PLAIN

    def greet(self) -> None:
        """Raise unless a broker answers at one of the addresses."""
        # A listener that asks for credentials would not answer before it has seen them.
        if self.is_plain:
            self.open_wire().close()

    def open_wire(self) -> "Wire":
        """A connection of our own to whichever address answers first."""
        from stratalog.cli.client_wire import Wire

        reasons = []
        for host, port in addresses(self.bootstrap_server):
            try:
                return Wire.open(host, port)
            except OSError as error:
                reasons.append(error.strerror or str(error))
        raise BrokerUnreachableError(self.bootstrap_server, "; ".join(dict.fromkeys(reasons)))


def connection(
    bootstrap_server: str,
    command_config: str | None = None,
    properties: Sequence[str] | None = None,
) -> Connection:
    """What the options say. ``properties`` are ``name=value`` and win over the file."""
    settings = {**read_properties(command_config), **pairs(properties, "--command-property")}
    addresses(bootstrap_server)
    return Connection(bootstrap_server, settings)


def read_properties(path: str | None, option: str = "--command-config") -> dict[str, str]:
    from stratalog.config.properties import parse_properties

    if path is None:
        return {}
    try:
        return parse_properties(Path(path).read_bytes())
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror}.") from error


def addresses(bootstrap_server: str) -> list[tuple[str, int]]:
    """The hosts and ports of ``host:port,...``."""
    found = []
    for each in bootstrap_server.split(","):
        host, _, port = each.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise UsageError(f"--bootstrap-server {bootstrap_server} is not of the form HOST:PORT.")
        found.append((host.rpartition("://")[2].strip("[]"), int(port)))
    return found


# --- errors ----------------------------------------------------------------------------------


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn the client's exceptions into ``ClientError``; ``what`` was being done."""
    from confluent_kafka import KafkaException

    try:
        yield
    except KafkaException as error:
        raise client_error(what, error.args[0]) from None


def client_error(what: str, error: Any) -> ClientError:
    """``error`` is a ``KafkaError``."""
    return ClientError(what, error.name().lstrip("_"), error.str() or error.name())


def answer_of(future: "Future[T]", what: str) -> T:
    """What the broker answered to one request of an admin client."""
    with told(what):
        return future.result(REQUEST_SECONDS + 5)
