"""Questions to both sides, a few at a time: most of a question's life is waiting."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import pytest
from same_rows_cases import Options
from same_rows_sides import Answer, Side
from same_rows_streams import Streamed, run_stream

THREADS = 3


class Pair(NamedTuple):
    """What the connector answered, and what we did."""

    right: Any
    found: Any


class Questions:
    """Asks each question once; ``answers`` of the connector may be known from before.

    ``ask_for`` begins with all questions of the chosen tests, so that a test finds its own answered
    or under way.
    """

    def __init__(
        self,
        connector: Side,
        ours: Side,
        checkpoints: Path,
        answers: Mapping[str, Answer] | None = None,
    ) -> None:
        self.connector = connector
        self.ours = ours
        self._checkpoints = checkpoints
        self._asked: dict[tuple[str, str, str], Future[Any]] = {}
        for name, answer in (answers or {}).items():
            self._asked["batch", connector.format, name] = known = Future()
            known.set_result(answer)
        self._pool = ThreadPoolExecutor(THREADS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def ask_for(
        self,
        request: pytest.FixtureRequest,
        batches: Mapping[str, Options],
        streams: Mapping[str, Options] | None = None,
    ) -> None:
        """Tests say what they want by their parameter: ``name`` of a batch, or of a ``stream``."""
        for item in request.session.items:
            if isinstance(item, pytest.Function) and request.fixturename in item.fixturenames:
                params = item.callspec.params if hasattr(item, "callspec") else {}
                name, stream = str(params.get("name")), str(params.get("stream"))
                if item.module is request.module and name in batches:
                    self._ask_both("batch", name, batches[name])
                elif item.module is request.module and stream in (streams or {}):
                    self._ask_both("stream", stream, (streams or {})[stream])

    def batches(self, name: str, options: Options) -> Pair:
        return self._wait("batch", name, options)

    def streams(self, name: str, options: Options) -> Pair:
        return self._wait("stream", name, options)

    def _wait(self, kind: str, name: str, options: Options) -> Pair:
        right, found = self._ask_both(kind, name, options)
        return Pair(right.result(), found.result())

    def _ask_both(self, kind: str, name: str, options: Options) -> list[Future[Any]]:
        return [self._ask(kind, side, name, options) for side in (self.connector, self.ours)]

    def _ask(self, kind: str, side: Side, name: str, options: Options) -> Future[Any]:
        key = (kind, side.format, name)
        if key not in self._asked:
            checkpoint = self._checkpoints / side.format / str(len(self._asked))
            questions: dict[str, Callable[[], Answer | Streamed]] = {
                "batch": lambda: side.read(options),
                "stream": lambda: run_stream(side, options, checkpoint),
            }
            self._asked[key] = self._pool.submit(questions[kind])
        return self._asked[key]
