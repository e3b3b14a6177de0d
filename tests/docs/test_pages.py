"""What the documentation shows is true: it is run, and its links and names are looked up."""

import ast
import re
import shlex
import shutil
from functools import cache
from pathlib import Path

import pytest
from doc_pages import (
    ROOT,
    SPARK_PAGES,
    WRITING_PAGES,
    Block,
    PageRun,
    blocks,
    is_shown,
    page_name,
    pages,
    prose,
    run_console,
)
from typer.main import get_command

from stratalog.cli.app import app

SOURCE = ROOT / "src" / "stratalog"
CONCEPTS = ROOT / "docs" / "concepts"
CONCEPT_PAGES = (
    "broker",
    "commit",
    "compaction",
    "durability",
    "groups",
    "leases",
    "log-directory",
    "producer-state",
    "record-batch",
    "recovery",
    "retention",
    "scan",
    "scan-plan",
    "segment",
    "spark-sink",
    "sparse-index",
    "time-ranges",
)
JOB_PAGES = ("compact", "export", "load", "stats", "verify")
CONCEPT_HEADS = ["What", "Layout", "Rules that always hold", "Where in the code"]
ARCHITECTURE_LINES_MAX = 330

every_page = pytest.mark.parametrize("page", pages(), ids=page_name)

in_sparks_process = pytest.mark.xdist_group("spark")
every_page_that_runs = pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=in_sparks_process if page_name(page) in SPARK_PAGES else ())
        for page in pages()
    ],
    ids=[page_name(page) for page in pages()],
)


@every_page_that_runs
def test_everything_a_page_shows_happens_as_shown(
    page: Path, page_directory: Path, request: pytest.FixtureRequest
) -> None:
    if page_name(page) in SPARK_PAGES:
        request.getfixturevalue("spark")
    if page_name(page) in WRITING_PAGES:
        shutil.copytree(request.getfixturevalue("made_topics"), page_directory / "data")
    run = PageRun()
    for block in blocks(page):
        run.run(block)


@every_page
def test_every_command_line_that_is_only_shown_can_be_understood(page: Path) -> None:
    for block in blocks(page):
        for line in block.code.splitlines():
            if block.language == "" and line.startswith("stratalog "):
                parse(line)


def parse(line: str) -> None:
    """Read a command line as ``stratalog`` does, and do nothing; raises if it is wrong."""
    _, *arguments = shlex.split(line, comments=True)
    command = get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    command.make_context(line, arguments)


@every_page
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
        place, _, anchor = target.partition("#")
        if place.startswith("https://"):
            continue
        linked = (page.parent / place).resolve() if place else page
        assert linked.exists(), f"{page_name(page)} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page_name(page)} links to {target}"


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@every_page
def test_every_source_file_that_is_named_exists(page: Path) -> None:
    for name in re.findall(r"`([\w./-]+\.(?:pyx|pyi|pxi|py|h))`", prose(page)):
        found = (ROOT / name).exists() or (SOURCE / name).exists()
        assert found or ("/" not in name and list(SOURCE.rglob(name))), f"{page}: {name}"


@every_page
def test_every_member_that_is_named_exists(page: Path) -> None:
    known = members()
    for owner, member in re.findall(r"`([A-Z]\w+)\.(\w+)`", prose(page)):
        assert owner in known, f"{page_name(page)}: there is no class {owner}"
        assert member in known[owner], f"{page_name(page)}: {owner} has no {member}"


@cache
def members() -> dict[str, frozenset[str]]:
    """Methods and attributes of every class, as the source has them."""
    found: dict[str, set[str]] = {}
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(names_in(node))
    return {name: frozenset(held) for name, held in found.items()}


def names_in(owner: ast.ClassDef) -> set[str]:
    held = set()
    for node in ast.walk(owner):
        if isinstance(node, ast.FunctionDef):
            held.add(node.name)
        elif isinstance(node, ast.Name):
            held.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            held.add(node.attr)
    return held


@pytest.mark.parametrize("name", CONCEPT_PAGES)
def test_a_concept_has_one_page_with_the_same_four_heads(name: str) -> None:
    text = (CONCEPTS / f"{name}.md").read_text()

    assert re.findall(r"^## (.*)$", text, re.M) == CONCEPT_HEADS
    assert len(re.findall(r"^# ", text, re.M)) == 1


@pytest.mark.parametrize("name", JOB_PAGES)
def test_a_job_has_one_page_with_those_heads_too(name: str) -> None:
    text = (ROOT / "docs" / "jobs" / f"{name}.md").read_text()

    assert re.findall(r"^## (.*)$", text, re.M) == CONCEPT_HEADS


def test_the_architecture_can_be_read_in_one_go() -> None:
    lines = (ROOT / "docs" / "ARCHITECTURE.md").read_text().splitlines()

    assert len(lines) <= ARCHITECTURE_LINES_MAX


# --- the runner itself ---------------------------------------------------------------------------


def shown(code: str, language: str = "console") -> Block:
    return Block("page", 1, language, code)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "b", "c"], ["a", "…"]),
        (["a", "b", "c"], ["…", "c"]),
        (["a"], ["…", "a", "…"]),
        (["read at 12 MB/s"], ["read at … MB/s"]),
    ],
)
def test_what_a_page_leaves_out_may_be_anything(lines: list[str], expected: list[str]) -> None:
    assert is_shown(lines, expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "b"], ["a"]),
        (["a"], ["a", "b"]),
        ([], ["a"]),
        (["a"], []),
        (["a", "b"], ["…", "c"]),
        (["read at 12 MB/s"], ["read at … GB/s"]),
    ],
)
def test_what_a_page_shows_must_be_there(lines: list[str], expected: list[str]) -> None:
    assert not is_shown(lines, expected)


@pytest.mark.parametrize(
    "code",
    ["$ echo a\nb\n", "$ false\n", "$ false\n$ echo $?\n0\n", "$ stratalog log verify nowhere\n"],
)
def test_a_console_that_shows_something_else_fails(code: str, page_directory: Path) -> None:
    with pytest.raises(AssertionError):
        run_console(shown(code))


@pytest.mark.parametrize(
    "line",
    ["stratalog log", "stratalog log verify", "stratalog log find --never x", "stratalog log burn"],
)
def test_a_command_line_that_is_wrong_is_not_understood(line: str) -> None:
    with pytest.raises((Exception, SystemExit)):
        parse(line)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "assert 1 == 2"),
        ("pycon", ">>> 1 + 1\n3\n"),
        ("pycon", "nothing to run\n"),
        ("sh", "make coffee\n"),
        ("sh", "rm -rf data\n"),
        ("fish", "make test\n"),
    ],
)
def test_a_block_that_is_not_true_fails(language: str, code: str) -> None:
    with pytest.raises(AssertionError):
        PageRun().run(shown(code, language))
