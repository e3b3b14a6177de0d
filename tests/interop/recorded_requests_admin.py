"""Walks over topics: made, grown, changed and deleted in any order, by two brokers alike."""

import random
from typing import Any

from recorded_requests import Scenario, Talk, api_of, every
from recorded_requests_configs import DELETE, SET, TOPIC, about
from recorded_requests_data import NO_ID
from recorded_requests_topics import named

from stratalog.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from stratalog.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from stratalog.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from stratalog.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

CONFIGS = (
    ("retention.ms", "1000"),
    ("retention.ms", "soon"),
    ("cleanup.policy", "compact"),
    ("segment.bytes", "2000000"),
    ("segment.bytes", "1"),
    ("no.such.config", "1"),
)
DYNAMIC_TOPIC_CONFIG = 1


class TopicWalk:
    """Topics under three names, two of which exclude each other."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self._talk = talk
        self._random = random.Random(seed)
        start = f"topic-walk-{seed}"
        self._names = [f"{start}.a", f"{start}_a", f"{start}-b"]
        self._step = 0

    def step(self) -> None:
        """One change, then what can be seen of it once it has happened."""
        self._step += 1
        kinds = [self._create, self._delete, self._grow, self._change]
        self._random.choices(kinds, [5, 2, 3, 3])[0]()
        for name in self._names:
            self._talk.ask(f"{self._step:03} then {name}", 13, named(name))

    def _ask(self, request: Any, version: int | None = None) -> Any:
        version = version or self._random.choice(every(api_of(request)))
        return self._talk.ask(f"{self._step:03}", version, request)

    def _create(self) -> None:
        choose = self._random
        name = choose.choice(self._names)
        configs = [
            CreatableTopicConfig(*choose.choice(CONFIGS)) for _ in range(choose.choice([0, 0, 1]))
        ]
        topic = CreatableTopic(
            name,
            choose.choices([1, 2, -1, 0, -3], [4, 4, 2, 1, 1])[0],
            choose.choices([1, -1, 0, 2], [8, 4, 1, 1])[0],
            configs=configs,
        )
        request = CreateTopicsRequest([topic], 30_000, choose.random() < 0.2)
        created = self._ask(request).topics[0]
        if not request.validate_only and created.error_code == 0:
            count = topic.num_partitions if topic.num_partitions > 0 else 2
            self._talk.have_led(name, count)

    def _delete(self) -> None:
        name = self._random.choice(self._names)
        by_id = self._random.random() < 0.5
        topic_id = bytes(self._talk.have(named(name)).topics[0].topic_id)
        state = DeleteTopicState(name)
        if by_id and topic_id != NO_ID:
            state = DeleteTopicState(None, topic_id)
        request = DeleteTopicsRequest([name], [state], 30_000)
        deleted = self._ask(request, 6 if state.name is None else None).responses[0]
        if deleted.error_code == 0:
            self._talk.have_no_topic(name)

    def _grow(self) -> None:
        choose = self._random
        name, count = choose.choice(self._names), choose.choice([0, 1, 2, 3, 4, 5])
        topic = CreatePartitionsTopic(name, count, None)
        request = CreatePartitionsRequest([topic], 30_000, choose.random() < 0.2)
        if self._ask(request).results[0].error_code == 0 and not request.validate_only:
            self._talk.have_led(name, count)

    def _change(self) -> None:
        choose = self._random
        name = choose.choice(self._names)
        config, value = choose.choice(CONFIGS)
        operation = choose.choice([SET, DELETE])
        change = AlterableConfig(config, operation, value if operation == SET else None)
        resource = AlterConfigsResource(TOPIC, name, [change])
        changed = self._ask(IncrementalAlterConfigsRequest([resource]))
        if changed.responses[0].error_code == 0:
            wanted = value if operation == SET else None
            self._talk.have_until(
                about(TOPIC, name), lambda answer: _set(answer).get(config) == wanted
            )
        shown = _set(self._talk.have(about(TOPIC, name)))
        self._talk.record(f"{self._step:03} configs then", None, -1, dict(sorted(shown.items())))


def _set(described: Any) -> dict[str, str]:
    configs = described.results[0].configs
    return {each.name: each.value for each in configs if each.config_source == DYNAMIC_TOPIC_CONFIG}


def topic_walk(seed: int, steps: int) -> Scenario:
    """A scenario of that many changes."""

    def walk(talk: Talk) -> None:
        walking = TopicWalk(talk, seed)
        for _ in range(steps):
            walking.step()

    return walk


TOPIC_WALKS: dict[str, Scenario] = {f"topic-walk-{seed}": topic_walk(seed, 30) for seed in range(6)}
