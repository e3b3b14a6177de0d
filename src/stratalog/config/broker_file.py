"""A server.properties as a broker is served with it: honoured or refused, and nothing between.

Offline tools read such files with ``BrokerConfig.from_properties``: they open no door, so that what
would close one does not concern them.
"""

from collections.abc import Mapping

from stratalog.config.broker import BrokerConfig
from stratalog.config.listeners import client_listener, controller_listeners, secured_listeners
from stratalog.config.security import security_refusals
from stratalog.config.settings import raise_together
from stratalog.config.unhonoured import unhonoured_refusals
from stratalog.errors import ConfigError, ConfigErrors

LISTENING = (
    "listeners",
    "advertised.listeners",
    "controller.listener.names",
    "listener.security.protocol.map",
)


def served_config(properties: Mapping[str, str]) -> BrokerConfig:
    """The settings that a broker is served with. All that is wrong with them is raised at once."""
    errors: list[ConfigError] = []
    config = BrokerConfig()
    try:
        config = BrokerConfig.from_properties(properties, allows_unknown=True)
    except ConfigErrors as refused:
        errors += refused.errors
    except ConfigError as refused:
        errors.append(refused)
    errors += refused_security(properties)
    errors += unhonoured_refusals(properties)
    if not any(error.name in LISTENING for error in errors):
        try:
            client_listener(_listening(properties))
        except ConfigError as refused:
            errors.append(refused)
    raise_together(errors)
    return config


def refused_security(properties: Mapping[str, str]) -> list[ConfigError]:
    """Each of ``properties`` that would leave a door open that it seems to close."""
    try:
        unserved = controller_listeners(_listening(properties))
    except ConfigError:  # told by whoever reads that setting
        unserved = frozenset()
    return security_refusals(properties, unserved_listeners=unserved)


def listen_instead(properties: Mapping[str, str], address: str) -> dict[str, str]:
    """``properties`` with one plain listener at ``address``, in place of all that they have.

    Refused if one of theirs asks clients who they are: the new one would not.
    """
    secured = secured_listeners(_listening(properties))
    if secured:
        listener, protocol = secured[0]
        raise ConfigError(
            "listeners",
            str(listener),
            f"is {protocol}, which is not served, and --listen {address} would let everybody in; "
            "take the listener out of the file if that is meant",
        )
    rest = {name: value for name, value in properties.items() if name not in LISTENING}
    return {**rest, "listeners": f"PLAINTEXT://{address}"}


def _listening(properties: Mapping[str, str]) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {name: properties[name] for name in LISTENING if name in properties}
    )
