"""Reads the pages of the documentation and runs what they show.

A fenced block says by its language what becomes of it. The blocks of one page run in order, in one
directory and with one set of Python names:

    python    executed
    pycon     a doctest; ``...`` stands for anything
    console   ``$ command`` and what it prints. ``stratalog`` runs in this process, anything else in
              a shell; both must end with 0 unless ``$ echo $?`` comes next. ``…`` stands for
              anything, on a line of its own for any number of lines
    sh        commands that a test cannot run; only ``make`` targets that exist may stand there
"""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stratalog.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
# Pages that show Spark: they have a session while they run.
SPARK_PAGES = (
    "README.md",
    "docs/spark.md",
    "docs/spark-clusters.md",
    "docs/concepts/spark-sink.md",
    "docs/jobs/export.md",
    "docs/jobs/stats.md",
    "docs/jobs/verify.md",
)
# Pages that write: they find a directory ``data`` that a broker has made topics in.
WRITING_PAGES = ("docs/concepts/spark-sink.md",)
RUN_LANGUAGES = ("python", "pycon", "console", "sh")
SHOWN_LANGUAGES = ("", "text", "json", "properties")
SHELL_SECONDS = 30

_FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.S | re.M)
_ANYTHING = "…"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; ``line`` is where its code begins in the page."""

    page: str
    line: int
    language: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        yield Block(page_name(page), line, match["language"].strip(), match["code"])


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


class PageRun:
    """Runs the blocks of one page, in the current directory."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"__name__": "__page__"}

    def run(self, block: Block) -> None:
        if block.language == "python":
            exec(compile(block.code, block.place, "exec"), self._names)
        elif block.language == "pycon":
            self._run_doctest(block)
        elif block.language == "console":
            run_console(block)
        elif block.language == "sh":
            check_targets(block)
        else:
            assert block.language in SHOWN_LANGUAGES, f"{block.place}: what is {block.language!r}?"

    def _run_doctest(self, block: Block) -> None:
        parser = doctest.DocTestParser()
        test = parser.get_doctest(block.code, {}, block.place, block.place, block.line - 1)
        test.globs = self._names
        report = io.StringIO()
        runner = doctest.DocTestRunner(
            optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
        )
        runner.run(test, out=report.write, clear_globs=False)
        assert not runner.failures, report.getvalue()
        assert runner.tries, f"{block.place}: no >>> in it"


# --- console -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    printed: Sequence[str]


def commands(block: Block) -> list[Command]:
    found: list[Command] = []
    printed: list[str] = []
    for line in block.code.splitlines():
        if line.startswith("$ "):
            printed = []
            found.append(Command(line[2:], printed))
        else:
            printed.append(line.rstrip())
    assert found, f"{block.place}: a console without a command"
    return found


def run_console(block: Block) -> None:
    exit_code = 0
    shown = commands(block)
    for number, command in enumerate(shown):
        if command.line == "echo $?":
            printed, exit_code = f"{exit_code}\n", 0
        else:
            exit_code, printed = execute(command.line)
        following = shown[number + 1].line if number + 1 < len(shown) else ""
        assert exit_code == 0 or following == "echo $?", (
            f"{block.place}: {command.line} ended with {exit_code}:\n{printed}"
        )
        lines = [line.rstrip() for line in printed.splitlines()]
        assert is_shown(lines, command.printed), f"{block.place}: {command.line} printed\n{printed}"


def execute(line: str) -> tuple[int, str]:
    """Exit code and all that was printed."""
    program, _, rest = line.partition(" ")
    if program == "stratalog":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            return run(shlex.split(rest)), printed.getvalue()
    done = subprocess.run(
        line, shell=True, capture_output=True, text=True, timeout=SHELL_SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


def is_shown(lines: Sequence[str], shown: Sequence[str]) -> bool:
    """Whether ``shown`` is what was printed, but for what it leaves out."""
    if not shown:
        return not lines
    if shown[0] == _ANYTHING:
        return any(is_shown(lines[skip:], shown[1:]) for skip in range(len(lines) + 1))
    return bool(lines) and _is_line(lines[0], shown[0]) and is_shown(lines[1:], shown[1:])


def _is_line(line: str, shown: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.split(_ANYTHING))
    return re.fullmatch(pattern, line) is not None


# --- sh ------------------------------------------------------------------------------------------


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))


def check_targets(block: Block) -> None:
    for line in block.code.splitlines():
        match = re.fullmatch(r"make ([a-z-]+)( [A-Z]+=\S+)*( *#.*)?", line)
        assert match is not None, f"{block.place}: {line} is no make target; show it as console"
        assert match[1] in make_targets(), f"{block.place}: there is no target {match[1]}"
