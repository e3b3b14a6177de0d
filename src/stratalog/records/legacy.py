"""Message sets of magic 0 and 1, as Apache Kafka wrote them before record batches.

They are read like batches: by ``columns`` into the same columns, by ``validation`` to be stored
as a v2 batch. What only they need is here: the offset of a compressed message is that of its
*last* inner message, and the first can be known only by decompressing it.
"""

from typing_extensions import Buffer

from stratalog.errors import CorruptBatchError
from stratalog.records._kernels import COLUMN_NAMES, ColumnDecoder
from stratalog.records.compression import NO_LIMIT_BYTES

_OFFSET = 1 << COLUMN_NAMES.index("offset")


def first_offset(message: Buffer, *, limit_bytes: int = NO_LIMIT_BYTES) -> int:
    """The offset of the first message inside ``message``, or its own if it is not compressed."""
    decoder = ColumnDecoder(_OFFSET, start_offset=-(2**63), end_offset=2**63 - 1, check_crc=False)
    end = decoder.add(message, 0, 0, limit_bytes)
    _, memory = decoder.take()
    offsets = memoryview(memory["offset"][0]).cast("q")
    if end == 0 or not offsets:
        raise CorruptBatchError("no whole message begins here")
    return int(offsets[0])
