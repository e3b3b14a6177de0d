"""What a leader accepts from producers, and the batch that it stores for them.

The rule: a batch is either stored, or refused with every reason that it has; nothing of it is ever
appended in part. The work itself is compiled (``_validate.pxi``); one call checks the header, the
CRC and all records, and in the usual case copies no more than the 61 bytes of the header, or a
tiny batch whole.

Deliberate differences from Apache Kafka, which answers these with an unknown server error or
stores them: a compressed batch whose offset deltas do not count from zero, whose record lengths
contradict their fields, or which does not decompress, is refused as invalid or corrupt.
"""

from dataclasses import dataclass
from enum import Enum, auto

from stratalog.records._kernels import (
    ProducedBatches,
    keep_batches,
    lone_batch,
    validate_produced,
)
from stratalog.records.compression import NO_LIMIT_BYTES, Codec

__all__ = [
    "AppendOrigin",
    "ProduceRules",
    "ProducedBatches",
    "keep_batches",
    "lone_batch",
    "validate_produced",
]


class AppendOrigin(Enum):
    """Who wrote the batch: coordinators may do what clients may not, such as end transactions."""

    CLIENT = auto()
    COORDINATOR = auto()
    REPLICATION = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRules:
    """What a topic's configuration says about produced batches; the defaults are Kafka's."""

    compacted: bool = False
    log_append_time: bool = False
    before_max_ms: int = 2**63 - 1
    after_max_ms: int = 3_600_000
    max_message_bytes: int = 1_048_588
    codec: Codec | None = None  # compression.type; None is "producer"
    level: int | None = None
    max_decompressed_bytes: int = NO_LIMIT_BYTES
