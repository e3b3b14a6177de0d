"""DescribeLogDirs (key 35), versions 1 to 5.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class DescribableLogDirTopic(NamedTuple):
    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeLogDirsRequest(NamedTuple):
    topics: Sequence[DescribableLogDirTopic] | None = ()


class DescribeLogDirsPartition(NamedTuple):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[DescribeLogDirsPartition] = ()


class DescribeLogDirsResult(NamedTuple):
    error_code: int = 0
    log_dir: str = ""
    topics: Sequence[DescribeLogDirsTopic] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(NamedTuple):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: Sequence[DescribeLogDirsResult] = ()


_LAYOUT_DescribableLogDirTopic: Layout = (
    DescribableLogDirTopic,
    ("string", 1, 5, -1, -1),
    ("[]int32", 1, 5, -1, -1),
)

REQUEST: Layout = (
    DescribeLogDirsRequest,
    ("[]struct", 1, 5, 1, -1, _LAYOUT_DescribableLogDirTopic),
)

_LAYOUT_DescribeLogDirsPartition: Layout = (
    DescribeLogDirsPartition,
    ("int32", 1, 5, -1, -1),
    ("int64", 1, 5, -1, -1),
    ("int64", 1, 5, -1, -1),
    ("bool", 1, 5, -1, -1),
)

_LAYOUT_DescribeLogDirsTopic: Layout = (
    DescribeLogDirsTopic,
    ("string", 1, 5, -1, -1),
    ("[]struct", 1, 5, -1, -1, _LAYOUT_DescribeLogDirsPartition),
)

_LAYOUT_DescribeLogDirsResult: Layout = (
    DescribeLogDirsResult,
    ("int16", 1, 5, -1, -1),
    ("string", 1, 5, -1, -1),
    ("[]struct", 1, 5, -1, -1, _LAYOUT_DescribeLogDirsTopic),
    ("int64", 4, 5, -1, -1),
    ("int64", 4, 5, -1, -1),
    ("bool", 5, 5, -1, -1),
)

RESPONSE: Layout = (
    DescribeLogDirsResponse,
    ("int32", 1, 5, -1, -1),
    ("int16", 3, 5, -1, -1),
    ("[]struct", 1, 5, -1, -1, _LAYOUT_DescribeLogDirsResult),
)
