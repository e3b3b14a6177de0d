"""Hostile bytes never crash a kernel: a little of tests/records/fuzz.py in every run."""

import os

import pytest
from fuzz import TARGETS, run, run_case, valid_logs
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 2**32))
def test_any_mutation_of_a_valid_log_is_taken_or_refused(seed: int) -> None:
    run_case(seed, valid_logs())


def test_two_seconds_of_mutations_are_taken_or_refused() -> None:
    assert run(seconds=2, seed=10**6) > 100


@pytest.mark.deep
def test_minutes_of_new_mutations_are_taken_or_refused() -> None:
    """A new range of seeds a run; tools/fuzz-asan does the same under AddressSanitizer."""
    assert run(seconds=300, seed=int.from_bytes(os.urandom(6), "big")) > 10_000


def test_the_targets_have_names_to_be_reported_by() -> None:
    assert len({target.__name__ for target in TARGETS}) == len(TARGETS)
