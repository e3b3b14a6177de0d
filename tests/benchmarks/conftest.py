"""Nothing is fetched for these tests: the peers are left out."""

from collections.abc import Iterator

import pytest
from benchmarks.peers import ALONE_VARIABLE, why_no_connector, why_no_kafka


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(ALONE_VARIABLE, "1")
    for asked in (why_no_kafka, why_no_connector):
        asked.cache_clear()
    yield
    for asked in (why_no_kafka, why_no_connector):
        asked.cache_clear()
