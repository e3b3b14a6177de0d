"""Producer ids: the range that is given out here, where in it a store begins, one id at a time.

    0 ... 2^52       Apache Kafka's controllers, which count up from 0 and look at no log
    2^52 ... 2^53    stratalog; every id is exact in JSON and in a float
    2^53 ...         nobody

The two ranges never meet, so that a directory can go from one owner to the other and back, and an
id that a log knows is never given to a second producer. Within its range a store begins at a place
drawn by chance: partitions that were copied from elsewhere, and ids that a lost store gave to
producers that have not written yet, are hit by none of its ids.

What is left of a block when the process ends is lost.
"""

import secrets
from collections.abc import Callable, Iterator

from stratalog.metadata.store import MetadataStore

PRODUCER_ID_BLOCK_SIZE = 1000
PRODUCER_ID_MIN = 2**52
PRODUCER_ID_MAX = 2**53 - 1

# A store begins this many blocks above the ids that are known: one that is lost, or lives on, may
# have given out more of them than anybody can tell.
_BLOCKS_AHEAD_MIN = 1_000_000
_BLOCKS_AHEAD_DRAWN = 2**32

Draw = Callable[[int], int]


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


def first_producer_id(*known: int, draw: Draw = secrets.randbelow) -> int:
    """Where a store begins. ``known`` are ids that were given out or seen, as far as anybody can
    tell; those outside the range were given by others. An id so high that there is no room above
    it was invented by its producer, and counts as little."""
    drawn = _BLOCKS_AHEAD_MIN + draw(_BLOCKS_AHEAD_DRAWN)
    blocks = [_block_of(each) + 1 for each in known if PRODUCER_ID_MIN <= each <= PRODUCER_ID_MAX]
    room = (PRODUCER_ID_MAX - PRODUCER_ID_MIN) // PRODUCER_ID_BLOCK_SIZE
    room -= _BLOCKS_AHEAD_MIN + _BLOCKS_AHEAD_DRAWN
    above = max((each for each in blocks if each <= room), default=0)
    return PRODUCER_ID_MIN + (above + drawn) * PRODUCER_ID_BLOCK_SIZE


def next_producer_id(stored: int, seen: int, *, draw: Draw = secrets.randbelow) -> int:
    """Where a store goes on that has stored ``stored`` as its next id. It begins anew if that is
    an id of Kafka's range, or if a log has seen ``seen``, of a block that was not given out yet:
    then the store is an older copy of itself."""
    if stored < PRODUCER_ID_MIN or stored <= seen <= PRODUCER_ID_MAX:
        return first_producer_id(stored - 1, seen, draw=draw)
    return stored


def _block_of(producer_id: int) -> int:
    return (producer_id - PRODUCER_ID_MIN) // PRODUCER_ID_BLOCK_SIZE
