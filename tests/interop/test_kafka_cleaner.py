"""The same log, cleaned by Apache Kafka's own cleaner and by ours: the same files are left."""

from pathlib import Path

import pytest
from cleaning_histories import HISTORIES
from histories import START_MS, History, OldPut, Roll, Round
from log_oracle import KafkaLogs
from replaying import contents
from sides import Sides, UncleanableError

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


def test_a_message_of_old_that_would_end_the_range_as_an_empty_batch_is_cleaned_by_neither(
    kafka_logs: KafkaLogs, tmp_path: Path
) -> None:
    message = (b"key", b"value", START_MS)
    superseded = [OldPut([message], 1), OldPut([(None, b"no key", START_MS)], 1), Roll()]
    sides = Sides.of(History([*superseded, OldPut([message], 1)]), tmp_path)
    before = contents(sides.ours)

    with pytest.raises(UncleanableError):
        sides.clean(kafka_logs, Round())

    after = contents(sides.ours)
    assert after.keys() == before.keys()
    assert [after[name] for name in after if name.endswith(".log")] == [
        before[name] for name in after if name.endswith(".log")
    ]
