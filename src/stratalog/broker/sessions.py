"""Fetch sessions: what a client fetches again and again, remembered, so that it need not repeat it.

A client that fetches in a session sends only what has changed since its last fetch, and is
answered only what has news. The cache is bounded: who finds no room fetches without a session, and
sends everything each time. Epochs count a session's fetches, so that one that went astray is
noticed by both sides.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_EPOCH_MAX = 0x7FFFFFFF
# A session that was used less than this long ago is not put out for another.
EVICTION_MS = 120_000
# Of all sessions together: a partition takes some three hundred bytes.
PARTITIONS_MAX = 250_000

Key = tuple[str, bytes, int]


@dataclass(slots=True)
class CachedPartition:
    """What a client wants of a partition, and what it was told of it last."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def has_news(self, data: PartitionData) -> bool:
        """Whether ``data`` says more than the client knows; remembers what it says."""
        news = bool(data.records) or data.error_code != 0 or data.diverging_epoch.epoch >= 0
        if data.high_watermark != self.high_watermark:
            self.high_watermark = data.high_watermark
            news = True
        if data.log_start_offset != self.log_start_offset:
            self.log_start_offset = data.log_start_offset
            news = True
        if data.error_code != 0:
            # The error is told again next time, unless it has gone.
            self.high_watermark = -1
        return news


@dataclass(slots=True)
class FetchSession:
    id: int
    uses_topic_ids: bool
    used_ms: int
    epoch: int = 1
    # In the order in which they are answered: who was given records goes to the end.
    partitions: dict[Key, CachedPartition] = field(default_factory=dict)
    # In partitions with a name of ordinary length: what a client may name is longer.
    weight: int = 0

    def update(self, request: FetchRequest) -> None:
        for topic in request.topics:
            for wanted in topic.partitions:
                key = (topic.topic, topic.topic_id, wanted.partition)
                known = self.partitions.get(key)
                if known is None:
                    self.partitions[key] = CachedPartition(wanted)
                    self.weight += _weight(topic.topic)
                else:
                    known.wanted = wanted
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                key = (forgotten.topic, forgotten.topic_id, partition)
                if self.partitions.pop(key, None) is not None:
                    self.weight -= _weight(forgotten.topic)


def _weight(topic: str) -> int:
    return 1 + len(topic) // 64


class FetchContext(NamedTuple):
    """One fetch: what it is to read, and how it is to be answered."""

    error: ErrorCode = ErrorCode.NONE
    session: FetchSession | None = None
    is_incremental: bool = False
    request: FetchRequest | None = None

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.id

    def partitions(self) -> Iterator[tuple[Key, FetchPartition]]:
        if self.session is not None:
            for key, cached in self.session.partitions.items():
                yield key, cached.wanted
        elif self.request is not None:
            for topic in self.request.topics:
                for wanted in topic.partitions:
                    yield (topic.topic, topic.topic_id, wanted.partition), wanted

    def news(
        self, answers: Sequence[tuple[Key, PartitionData]]
    ) -> Sequence[tuple[Key, PartitionData]]:
        """Those of the answers that the client is to be sent."""
        session = self.session
        if session is None:
            return answers
        told = []
        for key, data in answers:
            cached = session.partitions.get(key)
            if cached is None:
                continue
            has_news = cached.has_news(data)
            if has_news or not self.is_incremental:
                told.append((key, data))
            if data.records and self.is_incremental:
                session.partitions[key] = session.partitions.pop(key)
        return told


class FetchSessions:
    """All sessions of a broker. Confined to the loop."""

    def __init__(self, slots: int, partitions_max: int = PARTITIONS_MAX) -> None:
        self.slots = slots
        self.partitions_max = partitions_max
        self._partitions = 0
        # The least recently used first.
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest, *, uses_topic_ids: bool, now_ms: int) -> FetchContext:
        if request.session_epoch == FINAL_EPOCH:
            self._end(request.session_id)
            return FetchContext(request=request)
        if request.session_epoch == INITIAL_EPOCH:
            self._end(request.session_id)
            return self._begin_full(request, uses_topic_ids, now_ms)
        return self._go_on(request, uses_topic_ids, now_ms)

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= session.weight

    def _begin_full(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> FetchContext:
        wanted = sum(_weight(topic.topic) * len(topic.partitions) for topic in request.topics)
        if not self._make_room(wanted, now_ms):
            return FetchContext(request=request)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = secrets.randbelow(0x7FFFFFFF)
        session = FetchSession(session_id, uses_topic_ids, now_ms)
        session.update(request)
        self._keep(session)
        return FetchContext(session=session, request=request)

    def _keep(self, session: FetchSession) -> None:
        self._sessions[session.id] = session
        self._partitions += session.weight

    def _go_on(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> FetchContext:
        session = self._sessions.get(request.session_id)
        if session is None:
            return FetchContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.epoch != request.session_epoch:
            return FetchContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self._end(session.id)
        session.update(request)
        session.epoch = session.epoch + 1 if session.epoch < _EPOCH_MAX else 1
        session.used_ms = now_ms
        if not session.partitions:
            return FetchContext(request=request)
        if self._partitions + session.weight > self.partitions_max:
            # The client begins anew, and is then told that there is no room.
            return FetchContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._keep(session)
        return FetchContext(session=session, is_incremental=True)

    def _make_room(self, wanted: int, now_ms: int) -> bool:
        """Whether a session of ``wanted`` partitions fits, once others that are not used have
        been put out for it."""
        while len(self._sessions) >= self.slots or self._partitions + wanted > self.partitions_max:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now_ms - oldest.used_ms <= EVICTION_MS:
                return False
            self._end(oldest.id)
        return True
