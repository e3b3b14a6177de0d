"""What ``explain``, ``describe``, the admin port and the broker itself say of a directory agrees:
configs, what is held, what goes next; and what they said goes, and nothing else."""

import json
import tempfile
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from broker_fixture import RunningBroker, running_broker
from command_line import run_stratalog
from left_directories import copy_of, make_topic, now_ms, opened, segments_of
from stratalog.config import TopicConfig
from stratalog.metadata import ConfigChange, ConfigOperation
from stratalog.storage.cleaning.rounds import plan_log

# No limit and no age is near another, so that all who look within a minute see the same.
LIMITS_MS = ("-1", "864000000", "8640000000")
AGES_DAYS = (0.1, 5, 50, 500)
TOPIC_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "cleanup.policy": st.sampled_from(("delete", "compact", "compact,delete", "")),
        "retention.ms": st.sampled_from(("0", *LIMITS_MS)),
        "retention.bytes": st.sampled_from(("-1", "0", "700", "1500")),
        "min.compaction.lag.ms": st.sampled_from(("0", "864000000")),
        "min.cleanable.dirty.ratio": st.sampled_from(("0", "0.5", "1")),
    },
)
SERVER_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "log.retention.ms": st.sampled_from(LIMITS_MS),
        "log.retention.hours": st.sampled_from(("-1", "1", "240")),
        "log.retention.bytes": st.sampled_from(("-1", "700")),
        "log.cleanup.policy": st.sampled_from(("delete", "compact")),
        "log.cleaner.enable": st.just("false"),
    },
)
DYNAMIC_CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "log.retention.ms": st.sampled_from(LIMITS_MS),
        "log.retention.bytes": st.sampled_from(("-1", "1500")),
    },
)


# Base offsets of segments, by topic.
Going = dict[str, list[int]]


@dataclass(frozen=True)
class World:
    """A directory to be made. ``is_killed``: its broker did not stop."""

    topics: tuple[tuple[Mapping[str, str], tuple[float, ...], bool], ...]
    server: Mapping[str, str]
    dynamic: Mapping[str, str]
    is_killed: bool

    def make(self, path: Path) -> Path:
        broker = opened(path / "made", self.server)
        for name, value in self.dynamic.items():
            change = ConfigChange(name, ConfigOperation.SET, value)
            broker.store.alter_broker_configs(None, [change])
        # A cleaner begins when its broker does: one that finds work would change what is asked of.
        idle = {} if "log.cleaner.enable" in self.server else {"min.cleanable.dirty.ratio": "1"}
        for number, (configs, ages, is_held) in enumerate(self.topics):
            make_topic(broker, f"topic{number}", {**configs, **idle}, ages, is_held=is_held)
        if not self.is_killed:
            broker.close()
            return path / "made"
        copy_of(path / "made", path / "killed")
        broker.close()
        return path / "killed"

    @property
    def settings(self) -> dict[str, str]:
        """What its broker is started with."""
        return {name.replace(".", "_"): value for name, value in self.server.items()}

    def segments(self, path: Path) -> dict[str, list[int]]:
        return {name: segments_of(path, name) for name in map("topic{}".format, self.numbers)}

    @property
    def numbers(self) -> range:
        return range(len(self.topics))

    def without(self, segments: Going, gone: Going) -> Going:
        """What is left; a log that loses all goes on with an empty segment at its end."""
        return {
            name: [each for each in bases if each not in gone[name]]
            or [len(self.topics[number][1])]
            for number, (name, bases) in enumerate(segments.items())
        }


WORLDS = st.builds(
    World,
    st.lists(
        st.tuples(
            TOPIC_CONFIGS,
            st.lists(st.sampled_from(AGES_DAYS), max_size=5).map(tuple),
            st.booleans(),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    SERVER_CONFIGS,
    DYNAMIC_CONFIGS,
    st.booleans(),
)


# --- what each of them says ------------------------------------------------------------------


def answer(*arguments: object) -> Any:
    ran = run_stratalog(*map(str, arguments), "-o", "json")
    assert ran.exit_code == 0, ran
    return ran.json


def explained(path: Path) -> tuple[Going, set[str]]:
    """By ``retention explain``: the segments that go now, and the topics that are held."""
    told = answer("retention", "explain", path)
    rows, now = told["partitions"], told["now_ms"]
    goes = {
        row["topic"]: [each["base_offset"] for each in row["segments"] if is_due(each, now)]
        for row in rows
    }
    return goes, {row["topic"] for row in rows if row["held"] is not None}


def is_due(segment: Any, at_ms: int) -> bool:
    return segment["goes_at_ms"] is not None and segment["goes_at_ms"] <= at_ms


def dirty(path: Path) -> dict[str, tuple[str, bool]]:
    """By ``cleaner explain``: the policy of each topic, and whether it would be compacted now."""
    rows = answer("cleaner", "explain", path, "--no-count")["partitions"]
    return {
        row["topic"]: (row["cleanup_policy"], row["is_eligible"])
        for row in rows
        if row["held"] is None
    }


def described(names: Iterable[str], *where: object) -> dict[str, tuple[str, object, str]]:
    """By ``topic describe``: the id of each topic, its configs, and what its broker sets beside."""
    found = {}
    for name in names:
        (row,) = answer("topic", "describe", name, *where)
        text = run_stratalog("topic", "describe", name, *map(str, where)).lines[0]
        shown = ",".join(sorted(text.partition("Configs: ")[2].split(",")))
        found[name] = (row["topic_id"], row["configs"], shown)
    return found


def asked(path: Path, page: str) -> Any:
    """By the admin port."""
    owner = json.loads((path / ".stratalog-owner").read_text())
    with urllib.request.urlopen(owner["admin"] + page) as told:
        return json.load(told)


def spelt(configs: Mapping[str, str]) -> dict[str, str]:
    """As Kafka prints them: the admin port has them as they were given."""
    return TopicConfig.from_properties(configs).to_properties()


def compactable(broker: RunningBroker) -> dict[str, tuple[str, bool]]:
    """By the broker's own cleaner."""
    logs = broker.broker.services.logs
    found = {}
    for log in logs:
        if not log.is_held:
            offset = logs.directories[0].cleaner_offset(log.topic_partition)
            plan = plan_log(log, offset, now_ms())
            found[log.topic_partition.topic] = (
                ",".join(log.config.cleanup_policy),
                plan.is_eligible,
            )
    return found


def check_all(broker: RunningBroker) -> None:
    """What comes next by itself, if one waits."""
    logs = broker.broker.services.logs
    logs.delete_old_segments(now_ms())
    if logs.cleaner is not None:
        logs.cleaner.run(now_ms())


# --- that it is the same ---------------------------------------------------------------------


def check_beside(broker: RunningBroker, path: Path) -> Going:
    """All who can be asked while the broker runs; returns what they say goes next."""
    goes, held = explained(path)
    rows = asked(path, "/v1/retention")["partitions"]
    assert goes == {row["topic"]: [each["base_offset"] for each in row["deletes"]] for row in rows}
    assert sorted(held) == asked(path, "/v1/status")["held_topics"]
    assert dirty(path) == broker.call(compactable, broker)
    known = goes.keys() - held
    wire = described(known, "--bootstrap-server", broker.bootstrap_server)
    assert described(known, "--log-dir", path) == wire
    topics = asked(path, "/v1/topics")["topics"]
    own = {row["name"]: spelt(row["configs"]) for row in topics if not row["is_held"]}
    assert {name: configs for name, (_, configs, _) in wire.items()} == own
    return goes


@settings(
    deadline=None,
    max_examples=8,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(WORLDS)
def test_all_say_the_same_of_configs_and_next_deletions_and_that_is_what_goes(world: World) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = world.make(Path(directory))
        alone, held = explained(path)
        first, known = world.segments(path), alone.keys() - held
        left = described(known, "--log-dir", path)
        with running_broker(path, **world.settings) as broker:
            broker.call(broker.broker.services.logs.run_due)
            second, goes = world.segments(path), check_beside(broker, path)
            assert described(known, "--log-dir", path) == left
            broker.call(check_all, broker)
            assert world.segments(path) == world.without(second, goes)
            assert world.is_killed or world.segments(path) == world.without(first, alone)
            assert not any(check_beside(broker, path).values())
        assert described(known, "--log-dir", path) == left
        assert run_stratalog("retention", "run", str(path)).exit_code == (0 if known else 2)
        assert not any(explained(path)[0].values())
