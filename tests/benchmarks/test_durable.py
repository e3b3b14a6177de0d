"""The rows of durable brokers side by side: ours by Apache Kafka's, and what they must reach."""

import pytest
from benchmarks.broker_cost import Cost
from benchmarks.broker_figures import SYNCED
from benchmarks.durable import CASES, latency_rows, load_rows
from benchmarks.measurement import KAFKA


@pytest.mark.parametrize(("ours", "is_met"), [(420.0, True), (421.0, False)])
def test_one_record_takes_no_longer_than_in_apache_kafka(ours: float, is_met: bool) -> None:
    rounds = [{SYNCED: [ours] * 100, KAFKA.name: [420.0] * 100}] * 3

    rows = list(latency_rows(rounds))

    assert [row.id for row in rows] == ["durable.p50", "durable.p99"]
    assert [row.is_met for row in rows] == [is_met, is_met]


@pytest.mark.parametrize(("number", "times"), [(0, 1.8), (1, 5.0)])
def test_throughput_is_held_against_the_bar_of_its_number_of_producers(
    number: int, times: float
) -> None:
    kafka = [Cost(cpu_s_per_gb=10.0, mb_per_s=10.0)]

    for mb_per_s, is_met in ((10 * times, True), (9.9 * times, False)):
        costs = {SYNCED: [Cost(2.0, mb_per_s)], KAFKA.name: kafka}
        rate, cpu = load_rows(CASES[number], costs)
        assert (rate.is_met, cpu.is_met) == (is_met, True)


def test_without_apache_kafka_ours_is_told_alone() -> None:
    rate, cpu = load_rows(CASES[0], {SYNCED: [Cost(2.0, 50.0)]})

    assert (rate.ours.median, rate.theirs, rate.is_met) == (50.0, None, None)
    assert cpu.theirs is None
