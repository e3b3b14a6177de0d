"""The topics that nobody has to create: what is made when a client first asks for one, and the
broker's own.

The broker's own get as many replicas as their settings ask for, and no more than there are nodes.

Names that clients have asked for wait in a queue that is bounded for each client and in all, and
are made a few at a time, so that changes that somebody has ordered are made in between. A name for
which there is no room is left out: its client is told that the topic is unknown, and asks again.
"""

import asyncio
from collections.abc import Iterable, Sequence

from stratalog.broker.event_log import log_event
from stratalog.broker.services import Services
from stratalog.config import BrokerConfig
from stratalog.errors import StratalogError
from stratalog.metadata.topics import NewTopic
from stratalog.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

NAMES_MAX = 10_000
NAMES_OF_A_CLIENT_MAX = 2_000
# About a tenth of a second's work: the longest that an ordered change waits for automatic ones.
_PARTITIONS_AT_ONCE = 64


def automatic_topic(name: str, config: BrokerConfig, *, node_count: int) -> NewTopic:
    """The topic of this name, as it is made without anybody saying how."""
    if name == OFFSETS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config.offsets_topic_num_partitions,
            replication_factor=min(config.offsets_topic_replication_factor, node_count),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            },
        )
    if name == TRANSACTIONS_TOPIC:
        return NewTopic(
            name=name,
            partition_count=config.transaction_state_log_num_partitions,
            replication_factor=min(config.transaction_state_log_replication_factor, node_count),
            configs={
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            },
        )
    return NewTopic(name=name)


class NameQueue:
    """Names that wait, each once. Clients take turns, so that one with many does not keep another
    with one waiting. A name has left only when it is ``done``: until then it is not taken again."""

    def __init__(self, *, names_max: int, names_of_a_client_max: int) -> None:
        self._names_max = names_max
        self._names_of_a_client_max = names_of_a_client_max
        self._waiting: dict[str, dict[str, None]] = {}
        self._names: set[str] = set()

    def __len__(self) -> int:
        return len(self._names)

    def offer(self, client: str, names: Iterable[str]) -> int:
        """Let names wait that do not yet; for how many there was no room."""
        own = self._waiting.get(client, {})
        left_out = 0
        for name in names:
            if name in self._names:
                continue
            if len(own) >= self._names_of_a_client_max or len(self._names) >= self._names_max:
                left_out += 1
                continue
            own[name] = None
            self._names.add(name)
        if own:
            self._waiting[client] = own
        return left_out

    def take(self, count: int) -> list[str]:
        """The next names, ``count`` at most: one of each client, and again from the first."""
        taken: list[str] = []
        while self._waiting and len(taken) < count:
            client = next(iter(self._waiting))
            own = self._waiting.pop(client)
            name = next(iter(own))
            del own[name]
            taken.append(name)
            if own:
                self._waiting[client] = own  # behind the others
        return taken

    def done(self, names: Iterable[str]) -> None:
        self._names.difference_update(names)


class AutomaticTopics:
    """Makes what clients have asked for by name, for as long as the broker takes changes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._queue = NameQueue(names_max=NAMES_MAX, names_of_a_client_max=NAMES_OF_A_CLIENT_MAX)
        self._task: asyncio.Task[None] | None = None

    def ask(self, client: str, names: Iterable[str]) -> None:
        """Begin to make topics, unless they are being made."""
        coming = self._services.topics.coming
        left_out = self._queue.offer(client, (name for name in names if name not in coming))
        if left_out:
            log_event("automatic_topics_left_out", client=client, names=left_out)
        if len(self._queue) and (self._task is None or self._task.done()):
            self._task = self._services.loop.create_task(self._make_all())

    async def _make_all(self) -> None:
        while names := self._queue.take(self._count_at_once()):
            try:
                await self._make(names)
            finally:
                self._queue.done(names)

    def _count_at_once(self) -> int:
        return max(1, _PARTITIONS_AT_ONCE // self._services.config.num_partitions)

    async def _make(self, names: Sequence[str]) -> None:
        services = self._services
        node_count = len(services.store.image.nodes)
        wanted = [automatic_topic(name, services.config, node_count=node_count) for name in names]
        results = await services.topics.create(wanted)
        for name, result in zip(names, results, strict=True):
            if isinstance(result, StratalogError) and name not in services.store.image.topics:
                log_event("topic_not_created", topic=name, reason=str(result))
