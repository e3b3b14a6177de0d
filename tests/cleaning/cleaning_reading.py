"""What lies in a log, and what a reader is given of it."""

from collections.abc import Iterator

from cleaning_model import AbortedEntry

from stratalog.storage.log import Log
from stratalog.storage.reading import Isolation


def entry_fields(entry: object) -> tuple[int, ...]:
    return tuple(
        getattr(entry, name)
        for name in ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    )


def stored_batches(log: Log) -> Iterator[tuple[int, bytes]]:
    """(base offset of its segment, bytes) of every batch, in order."""
    for segment in log.segments:
        for header in segment.headers():
            yield segment.base_offset, segment.read_batch(header)


def read_batches(
    log: Log, start_offset: int, *, isolation: Isolation = Isolation.LOG_END, max_bytes: int = 300
) -> Iterator[tuple[bytes, tuple[AbortedEntry, ...]]]:
    """Whole batches as a consumer fetches them, with the aborted transactions it is told of."""
    offset = start_offset
    while True:
        fetched = log.read(offset, max_bytes=max_bytes, isolation=isolation)
        whole = fetched.whole_batches()
        if not whole.content:
            return
        assert whole.next_offset > offset, "reads move on"
        told = tuple(AbortedEntry(*entry_fields(each)) for each in fetched.aborted or ())
        yield whole.content, told
        offset = whole.next_offset
