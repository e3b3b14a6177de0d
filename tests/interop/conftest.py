"""Fixtures of the interop tests: the distribution, and one run of the broker for all of them."""

from collections.abc import Iterator

import pytest
from apache_kafka import KafkaDistribution, KafkaUnavailableError
from kafka_runs import KafkaRun, run_scenarios
from log_oracle import KafkaLogs
from tools_java import JavaDriver

pytest.register_assert_rewrite("sides")  # its assertions speak for the tests that call it


@pytest.fixture(scope="session")
def kafka() -> KafkaDistribution:
    try:
        return KafkaDistribution.resolve()
    except KafkaUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka_run(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> KafkaRun:
    return run_scenarios(kafka, tmp_path_factory.mktemp("kafka"))


@pytest.fixture(scope="session")
def kafka_logs(kafka: KafkaDistribution) -> Iterator[KafkaLogs]:
    with KafkaLogs(kafka) as logs:
        yield logs


@pytest.fixture(scope="module")
def driver(kafka: KafkaDistribution) -> Iterator[JavaDriver]:
    try:
        driver = JavaDriver(kafka)
    except KafkaUnavailableError as error:
        pytest.skip(str(error))
    with driver:
        yield driver
