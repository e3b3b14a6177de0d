"""What waits in the purgatories of a replica manager: appends, fetches, deletions of records.

An append waits twice at most: before, where a commit has the log stand still for a moment, and
after, until enough replicas have it.

Each knows what it waits for, and what to answer when that has come true or its time is over.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from stratalog.errors import NotLeaderError, RequestTimedOutError, StratalogError
from stratalog.replication.purgatory import DelayedOperation
from stratalog.storage.layout import TopicPartition
from stratalog.storage.reading import Isolation

if TYPE_CHECKING:
    from stratalog.replication.parts import (
        DeleteResponse,
        Done,
        FetchRequest,
        FetchResponse,
        PartitionAppend,
    )
    from stratalog.replication.replica_manager import ReplicaManager

# A client's timeout is how long followers may take. Where only the disk of this node is waited for,
# Kafka answers at once whatever the timeout is, and a client may have asked for none.
DISK_WAIT_MS = 30_000


class DelayedAppend(DelayedOperation):
    """Begun when none of its logs stands still any more; given up, appended nowhere, when its time
    is over."""

    def __init__(
        self,
        manager: "ReplicaManager",
        appends: "Sequence[PartitionAppend]",
        append: Callable[[], None],
        done: "Done",
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self._manager = manager
        self._appends = appends
        self._append = append
        self._done = done

    def is_ready(self) -> bool:
        return not self._manager.are_paused(self._appends)

    def complete(self, *, is_expired: bool) -> None:
        if not is_expired:
            self._append()
            return
        for each in self._appends:
            # A purgatory remembers who is done: not the records as well.
            each.records = None
            each.error = RequestTimedOutError(f"a commit kept {each.key} for too long")
        self._done()


class DelayedProduce(DelayedOperation):
    """Answered when the records of every partition are kept as ``required_acks`` asks for: by all
    in-sync replicas, or for acks=1 by the disk of this node."""

    def __init__(
        self,
        manager: "ReplicaManager",
        appends: "Iterable[PartitionAppend]",
        required_acks: int,
        done: "Done",
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self._manager = manager
        self._required_acks = required_acks
        self._done = done
        self._waiting = [each for each in appends if each.info is not None]

    def is_ready(self) -> bool:
        self._waiting = [each for each in self._waiting if self._must_wait(each)]
        return not self._waiting

    def _must_wait(self, each: "PartitionAppend") -> bool:
        assert each.info is not None, "what was refused is not waited for"
        partition = self._manager.find(each.key)
        if partition is None:
            each.error = NotLeaderError(f"{each.key} is not here any more")
            return False
        verdict = partition.is_acknowledged(each.info.last_offset + 1, self._required_acks)
        if verdict is False:
            return True
        if verdict is not True:
            each.error = verdict
        return False

    def complete(self, *, is_expired: bool) -> None:
        for each in self._waiting:
            each.error = RequestTimedOutError(
                f"{each.key} was appended to, and not replicated or flushed in time"
            )
        self._done()


class DelayedFetch(DelayedOperation):
    """Answered when ``min_bytes`` are there, or the wait is over: then with what there is."""

    def __init__(
        self,
        manager: "ReplicaManager",
        request: "FetchRequest",
        respond: "FetchResponse",
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self._manager = manager
        self._request = request
        self._respond = respond
        is_follower = request.replica_id >= 0
        self._upper = Isolation.LOG_END if is_follower else request.isolation
        # What each partition had when last looked at, where that was anything.
        self._found: dict[TopicPartition, int] = {}
        self._available = 0

    def is_ready(self) -> bool:
        return any(self.is_ready_by(key) for key in self._request.partitions)

    def is_ready_by(self, key: Hashable) -> bool:
        assert isinstance(key, TopicPartition), f"a fetch waits for partitions, not for {key}"
        found = self._manager.available_bytes(key, self._request.partitions[key], self._upper)
        if found < 0:
            return True
        self._available += found - self._found.get(key, 0)
        self._found[key] = found
        return self._available >= self._request.min_bytes

    def complete(self, *, is_expired: bool) -> None:
        self._respond(self._manager.read(self._request, is_waited_for=True))


class DelayedDeleteRecords(DelayedOperation):
    """Answered when every replica has forgotten what was to be deleted, this one for good."""

    def __init__(
        self,
        manager: "ReplicaManager",
        wanted: dict[TopicPartition, int],
        results: dict[TopicPartition, int | StratalogError],
        respond: "DeleteResponse",
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self._manager = manager
        self._wanted = wanted
        self._results = results
        self._respond = respond

    def is_ready(self) -> bool:
        for key, offset in list(self._wanted.items()):
            partition = self._manager.find(key)
            if partition is None or not partition.is_leader:
                self._results[key] = NotLeaderError(f"{key} is not led here any more")
            elif partition.low_watermark >= offset:
                self._results[key] = partition.low_watermark
            elif (failure := partition.failure()) is not None:
                self._results[key] = failure
            else:
                continue
            del self._wanted[key]
        return not self._wanted

    def complete(self, *, is_expired: bool) -> None:
        for key in self._wanted:
            self._results[key] = RequestTimedOutError(
                f"records of {key} were deleted, and not on all disks in time"
            )
        self._respond(self._results)
