"""librdkafka through confluent-kafka, in the words of the scenarios."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import confluent_kafka as ck
from client_api import (
    DEADLINE_SECONDS,
    HEARTBEAT_MS,
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
from confluent_kafka import admin as cka

PLACES = {"beginning": ck.OFFSET_BEGINNING, "end": ck.OFFSET_END}
KINDS = {"topic": cka.ResourceType.TOPIC, "broker": cka.ResourceType.BROKER}
OPERATIONS = {
    "set": cka.AlterConfigOpType.SET,
    "delete": cka.AlterConfigOpType.DELETE,
    "append": cka.AlterConfigOpType.APPEND,
    "subtract": cka.AlterConfigOpType.SUBTRACT,
}


def _refused(error: ck.KafkaError) -> RefusedError:
    return RefusedError(error.code(), error)


def _answer(future: "Future[Any]") -> Any:
    try:
        return future.result(DEADLINE_SECONDS)
    except ck.KafkaException as error:
        raise _refused(error.args[0]) from error


def _code(future: "Future[Any]") -> int:
    try:
        _answer(future)
    except RefusedError as error:
        return error.code
    return 0


def _own(partition: TopicPartition, offset: int = ck.OFFSET_INVALID) -> ck.TopicPartition:
    return ck.TopicPartition(partition.topic, partition.partition, offset)


def _plain(partition: ck.TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


class ConfluentProducer:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._producer = ck.Producer(dict(configs))

    def send(self, topic: str, records: Sequence[Record]) -> list[Delivered]:
        answers: dict[int, Delivered | RefusedError] = {}

        def answered(place: int) -> Callable[[ck.KafkaError | None, ck.Message], None]:
            def keep(error: ck.KafkaError | None, message: ck.Message) -> None:
                if error is not None:
                    answers[place] = _refused(error)
                else:
                    answers[place] = Delivered(message.partition(), message.offset())

            return keep

        for place, record in enumerate(records):
            try:
                self._producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    partition=-1 if record.partition is None else record.partition,
                    timestamp=record.timestamp_ms or 0,
                    on_delivery=answered(place),
                )
            except ck.KafkaException as error:
                raise _refused(error.args[0]) from error
        assert self._producer.flush(DEADLINE_SECONDS) == 0, "records without an answer"
        delivered = []
        for place in range(len(records)):
            answer = answers[place]
            if isinstance(answer, RefusedError):
                raise answer
            delivered.append(answer)
        return delivered

    def close(self) -> None:
        self._producer.flush(DEADLINE_SECONDS)


class ConfluentConsumer:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._consumer = ck.Consumer(dict(configs))

    def assign(self, positions: Mapping[TopicPartition, int | str]) -> None:
        self._consumer.assign(
            [
                _own(partition, PLACES[at] if isinstance(at, str) else at)
                for partition, at in positions.items()
            ]
        )

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(list(topics))

    def poll(self, timeout_seconds: float) -> list[Record]:
        # consume() waits for as many as it is told to return: take one, then what lies there.
        first = self._consumer.poll(timeout_seconds)
        if first is None:
            return []
        records = []
        for message in [first, *self._consumer.consume(500, 0)]:
            error = message.error()
            if error is not None:
                if error.code() < 0 or error.retriable():
                    continue  # a passing word of the library about itself
                raise _refused(error)
            records.append(
                Record(
                    message.value(),
                    message.key(),
                    tuple(message.headers() or ()),
                    message.timestamp()[1],
                    message.partition(),
                    message.offset(),
                )
            )
        return records

    def assignment(self) -> set[TopicPartition]:
        return {_plain(partition) for partition in self._consumer.assignment()}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._consumer.seek(_own(partition, offset))

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        try:
            if offsets is None:
                done = self._consumer.commit(asynchronous=False)
            else:
                named = [_own(partition, offset) for partition, offset in offsets.items()]
                done = self._consumer.commit(offsets=named, asynchronous=False)
        except ck.KafkaException as error:
            raise _refused(error.args[0]) from error
        for each in done or []:
            if each.error is not None:
                raise _refused(each.error)

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        asked = [_own(partition) for partition in partitions]
        try:
            answered = self._consumer.committed(asked, timeout=DEADLINE_SECONDS)
        except ck.KafkaException as error:
            raise _refused(error.args[0]) from error
        return {_plain(each): each.offset if each.offset >= 0 else None for each in answered}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        asked = [_own(partition, timestamp) for partition, timestamp in timestamps_ms.items()]
        answered = self._consumer.offsets_for_times(asked, timeout=DEADLINE_SECONDS)
        return {_plain(each): each.offset if each.offset >= 0 else None for each in answered}

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        bounds = self._consumer.get_watermark_offsets(_own(partition), timeout=DEADLINE_SECONDS)
        assert bounds is not None, "no answer"
        return bounds

    def close(self) -> None:
        self._consumer.close()


class ConfluentAdmin:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._admin = cka.AdminClient(dict(configs))

    def create_topics(
        self, topics: Mapping[str, TopicSpec], *, validate_only: bool = False
    ) -> dict[str, int]:
        futures = self._admin.create_topics(
            [
                cka.NewTopic(
                    name,
                    num_partitions=spec.partitions,
                    replication_factor=spec.replication_factor,
                    config=dict(spec.configs),
                )
                for name, spec in topics.items()
            ],
            validate_only=validate_only,
        )
        return {name: _code(future) for name, future in futures.items()}

    def delete_topics(self, names: Sequence[str]) -> dict[str, int]:
        futures = self._admin.delete_topics(list(names), operation_timeout=DEADLINE_SECONDS)
        return {name: _code(future) for name, future in futures.items()}

    def topics(self) -> set[str]:
        return set(self._admin.list_topics(timeout=DEADLINE_SECONDS).topics)

    def describe_topic(self, name: str) -> dict[int, PartitionDescription]:
        futures = self._admin.describe_topics(ck.TopicCollection([name]))
        return {
            each.id: PartitionDescription(
                each.leader.id,
                tuple(node.id for node in each.replicas),
                tuple(node.id for node in each.isr),
            )
            for each in _answer(futures[name]).partitions
        }

    def topic_id(self, name: str) -> str:
        futures = self._admin.describe_topics(ck.TopicCollection([name]))
        return str(_answer(futures[name]).topic_id)

    def create_partitions(self, topic: str, count: int, *, validate_only: bool = False) -> int:
        futures = self._admin.create_partitions(
            [cka.NewPartitions(topic, count)], validate_only=validate_only
        )
        return _code(futures[topic])

    def describe_configs(self, kind: str, name: str) -> dict[str, ConfigValue]:
        (future,) = self._admin.describe_configs([cka.ConfigResource(KINDS[kind], name)]).values()
        return {
            key: ConfigValue(entry.value, int(entry.source), entry.is_read_only)
            for key, entry in _answer(future).items()
        }

    def replace_configs(self, kind: str, name: str, configs: Mapping[str, str]) -> int:
        resource = cka.ConfigResource(KINDS[kind], name, set_config=dict(configs))
        with warnings.catch_warnings():
            # Deprecated by the library for its incremental sister; the request is served still.
            warnings.simplefilter("ignore", DeprecationWarning)
            (future,) = self._admin.alter_configs([resource]).values()
        return _code(future)

    def alter_configs(
        self,
        kind: str,
        name: str,
        changes: Mapping[str, tuple[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> int:
        entries = [
            cka.ConfigEntry(key, value, incremental_operation=OPERATIONS[operation])
            for key, (operation, value) in changes.items()
        ]
        resource = cka.ConfigResource(KINDS[kind], name, incremental_configs=entries)
        (future,) = self._admin.incremental_alter_configs(
            [resource], validate_only=validate_only
        ).values()
        return _code(future)

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        futures = self._admin.delete_records(
            [_own(partition, offset) for partition, offset in offsets.items()]
        )
        return {_plain(each): _answer(future).low_watermark for each, future in futures.items()}

    def groups(self) -> set[str]:
        listed = _answer(self._admin.list_consumer_groups())
        assert not listed.errors, listed.errors
        return {each.group_id for each in listed.valid}

    def describe_group(self, group: str) -> GroupDescription:
        told = _answer(self._admin.describe_consumer_groups([group])[group])
        return GroupDescription(
            told.state.name.lower().replace("_", ""),
            told.partition_assignor,
            tuple(
                MemberDescription(
                    member.member_id,
                    member.client_id,
                    member.group_instance_id,
                    frozenset(_plain(each) for each in member.assignment.topic_partitions),
                )
                for member in told.members
            ),
        )

    def delete_group(self, group: str) -> int:
        return _code(self._admin.delete_consumer_groups([group])[group])

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        asked = ck.ConsumerGroupTopicPartitions(group)
        told = _answer(self._admin.list_consumer_group_offsets([asked])[group])
        return {_plain(each): each.offset for each in told.topic_partitions}

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> int:
        named = [_own(partition, offset) for partition, offset in offsets.items()]
        asked = ck.ConsumerGroupTopicPartitions(group, named)
        try:
            told = _answer(self._admin.alter_consumer_group_offsets([asked])[group])
        except RefusedError as error:
            return error.code
        return next((each.error.code() for each in told.topic_partitions if each.error), 0)

    def max_timestamp_offset(self, partition: TopicPartition) -> int:
        asked = {_own(partition): cka.OffsetSpec.max_timestamp()}
        (future,) = self._admin.list_offsets(asked).values()
        return int(_answer(future).offset)

    def describe_cluster(self) -> ClusterDescription:
        told = _answer(self._admin.describe_cluster())
        return ClusterDescription(
            told.cluster_id,
            told.controller.id,
            {node.id: (node.host, node.port) for node in told.nodes},
        )

    def close(self) -> None:
        """The handle goes with its last reference."""


class ConfluentClient(Client):
    name = "confluent-kafka"
    offers = frozenset(
        {
            Feature.INCREMENTAL_CONFIGS,
            Feature.ALTER_GROUP_OFFSETS,
            Feature.MAX_TIMESTAMP,
            Feature.TOPIC_IDS,
            Feature.FENCING,
            Feature.NEW_PARTITIONS,
            Feature.VALIDATE_PARTITIONS,
        }
    )
    assignors = ("range", "roundrobin", "cooperative-sticky")

    def __init__(self, bootstrap_server: str) -> None:
        self._common = {
            "bootstrap.servers": bootstrap_server,
            # What it thinks of a lost connection would go to stderr.
            "log_level": 0,
            # Several losses in a row would make it wait for 10 s.
            "reconnect.backoff.max.ms": 200,
        }

    def make_producer(self, options: ProducerOptions) -> ConfluentProducer:
        return ConfluentProducer(
            {
                **self._common,
                "acks": options.acks,
                "compression.type": options.codec,
                "enable.idempotence": options.is_idempotent,
                "message.max.bytes": options.max_request_bytes,
                "linger.ms": 2,
                "delivery.timeout.ms": int(DEADLINE_SECONDS * 1_000),
            }
        )

    def make_consumer(self, options: ConsumerOptions) -> ConfluentConsumer:
        configs = {
            **self._common,
            # The library wants one even if it is not used.
            "group.id": options.group or "no-group",
            "client.id": options.client_id,
            "auto.offset.reset": options.reset,
            "enable.auto.commit": options.is_committing,
            "isolation.level": options.isolation,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "session.timeout.ms": options.session_timeout_ms,
            "max.partition.fetch.bytes": options.max_partition_bytes,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "topic.metadata.refresh.interval.ms": options.metadata_age_ms,
        }
        if options.assignor is not None:
            configs["partition.assignment.strategy"] = options.assignor
        if options.instance_id is not None:
            configs["group.instance.id"] = options.instance_id
        return ConfluentConsumer(configs)

    def admin(self) -> ConfluentAdmin:
        return ConfluentAdmin(self._common)
