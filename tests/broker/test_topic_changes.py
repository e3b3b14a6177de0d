"""TopicChanges: the store, the directories and the partitions after each change, and after a crash
in the middle of one."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from broker_parts import append, broker_parts, create_topic

from stratalog.broker.automatic_topics import automatic_topic
from stratalog.broker.services import Services
from stratalog.broker.topics import TopicChanges
from stratalog.config import BrokerConfig
from stratalog.errors import (
    ConfigError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    LogDirectoryError,
    StratalogError,
    TooManyPartitionsError,
    TopicExistsError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from stratalog.metadata.dynamic_configs import ConfigChange, ConfigOperation
from stratalog.metadata.image import TopicMetadata, TopicState
from stratalog.metadata.names import random_topic_id
from stratalog.metadata.topics import NewTopic
from stratalog.replication.replica_manager import ReplicaManager
from stratalog.storage.layout import TopicPartition

ORDERS = TopicPartition("orders", 0)


def run(path: Path, scenario: Callable[[Services], Awaitable[Any]], **settings: Any) -> Any:
    async def inside() -> Any:
        async with broker_parts(path, **settings) as services:
            return await scenario(services)

    return asyncio.run(inside())


def new(name: str, partitions: int = 1, **configs: str) -> NewTopic:
    spelt = {key.replace("_", "."): value for key, value in configs.items()}
    return NewTopic(name=name, partition_count=partitions, replication_factor=1, configs=spelt)


async def created(services: Services, *wanted: NewTopic) -> list[TopicMetadata]:
    topics = []
    for result in await services.topics.create(wanted):
        assert isinstance(result, TopicMetadata), result
        topics.append(result)
    return topics


def directories(path: Path) -> set[str]:
    return {each.name for each in path.iterdir() if each.is_dir()}


# --- creating ---------------------------------------------------------------------------------


def test_a_created_topic_is_live_and_takes_records_when_the_answer_comes(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        (topic,) = await created(services, new("orders", 3))
        stored = services.store.image.topic("orders")
        assert stored.state is TopicState.LIVE
        assert stored.topic_id == topic.topic_id
        for number in range(3):
            partition = services.replicas.get(TopicPartition("orders", number))
            assert partition.is_leader
            assert partition.log.topic_id == topic.topic_id
            assert partition.log.epochs.latest_epoch == partition.leader_epoch == 0
            assert append(services, "orders", number).error is None
        assert directories(tmp_path) == {"orders-0", "orders-1", "orders-2"}

    run(tmp_path, scenario)


def test_each_topic_of_a_request_has_its_own_answer(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await created(services, new("there"))
        results = await services.topics.create(
            [new("there"), new("fine"), new("no/name"), new("a")]
        )
        assert [type(each).__name__ for each in results] == [
            "TopicExistsError",
            "TopicMetadata",
            "InvalidTopicError",
            "TopicMetadata",
        ]
        assert set(services.store.image.topics) == {"there", "fine", "a"}

    run(tmp_path, scenario)


def test_what_is_only_validated_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        epoch = services.store.image.epoch
        (good, bad) = await services.topics.create(
            [new("orders"), NewTopic(name="many", replication_factor=9)], validate_only=True
        )
        assert isinstance(good, TopicMetadata)
        assert isinstance(bad, InvalidReplicationFactorError)
        assert services.store.image.epoch == epoch
        assert directories(tmp_path) == set()

    run(tmp_path, scenario)


def test_a_request_for_too_many_partitions_creates_none(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        results = await services.topics.create([new("a", 6_000), new("b", 6_000)])
        assert [type(each) for each in results] == [TooManyPartitionsError] * 2
        assert not services.store.image.topics

    run(tmp_path, scenario)


def test_listeners_hear_of_each_partition_that_is_led_or_dropped(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        heard: list[tuple[str, TopicPartition, int]] = []
        services.topics.on_leading.append(lambda key, epoch: heard.append(("led", key, epoch)))
        services.topics.on_dropped.append(lambda key, epoch: heard.append(("dropped", key, epoch)))
        (topic,) = await created(services, new("orders", 2))
        await services.topics.delete([topic.topic_id])
        keys = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
        assert heard == [(what, key, 0) for what in ("led", "dropped") for key in keys]

    run(tmp_path, scenario)


def test_partitions_are_led_again_after_a_restart(tmp_path: Path) -> None:
    async def first(services: Services) -> None:
        await created(services, new("orders", 3))
        append(services, "orders", 1)

    async def second(services: Services) -> None:
        assert len(services.replicas) == 3
        partition = services.replicas.get(TopicPartition("orders", 1))
        assert partition.log.log_end_offset == 1
        stored = services.store.image.topic("orders").partitions[1]
        assert partition.leader_epoch == stored.leader_epoch

    run(tmp_path, first)
    run(tmp_path, second)


def test_changes_go_one_after_the_other(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        results = await asyncio.gather(
            *(services.topics.create([new("orders", 2)]) for _ in range(5))
        )
        kinds = [type(each) for (each,) in results]
        assert kinds == [TopicMetadata, *[TopicExistsError] * 4]

    run(tmp_path, scenario)


def test_a_change_begins_when_the_one_before_it_has_ended(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await created(services, new("orders", 1))
        await asyncio.gather(
            *(services.topics.create_partitions("orders", count) for count in (3, 5, 8))
        )
        assert len(services.replicas) == 8

    run(tmp_path, scenario)


def test_a_change_is_finished_although_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        asking = asyncio.create_task(services.topics.create([new("orders", 2)]))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await services.topics.finish()
        assert services.store.image.topic("orders").state is TopicState.LIVE
        assert len(services.replicas) == 2

    run(tmp_path, scenario)


# --- what waits for a disk --------------------------------------------------------------------


def test_nothing_that_waits_for_a_disk_runs_on_the_loop(tmp_path: Path) -> None:
    """The calls that make, rename and sync are noted with the thread that makes them."""

    async def scenario(services: Services) -> None:
        loop_thread = threading.get_ident()
        on_loop: list[str] = []
        files = services.logs.files
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            for name in ("make_directory", "rename", "sync_directory", "sync_file_system"):
                real = getattr(files, name)

                def noted(*arguments: Any, _real: Any = real, _name: str = name) -> Any:
                    if threading.get_ident() == loop_thread:
                        on_loop.append(f"{_name} {arguments}")
                    return _real(*arguments)

                patch.setattr(files, name, noted)
            (topic, _) = await created(services, new("orders", 40), new("small"))
            await services.topics.create_partitions("small", 3)
            await services.topics.alter_topic_configs(
                "small", [ConfigChange("retention.ms", ConfigOperation.SET, "5")]
            )
            await services.topics.delete([topic.topic_id])
            assert on_loop == []

    run(tmp_path, scenario)


def test_the_directory_of_many_new_partitions_is_synced_once(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        synced: list[str] = []
        files = services.logs.files
        with pytest.MonkeyPatch.context() as patch:
            for name in ("sync_directory", "sync_file_system"):
                patch.setattr(files, name, lambda path, name=name: synced.append(name))
            await created(services, new("few", 3))
            per_partition, few = synced.count("sync_directory"), len(synced)
            await created(services, new("many", 100))
        assert few == per_partition
        assert synced[few:] == ["sync_file_system"]

    run(tmp_path, scenario)


# --- deleting ---------------------------------------------------------------------------------


def test_a_deleted_topic_is_gone_and_its_name_is_free(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        (first,) = await created(services, new("orders", 2))
        append(services, "orders", 0)
        assert await services.topics.delete([first.topic_id]) == [None]
        assert services.replicas.find(ORDERS) is None
        assert not services.store.image.topics
        assert not services.store.image.deleting
        names = directories(tmp_path)
        assert len(names) == 2
        assert all(name.endswith("-delete") for name in names)
        (second,) = await created(services, new("orders", 1))
        assert second.topic_id != first.topic_id
        assert services.replicas.get(ORDERS).log.log_end_offset == 0

    run(tmp_path, scenario)


def test_what_cannot_be_deleted_does_not_keep_the_others(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        (topic,) = await created(services, new("orders"))
        unknown = random_topic_id()
        first, second, third = await services.topics.delete([unknown, topic.topic_id, unknown])
        assert isinstance(first, UnknownTopicIdError)
        assert second is None
        assert isinstance(third, UnknownTopicIdError)

    run(tmp_path, scenario)


def test_a_topic_with_a_log_that_could_not_be_opened_stays_to_be_deleted(tmp_path: Path) -> None:
    async def first(services: Services) -> None:
        await created(services, new("orders", 2))

    run(tmp_path, first)
    (tmp_path / "orders-1" / "partition.metadata").write_text("version: 0\ntopic_id: garbled\n")

    async def second(services: Services) -> None:
        topic = services.store.image.topic("orders")
        assert TopicPartition("orders", 1) in services.logs.directories[0].offline_logs
        assert await services.topics.delete([topic.topic_id]) == [None]
        assert [*services.store.image.deleting] == [topic.topic_id]
        assert "orders-1" in directories(tmp_path)

    run(tmp_path, second)


# --- failing disks ----------------------------------------------------------------------------


def test_a_topic_whose_directories_cannot_be_made_is_taken_back(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        (tmp_path / "orders-1").mkdir()
        results = await services.topics.create([new("orders", 3), new("fine")])
        assert isinstance(results[0], LogDirectoryError)
        assert isinstance(results[1], TopicMetadata)
        assert set(services.store.image.topics) == {"fine"}
        assert not services.store.image.deleting
        assert [each.log.topic_partition.topic for each in services.replicas] == ["fine"]
        (tmp_path / "orders-1").rmdir()
        await created(services, new("orders", 3))

    run(tmp_path, scenario)


def test_a_new_topic_is_not_given_the_log_of_another_that_could_not_be_opened(
    tmp_path: Path,
) -> None:
    async def scenario(services: Services) -> None:
        services.logs.directories[0].offline_logs[ORDERS] = "it is damaged"
        (result,) = await services.topics.create([new("orders")])
        assert isinstance(result, StratalogError)
        assert not services.store.image.topics

    run(tmp_path, scenario)


# --- crashes between two steps ----------------------------------------------------------------


class Stopped(BaseException):
    """The process ends here."""


def stopping_at(services: Services, step: int) -> TopicChanges:
    """TopicChanges whose process ends before its worker's ``step``-th job."""
    jobs = 0

    async def run_blocking(function: Callable[[], Any]) -> Any:
        nonlocal jobs
        jobs += 1
        if jobs > step:
            raise Stopped
        return function()

    return TopicChanges(
        store=services.store,
        logs=services.logs,
        replicas=services.replicas,
        run_blocking=run_blocking,
    )


@pytest.mark.parametrize("step", range(3))
def test_a_topic_is_there_or_not_after_a_crash_while_it_was_created(
    tmp_path: Path, step: int
) -> None:
    async def first(services: Services) -> None:
        with pytest.raises(Stopped):
            await stopping_at(services, step).create([new("orders", 3)])

    async def second(services: Services) -> None:
        if step == 0:
            assert not services.store.image.topics
        else:
            assert services.store.image.topic("orders").state is TopicState.LIVE
            assert len(services.replicas) == 3
            assert append(services, "orders", 2).error is None

    run(tmp_path, first)
    run(tmp_path, second)


@pytest.mark.parametrize("step", range(3))
def test_a_topic_does_not_come_back_after_a_crash_while_it_was_deleted(
    tmp_path: Path, step: int
) -> None:
    async def first(services: Services) -> None:
        (topic,) = await created(services, new("orders", 3))
        with pytest.raises(Stopped):
            await stopping_at(services, step).delete([topic.topic_id])

    async def second(services: Services) -> None:
        assert not services.store.image.deleting
        if step == 0:
            assert len(services.replicas) == 3
        else:
            assert not services.store.image.topics
            assert len(services.replicas) == 0
            await created(services, new("orders", 3))

    run(tmp_path, first)
    run(tmp_path, second)


# --- more partitions --------------------------------------------------------------------------


def test_added_partitions_are_led_beside_those_there_were(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await created(services, new("orders", 2))
        append(services, "orders", 0)
        await services.topics.create_partitions("orders", 5)
        assert len(services.replicas) == 5
        assert services.replicas.get(ORDERS).log.log_end_offset == 1
        assert services.store.image.topic("orders").state is TopicState.LIVE
        assert append(services, "orders", 4).error is None

    run(tmp_path, scenario)


def test_partitions_that_cannot_be_added_are_refused(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await created(services, new("orders", 2))
        for count in (2, 1, 0, -1):
            with pytest.raises(InvalidPartitionsError):
                await services.topics.create_partitions("orders", count)
        with pytest.raises(UnknownTopicError):
            await services.topics.create_partitions("unknown", 2)
        topic = await services.topics.create_partitions("orders", 3, validate_only=True)
        assert len(topic.partitions) == 3
        assert len(services.store.image.topic("orders").partitions) == 2
        assert len(services.replicas) == 2

    run(tmp_path, scenario)


# --- configs ----------------------------------------------------------------------------------


def changed(name: str, value: str) -> list[ConfigChange]:
    return [ConfigChange(name, ConfigOperation.SET, value)]


def test_a_topics_config_counts_for_its_logs_at_once(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await created(services, new("orders", 2), new("other"))
        await services.topics.alter_topic_configs("orders", changed("max.message.bytes", "100"))
        logs = {log.topic_partition: log for log in services.logs}
        assert logs[ORDERS].config.max_message_bytes == 100
        assert logs[TopicPartition("orders", 1)].config.max_message_bytes == 100
        assert logs[TopicPartition("other", 0)].config.max_message_bytes == 1_048_588
        assert append(services, "orders", 0, count=20).error is not None
        await services.topics.replace_topic_configs("orders", {"retention.ms": "5"})
        assert logs[ORDERS].config.max_message_bytes == 1_048_588
        assert logs[ORDERS].config.retention_ms == 5

    run(tmp_path, scenario)


def test_a_config_that_is_refused_or_only_validated_changes_nothing(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await created(services, new("orders"))
        log = services.replicas.get(ORDERS).log
        before = log.config
        with pytest.raises(ConfigError):
            await services.topics.alter_topic_configs("orders", changed("retention.ms", "soon"))
        await services.topics.alter_topic_configs(
            "orders", changed("retention.ms", "5"), validate_only=True
        )
        await services.topics.alter_broker_configs(
            None, changed("log.retention.ms", "7"), validate_only=True
        )
        assert log.config == before
        assert services.store.image.topic("orders").configs == {}
        assert services.logs.config.log_retention_ms is None

    run(tmp_path, scenario)


def test_what_a_topic_inherits_changes_with_its_broker(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        heard: list[BrokerConfig] = []
        services.topics.on_broker_config.append(heard.append)
        await created(services, new("orders"), new("own", retention_ms="1"))
        node_id = services.node_id
        await services.topics.alter_broker_configs(None, changed("log.retention.ms", "70"))
        logs = {log.topic_partition.topic: log for log in services.logs}
        assert logs["orders"].config.retention_ms == 70
        assert logs["own"].config.retention_ms == 1
        await services.topics.alter_broker_configs(node_id, changed("log.retention.ms", "80"))
        assert logs["orders"].config.retention_ms == 80
        assert services.logs.config.log_retention_ms == 80
        await services.topics.replace_broker_configs(node_id, {})
        assert logs["orders"].config.retention_ms == 70
        assert [each.log_retention_ms for each in heard] == [70, 80, 70]
        # A topic that is made later inherits it too.
        await created(services, new("later"))
        assert services.replicas.get(TopicPartition("later", 0)).log.config.retention_ms == 70

    run(tmp_path, scenario)


def test_the_cleaner_takes_changed_settings_at_once(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await services.topics.alter_broker_configs(None, changed("log.cleaner.backoff.ms", "123"))
        assert services.logs.config.log_cleaner_backoff_ms == 123

    run(tmp_path, scenario)


def test_a_held_topic_is_held_until_it_is_adopted(tmp_path: Path) -> None:
    async def first(services: Services) -> None:
        await created(services, new("orders"))

    run(tmp_path, first)
    for path in tmp_path.glob(".stratalog-metadata.db*"):
        path.unlink()

    async def second(services: Services) -> None:
        log = services.replicas.get(ORDERS).log
        assert services.store.image.topic("orders").is_held
        assert log.is_held
        await services.topics.alter_topic_configs("orders", changed("retention.ms", "5"))
        await services.topics.alter_broker_configs(None, changed("log.retention.bytes", "6"))
        assert log.config.retention_ms == 5
        assert log.is_held
        await services.topics.adopt("orders", {"cleanup.policy": "compact"})
        assert not log.is_held
        assert log.config.cleanup_policy == ("compact",)
        # Nor is forgotten what was known of it.
        known = {"retention.ms": "5", "cleanup.policy": "compact"}
        assert services.store.image.topic("orders").configs == known
        with pytest.raises(InvalidRequestError, match="'orders' is not held"):
            await services.topics.adopt("orders", {})
        assert services.store.image.topic("orders").configs == known

    run(tmp_path, second)


# --- topics that nobody has to create ---------------------------------------------------------


def test_the_offsets_topic_has_its_own_settings_and_no_more_replicas_than_nodes(
    tmp_path: Path,
) -> None:
    config = BrokerConfig(offsets_topic_num_partitions=7, offsets_topic_segment_bytes=1 << 20)
    wanted = automatic_topic("__consumer_offsets", config, node_count=1)
    assert (wanted.partition_count, wanted.replication_factor) == (7, 1)
    assert automatic_topic("__consumer_offsets", config, node_count=5).replication_factor == 3
    assert wanted.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(1 << 20),
    }
    assert automatic_topic("orders", config, node_count=1) == NewTopic(name="orders")
    transactions = automatic_topic("__transaction_state", config, node_count=1)
    assert (transactions.partition_count, transactions.replication_factor) == (50, 1)

    async def scenario(services: Services) -> None:
        await created(services, wanted, transactions)
        assert services.store.image.topic("__consumer_offsets").is_internal

    run(tmp_path, scenario)


def test_only_partitions_whose_log_is_there_are_led(tmp_path: Path) -> None:
    async def scenario(services: Services) -> None:
        await create_topic(services, "orders", 2)
        replicas = ReplicaManager(services.logs, services.clock, node_id=services.node_id)
        topics = TopicChanges(
            store=services.store,
            logs=services.logs,
            replicas=replicas,
            run_blocking=services.run_blocking,
        )
        services.logs.detach(TopicPartition("orders", 1))
        assert topics.lead_all() == 1
        assert topics.generation == 1

    run(tmp_path, scenario)
