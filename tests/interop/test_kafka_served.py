"""A directory of Apache Kafka's, served by our broker for ten days, and Kafka's again afterwards.

Nothing leaves it but by Kafka's own configs. Where those are not known, nothing leaves it at all.
"""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from apache_kafka import KafkaBroker, KafkaDistribution
from batches import Record, make_batch
from consuming import Consumed, consume

from broker_fixture import RunningBroker, running_broker
from stratalog.clock import SystemClock

pytestmark = pytest.mark.interop

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
BATCHES = 12
SMALL = {"internal.segment.bytes": "2000"}
# Nothing of these may go within the ten days, whoever keeps them.
KEPT = {
    "forever": {**SMALL, "retention.ms": "-1"},
    "old": {**SMALL, "retention.ms": str(90 * DAY_MS)},
    "compacted": {
        **SMALL,
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(60 * DAY_MS),
    },
    "large": {**SMALL, "retention.ms": "-1", "retention.bytes": "100000000"},
}
# Of these something goes, if it is known by which configs.
GOING = {
    "expired": {**SMALL, "cleanup.policy": "delete"},  # its broker says when: after a week
    "superseded": {**SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}
BROKER = {
    "log.retention.ms": str(7 * DAY_MS),
    # Kafka's own tasks stay out of it.
    "log.retention.check.interval.ms": str(DAY_MS),
    "log.cleaner.backoff.ms": str(DAY_MS),
    "log.initial.task.delay.ms": str(DAY_MS),
}


class RunningClock(SystemClock):
    """Goes on by itself, for the clients' sake, and is set forward by hours."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms

    def advance(self, ms: int) -> None:
        self._ahead_ms += ms


class Written(NamedTuple):
    """What Kafka has kept, and what a client read from it."""

    data_dir: Path
    records: dict[str, list[Consumed]]


@pytest.fixture(scope="module")
def written(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Written:
    broker = KafkaBroker(kafka, tmp_path_factory.mktemp("served") / "kafka", BROKER)
    month_ago_ms = SystemClock().now_ms() - 30 * DAY_MS
    topics = {**KEPT, **GOING}
    with broker:
        with broker.connect() as connection:
            for topic, configs in topics.items():
                connection.create_topic(topic, configs)
            producer = connection.init_producer_id()
            for number in range(BATCHES):
                rows = [
                    Record(b"k%d" % key, b"%d" % number * 100, month_ago_ms + number * 1000 + key)
                    for key in range(5)
                ]
                for topic in topics:
                    sequence = {"producer": producer, "base_sequence": number * 5}
                    connection.produce(topic, make_batch(rows, **sequence))  # type: ignore[arg-type]
        records = consume(broker.bootstrap_server, topics)
    assert all(len(found) == BATCHES * 5 for found in records.values())
    return Written(broker.data_dir, records)


@pytest.fixture
def data_dir(written: Written, tmp_path: Path) -> Iterator[Path]:
    """Nobody else's copy of it."""
    target = tmp_path / "kafka"
    shutil.copytree(written.data_dir, target)
    yield target
    shutil.rmtree(target)


def data_of(log_dir: Path, topics: dict[str, dict[str, str]]) -> dict[str, str]:
    return {
        str(file.relative_to(log_dir)): hashlib.sha256(file.read_bytes()).hexdigest()
        for topic in topics
        for file in sorted(log_dir.glob(f"{topic}-0/*.log"))
    }


def let_pass(broker: RunningBroker, clock: RunningClock, hours: int) -> None:
    """Time passes in the broker's own thread, and all that is due is done."""

    def an_hour() -> None:
        clock.advance(HOUR_MS)
        services = broker.broker.services
        services.logs.run_due()
        services.replicas.expire(clock.now_ms())
        services.groups.run_due(clock.now_ms())

    for _ in range(hours):
        broker.call(an_hour)


def served_for_ten_days(
    written: Written, log_dir: Path, *, is_config_known: bool
) -> dict[str, list[Consumed]]:
    """What a client reads at the end; at the beginning it is all that is to be kept."""
    clock = RunningClock()
    settings = {name.replace(".", "_"): value for name, value in BROKER.items()}
    with running_broker(
        log_dir,
        clock=clock,
        is_config_known=is_config_known,
        **{
            **settings,
            "log_retention_check_interval_ms": "300000",
            "log_cleaner_backoff_ms": "15000",
        },
    ) as broker:
        kept = {topic: written.records[topic] for topic in KEPT}
        assert consume(broker.bootstrap_server, kept) == kept
        let_pass(broker, clock, 240)
        return consume(broker.bootstrap_server, written.records)


def kafkas_again(
    kafka: KafkaDistribution, data_dir: Path, topics: list[str]
) -> dict[str, list[Consumed]]:
    with KafkaBroker(kafka, data_dir, BROKER) as broker:
        return consume(broker.bootstrap_server, topics)


def test_by_kafkas_configs_nothing_goes_that_they_keep(
    kafka: KafkaDistribution, written: Written, data_dir: Path
) -> None:
    log_dir = data_dir / "logs"
    before = data_of(log_dir, KEPT)
    read = served_for_ten_days(written, log_dir, is_config_known=True)

    assert data_of(log_dir, KEPT) == before
    for topic in KEPT:
        assert read[topic] == written.records[topic]
    # That time has passed, and that what should go goes, shows in the others.
    assert len(read["expired"]) < len(written.records["expired"])
    assert len(read["superseded"]) < len(written.records["superseded"])
    last = {each.key: each for each in written.records["superseded"]}
    assert {each.key: each for each in read["superseded"]} == last

    again = kafkas_again(kafka, data_dir, [*KEPT, "superseded"])
    assert again == {topic: read[topic] for topic in again}


@pytest.mark.parametrize("has_controllers_log", [True, False])
def test_without_the_configs_of_its_broker_or_controller_nothing_goes_that_may_be_kept(
    kafka: KafkaDistribution, written: Written, data_dir: Path, *, has_controllers_log: bool
) -> None:
    log_dir = data_dir / "logs"
    controllers_log, aside = log_dir / "__cluster_metadata-0", data_dir / "aside"
    if not has_controllers_log:
        controllers_log.rename(aside)
    # What a topic states itself is known where the controller's log is.
    certain = {"superseded": GOING["superseded"]} if has_controllers_log else {}
    uncertain = {name: each for name, each in {**KEPT, **GOING}.items() if name not in certain}
    before = data_of(log_dir, uncertain)
    read = served_for_ten_days(written, log_dir, is_config_known=False)

    assert data_of(log_dir, uncertain) == before
    for topic in uncertain:
        assert read[topic] == written.records[topic]

    if not has_controllers_log:
        aside.rename(controllers_log)
    again = kafkas_again(kafka, data_dir, list(KEPT))
    assert again == {topic: written.records[topic] for topic in again}
