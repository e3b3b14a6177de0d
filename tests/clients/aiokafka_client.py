"""aiokafka, in the words of the scenarios: its coroutines run on one loop in a thread of its own.

aiokafka's admin client knows fewer calls than its protocol module: where a request exists there
and no method sends it, the adapter sends it as the methods beside do.
"""

import asyncio
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache
from typing import Any

import aiokafka
from aiokafka import errors as aiokafka_errors
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.admin import DeleteGroupsRequest
from client_api import (
    DEADLINE_SECONDS,
    Client,
    ClusterDescription,
    ConfigValue,
    ConsumerOptions,
    Delivered,
    Feature,
    GroupDescription,
    MemberDescription,
    PartitionDescription,
    ProducerOptions,
    Record,
    RefusedError,
    TopicPartition,
    TopicSpec,
)
from keyword_clients import consumer_configs, plain_records, producer_configs

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class _LoopThread:
    """An event loop in a thread that ends with the tests."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="aiokafka")
        self._thread.start()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_loop_thread = cache(_LoopThread)


def stop_loop() -> None:
    """End the thread, if there is one."""
    if _loop_thread.cache_info().currsize:
        _loop_thread().stop()
        _loop_thread.cache_clear()


def _ask(question: Coroutine[Any, Any, Any]) -> Any:
    future = asyncio.run_coroutine_threadsafe(question, _loop_thread().loop)
    try:
        return future.result(DEADLINE_SECONDS)
    except aiokafka_errors.KafkaError as error:
        raise RefusedError(getattr(error, "errno", -1), error) from error


def _own(partition: TopicPartition) -> aiokafka.TopicPartition:
    return aiokafka.TopicPartition(partition.topic, partition.partition)


def _plain(partition: aiokafka.TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


class AiokafkaProducer:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(**configs)
            await producer.start()
            return producer

        self._producer = _ask(start())
        self._is_unanswered = configs["acks"] == 0

    def send(self, topic: str, records: Sequence[Record]) -> list[Delivered]:
        return _ask(self._send(topic, records))

    async def _send(self, topic: str, records: Sequence[Record]) -> list[Delivered]:
        futures = [
            await self._producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        if self._is_unanswered:
            return [Delivered(-1, -1)] * len(records)
        return [Delivered(answer.partition, answer.offset) for answer in answers]

    def close(self) -> None:
        _ask(self._producer.stop())


class AiokafkaConsumer:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        async def start() -> aiokafka.AIOKafkaConsumer:
            consumer = aiokafka.AIOKafkaConsumer(**configs)
            await consumer.start()
            return consumer

        self._consumer = _ask(start())

    def assign(self, positions: Mapping[TopicPartition, int | str]) -> None:
        async def assign() -> None:
            self._consumer.assign([_own(partition) for partition in positions])
            for partition, at in positions.items():
                if at == "beginning":
                    await self._consumer.seek_to_beginning(_own(partition))
                elif at == "end":
                    await self._consumer.seek_to_end(_own(partition))
                else:
                    self._consumer.seek(_own(partition), at)

        _ask(assign())

    def subscribe(self, topics: Sequence[str]) -> None:
        async def subscribe() -> None:
            self._consumer.subscribe(list(topics))

        _ask(subscribe())

    def poll(self, timeout_seconds: float) -> list[Record]:
        polled = _ask(self._consumer.getmany(timeout_ms=int(timeout_seconds * 1_000)))
        return plain_records(polled)

    def assignment(self) -> set[TopicPartition]:
        return {_plain(partition) for partition in self._consumer.assignment()}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(_own(partition), offset)

        _ask(seek())

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        named = None
        if offsets is not None:
            named = {_own(partition): (offset, "") for partition, offset in offsets.items()}
        _ask(self._consumer.commit(named))

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {each: _ask(self._consumer.committed(_own(each))) for each in partitions}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        asked = {_own(partition): timestamp for partition, timestamp in timestamps_ms.items()}
        answered = _ask(self._consumer.offsets_for_times(asked))
        return {
            _plain(partition): None if found is None else found.offset
            for partition, found in answered.items()
        }

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        own = _own(partition)
        first = _ask(self._consumer.beginning_offsets([own]))[own]
        return first, _ask(self._consumer.end_offsets([own]))[own]

    def close(self) -> None:
        # stop() can raise the cancellation of the library's own tasks when a connection is gone.
        with suppress(CancelledError):
            _ask(self._consumer.stop())


class AiokafkaAdmin:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        async def start() -> AIOKafkaAdminClient:
            admin = AIOKafkaAdminClient(**configs)
            await admin.start()
            return admin

        self._admin = _ask(start())

    def create_topics(
        self, topics: Mapping[str, TopicSpec], *, validate_only: bool = False
    ) -> dict[str, int]:
        asked = [
            NewTopic(
                name, spec.partitions, spec.replication_factor, topic_configs=dict(spec.configs)
            )
            for name, spec in topics.items()
        ]
        answered = _ask(self._admin.create_topics(asked, validate_only=validate_only))
        return {name: code for name, code, _ in answered.topic_errors}

    def delete_topics(self, names: Sequence[str]) -> dict[str, int]:
        return dict(_ask(self._admin.delete_topics(list(names))).topic_error_codes)

    def topics(self) -> set[str]:
        return set(_ask(self._admin.list_topics()))

    def describe_topic(self, name: str) -> dict[int, PartitionDescription]:
        (told,) = _ask(self._admin.describe_topics([name]))
        if told["error_code"]:
            raise RefusedError(told["error_code"], told)
        return {
            each["partition"]: PartitionDescription(
                each["leader"], tuple(each["replicas"]), tuple(each["isr"])
            )
            for each in told["partitions"]
        }

    def create_partitions(self, topic: str, count: int, *, validate_only: bool = False) -> int:
        asked = {topic: NewPartitions(count)}
        try:
            _ask(self._admin.create_partitions(asked, validate_only=validate_only))
        except RefusedError as error:
            return error.code
        return 0

    def describe_configs(self, kind: str, name: str) -> dict[str, ConfigValue]:
        (answered,) = _ask(
            self._admin.describe_configs([ConfigResource(kind, name)], include_synonyms=True)
        )
        ((code, message, _, _, entries),) = answered.resources
        if code:
            raise RefusedError(code, message)
        return {
            key: ConfigValue(value, source, is_read_only)
            for key, value, is_read_only, source, *_ in entries
        }

    def replace_configs(self, kind: str, name: str, configs: Mapping[str, str]) -> int:
        (answered, *_) = _ask(
            self._admin.alter_configs([ConfigResource(kind, name, dict(configs))])
        )
        return int(answered.resources[0][0])

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        asked = {_own(partition): RecordsToDelete(offset) for partition, offset in offsets.items()}
        answered = _ask(self._admin.delete_records(asked))
        return {_plain(partition): low for partition, low in answered.items()}

    def groups(self) -> set[str]:
        return {each[0] for each in _ask(self._admin.list_consumer_groups())}

    def describe_group(self, group: str) -> GroupDescription:
        (answered,) = _ask(self._admin.describe_consumer_groups([group]))
        ((code, _, state, _, assignor, members, *_),) = answered.groups
        if code:
            raise RefusedError(code, group)
        return GroupDescription(
            state.lower(), assignor, tuple(self._member(member) for member in members)
        )

    @staticmethod
    def _member(member: Sequence[Any]) -> MemberDescription:
        member_id, client_id, _, _, assignment = member
        decoded = ConsumerProtocolMemberAssignment.decode(assignment) if assignment else None
        return MemberDescription(
            member_id,
            client_id,
            None,
            frozenset(_plain(each) for each in (decoded.partitions() if decoded else ())),
        )

    def delete_group(self, group: str) -> int:
        async def delete() -> Any:
            node = await self._admin.find_coordinator(group)
            return await self._admin._send_request(DeleteGroupsRequest([group]), node)

        ((_, code),) = _ask(delete()).results
        return int(code)

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        told = _ask(self._admin.list_consumer_group_offsets(group))
        return {_plain(partition): found.offset for partition, found in told.items()}

    def describe_cluster(self) -> ClusterDescription:
        told = _ask(self._admin.describe_cluster())
        return ClusterDescription(
            told["cluster_id"],
            told["controller_id"],
            {each["node_id"]: (each["host"], each["port"]) for each in told["brokers"]},
        )

    def close(self) -> None:
        _ask(self._admin.close())


class AiokafkaClient(Client):
    name = "aiokafka"
    offers = frozenset(
        {Feature.VALIDATE_PARTITIONS, Feature.SENDS_ANYTHING, Feature.NEW_PARTITIONS}
    )
    assignors = tuple(ASSIGNORS)

    def __init__(self, bootstrap_server: str) -> None:
        self._common = {"bootstrap_servers": bootstrap_server, "retry_backoff_ms": 20}

    def make_producer(self, options: ProducerOptions) -> AiokafkaProducer:
        return AiokafkaProducer(self._common | producer_configs(options))

    def make_consumer(self, options: ConsumerOptions) -> AiokafkaConsumer:
        return AiokafkaConsumer(self._common | consumer_configs(options, ASSIGNORS))

    def admin(self) -> AiokafkaAdmin:
        return AiokafkaAdmin(self._common)
