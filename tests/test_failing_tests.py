"""What a run of the tests says of one that fails, while the others still run."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
STRICT = ("--strict-config", "--strict-markers", "-q", "-p", "no:cacheprovider")
SUITE = {
    "test_a": "def test_first():\n    assert 1 == 2, 'a reason\\nof two lines'",
    "test_b": "def test_second():\n    pass",
}


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite with the same conftest as this one."""
    for name in ("conftest.py", "failing_tests.py"):
        (pytester.path / name).write_text((HERE / name).read_text())
    return pytester


@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["one process", "workers"])
def test_a_test_that_fails_is_named_with_its_reason_before_the_next_one_ends(
    suite: pytest.Pytester, processes: tuple[str, ...]
) -> None:
    suite.makepyfile(**SUITE)

    ran = suite.runpytest_subprocess(*STRICT, *processes)

    ran.assert_outcomes(failed=1, passed=1)
    progress = ran.outlines[: ran.outlines.index(next(x for x in ran.outlines if "= FAIL" in x))]
    named = "FAILED test_a.py::test_first - AssertionError: a reason"
    assert named in progress
    assert progress[progress.index(named) + 1].startswith(".")


def test_a_fixture_and_a_module_that_fail_are_named_too(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_a="""
        import pytest

        @pytest.fixture
        def torn():
            yield
            raise ValueError("torn")

        def test_it(torn):
            pass
        """,
        test_b="import nothere",
    )

    ran = suite.runpytest_subprocess(*STRICT, "--continue-on-collection-errors")

    assert ran.outlines.count("ERROR test_b.py - ModuleNotFoundError: No module named 'nothere'")
    assert ran.outlines.count("ERROR test_a.py::test_it - ValueError: torn")


def test_a_run_that_names_each_test_says_nothing_twice(suite: pytest.Pytester) -> None:
    suite.makepyfile(**SUITE)

    ran = suite.runpytest_subprocess(*STRICT, "-v", "-v")

    ran.assert_outcomes(failed=1, passed=1)
    named = [line for line in ran.outlines if line.startswith("FAILED")]
    assert len(named) == 1  # in the summary
