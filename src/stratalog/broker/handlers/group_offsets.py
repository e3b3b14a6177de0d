"""OffsetCommit, OffsetFetch and OffsetDelete: each partition of a request by itself, with its own
error. Topics are named or, in the newest versions, given by id; the coordinator knows names."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from stratalog.broker.requests import Handler, Request
from stratalog.broker.services import Services
from stratalog.coordinator.committing import CommitRequest, NewOffset
from stratalog.coordinator.log_records import NO_TOPIC_ID
from stratalog.coordinator.offsets import GroupOffsets
from stratalog.metadata.image import TopicMetadata
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from stratalog.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestTopic,
    )
    from stratalog.protocol.messages.offset_delete import OffsetDeleteRequest
    from stratalog.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopics,
        OffsetFetchResponseGroup,
        OffsetFetchResponsePartitions,
        OffsetFetchResponseTopics,
    )

# Versions in which something begins.
_TOPIC_IDS: Final = 10
_GROUP_NOT_FOUND: Final = 9
_BATCHED_FETCH: Final = 8
_GROUP_ERRORS: Final = 2

_NO_OFFSET: Final = -1


class GroupOffsetHandlers:
    def __init__(self, services: Services) -> None:
        self._services = services

    def table(self) -> dict[ApiKey, Handler]:
        return {
            ApiKey.OFFSET_COMMIT: self.offset_commit,
            ApiKey.OFFSET_FETCH: self.offset_fetch,
            ApiKey.OFFSET_DELETE: self.offset_delete,
        }

    # --- OffsetCommit -------------------------------------------------------------------------

    def offset_commit(self, request: Request) -> None:
        body: OffsetCommitRequest = request.body
        answer = _Codes(by_id=request.api_version >= _TOPIC_IDS)
        offsets: list[NewOffset] = []
        for topic in body.topics:
            self._take_topic(topic, answer, offsets)
        if not offsets:
            request.respond(_commit_response(answer))
            return
        commit = CommitRequest(
            group_id=body.group_id,
            offsets=offsets,
            generation_id=body.generation_id_or_member_epoch,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            retention_ms=body.retention_time_ms,
            knows_group_not_found=request.api_version >= _GROUP_NOT_FOUND,
        )
        respond = partial(_respond_commit, request, answer, offsets)
        self._services.groups.commit(commit, respond)

    def _take_topic(
        self, topic: "OffsetCommitRequestTopic", answer: "_Codes", offsets: list[NewOffset]
    ) -> None:
        """Add to ``offsets`` those of partitions that there are, and to ``answer`` the others."""
        image = self._services.store.image
        known: TopicMetadata | None
        if answer.by_id:
            known = image.topics_by_id.get(UUID(bytes=topic.topic_id))
        else:
            known = image.topics.get(topic.name)
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if answer.by_id:
                code = ErrorCode.UNKNOWN_TOPIC_ID
            answer.topic(topic.name, topic.topic_id)
            for each in topic.partitions:
                answer.add(topic.name, topic.topic_id, each.partition_index, code)
            return
        topic_id = known.topic_id.bytes
        for each in topic.partitions:
            if not 0 <= each.partition_index < len(known.partitions):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                answer.add(known.name, topic_id, each.partition_index, code)
                continue
            offsets.append(
                NewOffset(
                    known.name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                    topic_id,
                )
            )

    # --- OffsetFetch --------------------------------------------------------------------------

    def offset_fetch(self, request: Request) -> None:
        from stratalog.protocol.messages.offset_fetch import (
            OffsetFetchRequestGroup,
            OffsetFetchRequestTopics,
        )

        body: OffsetFetchRequest = request.body
        groups = body.groups
        if request.api_version < _BATCHED_FETCH:
            topics = None
            if body.topics is not None:
                topics = [
                    OffsetFetchRequestTopics(
                        name=each.name, partition_indexes=each.partition_indexes
                    )
                    for each in body.topics
                ]
            groups = [OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)]
        answers: list[OffsetFetchResponseGroup | None] = [None] * len(groups)
        left = len(groups)
        if not groups:
            _respond_fetch(request, [])

        def found(number: int, answer: "OffsetFetchResponseGroup") -> None:
            nonlocal left
            answers[number] = answer
            left -= 1
            if not left:
                _respond_fetch(request, answers)

        for number, group in enumerate(groups):
            self._fetch_group(request, group, body.require_stable, partial(found, number))

    def _fetch_group(
        self,
        request: Request,
        group: "OffsetFetchRequestGroup",
        require_stable: bool,
        found: "Callable[[OffsetFetchResponseGroup], None]",
    ) -> None:
        from stratalog.protocol.messages.offset_fetch import OffsetFetchResponseGroup

        version = request.api_version

        def fetched(offsets: GroupOffsets | ErrorCode) -> None:
            if isinstance(offsets, ErrorCode):
                found(_group_error(group, offsets, version))
                return
            if group.topics is None:
                topics = self._all_topics(offsets, version, require_stable)
            else:
                topics = self._some_topics(group.topics, offsets, version, require_stable)
            found(OffsetFetchResponseGroup(group_id=group.group_id, topics=topics))

        self._services.groups.fetch_offsets(group.group_id, fetched, require_stable=require_stable)

    def _all_topics(
        self, offsets: GroupOffsets, version: int, require_stable: bool
    ) -> "list[OffsetFetchResponseTopics]":
        from stratalog.protocol.messages.offset_fetch import OffsetFetchResponseTopics

        image = self._services.store.image
        answer = []
        for name, partitions in offsets.topics.items():
            topic_id = NO_TOPIC_ID
            if version >= _TOPIC_IDS:
                known = image.topics.get(name)
                if known is None:
                    continue  # it could not be said which topic that is
                topic_id = known.topic_id.bytes
            found = _partitions(offsets, name, partitions, require_stable)
            answer.append(OffsetFetchResponseTopics(name, topic_id, found))
        return answer

    def _some_topics(
        self,
        wanted: "Sequence[OffsetFetchRequestTopics]",
        offsets: GroupOffsets,
        version: int,
        require_stable: bool,
    ) -> "list[OffsetFetchResponseTopics]":
        from stratalog.protocol.messages.offset_fetch import (
            OffsetFetchResponsePartitions,
            OffsetFetchResponseTopics,
        )

        image = self._services.store.image
        answer, unknown = [], []
        for topic in wanted:
            name = topic.name
            if version >= _TOPIC_IDS:
                known = image.topics_by_id.get(UUID(bytes=topic.topic_id))
                if known is None:
                    code = ErrorCode.UNKNOWN_TOPIC_ID
                    refused = [
                        OffsetFetchResponsePartitions(each, _NO_OFFSET, error_code=code)
                        for each in topic.partition_indexes
                    ]
                    unknown.append(OffsetFetchResponseTopics("", topic.topic_id, refused))
                    continue
                name = known.name
            found = _partitions(
                offsets, name, topic.partition_indexes, require_stable, topic.topic_id
            )
            answer.append(OffsetFetchResponseTopics(name, topic.topic_id, found))
        return answer + unknown

    # --- OffsetDelete -------------------------------------------------------------------------

    def offset_delete(self, request: Request) -> None:
        body: OffsetDeleteRequest = request.body
        image = self._services.store.image
        answer = _Codes(by_id=False)
        wanted: list[tuple[str, int]] = []
        for topic in body.topics:
            known = image.topics.get(topic.name)
            count = 0 if known is None else len(known.partitions)
            for each in topic.partitions:
                if 0 <= each.partition_index < count:
                    wanted.append((topic.name, each.partition_index))
                else:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    answer.add(topic.name, NO_TOPIC_ID, each.partition_index, code)
        respond = partial(_respond_delete, request, answer)
        self._services.groups.delete_offsets(body.group_id, wanted, respond)


class _Codes:
    """Error codes by topic and partition, in the order in which they were added. Topics that are
    given by id may have no name, and the other way round."""

    def __init__(self, *, by_id: bool) -> None:
        self.by_id = by_id
        self.topics: dict[bytes | str, tuple[str, bytes, list[tuple[int, int]]]] = {}

    def topic(self, name: str, topic_id: bytes) -> list[tuple[int, int]]:
        key = topic_id if self.by_id else name
        return self.topics.setdefault(key, (name, topic_id, []))[2]

    def add(self, name: str, topic_id: bytes, partition: int, code: int) -> None:
        self.topic(name, topic_id).append((partition, code))


def _respond_commit(
    request: Request, answer: _Codes, offsets: Sequence[NewOffset], codes: Sequence[ErrorCode]
) -> None:
    for offset, code in zip(offsets, codes, strict=True):
        answer.add(offset.topic, offset.topic_id, offset.partition, code)
    request.respond(_commit_response(answer))


def _commit_response(answer: _Codes) -> Any:
    from stratalog.protocol.messages.offset_commit import (
        OffsetCommitResponse,
        OffsetCommitResponsePartition,
        OffsetCommitResponseTopic,
    )

    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name, topic_id, [OffsetCommitResponsePartition(*each) for each in partitions]
            )
            for name, topic_id, partitions in answer.topics.values()
        ]
    )


def _partitions(
    offsets: GroupOffsets,
    topic: str,
    partitions: Iterable[int],
    require_stable: bool,
    topic_id: bytes = NO_TOPIC_ID,
) -> "list[OffsetFetchResponsePartitions]":
    from stratalog.protocol.messages.offset_fetch import OffsetFetchResponsePartitions

    found = []
    for partition in partitions:
        committed = offsets.get(topic, partition)
        if require_stable and offsets.has_open_transaction(topic, partition):
            code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            found.append(OffsetFetchResponsePartitions(partition, _NO_OFFSET, error_code=code))
        elif committed is None or _is_other_topic(committed.topic_id, topic_id):
            found.append(OffsetFetchResponsePartitions(partition, _NO_OFFSET))
        else:
            offset, leader_epoch, metadata, *_ = committed
            found.append(OffsetFetchResponsePartitions(partition, offset, leader_epoch, metadata))
    return found


def _is_other_topic(committed: bytes, asked: bytes) -> bool:
    """Whether an offset is one of a topic of the same name that was there before."""
    return NO_TOPIC_ID not in (committed, asked) and committed != asked


def _group_error(
    group: "OffsetFetchRequestGroup", code: ErrorCode, version: int
) -> "OffsetFetchResponseGroup":
    from stratalog.protocol.messages.offset_fetch import (
        OffsetFetchResponseGroup,
        OffsetFetchResponsePartitions,
        OffsetFetchResponseTopics,
    )

    if version >= _GROUP_ERRORS:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=code)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                topic.name,
                partitions=[
                    OffsetFetchResponsePartitions(each, _NO_OFFSET, error_code=code)
                    for each in topic.partition_indexes
                ],
            )
            for topic in group.topics or ()
        ],
    )


def _respond_fetch(request: Request, answers: "Sequence[OffsetFetchResponseGroup | None]") -> None:
    from stratalog.protocol.messages.offset_fetch import (
        OffsetFetchResponse,
        OffsetFetchResponsePartition,
        OffsetFetchResponseTopic,
    )

    groups = [answer for answer in answers if answer is not None]
    if request.api_version >= _BATCHED_FETCH:
        request.respond(OffsetFetchResponse(groups=groups))
        return
    (group,) = groups
    request.respond(
        OffsetFetchResponse(
            error_code=group.error_code,
            topics=[
                OffsetFetchResponseTopic(
                    topic.name, [OffsetFetchResponsePartition(*each) for each in topic.partitions]
                )
                for topic in group.topics
            ],
        )
    )


def _respond_delete(request: Request, answer: _Codes, result: Any) -> None:
    from stratalog.protocol.messages.offset_delete import (
        OffsetDeleteResponse,
        OffsetDeleteResponsePartition,
        OffsetDeleteResponseTopic,
    )

    if isinstance(result, ErrorCode):
        request.respond(OffsetDeleteResponse(error_code=result))
        return
    for (topic, partition), code in result.items():
        answer.add(topic, NO_TOPIC_ID, partition, code)
    request.respond(
        OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name, [OffsetDeleteResponsePartition(*each) for each in partitions]
                )
                for name, _, partitions in answer.topics.values()
            ]
        )
    )
