"""Results that a test makes up: a figure beside a rival's, and the run that it is of."""

from dataclasses import replace
from typing import Any

from benchmarks.measurement import KAFKA, Measurement, Outcome, Peer, Series, higher, lower
from benchmarks.results import Results, Run

YARDSTICK = Peer("bare bytes", is_rival=False)
RUN = Run(date="2026-01-02", seconds=1.5, commit="abc", source="def", command="make bench ONLY=x")
FAILED = replace(RUN, why_not="the disk is full")


def cost(id_: str, ours: float, theirs: float | None = None, **rest: Any) -> Measurement:
    """Less is better; beside Apache Kafka unless told otherwise."""
    rest.setdefault("peer", KAFKA)
    return lower(id_, f"cost of {id_}", "µs", [ours], None if theirs is None else [theirs], **rest)


def rate(id_: str, ours: float, theirs: float | None = None, **rest: Any) -> Measurement:
    rest.setdefault("peer", KAFKA)
    return higher(
        id_, f"rate of {id_}", "MB/s", [ours], None if theirs is None else [theirs], **rest
    )


def line(plot: str, name: str = "stratalog") -> Series:
    return Series(plot=plot, name=name, points=[[1, 10, 9, 12], [10, 20, 18, 22]])


def results(**found: list[Outcome]) -> Results:
    """By entry; underscores for dashes."""
    made = Results(
        machine={"cpu": "a CPU", "cores": 2, "memory_gb": 8.0, "kernel": "6", "disk": "ext4"},
        versions={"python": "3.11", "kafka": "4.3.1", "spark": None},
    )
    for name, outcomes in found.items():
        made.merge(name.replace("_", "-"), RUN, outcomes)
    return made
