"""The demo from its first line to its exit code: which scenes, in which order, and the end.

0 if all that was shown was also found to be so, 1 if something was not or went wrong, and 130 after
a Ctrl-C. However it ends, nothing of it runs on.
"""

import os
import shlex
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.text import Text

from stratalog.demo.data import DAY_MS, minute_text
from stratalog.demo.errors import DemoError
from stratalog.demo.folder import DemoFolder, open_folder
from stratalog.demo.scenes_clients import (
    crash,
    produce,
    read_as_group,
    show_segments,
    start_broker,
)
from stratalog.demo.scenes_keeping import delete_old, verify_all
from stratalog.demo.scenes_spark import (
    compact_customers,
    land_in_parquet,
    load_in_bulk,
    query_an_hour,
)
from stratalog.demo.screen import Screen
from stratalog.demo.session import check_spark, settle_environment
from stratalog.demo.stage import (
    DELIVERIES,
    ORDERS,
    Check,
    Outcome,
    Sizes,
    Stage,
    own_output,
    stage,
)
from stratalog.demo.stopping import Stopped, stoppable
from stratalog.errors import StratalogError

# What moves hides it, and may have been stopped at any point.
_SHOW_CURSOR = "\x1b[?25h"

SCENES: tuple[tuple[str, str, Callable[[Stage], Outcome]], ...] = (
    ("start", "A broker starts", start_broker),
    ("produce", "A Kafka client produces two weeks of a shop", produce),
    ("segments", "The log on disk: segments, rolled when they are full", show_segments),
    ("group", "A consumer group reads it", read_as_group),
    ("query", "Spark asks the files for one hour", query_an_hour),
    ("stream", "A Spark stream lands it in Parquet", land_in_parquet),
    ("compaction", "Spark compacts what customers have changed", compact_customers),
    ("retention", "Retention deletes what is old", delete_old),
    ("crash", "The broker is killed while a client produces", crash),
    ("load", "Spark loads in bulk", load_in_bulk),
    ("verify", "Everything is verified", verify_all),
)


def play(directory: Path, *, scale: float = 1.0) -> int:
    """Run the demo in ``directory``; its exit code."""
    if sys.stdout is None or sys.stderr is None:
        raise DemoError("The demo has nowhere to show itself: standard output is closed.")
    check_spark()
    settle_environment()
    with open_folder(directory) as folder:
        try:
            with stoppable() as request, own_output(folder.others) as output:
                screen = Screen(output, scenes=len(SCENES), look_up=request.look_up)
                return _run(folder, screen, Sizes(scale))
        except (Stopped, KeyboardInterrupt) as stopped:
            if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
                sys.stdout.write(_SHOW_CURSOR)
            sys.stdout.write(f"\nStopped; what there was until then is in {_near(folder.path)}.\n")
            return 128 + (stopped.args[0] if stopped.args else signal.SIGINT)


def _run(folder: DemoFolder, screen: Screen, sizes: Sizes) -> int:
    screen.title(
        "stratalog: Kafka's log, in Python, open to Spark",
        f"A broker, Kafka clients and Spark at work in {_near(folder.path)}; all of it is real.",
    )
    began = time.monotonic()
    rows: list[tuple[str, str, str, str]] = []
    with stage(folder, screen, sizes) as made:
        for name, title, scene in SCENES:
            screen.scene(title)
            scene_began = time.monotonic()
            outcome = _played(scene, made)
            took = f"{time.monotonic() - scene_began:.1f} s"
            rows.append((name, outcome.what, outcome.speed, took))
    shutil.rmtree(folder.spark, ignore_errors=True)
    rows.append(("all", "", "", f"{time.monotonic() - began:.1f} s"))
    screen.console.print()
    screen.console.print(Text("What happened, and how fast", style="bold cyan"))
    screen.table(("", "what", "how fast", "in all"), rows, right="3")
    _say_what_is_next(made)
    return exit_code(made.checks)


def exit_code(checks: Sequence[Check]) -> int:
    """0 if there is something to show for, and all of it is so."""
    return 0 if checks and all(each.holds for each in checks) else 1


def _played(scene: Callable[[Stage], Outcome], made: Stage) -> Outcome:
    """What went wrong in one sentence; what another library has to say about it goes to a file."""
    try:
        return scene(made)
    except StratalogError:
        raise
    except Exception as error:
        traceback.print_exc()
        first, *others = str(error).strip().splitlines() or [""]
        # What a worker of Spark's says has the reason at its end.
        said = f"{first} {others[-1].strip()}" if first.endswith(":") and others else first
        where = _near(made.folder.others)
        raise DemoError(f"{type(error).__name__}: {said} (more in {where})") from error


def _say_what_is_next(made: Stage) -> None:
    screen, folder = made.screen, made.folder
    screen.console.print()
    left = (
        f"{_near(folder.path)} is left behind: data has the logs, parquet what the stream landed."
    )
    screen.say(left)
    screen.say("Three commands to try next:")
    for command in next_commands(folder, made.end_ms):
        screen.command(" ".join(map(_quoted, command)))


def next_commands(folder: DemoFolder, end_ms: int) -> list[list[str]]:
    """They work as they are, in the shell from which the demo was started."""
    program, data = _program(), _near(folder.data)
    since = minute_text(end_ms - DAY_MS)
    query = f"SELECT partition, count(*) AS records FROM {DELIVERIES} GROUP BY partition"
    return [
        [*program, "scan", "explain", "--log-dir", data, "--topic", ORDERS,
         "--where", f"timestamp >= '{since}:00'"],
        [*program, "spark", "sql", query, "--log-dir", data],
        [*program, "serve", "--log-dir", data],
    ]  # fmt: skip


def _quoted(word: str) -> str:
    """For a shell; conditions hold single quotes, so that double ones are easier to read."""
    if "'" in word and not set('"$`\\!').intersection(word):
        return f'"{word}"'
    return shlex.quote(word)


def _program() -> list[str]:
    """How the shell finds this very stratalog."""
    beside = Path(sys.executable).with_name("stratalog")
    if not beside.exists():
        return [sys.executable, "-m", "stratalog"]
    found = shutil.which("stratalog")
    if found is not None and Path(found).resolve() == beside.resolve():
        return ["stratalog"]
    return [_near(beside)]


def _near(path: Path) -> str:
    """As seen from where we are, if it is below."""
    here = Path.cwd()
    absolute = path.absolute()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(absolute)
