"""TopicChanges: what clients change about topics and configs, from the store down to the logs.

Changes are made one after the other. The store is asked first, and what it has made durable is
then brought about: directories made or renamed, partitions led or dropped, settings taken. Whatever
waits for a disk runs on the worker; the loop only changes what is in memory, a few partitions at a
time. A crash between any two steps leaves a topic CREATING or DELETING, which the next start
finishes.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from stratalog.broker.services import RunBlocking
from stratalog.config import BrokerConfig, TopicConfig
from stratalog.errors import StratalogError, UnknownTopicIdError
from stratalog.metadata.dynamic_configs import ConfigChange
from stratalog.metadata.image import MetadataImage, TopicMetadata
from stratalog.metadata.store import MetadataStore
from stratalog.metadata.topics import NewTopic, PartitionChange
from stratalog.replication.replica_manager import ReplicaManager
from stratalog.storage.layout import TopicPartition
from stratalog.storage.log import Log
from stratalog.storage.making import DetachedLog, NewLog, rename_deleted, write_all
from stratalog.storage.manager import LogManager

# How many partitions the loop takes in or lets go of before it looks at what else there is to do.
_PARTITIONS_AT_ONCE = 32

Result = TypeVar("Result")
PartitionListener = Callable[[TopicPartition, int], None]


class TopicChanges:
    """``on_leading`` and ``on_dropped`` hear of each partition that this node begins or ceases to
    lead, with its leader epoch; ``on_broker_config`` of changed settings."""

    def __init__(
        self,
        *,
        store: MetadataStore,
        logs: LogManager,
        replicas: ReplicaManager,
        run_blocking: RunBlocking,
    ) -> None:
        self.on_leading: list[PartitionListener] = []
        self.on_dropped: list[PartitionListener] = []
        self.on_broker_config: list[Callable[[BrokerConfig], None]] = []
        # Grows whenever a partition is led or dropped: what answers from that can be kept until.
        self.generation = 0
        # Topics that are being made or extended, with the count of partitions that they had: the
        # new ones are told to nobody until they are led.
        self.coming: dict[str, int] = {}
        self._store = store
        self._logs = logs
        self._replicas = replicas
        self._run_blocking = run_blocking
        self._lock = asyncio.Lock()
        self._is_stopping = False
        self._changes: set[asyncio.Task[Any]] = set()

    async def finish(self) -> None:
        """Wait until no change is under way."""
        while self._changes:
            await asyncio.wait(self._changes)

    async def stop(self) -> None:
        """Bring the change to its end that has begun; those that wait for it are dropped."""
        self._is_stopping = True
        await self.finish()

    async def _change(self, steps: Callable[[], Awaitable[Result]]) -> Result:
        """Take the steps of a change after those of the changes before it, and to the end: also
        when whoever asked for it has gone."""
        change = asyncio.create_task(self._in_turn(steps))
        self._changes.add(change)
        change.add_done_callback(self._changes.discard)
        return await asyncio.shield(change)

    async def alone(self, steps: Callable[[], Awaitable[Result]]) -> Result:
        """Take ``steps`` while nothing else changes topics or settings, and to the end."""
        return await self._change(steps)

    async def _in_turn(self, steps: Callable[[], Awaitable[Result]]) -> Result:
        async with self._lock:
            if self._is_stopping:
                raise asyncio.CancelledError
            return await steps()

    @property
    def _image(self) -> MetadataImage:
        return self._store.image

    async def _wait_for(self, function: Callable[[], Result]) -> Result:
        return cast(Result, await self._run_blocking(function))

    # --- creating -----------------------------------------------------------------------------

    async def create(
        self, wanted: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[TopicMetadata | StratalogError]:
        """What became of each: a topic that can be written to and read, or why there is none."""
        return await self._change(lambda: self._create(wanted, validate_only))

    async def _create(
        self, wanted: Sequence[NewTopic], validate_only: bool
    ) -> list[TopicMetadata | StratalogError]:
        def stored() -> list[TopicMetadata | StratalogError]:
            return self._store.create_topics(wanted, validate_only=validate_only)

        new = [each.name for each in wanted if each.name not in self._image.topics]
        self._hide(dict.fromkeys(new, 0))
        try:
            results = await self._wait_for(stored)
            if validate_only:
                return results
            created = [each for each in results if isinstance(each, TopicMetadata)]
            failures = await self._bring_about(created)
        except StratalogError as error:
            return [error] * len(wanted)
        finally:
            self._show(new)
        return [
            failures.get(each.topic_id, each) if isinstance(each, TopicMetadata) else each
            for each in results
        ]

    def _hide(self, counts: Mapping[str, int]) -> None:
        """Tell clients only of so many partitions, until ``_show``."""
        self.coming.update(counts)
        self.generation += 1

    def _show(self, names: Iterable[str]) -> None:
        for name in names:
            self.coming.pop(name, None)
        self.generation += 1

    async def _bring_about(
        self, created: Sequence[TopicMetadata]
    ) -> dict[uuid.UUID, StratalogError]:
        """Make the logs of new topics. A topic whose logs cannot be made is none: it is taken
        back."""
        failures = await self._make_logs(created, are_new=True)
        ready = [each for each in created if each.topic_id not in failures]
        self._show(each.name for each in ready)
        await self._note(lambda: self._store.mark_live(*(each.topic_id for each in ready)))
        if failures:
            await self._delete([*failures])
        return failures

    async def create_partitions(
        self,
        name: str,
        count: int,
        *,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
    ) -> TopicMetadata:
        """Give a topic ``count`` partitions in all."""

        def stored() -> TopicMetadata:
            return self._store.create_partitions(
                name, count, assignments=assignments, validate_only=validate_only
            )

        async def steps() -> TopicMetadata:
            had = self._image.topics.get(name)
            self._hide({} if had is None else {name: len(had.partitions)})
            try:
                topic = await self._wait_for(stored)
                if validate_only:
                    return topic
                failures = await self._make_logs([topic], are_new=False)
            finally:
                self._show([name])
            for error in failures.values():
                # It stays CREATING: the next start makes what is missing.
                raise error
            await self._note(lambda: self._store.mark_live(topic.topic_id))
            return topic

        return await self._change(steps)

    async def _note(self, function: Callable[[], None]) -> None:
        """Note in the store that the directories agree with it. A note that fails is made at the
        next start; what was asked for has happened."""
        with suppress(StratalogError):
            await self._wait_for(function)

    async def _make_logs(
        self, topics: Sequence[TopicMetadata], *, are_new: bool
    ) -> dict[uuid.UUID, StratalogError]:
        """The logs that this node lacks of ``topics``, made and led; why not, by topic."""
        wanted = {topic.topic_id: self._wanted_logs(topic, are_new) for topic in topics}
        failures = self._plan(wanted)
        planned = [new for new_logs in wanted.values() for new in new_logs]
        await self._wait_for(lambda: self._logs.make(planned))
        taken = 0
        for topic in topics:
            for new in wanted.get(topic.topic_id, ()):
                taken += 1
                if taken % _PARTITIONS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                try:
                    self._logs.take_in(new)
                except StratalogError as error:
                    failures.setdefault(topic.topic_id, error)
                else:
                    self._lead(topic, new.topic_partition)
        return failures

    def _plan(self, wanted: dict[uuid.UUID, list[NewLog]]) -> dict[uuid.UUID, StratalogError]:
        """Say where the logs go; a topic of which one cannot be made is taken out of ``wanted``."""
        failures: dict[uuid.UUID, StratalogError] = {}
        try:
            self._logs.plan_create([new for new_logs in wanted.values() for new in new_logs])
        except StratalogError:
            for topic_id, new_logs in [*wanted.items()]:
                try:
                    self._logs.plan_create(new_logs)
                except StratalogError as error:
                    failures[topic_id] = error
                    del wanted[topic_id]
        return failures

    def _wanted_logs(self, topic: TopicMetadata, is_new: bool) -> list[NewLog]:
        node_id = self._image.node_id
        return [
            NewLog(key, topic.topic_id, each.leader_epoch if each.leader == node_id else None)
            for each in topic.partitions
            if node_id in each.replicas
            and ((key := TopicPartition(topic.name, each.partition)) not in self._logs or is_new)
        ]

    # --- leading ------------------------------------------------------------------------------

    def lead_all(self) -> int:
        """Lead every partition that is this node's to lead and whose log is there; how many. For
        the start, before there are clients."""
        led = 0
        for topic in self._image.topics.values():
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition)
                if each.leader == self._image.node_id and self._find_log(key) is not None:
                    self._lead(topic, key)
                    led += 1
        return led

    def _lead(self, topic: TopicMetadata, key: TopicPartition) -> None:
        partition = topic.partitions[key.partition]
        if partition.leader != self._image.node_id:
            return
        self._replicas.lead(
            key,
            leader_epoch=partition.leader_epoch,
            replicas=partition.replicas,
            isr=partition.isr,
            partition_epoch=partition.partition_epoch,
        )
        self.generation += 1
        for listener in self.on_leading:
            listener(key, partition.leader_epoch)

    async def lead_above(self, epochs: Mapping[TopicPartition, int]) -> None:
        """Go on with leader epochs above these, among the steps of ``alone``: batches that other
        leaders have written are about to come into the logs."""
        image = self._image
        changes = [
            PartitionChange(
                name=key.topic,
                partition=key.partition,
                leader=image.node_id,
                leader_epoch_above=epoch,
            )
            for key, epoch in epochs.items()
            if key.topic in image.topics
            and image.topics[key.topic].partition(key.partition).leader_epoch <= epoch
        ]
        if changes:
            await self._wait_for(lambda: self._store.change_partitions(changes))
        for each in changes:
            self._lead(self._image.topics[each.name], TopicPartition(each.name, each.partition))

    def _drop(self, key: TopicPartition, leader_epoch: int) -> None:
        if self._replicas.find(key) is None:
            return
        self._replicas.drop(key)
        self.generation += 1
        for listener in self.on_dropped:
            listener(key, leader_epoch)

    def _find_log(self, key: TopicPartition) -> Log | None:
        for directory in self._logs.directories:
            log = directory.logs.get(key)
            if log is not None:
                return log
        return None

    # --- deleting -----------------------------------------------------------------------------

    async def delete(self, topic_ids: Sequence[uuid.UUID]) -> list[StratalogError | None]:
        """For each topic why it could not be deleted; None if it was."""
        return await self._change(lambda: self._delete(topic_ids))

    async def _delete(self, topic_ids: Sequence[uuid.UUID]) -> list[StratalogError | None]:
        known = [each for each in dict.fromkeys(topic_ids) if each in self._image.topics_by_id]
        try:
            topics = await self._wait_for(lambda: self._store.begin_delete(*known))
        except StratalogError as error:
            return [error] * len(topic_ids)
        removed = await self._remove_logs(topics)
        await self._note(lambda: self._store.finish_delete(*removed))
        return [None if each in known else UnknownTopicIdError(str(each)) for each in topic_ids]

    async def _remove_logs(self, topics: Iterable[TopicMetadata]) -> list[uuid.UUID]:
        """Take the logs of ``topics`` away; the topics of which no directory is left. The others'
        are on disks that cannot be used now, and go when those can."""
        detached: list[DetachedLog] = []
        left_over: set[str] = set()
        for topic in topics:
            for each in topic.partitions:
                key = TopicPartition(topic.name, each.partition)
                self._drop(key, each.leader_epoch)
                if self._find_log(key) is not None:
                    detached.append(self._logs.detach(key))
                elif key in self._logs:
                    left_over.add(topic.name)
                if len(detached) % _PARTITIONS_AT_ONCE == 0:
                    await asyncio.sleep(0)
        files = self._logs.files
        failed = await self._wait_for(lambda: rename_deleted(files, detached))
        writes = self._logs.complete_deletion(detached, failed)
        for directory, error in await self._wait_for(lambda: write_all(writes)):
            directory.checkpoint_failed(error)
        left_over |= {
            each.log.topic_partition.topic for each in detached if each.directory in failed
        }
        return [topic.topic_id for topic in topics if topic.name not in left_over]

    # --- configs ------------------------------------------------------------------------------

    async def alter_topic_configs(
        self, name: str, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> TopicMetadata:
        def stored() -> TopicMetadata:
            return self._store.alter_topic_configs(name, changes, validate_only=validate_only)

        return await self._change(lambda: self._configured(stored, validate_only))

    async def replace_topic_configs(
        self, name: str, configs: Mapping[str, str | None], *, validate_only: bool = False
    ) -> TopicMetadata:
        def stored() -> TopicMetadata:
            return self._store.replace_topic_configs(name, configs, validate_only=validate_only)

        return await self._change(lambda: self._configured(stored, validate_only))

    async def adopt(self, name: str, configs: Mapping[str, str | None]) -> TopicMetadata:
        """``configs`` are, with those that are known, all that a held topic overrides: it is kept
        by them from now on."""

        def stored() -> TopicMetadata:
            return self._store.set_known(name, configs)

        return await self._change(lambda: self._configured(stored, False))

    async def _configured(
        self, stored: Callable[[], TopicMetadata], validate_only: bool
    ) -> TopicMetadata:
        topic = await self._wait_for(stored)
        if not validate_only:
            self._configure(topic, self._store.broker)
        return topic

    def _configure(self, topic: TopicMetadata, broker: BrokerConfig) -> None:
        config = TopicConfig.from_properties(topic.configs, broker=broker)
        for each in topic.partitions:
            log = self._find_log(TopicPartition(topic.name, each.partition))
            if log is None:
                continue
            if (log.config, log.config.overrides) != (config, config.overrides):
                self._logs.configure_log(log, config)
            # What is not known of a held topic's configs is not known after a change of some.
            log.is_held = topic.is_held

    async def alter_broker_configs(
        self, node_id: int | None, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> None:
        """Change the dynamic configs of a node, or of all (None)."""

        def stored() -> None:
            self._store.alter_broker_configs(node_id, changes, validate_only=validate_only)

        await self._change(lambda: self._reconfigured(stored, validate_only))

    async def replace_broker_configs(
        self,
        node_id: int | None,
        configs: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> None:
        def stored() -> None:
            self._store.replace_broker_configs(node_id, configs, validate_only=validate_only)

        await self._change(lambda: self._reconfigured(stored, validate_only))

    async def _reconfigured(self, stored: Callable[[], None], validate_only: bool) -> None:
        """Take the broker's settings as they are now, and what topics inherit from them."""
        await self._wait_for(stored)
        if validate_only:
            return
        broker = self._store.broker
        self._logs.reconfigure(broker)
        for listener in self.on_broker_config:
            listener(broker)
        for number, topic in enumerate([*self._image.topics.values()]):
            if number % _PARTITIONS_AT_ONCE == 0:
                await asyncio.sleep(0)
            self._configure(topic, broker)
