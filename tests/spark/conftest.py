"""The session that all tests here share, in one process of pytest."""

from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.nodeid import NodeId

from spark_fixture import collect_what_pyspark_left, running_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two local threads. Mark the module: ``pytestmark = pytest.mark.xdist_group("spark")``."""
    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    collect_what_pyspark_left()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep groups together, also with a pytest that pytest-xdist does not know yet.

    The scheduler knows a group by the end of a test's id. pytest-xdist 3.8 writes it into an
    attribute that pytest 9.2 does not read any more, and without a word every process would get
    some of each group, and start a JVM, or a whole cluster, of its own.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        group = item.get_closest_marker("xdist_group")
        if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
            item._id = NodeId.parse(f"{item.nodeid}@{group.args[0]}")  # type: ignore[attr-defined]
