"""Settings of the broker's sockets, and who it is: Kafka's names, defaults and rules.

What listens where is worked out in ``listeners``.
"""

from dataclasses import dataclass

from stratalog.config.own import OwnSettings
from stratalog.config.settings import Kind, setting

_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings(OwnSettings):
    """What BrokerConfig says about connections and the node's identity."""

    # Who it is
    node_id: int | None = setting(
        None,
        kind=Kind.INT,
        at_least=0,
        doc="The id of this broker; not set: what meta.properties says, else 1.",
    )
    broker_id: int = setting(-1, doc="An older name of node.id; negative: not set.")
    broker_rack: str | None = setting(
        None, kind=Kind.STRING, doc="The rack of this broker. Clients are not told it."
    )

    # Where it listens
    listeners: tuple[str, ...] = setting(
        ("PLAINTEXT://127.0.0.1:9092",),
        may_be_empty=True,
        doc="Where the broker listens, as NAME://host:port. No host means every interface, port 0 "
        "any that is free. Controllers' listeners are left out, and one for clients remains.",
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        None,
        kind=Kind.LIST,
        may_be_empty=True,
        doc="What clients are told to connect to, where that is not what is listened on.",
    )
    controller_listener_names: tuple[str, ...] | None = setting(
        None,
        kind=Kind.LIST,
        may_be_empty=True,
        doc="The listeners that are not for clients. There is no controller here to listen.",
    )
    listener_security_protocol_map: str = setting(
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        doc="The protocol of each listener by its name. Only PLAINTEXT is served.",
    )

    # Sockets
    socket_request_max_bytes: int = setting(
        100 << 20, at_least=1, doc="The largest request; a larger one ends its connection."
    )
    socket_send_buffer_bytes: int = setting(
        100 << 10, doc="The send buffer of a client's socket; -1: the system's own."
    )
    socket_receive_buffer_bytes: int = setting(
        100 << 10, doc="The receive buffer of a client's socket; -1: the system's own."
    )
    socket_listen_backlog_size: int = setting(
        50, at_least=1, doc="Connections that may wait to be accepted."
    )
    connections_max_idle_ms: int = setting(
        600_000, kind=Kind.LONG, doc="Close a connection after this long without a request."
    )
    max_connections: int = setting(
        _INT_MAX, at_least=0, doc="Connections at one time; more than that are closed at once."
    )
    max_connections_per_ip: int = setting(
        _INT_MAX, at_least=0, doc="Connections at one time from one address."
    )
    queued_max_request_bytes: int = setting(
        -1,
        kind=Kind.LONG,
        doc="Bytes of requests at one time before no more are read; not positive: 256 MiB.",
    )

    # Requests
    max_incremental_fetch_session_cache_slots: int = setting(
        1_000, at_least=0, doc="Fetch sessions that are remembered."
    )
    max_request_partition_size_limit: int = setting(
        2_000, at_least=1, doc="Partitions in one answer to DescribeTopicPartitions."
    )
