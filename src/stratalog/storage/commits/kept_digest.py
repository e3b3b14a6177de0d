"""The digest of a staged file whose batches keep their offsets: a replacement's.

As ``digest_of``, over CRCs, and over what no CRC covers besides: base offsets and leader epochs.
"""

from collections.abc import Iterable

from stratalog.records import BatchHeader
from stratalog.storage.commits.staged_log import digest_of

_LOW = 0xFFFF_FFFF


def kept_digest(headers: Iterable[BatchHeader], digest: int = 0) -> int:
    """Going on from those before."""
    words: list[int] = []
    for header in headers:
        offset, epoch = header.base_offset, header.partition_leader_epoch
        words += (header.crc, offset >> 32 & _LOW, offset & _LOW, epoch & _LOW)
    return digest_of(words, digest)
