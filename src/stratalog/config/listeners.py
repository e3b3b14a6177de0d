"""Where a broker listens and what it tells its clients, worked out from its settings.

    listeners             NAME://host:port, ...     all that are listened on
    advertised.listeners  NAME://host:port, ...     what clients are told, by name; else the same

A server.properties of Apache Kafka may have listeners for controllers (controller.listener.names):
they are left out. What remains is one listener, whose protocol is PLAINTEXT. Anything else is
refused when it is asked for, not when the settings are read: who only looks at files needs none.
"""

import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stratalog.errors import ConfigError

if TYPE_CHECKING:
    from stratalog.config.broker import BrokerConfig

_LISTENER = re.compile(r"(?P<name>[^:/]+)://(?P<host>\[[^\]]+\]|[^:/\[\]]*):(?P<port>[0-9]{1,5})")
_EVERY_INTERFACE = ("0.0.0.0", "::")
_PROTOCOL = "PLAINTEXT"
_EMPTY_HOST = (
    "has no host, which to Kafka is every interface, and nobody who connects is asked who they "
    "are; say 127.0.0.1 for this machine alone, or 0.0.0.0 for every interface"
)


@dataclass(frozen=True, slots=True)
class Listener:
    """One of ``listeners``. Port 0 is any that is free."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{format_address(self.host, self.port)}"


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(setting: str, text: str) -> tuple[str, int]:
    """``host:port``, as it is given on a command line."""
    listener = parse_listener(setting, f"{_PROTOCOL}://{text.strip()}", shown=text)
    if not listener.host:
        raise ConfigError(setting, text, _EMPTY_HOST)
    return listener.host, listener.port


def parse_listener(setting: str, text: str, *, shown: str | None = None) -> Listener:
    found = _LISTENER.fullmatch(text)
    if found is None or int(found["port"]) > 0xFFFF:
        form = "name://host:port" if shown is None else "host:port"
        raise ConfigError(setting, text if shown is None else shown, f"must be {form}")
    return Listener(found["name"].upper(), found["host"].strip("[]"), int(found["port"]))


def controller_listeners(config: "BrokerConfig") -> frozenset[str]:
    """The names, in capitals, of the listeners that nobody listens on here."""
    return frozenset(name.upper() for name in config.controller_listener_names or ())


def secured_listeners(config: "BrokerConfig") -> list[tuple[Listener, str]]:
    """The listeners for clients that are not plain, each with its protocol. One whose protocol
    nothing says is none of them: Kafka would not start with it."""
    protocols = _protocols(config)
    found = [(each, protocols.get(each.name, _PROTOCOL)) for each in _for_clients(config)]
    return [(listener, protocol) for listener, protocol in found if protocol != _PROTOCOL]


def _for_clients(config: "BrokerConfig") -> list[Listener]:
    controllers = controller_listeners(config)
    parsed = [parse_listener("listeners", text) for text in config.listeners]
    return [each for each in parsed if each.name not in controllers]


def client_listener(config: "BrokerConfig") -> Listener:
    """The one listener that clients connect to."""
    found = _for_clients(config)
    if len(found) != 1:
        count = "several" if found else "none"
        raise ConfigError(
            "listeners", ",".join(config.listeners), f"must have one for clients, and has {count}"
        )
    protocol = _protocols(config).get(found[0].name)
    if protocol != _PROTOCOL:
        raise ConfigError(
            "listeners", str(found[0]), f"must be of protocol PLAINTEXT, and is {protocol}"
        )
    if not found[0].host:
        raise ConfigError("listeners", str(found[0]), _EMPTY_HOST)
    return found[0]


def advertised(config: "BrokerConfig", listener: Listener, bound_port: int) -> tuple[str, int]:
    """What clients of ``listener`` are told, which is bound to ``bound_port``."""
    host, port = listener.host, listener.port
    if config.advertised_listeners:
        stated = [parse_listener("advertised.listeners", t) for t in config.advertised_listeners]
        named = [each for each in stated if each.name == listener.name]
        if len(named) != 1:
            raise ConfigError(
                "advertised.listeners",
                ",".join(config.advertised_listeners),
                f"must have one for the listener {listener.name}",
            )
        host, port = named[0].host, named[0].port
    if host in _EVERY_INTERFACE:
        raise ConfigError(
            "advertised.listeners",
            f"{listener.name}://{format_address(host, port)}",
            "must be an address that clients can connect to, which this is not",
        )
    # Kafka's rule: an advertised listener without a host is found by the machine's name.
    return host or socket.getfqdn(), port or bound_port


def _protocols(config: "BrokerConfig") -> dict[str, str]:
    pairs = (pair.split(":") for pair in config.listener_security_protocol_map.split(",") if pair)
    protocols = {}
    for pair in pairs:
        if len(pair) != 2:
            raise ConfigError(
                "listener.security.protocol.map",
                config.listener_security_protocol_map,
                "must be pairs name:protocol, parted by commas",
            )
        protocols[pair[0].strip().upper()] = pair[1].strip().upper()
    return protocols
