"""Rounds that are planned where no broker runs: by the settings that the last one had."""

from pathlib import Path

import pytest

from left_directories import leave
from stratalog.handover.compacting import Compactions, PlannedRounds
from stratalog.handover.errors import HandoverError

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
LEASE = "0" * 32


def planned(path: Path, **config: str) -> PlannedRounds:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    compactions = Compactions(str(path), LEASE, config=settings)
    return compactions.plan(["orders"], None, seconds=60, is_forced=True)


def test_a_round_goes_by_the_settings_that_the_last_broker_had(tmp_path: Path) -> None:
    leave(tmp_path, {"orders": COMPACTED}, server={"log.cleaner.delete.retention.ms": "123456"})

    (found,) = planned(tmp_path, log_cleaner_threads="2").rounds

    assert found.plan.config.delete_retention_ms == 123456


def test_settings_that_would_remove_more_are_refused(tmp_path: Path) -> None:
    leave(tmp_path, {"orders": COMPACTED}, server={"log.cleaner.delete.retention.ms": "123456"})

    with pytest.raises(HandoverError, match=r"delete\.retention\.ms=123456 of its broker; with"):
        planned(tmp_path, log_cleaner_delete_retention_ms="0")

    assert planned(tmp_path, log_cleaner_delete_retention_ms="200000").rounds
