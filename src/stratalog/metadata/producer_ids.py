"""Producer ids, one at a time: taken from blocks that the store has given away for good.

What is left of a block when the process ends is lost; there are 2^63 of them.
"""

from collections.abc import Iterator

from stratalog.metadata.store import MetadataStore

PRODUCER_ID_BLOCK_SIZE = 1000
PRODUCER_ID_MAX = 2**63 - 1


class ProducerIds:
    """Ids that nobody else is given, now or after a restart. Used by the store's thread."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._block: Iterator[int] = iter(())

    def next_id(self) -> int:
        """The next id; each thousandth call waits for the disk."""
        for producer_id in self._block:
            return producer_id
        block = self._store.allocate_producer_ids()
        self._block = iter(block[1:])
        return block[0]
