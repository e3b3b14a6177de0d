"""What the documentation shows is true: it is run, and its links and names are looked up."""

import ast
import re
import shlex
import shutil
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from broker_fixture import running_broker
from doc_pages import (
    RUN_ELSEWHERE,
    SPARK_PAGES,
    WRITING_PAGES,
    Block,
    PageRun,
    block_of,
    blocks,
    is_shown,
    page_name,
    pages,
    prose,
)
from doc_shell import ROOT
from stratalog.cli.app import app
from stratalog.config.own import OwnSettings
from stratalog.config.settings import settings_of
from stratalog.protocol.api import ApiKey
from stratalog.protocol.codec import encode_request
from stratalog.protocol.messages.api_versions import ApiVersionsRequest

SOURCE = ROOT / "src" / "stratalog"
CONCEPTS = ROOT / "docs" / "concepts"
INDEX = ROOT / "docs" / "README.md"
DIFFERENCES = ROOT / "docs" / "differences.md"
# What a reader looks for by its name; there are more.
CONCEPTS_TO_FIND = {
    "broker",
    "commit",
    "compaction",
    "durability",
    "groups",
    "jobs",
    "record-batch",
    "recovery",
    "retention",
    "segment",
    "spark-sink",
    "spark-source",
    "sparse-index",
}
HOW_TOS_TO_FIND = {
    "compact-a-huge-topic",
    "query-a-copied-partition",
    "replace-a-broker-in-ci",
    "restore-to-a-moment",
    "serve-a-kafka-directory",
}
CONCEPT_PAGES = sorted([*CONCEPTS.glob("*.md"), *(ROOT / "docs" / "jobs").glob("*.md")])
CONCEPT_HEADS = ["What", "Layout", "Rules that always hold", "Where in the code"]
ARCHITECTURE_LINES_MAX = 330
# A screen and a half, the table of what was measured aside.
README_LINES_MAX = 130

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
    with closing(PageRun()) as run:
        for block in blocks(page):
            run.run(block)


@pytest.mark.parametrize("named", RUN_ELSEWHERE, ids=" ".join)
def test_what_does_not_run_among_its_page_is_run_by_the_tests_that_are_named(
    named: tuple[str, str],
) -> None:
    block = block_of(*named)

    assert block.run_by == RUN_ELSEWHERE[named]
    tests = ROOT / block.run_by
    strings = {
        node.value
        for node in ast.walk(ast.parse(tests.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    page, beginning = named
    assert page in strings
    assert [each for each in strings if len(each) > 5 and beginning.startswith(each)], beginning
    for line in block.code.replace("\\\n", "").splitlines():
        if line.startswith("stratalog "):
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
    for target in link_targets(page):
        place, _, anchor = target.partition("#")
        linked = (page.parent / place).resolve() if place else page
        assert linked.exists(), f"{page_name(page)} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page_name(page)} links to {target}"


def link_targets(page: Path) -> list[str]:
    """Where a page's links and pictures lead, but for other sites."""
    text = re.sub(r"`[^`]*`", "", prose(page))
    found = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r"(?:src|href)=\"([^\"]+)\"", text)
    return [target for target in found if not target.startswith("https://")]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@every_page
def test_every_source_file_that_is_named_exists(page: Path) -> None:
    for name in re.findall(r"`([\w./-]+\.(?:pyx|pyi|pxi|py|h))`", prose(page)):
        found = (ROOT / name).exists() or (SOURCE / name).exists()
        assert found or ("/" not in name and list(SOURCE.rglob(name))), f"{page}: {name}"


@every_page
def test_what_is_said_to_live_in_a_file_does(page: Path) -> None:
    for name, file in re.findall(r"`([\w.]+)`\s+\(`([\w./]+\.py)`", prose(page)):
        source = (ROOT / file if (ROOT / file).exists() else SOURCE / file).read_text()
        owner, _, member = name.rpartition(".")
        for each in filter(None, (owner, member)):
            assert re.search(rf"\b(?:class|def|import) {each}\b|^{each}\b", source, re.M), name


@every_page
def test_every_member_that_is_named_exists(page: Path) -> None:
    known = members()
    for owner, member in re.findall(r"`([A-Z]\w+)\.(?!md`)(\w+)`", prose(page)):
        assert owner in known, f"{page_name(page)}: there is no class {owner}"
        assert member in known[owner], f"{page_name(page)}: {owner} has no {member}"


@cache
def members() -> dict[str, frozenset[str]]:
    """Methods and attributes of every class, its bases' too, as the source has them."""
    found: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.pyi")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(names_in(node))
                named = {base.id for base in node.bases if isinstance(base, ast.Name)}
                bases.setdefault(node.name, set()).update(named - {node.name})
    return {name: frozenset(inherited(name, found, bases)) for name in found}


def inherited(name: str, found: dict[str, set[str]], bases: dict[str, set[str]]) -> set[str]:
    held = set(found.get(name, ()))
    for base in bases.get(name, ()):
        held |= inherited(base, found, bases)
    return held


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


@pytest.mark.parametrize("page", CONCEPT_PAGES, ids=page_name)
def test_a_concept_and_a_job_have_one_page_with_the_same_four_heads(page: Path) -> None:
    text = prose(page)

    assert re.findall(r"^## (.*)$", text, re.M) == CONCEPT_HEADS
    assert len(re.findall(r"^# ", text, re.M)) == 1


def test_what_a_reader_looks_for_has_a_page() -> None:
    how_tos = {page.stem for page in (ROOT / "docs" / "howto").glob("*.md")}

    assert {page.stem for page in CONCEPT_PAGES} >= CONCEPTS_TO_FIND
    assert how_tos >= HOW_TOS_TO_FIND


@pytest.mark.parametrize("name", sorted(HOW_TOS_TO_FIND))
def test_a_how_to_shows_something_that_is_run(name: str) -> None:
    page = ROOT / "docs" / "howto" / f"{name}.md"

    assert [each for each in blocks(page) if each.language in ("console", "sh")]


def test_every_page_is_in_the_index_once() -> None:
    linked = [INDEX.parent / target for target in link_targets(INDEX)]
    there = [page for page in INDEX.parent.rglob("*.md") if page != INDEX]

    assert sorted(place.resolve() for place in linked if place.suffix == ".md") == sorted(there)


def test_the_readme_is_a_screen_and_a_half() -> None:
    text = (ROOT / "README.md").read_text()
    measured = re.search(r"<!-- figures -->.*<!-- /figures -->", text, re.S)

    assert measured is not None
    assert len(text.replace(measured[0], "").splitlines()) <= README_LINES_MAX


def test_the_architecture_can_be_read_in_one_go() -> None:
    lines = (ROOT / "docs" / "ARCHITECTURE.md").read_text().splitlines()

    assert len(lines) <= ARCHITECTURE_LINES_MAX


# --- what only the code knows --------------------------------------------------------------------

# Options that pages speak of and that are other programs': kafka's tools, rsync, Spark's.
OPTIONS_OF_OTHERS = {"--formatter", "--full-refresh", "--help", "--line-reader", "--py-files"}
OPTIONS_OF_OTHERS |= {"--remote", "--times"}


def every_command(group: Any, name: str = "stratalog") -> Iterator[tuple[str, list[set[str]]]]:
    """Each command, and of each of its options the long names."""
    if not hasattr(group, "commands"):
        named = [{*option.opts, *option.secondary_opts} for option in group.params]
        longs = [{each for each in names if each.startswith("--")} for names in named]
        yield name, [names for names in longs if names]
        return
    for verb, command in group.commands.items():
        yield from every_command(command, f"{name} {verb}")


def test_every_command_is_on_some_page_and_so_is_every_option() -> None:
    text = "\n".join(page.read_text() for page in INDEX.parent.rglob("*.md"))
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z.-]+", text))
    for command, options in every_command(get_command(app)):
        assert command in text
        assert [names for names in options if not names & shown] == [], command


@every_page
def test_every_option_that_is_named_is_one(page: Path) -> None:
    options = [names for _, each in every_command(get_command(app)) for names in each]
    # Two that only the outermost parser, and that of serve, know.
    known = set.union(OPTIONS_OF_OTHERS, {"--install-completion", "--listen"}, *options)
    named = set(re.findall(r"(?<=[ `(])--[a-z][a-z-]+", prose(page)))
    assert named <= known, page_name(page)


def test_the_differences_name_every_setting_of_our_own() -> None:
    text = DIFFERENCES.read_text()
    section = text[text.index("## Settings") :]

    assert set(re.findall(r"`((?:\w+\.)+\w+)`", section)) == set(settings_of(OwnSettings))


def test_the_differences_name_every_api_that_is_served(tmp_path: Path) -> None:
    (listed,) = re.findall(
        r"^The APIs that are served, .*?: (.*?)\.", DIFFERENCES.read_text(), re.S | re.M
    )
    named = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
        for name in re.findall(r"\b[A-Z]\w+", listed)
    }

    with running_broker(tmp_path / "data") as broker:
        assert named == {api.name for api in served_apis(broker.bootstrap_server)}


def served_apis(address: str) -> list[ApiKey]:
    """What a broker answers to ApiVersions 0: a code, and of each its key, lowest and highest."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        asked = encode_request(ApiKey.API_VERSIONS, 0, 1, "docs", ApiVersionsRequest())
        connection.sendall(b"".join(asked))
        with connection.makefile("rb") as answer:
            (size_bytes,) = struct.unpack(">i", answer.read(4))
            body = answer.read(size_bytes)[4:]
    code, count = struct.unpack_from(">hi", body)
    assert code == 0
    return [ApiKey(key) for key, _, _ in struct.iter_unpack(">hhh", body[6 : 6 + 6 * count])]


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
        PageRun().run(shown(code))


@pytest.mark.parametrize(
    "line",
    ["stratalog log", "stratalog log backup", "stratalog log find --never x", "stratalog log burn"],
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
        ("sh", "make\n"),
        ("sh", "false\n"),
        ("sh", "true # yes\nfalse\n"),
        ("sh", "kill %1\n"),
        ("json", "{'a': 1}"),
        ("yaml", "a: b: c"),
        ("text", "$ stratalog log verify data\n"),
        ("text", "stratalog log verify data\n"),
        ("text", "import stratalog\n"),
        ("", "stratalog log verify data\n"),
        ("fish", "make test\n"),
    ],
)
def test_a_block_that_is_not_true_fails(language: str, code: str) -> None:
    with pytest.raises((AssertionError, ValueError, yaml.YAMLError)):
        PageRun().run(shown(code, language))


def test_a_broker_in_the_background_is_found_by_all_that_talks_to_it(page_directory: Path) -> None:
    serve = "$ stratalog serve --log-dir data &\nstratalog is ready on 127.0.0.1:9092\n"
    create = "$ stratalog topic create orders\nCreated topic orders.\n"
    produce = "$ echo a | stratalog produce orders\n"
    consume = "$ stratalog consume orders --from-beginning -e | cat\na\n…\n"
    with closing(PageRun()) as run:
        run.run(shown(serve + create + produce + consume))
        run.run(shown('address = "127.0.0.1:9092"', "python"))
        run.run(shown('assert address != "127.0.0.1" ":9092"', "python"))
        run.run(shown("kill %1  # in order\nstratalog log verify data\n", "sh"))
