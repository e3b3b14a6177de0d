"""How far a long command has come: a bar on stderr, if a person is watching, and nothing else.

All bars are transient: what stays on the terminal is the command's own output. While a bar is drawn
nothing should be written: it would go through the bar.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stratalog.cli.output import is_watched

if TYPE_CHECKING:
    from rich.progress import Progress

    from stratalog.spark.jobs.progress import TaskCounts
    from stratalog.storage.loading import LoadProgress


def log_bytes(replicas: Iterable[str]) -> int:
    """How much there is to read of these logs, about: only for a bar."""
    from stratalog.errors import StratalogError
    from stratalog.storage.files import OsFileSystem
    from stratalog.storage.inspection import list_replica

    total = 0
    for directory in replicas:
        try:
            segments = list_replica(OsFileSystem(), directory).segments
        except StratalogError:
            continue
        total += sum(segment.size_bytes for segment in segments)
    return total


@contextmanager
def bytes_bar(what: str, count_total: Callable[[], int | None]) -> Iterator[Callable[[int], None]]:
    """Is told how many bytes more were worked on; the bar has MB/s.

    ``count_total`` is called only if there is a bar; None if nobody knows the total.
    """
    if not is_watched():
        yield lambda _bytes: None
        return
    with _bars(counts_bytes=True) as bars:
        task = bars.add_task(what, total=count_total())
        yield lambda size_bytes: bars.advance(task, size_bytes)


@contextmanager
def tasks_bar(what: str) -> Iterator["Callable[[TaskCounts], None] | None"]:
    """Is told how many of Spark's tasks are done; None if nobody watches."""
    if not is_watched():
        yield None
        return
    with _bars() as bars:
        task = bars.add_task(f"{what}: tasks", total=None)
        yield lambda counts: bars.update(task, completed=counts.done, total=counts.known or None)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Says what is being waited for, where nobody knows how far it is."""
    if not is_watched():
        yield
        return
    with _bars() as bars:
        bars.add_task(what, total=None)
        yield


@contextmanager
def logs_bars(
    what: str,
) -> Iterator[tuple[Callable[["LoadProgress"], None], Callable[[int], None]]]:
    """Two bars: how many logs are open, and of how many ``what`` is done."""
    if not is_watched():
        yield lambda _progress: None, lambda _total: None
        return
    with _bars() as bars:
        opening = bars.add_task("opening logs", total=None)
        working = bars.add_task(what, total=None)

        def show_opening(progress: "LoadProgress") -> None:
            bars.update(opening, total=progress.logs_total, completed=progress.logs_done)

        def show_done(total: int) -> None:
            bars.update(working, total=total, advance=1)

        yield show_opening, show_done


@contextmanager
def _bars(*, counts_bytes: bool = False) -> Iterator["Progress"]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )

    counted = (
        (DownloadColumn(), TransferSpeedColumn())
        if counts_bytes
        else (MofNCompleteColumn(), TimeElapsedColumn())
    )
    columns = (TextColumn("{task.description}"), BarColumn(), *counted)
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bars:
        yield bars
