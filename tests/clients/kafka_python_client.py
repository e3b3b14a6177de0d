"""kafka-python, in the words of the scenarios."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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

with warnings.catch_warnings():
    # The library reads its schemas in a way that Python calls outdated, on every import.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka import errors as kafka_errors
    from kafka.admin import ConfigResource, KafkaAdminClient, MemberToRemove, OffsetSpec
    from kafka.admin._configs import ConfigSourceType
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
DEADLINE_MS = int(DEADLINE_SECONDS * 1_000)


def _refused(error: kafka_errors.KafkaError) -> RefusedError:
    return RefusedError(getattr(error, "errno", -1), error)


def _ask(question: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return question(*args, **options)
    except kafka_errors.KafkaError as error:
        raise _refused(error) from error


def _own(partition: TopicPartition) -> kafka.TopicPartition:
    return kafka.TopicPartition(partition.topic, partition.partition)


def _plain(partition: kafka.TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def _code_of_text(said: str) -> int:
    """The code in what the library printed of an error: ``OK`` or the name of its class."""
    if said == "OK":
        return 0
    name = said.partition(":")[0].partition("]")[2].strip() or said.partition(":")[0]
    return int(getattr(kafka_errors, name).errno)


class KafkaPythonProducer:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._producer = kafka.KafkaProducer(**configs)

    def send(self, topic: str, records: Sequence[Record]) -> list[Delivered]:
        futures = [
            _ask(
                self._producer.send,
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        answers = [_ask(future.get, DEADLINE_SECONDS) for future in futures]
        return [Delivered(answer.partition, answer.offset) for answer in answers]

    def close(self) -> None:
        self._producer.close(DEADLINE_SECONDS)


class KafkaPythonConsumer:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._consumer = kafka.KafkaConsumer(**configs)

    def assign(self, positions: Mapping[TopicPartition, int | str]) -> None:
        self._consumer.assign([_own(partition) for partition in positions])
        for partition, at in positions.items():
            if at == "beginning":
                self._consumer.seek_to_beginning(_own(partition))
            elif at == "end":
                self._consumer.seek_to_end(_own(partition))
            else:
                self._consumer.seek(_own(partition), at)

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(list(topics))
        # A leader that learns of partitions after its assignment joins again, and the library drops
        # that join when a poll ends before it does: no heartbeat is sent any more. So it is to know
        # the topics before it joins.
        self._consumer.topics()

    def poll(self, timeout_seconds: float) -> list[Record]:
        polled = _ask(self._consumer.poll, timeout_ms=int(timeout_seconds * 1_000))
        return plain_records(polled)

    def assignment(self) -> set[TopicPartition]:
        return {_plain(partition) for partition in self._consumer.assignment()}

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._consumer.seek(_own(partition), offset)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        named = None
        if offsets is not None:
            named = {
                _own(partition): kafka.OffsetAndMetadata(offset, "", -1)
                for partition, offset in offsets.items()
            }
        _ask(self._consumer.commit, named, timeout_ms=DEADLINE_MS)

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        return {each: _ask(self._consumer.committed, _own(each)) for each in partitions}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        asked = {_own(partition): timestamp for partition, timestamp in timestamps_ms.items()}
        answered = _ask(self._consumer.offsets_for_times, asked)
        return {
            _plain(partition): None if found is None else found.offset
            for partition, found in answered.items()
        }

    def bounds(self, partition: TopicPartition) -> tuple[int, int]:
        own = _own(partition)
        first = _ask(self._consumer.beginning_offsets, [own])[own]
        return first, _ask(self._consumer.end_offsets, [own])[own]

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonAdmin:
    def __init__(self, configs: Mapping[str, Any]) -> None:
        self._admin = KafkaAdminClient(**configs)

    def create_topics(
        self, topics: Mapping[str, TopicSpec], *, validate_only: bool = False
    ) -> dict[str, int]:
        asked = {
            name: {
                "num_partitions": spec.partitions,
                "replication_factor": spec.replication_factor,
                "configs": dict(spec.configs),
            }
            for name, spec in topics.items()
        }
        answered = self._admin.create_topics(asked, validate_only=validate_only, raise_errors=False)
        return {each["name"]: each["error_code"] for each in answered["topics"]}

    def delete_topics(self, names: Sequence[str]) -> dict[str, int]:
        answered = self._admin.delete_topics(list(names), raise_errors=False)
        return {each["name"]: each["error_code"] for each in answered["topics"]}

    def topics(self) -> set[str]:
        return set(_ask(self._admin.list_topics))

    def _describe(self, name: str) -> dict[str, Any]:
        (told,) = _ask(self._admin.describe_topics, [name])
        if told["error_code"]:
            raise RefusedError(told["error_code"], told)
        return dict(told)

    def describe_topic(self, name: str) -> dict[int, PartitionDescription]:
        return {
            each["partition_index"]: PartitionDescription(
                each["leader_id"], tuple(each["replica_nodes"]), tuple(each["isr_nodes"])
            )
            for each in self._describe(name)["partitions"]
        }

    def topic_id(self, name: str) -> str:
        return str(self._describe(name)["topic_id"])

    def create_partitions(self, topic: str, count: int, *, validate_only: bool = False) -> int:
        answered = self._admin.create_partitions(
            {topic: count}, validate_only=validate_only, raise_errors=False
        )
        return int(answered.results[0].error_code)

    def describe_configs(self, kind: str, name: str) -> dict[str, ConfigValue]:
        told = _ask(
            self._admin.describe_configs,
            [ConfigResource(kind, name)],
            include_synonyms=True,
            config_filter="all",
        )
        return {
            key: ConfigValue(
                entry["value"], ConfigSourceType[entry["config_source"]].value, entry["read_only"]
            )
            for key, entry in told[kind][name].items()
        }

    def replace_configs(self, kind: str, name: str, configs: Mapping[str, str]) -> int:
        resource = ConfigResource(kind, name, dict(configs))
        request = self._admin._alter_configs_request([resource])  # the public call adds the rest
        response = self._admin._manager.run(self._admin._manager.send, request)
        return int(response.responses[0].error_code)

    def alter_configs(
        self,
        kind: str,
        name: str,
        changes: Mapping[str, tuple[str, str | None]],
        *,
        validate_only: bool = False,
    ) -> int:
        answered = _ask(
            self._admin.alter_configs,
            [ConfigResource(kind, name, dict(changes))],
            validate_only=validate_only,
            raise_on_unknown=False,
        )
        return _code_of_text(answered[kind][name])

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        asked = {_own(partition): offset for partition, offset in offsets.items()}
        answered = _ask(self._admin.delete_records, asked)
        return {_plain(each): told["low_watermark"] for each, told in answered.items()}

    def groups(self) -> set[str]:
        return {each["group_id"] for each in _ask(self._admin.list_groups)}

    def describe_group(self, group: str) -> GroupDescription:
        told = _ask(self._admin.describe_groups, [group])[group]
        return GroupDescription(
            told["group_state"].lower(),
            told["protocol_data"],
            tuple(
                MemberDescription(
                    member["member_id"],
                    member["client_id"],
                    member["group_instance_id"],
                    frozenset(
                        TopicPartition(each["topic"], partition)
                        for each in (member["member_assignment"] or {}).get(
                            "assigned_partitions", ()
                        )
                        for partition in each["partitions"]
                    ),
                )
                for member in told["members"]
            ),
        )

    def delete_group(self, group: str) -> int:
        return _code_of_text(_ask(self._admin.delete_groups, [group])[group])

    def group_offsets(self, group: str) -> dict[TopicPartition, int]:
        told = _ask(self._admin.list_group_offsets, group)[group]
        return {_plain(partition): found.offset for partition, found in told.items()}

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> int:
        named = {
            _own(partition): kafka.OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        answered = _ask(self._admin.alter_group_offsets, group, named)
        return next((error.errno for error in answered.values() if error.errno), 0)

    def delete_group_offsets(self, group: str, partitions: Sequence[TopicPartition]) -> int:
        asked = [_own(partition) for partition in partitions]
        try:
            answered = _ask(self._admin.delete_group_offsets, group, asked)
        except RefusedError as error:
            return error.code
        return next((error.errno for error in answered.values() if error.errno), 0)

    def remove_static_member(self, group: str, instance_id: str) -> int:
        gone = [MemberToRemove(group_instance_id=instance_id)]
        answered = _ask(self._admin.remove_group_members, group, gone)
        return next((error.errno for error in answered.values() if error.errno), 0)

    def max_timestamp_offset(self, partition: TopicPartition) -> int:
        asked = {_own(partition): OffsetSpec.MAX_TIMESTAMP}
        return int(_ask(self._admin.list_partition_offsets, asked)[_own(partition)].offset)

    def log_dirs(self, topic: str) -> dict[int, int]:
        """The size of each partition of a topic, from all log directories."""
        sizes: dict[int, int] = {}
        for broker in _ask(self._admin.describe_log_dirs, [topic]):
            for log_dir in broker["log_dirs"]:
                assert log_dir["error_code"] == 0
                for each in log_dir["topics"]:
                    assert each["name"] == topic
                    for partition in each["partitions"]:
                        sizes[partition["partition_index"]] = partition["partition_size"]
        return sizes

    def describe_cluster(self) -> ClusterDescription:
        told = _ask(self._admin.describe_cluster)
        return ClusterDescription(
            told["cluster_id"],
            told["controller_id"],
            {each["broker_id"]: (each["host"], each["port"]) for each in told["brokers"]},
        )

    def close(self) -> None:
        self._admin.close()


class KafkaPythonClient(Client):
    name = "kafka-python"
    offers = frozenset(Feature) - {Feature.NEW_PARTITIONS}  # subscribe() above says why
    assignors = tuple(ASSIGNORS)

    def __init__(self, bootstrap_server: str) -> None:
        self._common = {
            "bootstrap_servers": bootstrap_server,
            "retry_backoff_ms": 20,
            "reconnect_backoff_max_ms": 200,
        }

    def make_producer(self, options: ProducerOptions) -> KafkaPythonProducer:
        configs = self._common | producer_configs(options)
        if options.acks == -1:
            configs["acks"] = "all"
        return KafkaPythonProducer(configs)

    def make_consumer(self, options: ConsumerOptions) -> KafkaPythonConsumer:
        return KafkaPythonConsumer(self._common | consumer_configs(options, ASSIGNORS))

    def admin(self) -> KafkaPythonAdmin:
        return KafkaPythonAdmin(self._common)
