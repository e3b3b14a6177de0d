"""The machine of a broker loses its power, at any operation of its disk, again and again.

With ``log.flush.on.ack`` (the default): nothing acknowledged is lost, and nothing of an idempotent
producer is there twice; nothing that a consumer was given vanishes; committed offsets stay,
producer ids are never given again, topics are as they were told to be. Without it the broker starts
again, and what is left of a log is where it was.
"""

import asyncio
import errno
import random
from collections.abc import Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from acknowledged_disk import LockedFiles, Moment, Moments, new_disk
from acknowledged_wire import (
    Committed,
    GivenProducerId,
    Produced,
    Promise,
    Seen,
    TopicIs,
    Trimmed,
    Watermark,
    WireClient,
    batch_of,
    commit,
    committed,
    fetch,
    find_coordinator,
    latest,
    new_producer_id,
    numbers_in,
    produce_request,
    produced_answer,
    split,
)

from stratalog.broker.server import Broker
from stratalog.config import BrokerConfig
from stratalog.protocol.api import ApiKey
from stratalog.protocol.error_codes import ErrorCode
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest
from stratalog.storage.layout import TopicPartition
from stratalog.testing import CrashMode, SimulatedFileSystem

ORDERS = [("orders", 0), ("orders", 1)]
NOISE = ("noise", 0)
TABLE = ("table", 0)
TRIMMED = ("trimmed", 0)
KEYS = 7
SMALL = {"internal.segment.bytes": "1500", "index.interval.bytes": "200"}
TOPICS = {
    "orders": (2, SMALL),
    "noise": (1, SMALL),
    "trimmed": (1, SMALL),
    "table": (1, {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}),
}
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "admin.listener": "",
    "log.dir.reserve.bytes": "0",
    "log.index.size.max.bytes": "240",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.dedupe.buffer.size": "2000000",
    "log.segment.delete.delay.ms": "30",
    "log.flush.offset.checkpoint.interval.ms": "50",
    "log.flush.start.offset.checkpoint.interval.ms": "50",
    "log.initial.task.delay.ms": "20",
    "log.retention.check.interval.ms": "50",
    "replica.high.watermark.checkpoint.interval.ms": "50",
}
_OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

_EXCUSED = (
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


class RefusedError(Exception):
    """The disk of the broker has failed."""


async def until_refused(work: Coroutine[None, None, None]) -> None:
    with suppress(RefusedError):
        await work


@dataclass
class World:
    """A machine and all that its broker has promised, over several lives of it."""

    directory: Path
    disk: SimulatedFileSystem
    chance: random.Random
    settings: dict[str, str] = field(default_factory=dict)
    promises: list[Promise] = field(default_factory=list)
    producer_ids: dict[tuple[str, int], int] = field(default_factory=dict)
    is_failing: bool = False
    # Whose very first batch the disk refused. Of a producer that is not known any first sequence is
    # taken, as by Kafka, and so is the next batch, which was on its way by then.
    begun_late: set[tuple[str, int]] = field(default_factory=set)
    sync_turns: int = 0

    @asynccontextmanager
    async def broker(self) -> Any:
        properties = {"log.dirs": str(self.directory), **SETTINGS, **self.settings}
        files = LockedFiles(self.disk, sync_turns=self.sync_turns)
        broker = Broker(BrokerConfig.from_properties(properties), files=files)
        await broker.start()
        try:
            yield broker
        finally:
            await broker.stop()

    async def live(self, rounds: int, every: int, fault: int | None = None) -> list[Moment]:
        """One life under load; the moments at which it might have ended. One operation of the disk
        fails with ``fault``, if one is given."""
        self.sync_turns = self.chance.choice((0, 8, 20))
        moments = Moments(self.disk, self.directory, lambda: len(self.promises), self.chance, every)
        if self.producer_ids:
            moments.watch()  # from the recovery on
        async with self.broker() as broker:
            port = broker.endpoint.port
            await self.prepare(port)
            if fault is not None:
                self.is_failing = True
                self.disk.fail(self.disk.operations + self.chance.randint(1, 300), fault)
            moments.watch()
            jobs = [self.produce(broker, place, rounds) for place in ORDERS]
            jobs += [self.produce(broker, TABLE, rounds, KEYS)]
            jobs += [self.make_noise(port, rounds), self.administrate(port, rounds // 4)]
            jobs += [self.trim(port, rounds)]
            jobs += [self.consume(port, place, rounds) for place in (*ORDERS, NOISE)]
            async with asyncio.TaskGroup() as group:
                for job in jobs:
                    group.create_task(until_refused(job))
        self.disk.observer = None  # stopping is a time to lose power as well
        return moments.kept

    def lose_power(self, moment: Moment, mode: CrashMode, seed: int) -> None:
        """Go back to what was left of the machine at ``moment``."""
        self.sync_turns = 0
        del self.promises[moment.promised :]
        self.disk = moment.restore(self.directory, mode, seed)

    def check_taken(self, error_code: int) -> None:
        """Only a disk that fails is an excuse, and ends a client's work."""
        if self.is_failing and error_code in _EXCUSED:
            raise RefusedError(ErrorCode(error_code).name)
        assert error_code == ErrorCode.NONE, ErrorCode(error_code).name

    # --- clients ------------------------------------------------------------------------------

    async def prepare(self, port: int) -> None:
        """Topics and producer ids, if this is the first life."""
        if self.producer_ids:
            return
        async with WireClient.connect(port) as client:
            await self.create(client, TOPICS)
            await find_coordinator(client)
            for place in (*ORDERS, TABLE):
                self.producer_ids[place] = await self.take_producer_id(client)

    async def create(self, client: WireClient, topics: Any) -> None:
        wanted = [
            CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=1,
                configs=[CreatableTopicConfig(*each) for each in configs.items()],
            )
            for name, (count, configs) in topics.items()
        ]
        request = CreateTopicsRequest(topics=wanted)
        answer = await client.ask(ApiKey.CREATE_TOPICS, 7, request)
        for each in answer.topics:
            self.check_taken(each.error_code)
            self.promises.append(TopicIs(each.name, True))

    async def take_producer_id(self, client: WireClient) -> int:
        producer_id = await new_producer_id(client)
        given = {each.producer_id for each in self.promises if isinstance(each, GivenProducerId)}
        assert producer_id not in given, "a producer id is given once"
        self.promises.append(GivenProducerId(producer_id))
        return producer_id

    async def produce(
        self, broker: Broker, place: tuple[str, int], rounds: int, key_count: int = 0
    ) -> None:
        """Idempotent and acks=all, some batches in flight at a time. What is in the log already,
        and was not acknowledged, is sent again; the snapshots of producers, which are Kafka's,
        hold only the last batch of each, so that an earlier one may be refused then."""
        port = broker.endpoint.port
        again_until = broker.services.replicas.get(TopicPartition(*place)).log.log_end_offset
        async with WireClient.connect(port) as client:
            last = latest(self.promises, Produced, place)
            sequence = last.sequence + last.record_count if last else 0
            producer_id = self.producer_ids[place]
            for _ in range(rounds):
                sent = []
                for _ in range(self.chance.randint(1, 3)):
                    # What is sent again must be what was sent.
                    count = 1 + sequence * 7 % 4
                    batch = batch_of(sequence, count, producer_id=producer_id, key_count=key_count)
                    client.send(ApiKey.PRODUCE, 9, produce_request(place, batch, -1))
                    sent.append((sequence, count))
                    sequence += count
                for each in sent:
                    answer = produced_answer(await client.receive(ApiKey.PRODUCE, 9))
                    if each[0] < again_until and answer.error_code == _OUT_OF_ORDER:
                        continue
                    if answer.error_code and each[0] == 0:
                        self.begun_late.add(place)
                    self.check_taken(answer.error_code)
                    self.promises.append(Produced(place, answer.base_offset, *each))

    async def make_noise(self, port: int, rounds: int) -> None:
        """acks=1, which is promised when it is answered, and acks=0, of which only what consumers
        see is."""
        async with WireClient.connect(port) as client:
            for number in range(rounds):
                acks = number % 2
                client.send(ApiKey.PRODUCE, 9, produce_request(NOISE, batch_of(number, 2), acks))
                if acks:
                    try:
                        answer = produced_answer(await client.receive(ApiKey.PRODUCE, 9))
                    except (asyncio.IncompleteReadError, ConnectionError) as error:
                        # The only way to say no to who asked for no answer.
                        self.check_taken(ErrorCode.KAFKA_STORAGE_ERROR)
                        raise AssertionError("a connection was closed") from error
                    self.check_taken(answer.error_code)
                    self.promises.append(Produced(NOISE, answer.base_offset, number, 2))

    async def trim(self, port: int, rounds: int) -> None:
        """Writes records and deletes them, sometimes all of them."""
        async with WireClient.connect(port) as client:
            for number in range(rounds):
                batch = batch_of(number, 2)
                answer = await client.ask(ApiKey.PRODUCE, 9, produce_request(TRIMMED, batch, 1))
                offset = produced_answer(answer).base_offset + number % 3
                self.check_taken(produced_answer(answer).error_code)
                request = DeleteRecordsRequest(
                    [DeleteRecordsTopic("trimmed", [DeleteRecordsPartition(0, offset)])], 30_000
                )
                deleted = await client.ask(ApiKey.DELETE_RECORDS, 2, request)
                (found,) = deleted.topics[0].partitions
                self.check_taken(found.error_code)
                self.promises.append(Trimmed(TRIMMED, found.low_watermark))

    async def consume(self, port: int, place: tuple[str, int], rounds: int) -> None:
        """Reads from where the group stands, and commits."""
        async with WireClient.connect(port) as client:
            position = max(await committed(client, place), 0)
            for number in range(rounds):
                found = await fetch(client, place, position, max_wait_ms=20)
                self.check_taken(found.error_code)
                self.promises.append(Watermark(place, found.high_watermark))
                for header, batch in split(found.records):
                    self.promises.append(Seen(place, header.base_offset, batch))
                    position = header.next_offset
                if number % 3 == 0:
                    self.check_taken(await commit(client, place, position))
                    self.promises.append(Committed(place, position))

    async def administrate(self, port: int, rounds: int) -> None:
        """New topics and the end of old ones, new producer ids."""
        async with WireClient.connect(port) as client:
            known = [each.name for each in self.promises if isinstance(each, TopicIs)]
            for number in range(len(known), len(known) + rounds):
                await self.create(client, {f"topic-{number}-{self.chance.random()}": (1, {})})
                name = self.promises_about_topics()[-1]
                if number % 2:
                    self.promises.append(TopicIs(name, None))
                    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
                    answer = await client.ask(ApiKey.DELETE_TOPICS, 5, request)
                    self.check_taken(answer.responses[0].error_code)
                    self.promises.append(TopicIs(name, False))
                await self.take_producer_id(client)

    def promises_about_topics(self) -> list[str]:
        return [each.name for each in self.promises if isinstance(each, TopicIs)]

    # --- what has to be true ------------------------------------------------------------------

    async def check(self) -> None:
        """Start on what is left, hold the broker to all of its promises, and go on."""
        async with (
            self.broker() as broker,
            WireClient.connect(broker.endpoint.port) as client,
        ):
            self.check_topics(broker)
            trimmed = latest(self.promises, Trimmed, TRIMMED)
            start = broker.services.replicas.get(TopicPartition(*TRIMMED)).log.log_start_offset
            assert trimmed is None or start >= trimmed.log_start_offset, "deleted records are back"
            for place in (*ORDERS, NOISE, TABLE):
                log = broker.services.replicas.get(TopicPartition(*place)).log
                assert not log.is_damaged, log.recovery_report
                batches = await read_all(client, place, may_end_early=False)
                self.check_log(place, batches)
                if place[0] == "orders":
                    firsts = (0, 1) if place in self.begun_late else (0,)
                    check_sequences(batches, self.producer_ids[place], firsts)
                elif place == TABLE:
                    self.check_table(batches)
            for place in (*ORDERS, NOISE):
                last = latest(self.promises, Committed, place)
                if last is None:
                    continue
                log = broker.services.replicas.get(TopicPartition("__consumer_offsets", 0)).log
                assert not log.is_damaged, log.recovery_report
                assert await committed(client, place) >= last.offset
            await self.take_producer_id(client)

    def check_topics(self, broker: Broker) -> None:
        state = {each.name: each.is_there for each in self.promises if isinstance(each, TopicIs)}
        for name, is_there in state.items():
            if is_there:
                assert broker.services.replicas.find(TopicPartition(name, 0)) is not None, name
                assert name in broker.services.store.image.topics
            elif is_there is not None:
                assert name not in broker.services.store.image.topics

    def check_log(self, place: tuple[str, int], batches: dict[int, bytes]) -> None:
        numbers = {
            header.base_offset + index: number
            for batch in batches.values()
            for header, whole in split(batch)
            for index, number in enumerate(numbers_in(whole))
        }
        end = max((split(batch)[0][0].next_offset for batch in batches.values()), default=0)
        for promise in self.promises:
            if getattr(promise, "place", None) != place:
                continue
            if isinstance(promise, Watermark):
                assert promise.high_watermark <= end, promise
            elif isinstance(promise, Seen):
                assert batches.get(promise.base_offset) == promise.batch, promise
            elif isinstance(promise, Produced) and place != TABLE:
                expected = range(promise.sequence, promise.sequence + promise.record_count)
                found = [
                    numbers[promise.base_offset + each] for each in range(promise.record_count)
                ]
                assert found == list(expected), promise

    def check_table(self, batches: dict[int, bytes]) -> None:
        """Of each key the last value that was acknowledged is there, or one after it."""
        found = [number for _, batch in sorted(batches.items()) for number in numbers_in(batch)]
        assert found == sorted(set(found)), "each record once at most, and in order"
        held = {number % KEYS: number for number in found}
        for promise in self.promises:
            if isinstance(promise, Produced) and promise.place == TABLE:
                for number in range(promise.sequence, promise.sequence + promise.record_count):
                    assert held.get(number % KEYS, -1) >= number, promise


async def read_all(
    client: WireClient, place: tuple[str, int], *, may_end_early: bool
) -> dict[int, bytes]:
    """All batches of a partition by their base offsets."""
    found: dict[int, bytes] = {}
    offset = 0
    while True:
        answer = await fetch(client, place, offset)
        if answer.error_code != ErrorCode.NONE:
            assert may_end_early, ErrorCode(answer.error_code)
            return found
        batches = split(answer.records)
        if not batches:
            assert may_end_early or offset == answer.high_watermark
            return found
        for header, batch in batches:
            found[header.base_offset] = batch
            offset = header.next_offset


def check_sequences(batches: dict[int, bytes], producer_id: int, firsts: Sequence[int]) -> None:
    numbers: list[int] = []
    for _, batch in sorted(batches.items()):
        (header, _) = split(batch)[0]
        assert header.producer_id == producer_id
        numbers += numbers_in(batch)
    first = numbers[0] if numbers else 0
    assert first in firsts
    assert numbers == list(range(first, first + len(numbers))), "each record once, and in order"


def new_world(path: Path, seed: int, **settings: str) -> World:
    directory = path / "logs"
    return World(directory, new_disk(directory), random.Random(seed), settings)


async def lives(world: World, count: int, rounds: int, modes: Sequence[CrashMode]) -> int:
    """Lives one after the other, each on what the one before has left; how many ends were tried.
    Every moment that was kept is an end that is looked at; one more is the end that was."""
    tried = 0
    for life in range(count):
        moments = await world.live(rounds, every=25)
        promises, disk = list(world.promises), world.disk
        for number, moment in enumerate(world.chance.sample(moments, len(moments))):
            mode = world.chance.choice(modes)
            world.promises[:], world.disk = promises, disk
            world.lose_power(moment, mode, number)
            try:
                await world.check()
            except BaseException as error:
                error.add_note(f"life {life}, {moment.what} ({moment.number}), {mode} {number}")
                raise
            tried += 1
        world.promises[:], world.disk = promises, disk
        world.lose_power(world.chance.choice(moments), world.chance.choice(modes), life)
    return tried


async def fail_once(world: World, seed: int) -> None:
    """An operation fails while clients work, and then the power."""
    fault = (errno.EIO, errno.ENOSPC)[seed % 2]
    await world.live(rounds=6, every=1_000_000, fault=fault)
    world.is_failing = False
    mode = world.chance.choice((CrashMode.LOSE_UNSYNCED, CrashMode.KEEP_ALL, CrashMode.TORN))
    world.disk = world.disk.after_crash(mode, seed)
    try:
        await world.check()
    except BaseException as error:
        error.add_note(f"an operation failed with {fault}, then {mode} {seed}")
        raise


async def appended(client: WireClient, place: tuple[str, int], number: int) -> bool:
    batch = batch_of(number, 1)
    answer = await client.ask(ApiKey.PRODUCE, 9, produce_request(place, batch, -1))
    return bool(produced_answer(answer).base_offset == number)


async def check_unflushed(world: World, seed: int) -> None:
    """Without a flush for each acknowledgement, as Kafka: the broker starts, and what is left of
    each log is where it was. A segment may have lost its end though the next one is there."""
    moment = world.chance.choice(await world.live(rounds=12, every=40))
    mode = world.chance.choice(ALL)
    world.lose_power(moment, mode, seed)
    async with (
        world.broker() as broker,
        WireClient.connect(broker.endpoint.port) as client,
    ):
        for place in ORDERS:
            for offset, batch in (await read_all(client, place, may_end_early=True)).items():
                numbers = numbers_in(batch)
                assert numbers == list(range(offset, offset + len(numbers)))
            log = broker.services.replicas.get(TopicPartition(*place)).log
            assert await appended(client, place, log.log_end_offset)


ALL = tuple(CrashMode)


def test_nothing_promised_is_lost_with_the_power(tmp_path: Path) -> None:
    tried = asyncio.run(lives(new_world(tmp_path, 1), 2, 8, ALL))
    assert tried > 20


@pytest.mark.parametrize("seed", range(6))
def test_nothing_promised_is_lost_when_the_disk_fails_and_then_the_power(
    tmp_path: Path, seed: int
) -> None:
    asyncio.run(fail_once(new_world(tmp_path, seed), seed))


@pytest.mark.parametrize("seed", range(3))
def test_without_a_flush_for_each_acknowledgement_what_is_left_is_where_it_was(
    tmp_path: Path, seed: int
) -> None:
    world = new_world(tmp_path, seed, **{"log.flush.on.ack": "false"})
    asyncio.run(check_unflushed(world, seed))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10, 18))
def test_nothing_promised_is_lost_with_the_power_in_many_lives(tmp_path: Path, seed: int) -> None:
    assert asyncio.run(lives(new_world(tmp_path, seed), 4, 30, ALL)) > 200
    for number in range(20):
        world = new_world(tmp_path / str(number), seed * 100 + number)
        asyncio.run(fail_once(world, seed * 100 + number))
        world = new_world(tmp_path / f"{number}-unflushed", seed, **{"log.flush.on.ack": "false"})
        asyncio.run(check_unflushed(world, seed * 100 + number))
