"""AlterReplicaLogDirs (key 34), versions 1 to 2.

Made by tools/protocol_generator from Kafka's message schemas: do not edit, run
`make protocol`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stratalog.protocol.wire import Layout


class AlterReplicaLogDirTopic(NamedTuple):
    name: str = ""
    partitions: Sequence[int] = ()


class AlterReplicaLogDir(NamedTuple):
    path: str = ""
    topics: Sequence[AlterReplicaLogDirTopic] = ()


class AlterReplicaLogDirsRequest(NamedTuple):
    dirs: Sequence[AlterReplicaLogDir] = ()


class AlterReplicaLogDirPartitionResult(NamedTuple):
    partition_index: int = 0
    error_code: int = 0


class AlterReplicaLogDirTopicResult(NamedTuple):
    topic_name: str = ""
    partitions: Sequence[AlterReplicaLogDirPartitionResult] = ()


class AlterReplicaLogDirsResponse(NamedTuple):
    throttle_time_ms: int = 0
    results: Sequence[AlterReplicaLogDirTopicResult] = ()


_LAYOUT_AlterReplicaLogDirTopic: Layout = (
    AlterReplicaLogDirTopic,
    ("string", 1, 2, -1, -1),
    ("[]int32", 1, 2, -1, -1),
)

_LAYOUT_AlterReplicaLogDir: Layout = (
    AlterReplicaLogDir,
    ("string", 1, 2, -1, -1),
    ("[]struct", 1, 2, -1, -1, _LAYOUT_AlterReplicaLogDirTopic),
)

REQUEST: Layout = (
    AlterReplicaLogDirsRequest,
    ("[]struct", 1, 2, -1, -1, _LAYOUT_AlterReplicaLogDir),
)

_LAYOUT_AlterReplicaLogDirPartitionResult: Layout = (
    AlterReplicaLogDirPartitionResult,
    ("int32", 1, 2, -1, -1),
    ("int16", 1, 2, -1, -1),
)

_LAYOUT_AlterReplicaLogDirTopicResult: Layout = (
    AlterReplicaLogDirTopicResult,
    ("string", 1, 2, -1, -1),
    ("[]struct", 1, 2, -1, -1, _LAYOUT_AlterReplicaLogDirPartitionResult),
)

RESPONSE: Layout = (
    AlterReplicaLogDirsResponse,
    ("int32", 1, 2, -1, -1),
    ("[]struct", 1, 2, -1, -1, _LAYOUT_AlterReplicaLogDirTopicResult),
)
