"""The segments that retention deletes: the same ones as Apache Kafka's, under the same clock."""

from pathlib import Path

import pytest
from histories import START_MS, Age, History, Put, Roll, Step
from hypothesis import given
from hypothesis import strategies as st
from log_oracle import KafkaLogs
from sides import Sides, scratch_directory

from stratalog.records import Record

pytestmark = pytest.mark.interop

HOUR_MS = 3_600_000
# Of a log that starts at its end. Kafka opens it without any epoch, though segments may be left; we
# read their batches' epochs again. Its empty snapshot goes with one start and comes with the next.
UNLIKE = ("leader-epoch-checkpoint", ".snapshot")


def segment(timestamp_ms: int, size_bytes: int = 100, *, modified_ms: int = START_MS) -> list[Step]:
    """A segment of its own, of one batch; a timestamp of -1 leaves its age to its files."""
    record = Record(b"key", b"v" * size_bytes, timestamp_ms=timestamp_ms)
    return [Roll(), Put([record]), Age(modified_ms)]


HOURLY = History(
    [step for hour in range(8) for step in segment(START_MS + hour * HOUR_MS, hour * 50)],
    configs={"internal.segment.bytes": "100000"},
)


@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete", ""])
@pytest.mark.parametrize("hours", [0, 1, 4, 7, 8, 100])
def test_time_retention_deletes_what_kafka_deletes(
    kafka_logs: KafkaLogs, tmp_path: Path, policy: str, hours: int
) -> None:
    sides = Sides.of(HOURLY, tmp_path)

    # A millisecond earlier and later than the hour: the comparison is strict.
    for now_ms in (START_MS + hours * HOUR_MS, START_MS + hours * HOUR_MS + 1):
        configs = {"cleanup.policy": policy, "retention.ms": str(HOUR_MS)}
        sides.retain(kafka_logs, configs, now_ms=now_ms)

        assert sides.differences() == []


@pytest.mark.parametrize("retention_bytes", [-1, 0, 1, 100, 700, 701, 1_500, 2_400, 10_000])
def test_size_retention_deletes_what_kafka_deletes(
    kafka_logs: KafkaLogs, tmp_path: Path, retention_bytes: int
) -> None:
    sides = Sides.of(HOURLY, tmp_path)
    configs = {"retention.ms": "-1", "retention.bytes": str(retention_bytes)}

    sides.retain(kafka_logs, configs, now_ms=START_MS)

    assert sides.differences() == []


timestamps = st.sampled_from([-1, *(START_MS + hour * HOUR_MS for hour in range(-2, 5))])
segments = st.builds(
    segment,
    timestamps,
    st.integers(0, 400),
    modified_ms=st.integers(-3, 4).map(lambda hour: START_MS + hour * HOUR_MS),
)


@given(
    history=st.lists(segments, min_size=1, max_size=7),
    ends_empty=st.booleans(),
    policy=st.sampled_from(["delete", "delete", "compact", "compact,delete", ""]),
    retention_ms=st.sampled_from([-1, 0, 1, HOUR_MS - 1, HOUR_MS, 2 * HOUR_MS]),
    retention_bytes=st.one_of(st.just(-1), st.integers(0, 2_500)),
    hours=st.lists(st.integers(-1, 6), min_size=1, max_size=3),
    offsets=st.tuples(st.integers(0, 8), st.integers(0, 8)),
)
def test_any_retention_deletes_what_kafka_deletes(
    kafka_logs: KafkaLogs,
    history: list[list[Step]],
    ends_empty: bool,
    policy: str,
    retention_ms: int,
    retention_bytes: int,
    hours: list[int],
    offsets: tuple[int, int],
) -> None:
    steps = [step for made in history for step in made] + [Roll()] * ends_empty
    configs = {
        "cleanup.policy": policy,
        "retention.ms": str(retention_ms),
        "retention.bytes": str(retention_bytes),
    }
    with scratch_directory() as root:
        sides = Sides.of(History(steps, configs={"internal.segment.bytes": "100000"}), root)
        log_start_offset, high_watermark = sorted(min(each, len(history)) for each in offsets)

        for hour in hours:
            answer = sides.retain(
                kafka_logs,
                configs,
                now_ms=START_MS + hour * HOUR_MS,
                high_watermark=max(high_watermark, log_start_offset),
                log_start_offset=log_start_offset,
            )

            assert sides.differences(ignoring=UNLIKE) == []
            log_start_offset = answer["log_start_offset"]
