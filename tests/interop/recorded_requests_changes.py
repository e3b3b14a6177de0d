"""Scenarios of what changes under a client: topics that go and come back, configs that count."""

from collections.abc import Callable
from typing import Any

from recorded_requests import Talk, every
from recorded_requests_configs import DELETE, SET, TOPIC
from recorded_requests_data import PLAIN, batch, to
from recorded_requests_fetch import of
from recorded_requests_offsets import commit

from stratalog.protocol.api import ApiKey
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from stratalog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from stratalog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from stratalog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from stratalog.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

HIGHEST_BY_NAME = 12


def _delete(talk: Talk, topic: str) -> None:
    talk.have(DeleteTopicsRequest(topics=[DeleteTopicState(topic)], timeout_ms=30_000))
    talk.have_no_topic(topic)


def recreated(talk: Talk) -> None:
    """A topic is deleted, and another of its name is made: old ids, old sessions, old offsets."""
    talk.have_coordinator("recreated")
    old = talk.have_topic("recreated")
    talk.have_records("recreated", PLAIN)
    talk.have(commit("recreated", "recreated", topic_id=old))
    part = FetchPartition(partition=0, partition_max_bytes=1000)
    quick = {"min_bytes": 0, "max_wait_ms": 0}
    sessions = []
    for version in (HIGHEST_BY_NAME, 17):
        topics = [FetchTopic("recreated", old, [part])]
        opened = FetchRequest(session_id=0, session_epoch=0, topics=topics, **quick)
        sessions.append((version, talk.ask("a session", version, opened).session_id))
    _delete(talk, "recreated")
    talk.ask_every("of a topic that is gone", of("recreated", topic_id=old))
    talk.ask_every("to a topic that is gone", to("recreated", PLAIN, topic_id=old))
    for version, session_id in sessions:
        gone = FetchRequest(session_id=session_id, session_epoch=1, **quick)
        talk.ask("a session, its topic gone", version, gone)
    _committed(talk, "of a topic that is gone")
    new = talk.have_topic("recreated")
    talk.ask_every("by the old id", of("recreated", topic_id=old))
    talk.ask_every("by the new id", of("recreated", topic_id=new))
    talk.ask_every("by the old id", to("recreated", PLAIN, topic_id=old))
    for version, session_id in sessions:
        back = FetchRequest(session_id=session_id, session_epoch=2, **quick)
        talk.ask("a session, its topic replaced", version, back)
    both = MetadataRequest(
        [MetadataRequestTopic(old, None), MetadataRequestTopic(new, None)], False
    )
    talk.ask("by both ids", 12, both)
    latest = ListOffsetsTopic("recreated", [ListOffsetsPartition(0, 0, -1)])
    talk.ask("of the new one", 9, ListOffsetsRequest(-1, 0, [latest]))
    _committed(talk, "of the new one")


def _committed(talk: Talk, step: str) -> None:
    topics = [OffsetFetchRequestTopics("recreated", partition_indexes=[0])]
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("recreated", topics=topics)])

    def is_gone(answer: Any) -> bool:
        return bool(answer.groups[0].topics[0].partitions[0].committed_offset == -1)

    talk.ask_until(step, 9, asked, is_gone)


def deleted_while_waiting(talk: Talk) -> None:
    """A fetch that waits for more hears that there will be none."""
    for version in (4, 12, 13, 18):
        topic = f"deleted-waiting-{version}"
        topic_id = talk.have_topic(topic)
        connection = talk.connect()
        waiting = of(topic, topic_id=topic_id, min_bytes=1, max_wait_ms=60_000)
        pending = connection.send(version, waiting)
        assert connection.is_silent(0.05)
        _delete(talk, topic)
        talk.answer("its topic is deleted", pending)


def effects(talk: Talk) -> None:
    """Configs count from the moment on in which they are changed."""
    topic_id = talk.have_topic("effects")

    def change(name: str, operation: int, value: str | None) -> None:
        change = AlterableConfig(name, operation, value)
        resource = AlterConfigsResource(TOPIC, "effects", [change])
        answer = talk.have(IncrementalAlterConfigsRequest([resource]))
        assert answer.responses[0].error_code == 0, answer

    def see(step: str, records: bytes, is_done: Callable[[Any], bool]) -> None:
        def is_changed(answer: Any) -> bool:
            return is_done(answer.responses[0].partition_responses[0])

        # What was let through before it counted moves the offsets: record without them.
        request = to("effects", records, topic_id=topic_id)
        answer = talk.have_until(request, is_changed)
        part = answer.responses[0].partition_responses[0]
        outcome = {
            "error_code": part.error_code,
            "errors in records": len(part.record_errors),
            "has append time": part.log_append_time_ms > 0,
        }
        talk.record(step, None, -1, outcome)

    change("max.message.bytes", SET, "150")
    see("smaller messages", batch(b"x" * 200), lambda part: part.error_code == 10)
    change("max.message.bytes", DELETE, None)
    see("larger messages again", batch(b"x" * 200), lambda part: part.error_code == 0)
    change("cleanup.policy", SET, "compact")
    see("keys are needed", batch(b"x", b"y", key=None), lambda part: part.error_code == 87)
    change("cleanup.policy", SET, "delete")
    see("keys are not needed", batch(b"x", key=None), lambda part: part.error_code == 0)
    change("message.timestamp.type", SET, "LogAppendTime")
    see("append time", PLAIN, lambda part: part.log_append_time_ms > 0)
    change("message.timestamp.type", DELETE, None)
    see("create time", PLAIN, lambda part: part.log_append_time_ms < 0)


def versions_of_gone_topics(talk: Talk) -> None:
    """Metadata of a topic that was deleted, by name and by id."""
    topic_id = talk.have_topic("gone")
    _delete(talk, "gone")
    by_name = MetadataRequest([MetadataRequestTopic(name="gone")], False)
    talk.ask_versions("by name", every(ApiKey.METADATA, 4), by_name)
    by_id = MetadataRequest([MetadataRequestTopic(topic_id, None)], False)
    talk.ask_versions("by id", every(ApiKey.METADATA, 12), by_id)


SCENARIOS = {
    "recreated": recreated,
    "deleted-waiting": deleted_while_waiting,
    "effects": effects,
    "gone": versions_of_gone_topics,
}
