"""The pytest plugin: a broker for each test that asks for one, or one for the whole run.

    stratalog_broker           a new one for each test
    stratalog_session_broker   one for all tests of the run; a worker of pytest-xdist has its own
    stratalog_settings         settings of both, by Kafka's names: override it
    stratalog_topics           topics of both: override it

``@pytest.mark.stratalog(settings={...}, topics={...})`` adds to them for one test, class or module,
and counts for ``stratalog_broker`` only.

Rule: whoever has stratalog installed and does not use this does not pay for it. pytest loads this
module in every run, so that it imports nothing but pytest; a fixture imports what it needs.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from stratalog.testing.brokers import RunningBroker, Settings, Topics

_MARKER = "stratalog"
_ARGUMENTS = frozenset({"settings", "topics"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(settings={{}}, topics={{}}): settings and topics of the broker that the "
        "fixture stratalog_broker starts for a test",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """With a failure, what the test's brokers wrote."""
    if call.when != "call" or call.excinfo is None:
        return
    for name in ("stratalog_broker", "stratalog_session_broker"):
        running: Any = getattr(item, "funcargs", {}).get(name)
        if hasattr(running, "events"):  # or it is somebody's own fixture of that name
            item.add_report_section("call", name, running.events())


@pytest.fixture(scope="session")
def stratalog_settings() -> "Settings":
    """Settings of the brokers that fixtures start, by Kafka's names; override it."""
    return {}


@pytest.fixture(scope="session")
def stratalog_topics() -> "Topics":
    """Topics that brokers have when a test begins: names, or names with numbers of partitions;
    override it."""
    return {}


@pytest.fixture
def stratalog_broker(
    request: pytest.FixtureRequest, stratalog_settings: "Settings", stratalog_topics: "Topics"
) -> Iterator["RunningBroker"]:
    """A broker on a free port, with an empty temporary directory, for one test."""
    from stratalog.testing.brokers import broker, by_name

    settings: dict[str, Any] = dict(stratalog_settings)
    topics = by_name(stratalog_topics)
    # From the module's marker to the test's own: the nearest has the last word.
    for marker in reversed(list(request.node.iter_markers(_MARKER))):
        if marker.args or not _ARGUMENTS.issuperset(marker.kwargs):
            raise pytest.UsageError(
                f"@pytest.mark.{_MARKER} takes settings={{...}} and topics={{...}}, nothing else"
            )
        settings.update(marker.kwargs.get("settings", {}))
        topics.update(by_name(marker.kwargs.get("topics", {})))
    with broker(settings, topics=topics) as running:
        yield running


@pytest.fixture(scope="session")
def stratalog_session_broker(
    stratalog_settings: "Settings", stratalog_topics: "Topics"
) -> Iterator["RunningBroker"]:
    """One broker for all tests of the run, with what they leave in it."""
    from stratalog.testing.brokers import broker

    with broker(stratalog_settings, topics=stratalog_topics) as running:
        yield running
