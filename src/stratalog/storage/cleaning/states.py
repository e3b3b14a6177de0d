"""Who may be cleaned now: the state of every partition, and the partitions that went wrong.

    none         -> in progress   a round begins
    none         -> paused        somebody needs the log's segments to stay as they are
    in progress  -> none          the round is done, and may be checkpointed
    in progress  -> aborted       the round must stop; its worker has not noticed yet
    aborted      -> paused        the worker has let go; the round is not checkpointed
    paused       -> none          everybody who paused has resumed

Pauses are counted. Nobody waits: a pause takes effect at once, because what an aborted round has
prepared is never swapped in. Its pauses may even be over before its worker notices; the partition
stays aborted, and no round begins on it, until the worker has let go.
"""

import threading
from collections.abc import Container
from dataclasses import dataclass, replace
from enum import Enum

from stratalog.storage.layout import TopicPartition

RETRY_MS_MAX = 3_600_000
_DOUBLINGS_MAX = 62


class Phase(Enum):
    NONE = "none"
    IN_PROGRESS = "in progress"
    ABORTED = "aborted"
    PAUSED = "paused"


class Event(Enum):
    BEGIN = "begin"
    PAUSE = "pause"
    RESUME = "resume"
    DONE = "done"


# What is not here is a mistake of the caller. A partition whose last pause is over leaves the
# paused phase; that is the only transition which depends on the count.
_NEXT = {
    (Phase.NONE, Event.BEGIN): Phase.IN_PROGRESS,
    (Phase.NONE, Event.PAUSE): Phase.PAUSED,
    (Phase.IN_PROGRESS, Event.PAUSE): Phase.ABORTED,
    (Phase.IN_PROGRESS, Event.DONE): Phase.NONE,
    (Phase.ABORTED, Event.PAUSE): Phase.ABORTED,
    (Phase.ABORTED, Event.RESUME): Phase.ABORTED,
    (Phase.ABORTED, Event.DONE): Phase.PAUSED,
    (Phase.PAUSED, Event.PAUSE): Phase.PAUSED,
    (Phase.PAUSED, Event.RESUME): Phase.PAUSED,
}
_PAUSES = {Event.BEGIN: 0, Event.PAUSE: 1, Event.RESUME: -1, Event.DONE: 0}


@dataclass(frozen=True, slots=True)
class CleaningState:
    phase: Phase
    pauses: int = 0

    def __str__(self) -> str:
        return f"{self.phase.value} ({self.pauses})" if self.pauses else self.phase.value


_NONE = CleaningState(Phase.NONE)


class CleaningStates:
    """The state of every partition of a log cleaner. Any thread may call."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._states: dict[TopicPartition, CleaningState] = {}

    def begin(self, topic_partition: TopicPartition) -> None:
        """A round begins; the partition must be free."""
        self._apply(topic_partition, Event.BEGIN)

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """No round begins, and one that runs is aborted, until ``resume``."""
        self._apply(topic_partition, Event.PAUSE)

    def resume(self, topic_partition: TopicPartition) -> None:
        """One pause is over."""
        self._apply(topic_partition, Event.RESUME)

    def done(self, topic_partition: TopicPartition) -> bool:
        """The round's worker has let go; whether the round may be checkpointed."""
        return self._apply(topic_partition, Event.DONE).phase is Phase.IN_PROGRESS

    def is_aborted(self, topic_partition: TopicPartition) -> bool:
        """Whether a round must stop: its worker asks before every read."""
        return self.state(topic_partition).phase is Phase.ABORTED

    def is_free(self, topic_partition: TopicPartition) -> bool:
        """Whether a round may begin."""
        return self.state(topic_partition).phase is Phase.NONE

    def state(self, topic_partition: TopicPartition) -> CleaningState:
        with self._guard:
            return self._states.get(topic_partition, _NONE)

    def all(self) -> dict[TopicPartition, CleaningState]:
        """Every partition that is not simply free, to be shown."""
        with self._guard:
            return dict(self._states)

    def _apply(self, topic_partition: TopicPartition, event: Event) -> CleaningState:
        """Returns the state that was left."""
        with self._guard:
            before = self._states.get(topic_partition, _NONE)
            phase = _NEXT.get((before.phase, event))
            pauses = before.pauses + _PAUSES[event]
            assert phase is not None, f"{topic_partition} is {before}: cannot {event.value}"
            assert pauses >= 0, f"{topic_partition} is {before}: nobody has paused it"
            if phase is Phase.NONE or (phase is Phase.PAUSED and pauses == 0):
                self._states.pop(topic_partition, None)
            else:
                self._states[topic_partition] = CleaningState(phase, pauses)
            return before


# --- what went wrong --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Uncleanable:
    """A partition whose cleaning failed: why, since when, and when it is tried again."""

    reason: str
    since_ms: int
    attempts: int
    retry_at_ms: int


class UncleanablePartitions:
    """The partitions that could not be cleaned. Each is tried again, after a wait that doubles
    with every failure up to an hour. Confined to the owner's thread."""

    def __init__(self, backoff_ms: int) -> None:
        self.backoff_ms = backoff_ms
        self._marked: dict[TopicPartition, Uncleanable] = {}

    def mark(self, topic_partition: TopicPartition, reason: str, now_ms: int) -> Uncleanable:
        """Cleaning failed, for the first time or again."""
        before = self._marked.get(topic_partition)
        failures = before.attempts if before else 0
        # Without a backoff a partition that fails at once would be tried without end.
        wait_ms = max(self.backoff_ms, 1) << min(failures, _DOUBLINGS_MAX)
        marked = Uncleanable(
            reason,
            before.since_ms if before else now_ms,
            failures + 1,
            now_ms + min(wait_ms, RETRY_MS_MAX),
        )
        self._marked[topic_partition] = marked
        return marked

    def due(self, topic_partition: TopicPartition, now_ms: int) -> bool:
        """Whether it may be tried: it never failed, or its wait is over."""
        marked = self._marked.get(topic_partition)
        return marked is None or now_ms >= marked.retry_at_ms

    def hasten(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Something has changed (a config, a repair): try again at once. The mark stays until a
        round succeeds."""
        marked = self._marked.get(topic_partition)
        if marked is not None:
            self._marked[topic_partition] = replace(marked, retry_at_ms=now_ms)

    def clear(self, topic_partition: TopicPartition) -> Uncleanable | None:
        """A round succeeded, or the partition is gone; returns the mark it had."""
        return self._marked.pop(topic_partition, None)

    def forget(self, hosted: Container[TopicPartition]) -> None:
        """Drop the marks of partitions that are not ``hosted`` here any more."""
        for topic_partition in [each for each in self._marked if each not in hosted]:
            del self._marked[topic_partition]

    def get(self, topic_partition: TopicPartition) -> Uncleanable | None:
        return self._marked.get(topic_partition)

    def all(self) -> dict[TopicPartition, Uncleanable]:
        return dict(self._marked)
