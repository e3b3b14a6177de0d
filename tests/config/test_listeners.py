"""Where a broker listens, and what it tells its clients."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.config import BrokerConfig
from stratalog.config.listeners import (
    Listener,
    advertised,
    client_listener,
    format_address,
    parse_address,
    parse_listener,
)
from stratalog.errors import ConfigError

HOSTS = st.sampled_from(["127.0.0.1", "example.org", "::1", "fe80::1"])
PORTS = st.integers(0, 65_535)


def broker(**settings: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {name.replace("_", "."): value for name, value in settings.items()}
    )


def test_an_address_without_a_host_is_refused_since_it_would_be_every_interface() -> None:
    for setting in ("--listen", "admin.listener"):
        with pytest.raises(ConfigError, match=r"say 127\.0\.0\.1 for this machine alone"):
            parse_address(setting, ":9092")


@given(host=HOSTS, port=PORTS)
def test_an_address_reads_back(host: str, port: int) -> None:
    assert parse_address("x", format_address(host, port)) == (host, port)
    listener = Listener("INSIDE", host, port)
    assert parse_listener("listeners", str(listener)) == listener


@given(st.text(max_size=20))
def test_whatever_is_written_is_an_address_or_refused(text: str) -> None:
    try:
        host, port = parse_address("--listen", text)
    except ConfigError:
        return
    assert 0 <= port <= 65_535
    assert not set(host) & set("/[] ") or ":" in host


def test_it_is_the_loopback_unless_told_otherwise() -> None:
    assert client_listener(BrokerConfig()) == Listener("PLAINTEXT", "127.0.0.1", 9092)
    assert advertised(BrokerConfig(), client_listener(BrokerConfig()), 9092) == ("127.0.0.1", 9092)


def test_controllers_listeners_are_left_out_whatever_their_case() -> None:
    config = broker(
        listeners="CONTROLLER://:9093,INSIDE://10.0.0.1:9092",
        controller_listener_names="controller",
        listener_security_protocol_map="CONTROLLER:SSL, inside : plaintext",
    )
    assert client_listener(config) == Listener("INSIDE", "10.0.0.1", 9092)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"listeners": ""}, "must have one for clients, and has none"),
        (
            {"listeners": "A://:1", "controller_listener_names": "A"},
            "must have one for clients, and has none",
        ),
        ({"listeners": "PLAINTEXT://:1,SSL://:2"}, "must have one for clients, and has several"),
        ({"listeners": "SSL://:1"}, "must be of protocol PLAINTEXT, and is SSL"),
        ({"listeners": "PLAINTEXT://:9092"}, "has no host, which to Kafka is every interface"),
        ({"listeners": "INSIDE://:1"}, "must be of protocol PLAINTEXT, and is None"),
        ({"listeners": "PLAINTEXT://h"}, "must be name://host:port"),
        ({"listeners": "PLAINTEXT://h:70000"}, "must be name://host:port"),
        ({"listener_security_protocol_map": "PLAINTEXT"}, "must be pairs name:protocol"),
    ],
)
def test_what_is_not_served_is_refused_when_it_is_asked_for(
    settings: dict[str, str], rule: str
) -> None:
    config = broker(**settings)  # who only looks at files may have it
    with pytest.raises(ConfigError, match=rule):
        client_listener(config)


def test_clients_are_told_what_is_advertised_under_the_listeners_name() -> None:
    config = broker(
        listeners="PLAINTEXT://0.0.0.0:9092",
        advertised_listeners="SSL://a:1,PLAINTEXT://kafka.example.org:19092",
    )
    listener = client_listener(config)
    assert advertised(config, listener, 9092) == ("kafka.example.org", 19092)
    with pytest.raises(ConfigError, match="must have one for the listener OTHER"):
        advertised(config, Listener("OTHER", "", 1), 1)


def test_a_port_that_the_system_chose_is_told() -> None:
    config = broker(listeners="PLAINTEXT://127.0.0.1:0")
    assert advertised(config, client_listener(config), 34567) == ("127.0.0.1", 34567)


def test_a_listener_advertised_without_a_host_is_found_by_the_machines_name() -> None:
    everywhere = broker(
        listeners="PLAINTEXT://0.0.0.0:9092", advertised_listeners="PLAINTEXT://:9092"
    )
    assert advertised(everywhere, client_listener(everywhere), 9092)[0] == socket.getfqdn()


def test_clients_are_never_told_an_address_of_every_interface() -> None:
    for host in ("0.0.0.0", "[::]"):
        config = broker(listeners=f"PLAINTEXT://{host}:9092")
        with pytest.raises(ConfigError, match="an address that clients can connect to"):
            advertised(config, client_listener(config), 9092)


def test_broker_id_is_an_older_name_of_node_id() -> None:
    assert BrokerConfig().stated_node_id is None
    assert broker(broker_id="4").stated_node_id == 4
    assert broker(node_id="4", broker_id="4").stated_node_id == 4
    with pytest.raises(ConfigError, match=r"is not node\.id=5"):
        broker(node_id="5", broker_id="4")
