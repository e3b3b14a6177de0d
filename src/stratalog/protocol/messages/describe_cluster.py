"""DescribeCluster (key 60), versions 0 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DescribeClusterRequest(NamedTuple):
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(NamedTuple):
    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    cluster_authorized_operations: int = -2147483648


REQUEST: Layout = (
    DescribeClusterRequest,
    ("bool", 0, 2, -1, -1),
    ("int8", 1, 2, -1, -1),
    ("bool", 2, 2, -1, -1),
)

_LAYOUT_DescribeClusterBroker: Layout = (
    DescribeClusterBroker,
    ("int32", 0, 2, -1, -1),
    ("string", 0, 2, -1, -1),
    ("int32", 0, 2, -1, -1),
    ("string", 0, 2, 0, -1),
    ("bool", 2, 2, -1, -1),
)

RESPONSE: Layout = (
    DescribeClusterResponse,
    ("int32", 0, 2, -1, -1),
    ("int16", 0, 2, -1, -1),
    ("string", 0, 2, 0, -1),
    ("int8", 1, 2, -1, -1),
    ("string", 0, 2, -1, -1),
    ("int32", 0, 2, -1, -1),
    ("[]struct", 0, 2, -1, -1, _LAYOUT_DescribeClusterBroker),
    ("int32", 0, 2, -1, -1),
)
