"""The groups of one partition of ``__consumer_offsets``, and the way their records take into it.

A write is one batch. It is answered when the log has acknowledged it, with the code that a client
of the coordinator should see.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from stratalog.coordinator.group import Group
from stratalog.coordinator.log_records import chunks_of_records
from stratalog.protocol.error_codes import ErrorCode
from stratalog.records import Codec, Record, build_batch

LogRecord = tuple[bytes, bytes | None]
# Partition, batch, and who is to be told the error code of the append.
Append = Callable[[int, bytes, Callable[[int], None]], None]
WriteDone = Callable[[ErrorCode], None]

# Well below what a log takes as one batch by default.
CHUNK_BYTES: Final = 256 * 1024

_AS_CLIENTS_SEE_IT: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class Shard:
    """``is_active`` once everything has been loaded, until the partition is led elsewhere."""

    def __init__(
        self, partition: int, leader_epoch: int, *, append: Append, codec: Codec = Codec.NONE
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.is_active = False
        self.groups: dict[str, Group] = {}
        self._append = append
        self._codec = codec
        self._last_write = 0
        self._in_flight: set[int] = set()
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    def __repr__(self) -> str:
        return f"Shard({self.partition}, {len(self.groups)} groups, active={self.is_active})"

    def write(self, records: Sequence[LogRecord], now_ms: int, done: WriteDone) -> None:
        """Append ``records`` as one batch."""
        assert records, "an empty batch says nothing"
        self._last_write = number = self._last_write + 1
        self._in_flight.add(number)
        batch = build_batch(
            [Record(key, value, timestamp_ms=now_ms) for key, value in records],
            codec=self._codec,
        )

        def acknowledged(code: int) -> None:
            self._in_flight.discard(number)
            error = ErrorCode(code)
            done(_AS_CLIENTS_SEE_IT.get(error, error))
            self._maybe_resume()

        self._append(self.partition, batch, acknowledged)

    def write_all(self, records: Iterable[LogRecord], now_ms: int, done: WriteDone) -> None:
        """As ``write``, but in several batches if there is much, of which any may fail: ``done``
        is told the first error, when all of them have been answered."""
        chunks = list(chunks_of_records(records, CHUNK_BYTES))
        if not chunks:
            done(ErrorCode.NONE)
            return
        left = len(chunks)
        errors: list[ErrorCode] = []

        def one_done(error: ErrorCode) -> None:
            nonlocal left
            left -= 1
            if error is not ErrorCode.NONE:
                errors.append(error)
            if not left:
                done(errors[0] if errors else ErrorCode.NONE)

        for chunk in chunks:
            self.write(chunk, now_ms, one_done)

    def when_written(self, action: Callable[[], None]) -> None:
        """Do it when all writes so far have been answered: now, if they have."""
        if self._in_flight:
            self._waiting.append((self._last_write, action))
        else:
            action()

    def _maybe_resume(self) -> None:
        oldest = min(self._in_flight, default=self._last_write + 1)
        while self._waiting and self._waiting[0][0] < oldest:
            self._waiting.pop(0)[1]()
