"""The one run of Apache Kafka that most interop tests look at, as directories kept from it.

Three lives of one broker over one log directory, each producing to every scenario's topic:

    life 0   start, produce, clean stop
    life 1   start, produce, consume, clean stop    -> ``clean``     copied
    life 2   start, produce, kill -9                -> ``crashed``   copied
             some partitions are damaged            -> ``damaged``   copied
    life 3   start (Kafka recovers), consume, stop  -> ``recovered`` copied
"""

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from apache_kafka import KafkaBroker, KafkaDistribution
from consuming import Consumed, consume
from replaying import KafkaPartition, OurPartition
from scenarios import DELETION_LIFE, SCENARIOS, Recorder
from wire import Produced

# Small, so that copies of crashed directories stay small; scenarios override it.
RUN_CONFIGS = {"log.index.size.max.bytes": "65536"}
CONSUMED_TOPICS = tuple(scenario.name for scenario in SCENARIOS)
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class KafkaRun:
    """Copies of one log directory at four moments, and what went in and came out."""

    clean: Path
    crashed: Path
    damaged: Path
    recovered: Path
    produced: dict[str, list[list[Produced]]]
    consumed_clean: dict[str, list[Consumed]]
    committed_clean: dict[str, list[Consumed]]
    consumed_recovered: dict[str, list[Consumed]]
    started_ms: list[int]
    """When each life began: producer ids expire by the wall clock while a log is loaded."""

    @property
    def configs(self) -> dict[str, str]:
        """The broker's own settings."""
        return RUN_CONFIGS

    def adopt(self, directory: Path, topic: str) -> OurPartition:
        """A copy of Kafka's directory, to be opened by us with what its checkpoints say."""
        return OurPartition(
            directory,
            topic,
            recovery_point=checkpoint(self.crashed, RECOVERY_POINTS)[topic],
            log_start_offset=checkpoint(self.crashed, LOG_STARTS).get(topic, 0),
        )

    def partition(self, topic: str) -> KafkaPartition:
        """One topic's share of the run."""
        return KafkaPartition(
            topic,
            self.clean / f"{topic}-0",
            self.crashed / f"{topic}-0",
            self.started_ms,
            self.produced[topic],
        )


def run_scenarios(distribution: KafkaDistribution, work_dir: Path) -> KafkaRun:
    """Drive a broker through its lives and keep a copy of its log directory after each."""
    broker = KafkaBroker(distribution, work_dir / "broker", RUN_CONFIGS)
    produced: dict[str, list[list[Produced]]] = {scenario.name: [] for scenario in SCENARIOS}
    kept = {name: work_dir / name for name in ("clean", "crashed", "damaged", "recovered")}
    started_ms = []

    started_ms.append(_now_ms())
    with broker:
        with broker.connect() as connection:
            for scenario in SCENARIOS:
                connection.create_topic(scenario.name, scenario.configs)
        _live(broker, 0, produced)
    started_ms.append(_now_ms())
    with broker:
        _live(broker, 1, produced)
        consumed_clean = consume_all(broker)
        committed_clean = consume_all(broker, committed_only=True)
    copy_tree(broker.log_dir, kept["clean"])

    started_ms.append(_now_ms())
    broker.start()
    _live(broker, 2, produced)
    broker.kill()
    copy_tree(broker.log_dir, kept["crashed"])
    for scenario in SCENARIOS:
        if scenario.damage is not None:
            scenario.damage(broker.partition_dir(scenario.name))
    copy_tree(broker.log_dir, kept["damaged"])

    started_ms.append(_now_ms())
    with broker:
        consumed_recovered = consume_all(broker)
    copy_tree(broker.log_dir, kept["recovered"])
    return KafkaRun(
        **kept,
        produced=produced,
        consumed_clean=consumed_clean,
        committed_clean=committed_clean,
        consumed_recovered=consumed_recovered,
        started_ms=started_ms,
    )


def consume_all(broker: KafkaBroker, *, committed_only: bool = False) -> dict[str, list[Consumed]]:
    """What a client reads from every scenario's topic."""
    return consume(broker.bootstrap_server, CONSUMED_TOPICS, committed_only=committed_only)


def checkpoint(log_dir: Path, name: str) -> dict[str, int]:
    """The offsets that Kafka checkpointed for partition 0 of each topic."""
    _, _, *lines = (log_dir / name).read_text().splitlines()
    return {topic: int(offset) for topic, _, offset in (line.split() for line in lines)}


def copy_tree(source: Path, target: Path) -> None:
    """Copy a log directory, keeping the holes of preallocated indexes."""
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)


def _live(broker: KafkaBroker, life: int, produced: dict[str, list[list[Produced]]]) -> None:
    with broker.connect() as connection:
        for scenario in SCENARIOS:
            partition_dir = broker.partition_dir(scenario.name)
            recorder = Recorder(scenario.name, connection, partition_dir, [])
            scenario.lives[life](recorder)
            if life == DELETION_LIFE and scenario.delete_before:
                connection.delete_records(scenario.name, scenario.delete_before)
            produced[scenario.name].append(recorder.produced)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
