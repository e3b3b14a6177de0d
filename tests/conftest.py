"""Hypothesis profiles: the default is small and repeatable, ``deep`` is long and random.

And what hears of failing tests, so that each is named when it fails.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from failing_tests import FailingTests

settings.register_profile(
    "default",
    max_examples=50,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "deep",
    max_examples=2_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FailingTests(config))
