"""The offsets that one group has committed, and those on their way into the log.

A commit counts when the log has acknowledged it. Until then it is *pending*: not seen by readers,
but kept in mind by who expires or deletes offsets. Acknowledgements of one partition may come in
any order; the later write counts.

Offsets that were committed inside a transaction wait for its marker, by producer id.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stratalog.coordinator.log_records import NO_TIMESTAMP, CommittedOffset

TopicAndPartition = tuple[str, int]
# A CommittedOffset that has forgotten its name: of hundreds of thousands of plain tuples the
# garbage collector takes no notice, of any other kind it looks at each in every full collection.
Kept = tuple[object, ...]
# None where an offset is to be forgotten.
Changes = Mapping[TopicAndPartition, CommittedOffset | None]


class TransactionalOffset(NamedTuple):
    """``record_offset`` decides whether it or a plain commit is the later one."""

    record_offset: int
    committed: CommittedOffset


class _Pending:
    __slots__ = ("applied", "count")

    def __init__(self) -> None:
        self.count = 0
        self.applied = -1


class GroupOffsets:
    def __init__(self) -> None:
        self.topics: dict[str, dict[int, Kept]] = {}
        self.transactional: dict[int, dict[TopicAndPartition, TransactionalOffset]] = {}
        self._pending: dict[TopicAndPartition, _Pending] = {}
        self._last_write = 0

    def __len__(self) -> int:
        return sum(map(len, self.topics.values()))

    def __bool__(self) -> bool:
        return bool(self.topics)

    def __iter__(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.topics.items():
            for partition, kept in partitions.items():
                yield topic, partition, CommittedOffset._make(kept)

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        kept = self.topics.get(topic, {}).get(partition)
        return None if kept is None else CommittedOffset._make(kept)

    def topic_id(self, topic: str, partition: int) -> bytes:
        """Of an offset that there is."""
        return CommittedOffset._make(self.topics[topic][partition]).topic_id

    def put(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.topics.setdefault(topic, {})[partition] = tuple(committed)

    def remove(self, topic: str, partition: int) -> None:
        partitions = self.topics.get(topic)
        if partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del self.topics[topic]
        for offsets in self.transactional.values():
            offsets.pop((topic, partition), None)

    # --- on the way into the log ----------------------------------------------------------------

    @property
    def pending(self) -> frozenset[TopicAndPartition]:
        return frozenset(self._pending)

    def is_pending(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self._pending

    def begin(self, changes: Changes) -> int:
        """They are about to be written; returns what ``finish`` is to be told of it."""
        for key in changes:
            self._pending.setdefault(key, _Pending()).count += 1
        self._last_write += 1
        return self._last_write

    def finish(self, changes: Changes, number: int, *, is_written: bool) -> None:
        """They are in the log, or they are not."""
        for key, committed in changes.items():
            pending = self._pending[key]
            if is_written and number > pending.applied:
                pending.applied = number
                if committed is None:
                    self.remove(*key)
                else:
                    self.put(*key, committed)
            pending.count -= 1
            if not pending.count:
                del self._pending[key]

    # --- transactions ---------------------------------------------------------------------------

    def has_open_transaction(self, topic: str, partition: int) -> bool:
        key = (topic, partition)
        return any(key in offsets for offsets in self.transactional.values())

    @property
    def is_in_transaction(self) -> bool:
        return any(self.transactional.values())

    # --- retention ------------------------------------------------------------------------------

    def all_keys(self) -> set[TopicAndPartition]:
        """Everything that a tombstone is needed for, so that nothing of the group is left."""
        keys = {(topic, number) for topic, numbers in self.topics.items() for number in numbers}
        keys.update(self._pending)
        for offsets in self.transactional.values():
            keys.update(offsets)
        return keys


def is_expired(
    committed: CommittedOffset, *, now_ms: int, base_timestamp_ms: int, retention_ms: int
) -> bool:
    if committed.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - base_timestamp_ms >= retention_ms
