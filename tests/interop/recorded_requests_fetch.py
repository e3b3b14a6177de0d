"""Scenarios of Fetch: what is given, how much of it, when, and in which session."""

from typing import Any

from recorded_requests import Talk, every
from recorded_requests_data import NO_ID, PLAIN, UNKNOWN_ID, batch, to

from stratalog.protocol.api import SUPPORTED, ApiKey
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from stratalog.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)

BY_ID = 13
SESSIONS = 7


def of(
    topic: str,
    offset: int = 0,
    *,
    topic_id: bytes = NO_ID,
    partition: int = 0,
    epoch: int = -1,
    last_epoch: int = -1,
    partition_max_bytes: int = 1 << 20,
    **asked: Any,
) -> FetchRequest:
    """A request for the records of one partition."""
    part = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=partition_max_bytes,
    )
    asked = {"min_bytes": 1, "max_wait_ms": 0, **asked}
    return FetchRequest(topics=[FetchTopic(topic, topic_id, [part])], **asked)


def fetch(talk: Talk) -> None:
    """Every version, and what is unknown or out of range."""
    topic_id = talk.have_topic("fetch", 2)
    talk.have_records("fetch", PLAIN, batch(b"four", b"five"), PLAIN, PLAIN)

    def ask(step: str, offset: int = 0, topic: str = "fetch", **asked: Any) -> None:
        asked.setdefault("topic_id", topic_id)
        talk.ask_every(step, of(topic, offset, **asked))

    ask("from the start")
    ask("inside a batch", 4)
    ask("at the end", 11)
    ask("beyond the end", 12)
    ask("below zero", -1)
    ask("committed only", isolation_level=1)
    ask("isolation of 5", isolation_level=5)
    ask("one byte of a partition", partition_max_bytes=1)
    ask("no bytes of a partition", partition_max_bytes=0)
    ask("one byte in all", max_bytes=1)
    ask("negative sizes", partition_max_bytes=-1, max_bytes=-1)
    ask("unknown topic", topic="fetch-unknown", topic_id=UNKNOWN_ID)
    ask("unknown partition", partition=9)
    ask("negative partition", partition=-1)
    ask("epoch of the leader", epoch=0)
    ask("epoch to come", epoch=4)
    ask("last epoch known", 3, last_epoch=0)
    ask("last epoch to come", 3, last_epoch=7)
    talk.ask_ends("no topic id", of("fetch"), since=BY_ID)
    talk.ask_ends("of another cluster", of("fetch", topic_id=topic_id, cluster_id="x"), since=12)
    talk.ask_ends("from another rack", of("fetch", topic_id=topic_id, rack_id="r"), since=11)
    talk.ask_ends("nothing", FetchRequest(min_bytes=1, max_wait_ms=0))
    _several(talk, topic_id)
    for replica_id in (talk.node_id, 99, -2):
        state = ReplicaState(replica_id, -1)
        who = {talk.node_id: "the leader itself", 99: "a stranger", -2: "a debugger"}[replica_id]
        asked = of("fetch", topic_id=topic_id, replica_id=replica_id, replica_state=state)
        talk.ask_ends(f"as {who}", asked)
    gone = DeleteRecordsTopic("fetch", [DeleteRecordsPartition(0, 4)])
    talk.have(DeleteRecordsRequest([gone], 10_000))
    ask("before the start of the log", 3)
    ask("at the start of the log", 4)


def _several(talk: Talk, topic_id: bytes) -> None:
    """Several partitions share what may be sent."""
    talk.have_records("fetch", PLAIN, PLAIN, partition=1)

    def parts(max_bytes: int) -> list[FetchPartition]:
        return [
            FetchPartition(partition=index, partition_max_bytes=max_bytes, fetch_offset=0)
            for index in (1, 0)
        ]

    for name, each, total in (("all", 1 << 20, 1 << 20), ("little", 1, 1), ("some", 100, 150)):
        request = FetchRequest(
            min_bytes=1,
            max_wait_ms=0,
            max_bytes=total,
            topics=[FetchTopic("fetch", topic_id, parts(each))],
        )
        talk.ask_ends(f"two partitions, {name}", request)
        committed = request._replace(isolation_level=1)
        talk.ask_ends(f"two partitions, {name}, committed only", committed)
    mixed = [FetchPartition(partition=index, partition_max_bytes=1000) for index in (0, 5, 1)]
    request = FetchRequest(
        min_bytes=1,
        max_wait_ms=0,
        topics=[FetchTopic("fetch", topic_id, mixed), FetchTopic("fetch-no", UNKNOWN_ID, mixed)],
    )
    talk.ask_ends("some fail", request)
    twice = [FetchPartition(partition=0, partition_max_bytes=1000) for _ in range(2)]
    request = FetchRequest(
        min_bytes=1, max_wait_ms=0, topics=[FetchTopic("fetch", topic_id, twice)]
    )
    talk.ask_ends("one partition twice", request)


def fetch_waits(talk: Talk) -> None:
    """A fetch waits for bytes, until its time is up; one that failed does not wait."""
    topic_id = talk.have_topic("fetch-waits")
    for version in every(ApiKey.FETCH):
        connection = talk.connect()
        end = FETCH_STEP * (version - 4)
        waiting = of("fetch-waits", end, topic_id=topic_id, min_bytes=1, max_wait_ms=60_000)
        pending = connection.send(version, waiting)
        assert connection.is_silent(0.02)
        talk.have_records("fetch-waits", PLAIN)
        talk.answer("woken by an append", pending)
    long = {"topic_id": topic_id, "min_bytes": 1 << 20, "max_wait_ms": 60_000}
    talk.ask_ends("out of range does not wait", of("fetch-waits", 10_000, **long))
    unknown = of("fetch-waits", partition=8, **long)
    talk.ask_ends("an unknown partition does not wait", unknown)
    short = {**long, "max_wait_ms": 30}
    talk.ask_ends("time is up, with less than asked for", of("fetch-waits", **short))
    talk.ask_ends("time is up, with nothing", of("fetch-waits", FETCH_STEP * 15, **short))
    endless = {**long, "min_bytes": 0}
    talk.ask_ends("no bytes asked for", of("fetch-waits", FETCH_STEP * 15, **endless))
    negative = {**long, "max_wait_ms": -1}
    talk.ask_ends("a negative wait", of("fetch-waits", FETCH_STEP * 15, **negative))


FETCH_STEP = 3


def fetch_sessions(talk: Talk) -> None:
    """Sessions: full, then only what changed; wrong ids and epochs."""
    topic_id = talk.have_topic("fetch-sessions", 2)
    talk.have_records("fetch-sessions", PLAIN)
    for version in (SESSIONS, 11, 12, BY_ID, SUPPORTED[ApiKey.FETCH].highest):
        talk.count_anew()
        _session(talk, version, topic_id)


def _session(talk: Talk, version: int, topic_id: bytes) -> None:
    both = [
        FetchPartition(partition=index, partition_max_bytes=100_000, fetch_offset=0)
        for index in (0, 1)
    ]
    topics = [FetchTopic("fetch-sessions", topic_id, both)]

    def ask(step: str, session_id: int, epoch: int, **asked: Any) -> Any:
        asked = {"min_bytes": 0, "max_wait_ms": 0, **asked}
        request = FetchRequest(session_id=session_id, session_epoch=epoch, **asked)
        return talk.ask(step, version, request)

    ask("no session", 0, -1, topics=topics)
    session_id = ask("a new session", 0, 0, topics=topics).session_id
    if session_id == 0:
        return
    ask("nothing new, but the records", session_id, 1)
    end = FetchPartition(partition=0, partition_max_bytes=100_000, fetch_offset=3)
    at_end = [FetchTopic("fetch-sessions", topic_id, [end])]
    ask("moved to the end", session_id, 2, topics=at_end)
    ask("nothing at all", session_id, 3)
    talk.have(to("fetch-sessions", PLAIN, partition=1), version=12)
    ask("one has grown", session_id, 4)
    forgotten = [ForgottenTopic("fetch-sessions", topic_id, [1])]
    ask("one is forgotten", session_id, 5, forgotten_topics_data=forgotten)
    unknown = FetchTopic("fetch-sessions-unknown", UNKNOWN_ID, both[:1])
    ask("an unknown topic comes in", session_id, 6, topics=[unknown])
    ask("an unknown topic stays", session_id, 7)
    ask("a wrong epoch", session_id, 3)
    ask("an unknown session", 1234567, 1)
    ask("a new session in place of one", session_id, 0, topics=topics)
    ask("the old session", session_id, 9)
    ask("a session closed", session_id, -1)
    again = ask("another session", 0, 0, topics=topics[:1]).session_id
    ask("the last of it", again, -1, topics=topics)
    ask("closed", again, 1)


SCENARIOS = {"fetch": fetch, "fetch-waits": fetch_waits, "fetch-sessions": fetch_sessions}
