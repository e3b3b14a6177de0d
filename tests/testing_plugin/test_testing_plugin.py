"""The pytest plugin, in runs of pytest inside this one."""

import subprocess
import sys
from pathlib import Path

import pytest

# Imported here and not inside such a run, which forgets what it has imported.
from stratalog.testing import brokers as brokers

pytest_plugins = ["pytester"]

STRICT = ("--strict-config", "--strict-markers", "-W", "error", "-p", "no:cacheprovider")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*STRICT, *arguments)


def test_each_test_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        seen = set()

        def test_one(stratalog_broker):
            stratalog_broker.create_topic("orders")
            seen.add(stratalog_broker.pid)

        def test_other(stratalog_broker):
            stratalog_broker.create_topic("orders")
            seen.add(stratalog_broker.pid)
            assert len(seen) == 2
        """
    )

    run(pytester).assert_outcomes(passed=2)


def test_all_tests_share_the_broker_of_the_session(pytester: pytest.Pytester) -> None:
    shared = "def test_it(stratalog_session_broker):\n    stratalog_session_broker.{}\n"
    pytester.makepyfile(
        test_a=shared.format('create_topic("orders")'),
        test_b=shared.format("restart()"),
        test_c="""
        import pytest

        from stratalog.testing.topics import TopicNotMadeError

        def test_it(stratalog_session_broker, stratalog_broker):
            assert stratalog_broker.pid != stratalog_session_broker.pid
            with pytest.raises(TopicNotMadeError, match="exists"):
                stratalog_session_broker.create_topic("orders")
        """,
    )

    run(pytester).assert_outcomes(passed=3)


SETTINGS_OF_ALL = """
    import pytest

    @pytest.fixture(scope="session")
    def stratalog_settings():
        return {"num.partitions": 3, "log.roll.ms": 60_000}

    @pytest.fixture(scope="session")
    def stratalog_topics():
        return ["orders"]
"""

WHAT_A_BROKER_HAS = """
    import pytest
    from confluent_kafka.admin import AdminClient, ConfigResource

    def made(broker):
        client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        broker.create_topic("default", -1)
        topics = client.list_topics(timeout=60).topics
        return {name: len(topic.partitions) for name, topic in topics.items()}
"""


def test_settings_and_topics_may_be_overridden_for_all(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(SETTINGS_OF_ALL)
    pytester.makepyfile(
        WHAT_A_BROKER_HAS
        + """
    def test_one(stratalog_broker):
        assert made(stratalog_broker) == {"orders": 1, "default": 3}

    def test_shared(stratalog_session_broker):
        assert made(stratalog_session_broker) == {"orders": 1, "default": 3}
        """
    )

    run(pytester).assert_outcomes(passed=2)


def test_a_marker_adds_to_them_and_the_nearest_one_wins(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(SETTINGS_OF_ALL)
    pytester.makepyfile(
        WHAT_A_BROKER_HAS
        + """
    pytestmark = pytest.mark.stratalog(settings={"num.partitions": 4}, topics={"payments": 2})

    def test_modules(stratalog_broker):
        assert made(stratalog_broker) == {"orders": 1, "payments": 2, "default": 4}

    @pytest.mark.stratalog(settings={"num.partitions": 5}, topics={"orders": 6})
    def test_own(stratalog_broker):
        assert made(stratalog_broker) == {"orders": 6, "payments": 2, "default": 5}
        """
    )

    run(pytester).assert_outcomes(passed=2)


@pytest.mark.parametrize("arguments", ["{'num.partitions': 1}", "partitions=3"])
def test_a_marker_that_says_something_else_is_told(
    pytester: pytest.Pytester, arguments: str
) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.stratalog({arguments})
        def test_it(stratalog_broker):
            pass
        """
    )

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*takes settings={...} and topics={...}, nothing else*"])


def test_a_broker_that_does_not_start_is_an_error_with_its_reason(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.stratalog(settings={"num.partitons": 1})
        def test_it(stratalog_broker):
            pass
        """
    )

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean num.partitions[?]*"])


def test_a_failure_comes_with_what_the_broker_wrote(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.stratalog(topics=["orders"])
        def test_it(stratalog_broker):
            assert stratalog_broker.port == 0
        """
    )

    result = run(pytester)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*stratalog_broker*", "*topic_created topic=orders*"])


def test_a_run_of_pytest_leaves_nothing_and_needs_nothing_but_the_package(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A module of the tests' that has a name of the standard library's is no part of a broker.
    pytester.makepyfile(
        sqlite3="raise AssertionError('imported')",
        test_it="""
        def test_it(stratalog_broker):
            stratalog_broker.create_topic("orders")

        def test_other(stratalog_session_broker):
            stratalog_session_broker.create_topic("orders")
        """,
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    # Not by pytester, which would put the tests' directory where a broker looks for modules.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *STRICT],
        cwd=pytester.path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "2 passed" in done.stdout, done.stdout
    assert list(tmp_path.glob("stratalog-*")) == []


# --- what it costs those who do not use it -------------------------------------------------------


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_pytest_loads_three_small_modules_of_ours() -> None:
    without = modules_after("import pytest")
    loaded = modules_after("import pytest; import stratalog.testing.plugin")

    assert loaded - without == {"stratalog", "stratalog.testing", "stratalog.testing.plugin"}


def test_the_rest_of_testing_is_imported_when_it_is_used_and_never_with_pytest() -> None:
    light = modules_after("import stratalog.testing")
    used = modules_after("from stratalog.testing import broker, SimulatedFileSystem")

    assert {name for name in light if name.startswith("stratalog.")} == {"stratalog.testing"}
    assert not {"pytest", "_pytest", "stratalog.broker.server"} & used
