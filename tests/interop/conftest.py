"""Fixtures of the interop tests: the distribution, and one run of the broker for all of them."""

import pytest
from apache_kafka import KafkaDistribution, KafkaUnavailableError
from kafka_runs import KafkaRun, run_scenarios


@pytest.fixture(scope="session")
def kafka() -> KafkaDistribution:
    try:
        return KafkaDistribution.resolve()
    except KafkaUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kafka_run(kafka: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> KafkaRun:
    return run_scenarios(kafka, tmp_path_factory.mktemp("kafka"))
