"""The same log, cleaned by Apache Kafka's own cleaner and by ours: the same files are left."""

from pathlib import Path

import pytest
from cleaning_histories import HISTORIES
from log_oracle import KafkaLogs
from sides import Sides

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("name", HISTORIES)
def test_every_cleaning_leaves_what_kafkas_leaves(
    kafka_logs: KafkaLogs, tmp_path: Path, name: str
) -> None:
    sides = Sides.of(HISTORIES[name], tmp_path)

    for number, cleaning in enumerate(sides.history.rounds):
        sides.clean(kafka_logs, cleaning)

        assert sides.differences() == []
        sides.level(number)
