"""Reads the pages of the documentation and runs what they show.

A fenced block says by its language what becomes of it. The blocks of one page run in order, in one
directory and with one set of Python names:

    python      executed
    pycon       a doctest; ``...`` stands for anything
    console     ``$ command`` and what it prints; ``…`` stands for anything, on a line of its own
                for any number of lines. A command ends with 0 unless ``$ echo $?`` comes next
    sh          a command a line, whatever it prints; a comment may follow it, ``\\`` joins lines
    json        is JSON; properties and yaml likewise
    text        pictures: layouts of bytes and files, and what is printed where nobody can see it.
                Nothing that looks like a command may hide in one

A name behind the language, ``python test_orders.py``, makes it that file, for what comes after it.
``RUN_ELSEWHERE`` names the blocks that need what a page cannot have: a cluster, jars, minutes.
Tests of their own run these.
"""

import doctest
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from doc_shell import ROOT, Shell, in_shell
from stratalog.config.properties import parse_properties

# Pages that show Spark: they have a session while they run.
SPARK_PAGES = (
    "README.md",
    "docs/spark.md",
    "docs/spark-clusters.md",
    "docs/concepts/spark-sink.md",
    "docs/howto/compact-a-huge-topic.md",
    "docs/howto/query-a-copied-partition.md",
    "docs/jobs/compact.md",
    "docs/jobs/export.md",
    "docs/jobs/load.md",
    "docs/jobs/stats.md",
    "docs/jobs/verify.md",
    "docs/pipelines.md",
    "docs/testing.md",
)
# Pages that write: they find a directory ``data`` that a broker has made topics in.
WRITING_PAGES = ("docs/concepts/spark-sink.md", "docs/jobs/compact.md", "docs/jobs/load.md")

_CLUSTER = "tests/docs/test_pages_on_a_cluster.py"
_IMAGES = "tests/interop/test_pages_of_images.py"
_JARS = "tests/interop/test_pages_with_jars.py"
_YARN = "tests/interop/test_pages_on_yarn.py"
_EXPORT = "stratalog spark export lake/orders --log-dir /var/lib/stratalog --topic orders "
# What is not run among its page: the page and how the block begins, and the tests that run it.
RUN_ELSEWHERE = {
    ("docs/spark.md", "stratalog spark sql"): _CLUSTER,
    ("docs/spark-clusters.md", "from stratalog.spark.session"): _CLUSTER,
    ("docs/spark-clusters.md", "stratalog spark sql"): _CLUSTER,
    ("docs/spark-clusters.md", "export PYSPARK_PYTHON"): _YARN,
    ("docs/spark-clusters.md", "spark-submit --master yarn"): _YARN,
    ("docs/spark-clusters.md", "pip wheel"): _IMAGES,
    ("docs/spark-clusters.md", "FROM spark"): _IMAGES,
    ("docs/demo.md", "stratalog demo "): "tests/docs/test_pages_of_the_demo.py",
    ("docs/jobs/export.md", _EXPORT + "--packages"): _JARS,
    ("docs/jobs/export.md", _EXPORT + "--format delta"): _JARS,
}

_LOOKS_LIKE_A_COMMAND = re.compile(
    r"^(?:\$ |stratalog (?!is |\.)|make |pip |curl |spark\.|spark-submit|import |from \w.* import "
    r"|export |FROM |[A-Z_]+=\S+ \w|\w+\.(?:read|write)\w*\.)",
    re.M,
)
_FENCE = re.compile(r"^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.S | re.M)
_ANYTHING = "…"


def pages() -> list[Path]:
    top = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; ``line`` is where its code begins in the page."""

    page: str
    line: int
    language: str
    code: str
    file: str = ""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def run_by(self) -> str:
        """The tests that run it, if it does not run among its page."""
        for (page, beginning), tests in RUN_ELSEWHERE.items():
            if page == self.page and self.code.startswith(beginning):
                return tests
        return ""


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        language, _, file = match["language"].strip().partition(" ")
        yield Block(page_name(page), line, language, match["code"], file)


def block_of(page: str, beginning: str) -> Block:
    """The one block of a page that begins so."""
    (found,) = [each for each in blocks(ROOT / page) if each.code.startswith(beginning)]
    return found


def run_script(block: Block, *, instead: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Run a whole block in a process of its own, in the current directory; returns what it printed.

    ``instead`` has what stands in the place of addresses and paths that are shown. All of them have
    to be shown.
    """
    code = block.code
    for shown, real in instead.items():
        assert shown in code, f"{block.place} does not show {shown}"
        code = code.replace(shown, real)
    if block.language == "python":
        Path("block.py").write_text(code)
        code = "python block.py"
    exit_code, printed = in_shell(f"set -e\n{code}", environment)
    assert exit_code == 0, f"{block.place} ended with {exit_code}: {printed[-5000:]}"
    return printed


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


class PageRun:
    """Runs the blocks of one page, in the current directory; closing it stops its broker."""

    def __init__(self) -> None:
        self._names: dict[str, Any] = {"__name__": "__page__"}
        self._shell = Shell()

    def close(self) -> None:
        self._names.clear()  # clients that a page left open would go on looking for their broker
        self._shell.close()

    def run(self, block: Block) -> None:
        if block.run_by:
            return
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(self._shell.told(block.code))
            if block.language in ("python", "sh", "csv"):
                return
        ways = {
            "python": self._run_python,
            "pycon": self._run_doctest,
            "console": self._run_console,
            "sh": self._run_commands,
            "json": lambda block: json.loads(block.code),
            "properties": lambda block: parse_properties(block.code.encode()),
            "yaml": lambda block: yaml.safe_load(block.code),
            "text": look_for_commands,
        }
        assert block.language in ways, f"{block.place}: what is {block.language!r}?"
        ways[block.language](block)

    def _run_python(self, block: Block) -> None:
        exec(compile(self._shell.told(block.code), block.place, "exec"), self._names)

    def _run_doctest(self, block: Block) -> None:
        parser = doctest.DocTestParser()
        code = self._shell.told(block.code)
        test = parser.get_doctest(code, {}, block.place, block.place, block.line - 1)
        test.globs = self._names
        report = io.StringIO()
        runner = doctest.DocTestRunner(
            optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
        )
        runner.run(test, out=report.write, clear_globs=False)
        assert not runner.failures, report.getvalue()
        assert runner.tries, f"{block.place}: no >>> in it"

    def _run_console(self, block: Block) -> None:
        exit_code = 0
        shown = commands(block)
        for number, command in enumerate(shown):
            if command.line == "echo $?":
                printed, exit_code = f"{exit_code}\n", 0
            else:
                exit_code, printed = self._shell.execute(command.line)
            following = shown[number + 1].line if number + 1 < len(shown) else ""
            assert exit_code == 0 or following == "echo $?", (
                f"{block.place}: {command.line} ended with {exit_code}:\n{printed}"
            )
            lines = [line.rstrip() for line in printed.splitlines()]
            assert is_shown(lines, command.printed), (
                f"{block.place}: {command.line} printed\n{printed}"
            )

    def _run_commands(self, block: Block) -> None:
        for line in block.code.replace("\\\n", "").splitlines():
            command = re.sub(r"(?:^|\s+)#(?: .*)?$", "", line).rstrip()
            if command:
                exit_code, printed = self._shell.execute(command)
                assert exit_code == 0, f"{block.place}: {command} ended with {exit_code}: {printed}"


def look_for_commands(block: Block) -> None:
    found = _LOOKS_LIKE_A_COMMAND.search(block.code)
    assert found is None, f"{block.place}: {found} is to be run: sh, console or python"


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
