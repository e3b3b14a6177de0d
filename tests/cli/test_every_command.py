"""What holds for every command: help worth reading, and one sentence for each wrong use.

The commands are those that there are: a new one is held to the same without being named here.
"""

import os
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

import stratalog
from command_line import CommandLine, Ran, run_stratalog
from stratalog.cli.app import app, run
from stratalog.cli.failures import run_command
from stratalog.cli.serve import make_parser, option_names

ROOT: Any = typer.main.get_command(app)


def all_commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield (*path, name), each
        yield from all_commands(each, (*path, name))


EVERYTHING = dict(all_commands(ROOT))
GROUPS = {path: each for path, each in EVERYTHING.items() if hasattr(each, "commands")}
COMMANDS = {path: each for path, each in EVERYTHING.items() if path not in GROUPS}
# Its command line is read without typer, which would make it start later.
TYPED = {path: each for path, each in COMMANDS.items() if path != ("serve",)}

each_command = pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
each_typed_command = pytest.mark.parametrize("path", TYPED, ids=" ".join)


def assert_one_sentence(ran: Ran, exit_code: int) -> None:
    assert ran.exit_code == exit_code, ran
    assert ran.stdout == b"", ran
    assert re.fullmatch(r"[^\n]+[.?!]\n", ran.stderr), ran
    assert "Traceback" not in ran.stderr


def examples_of(text: str) -> list[str]:
    """The command lines that a help shows, from ``stratalog`` on."""
    _, _, after = text.partition("Example")
    lines = after.splitlines()[1:]
    shown = [line.strip() for line in lines if "stratalog " in line]
    return [line[line.index("stratalog ") :] for line in shown]


# --- help ----------------------------------------------------------------------------------------


@each_command
def test_help_says_what_it_does_and_shows_how(path: tuple[str, ...]) -> None:
    ran = run_stratalog(*path, "--help")

    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.text.lower().startswith(f"usage: stratalog {' '.join(path)}")
    assert len(examples_of(ran.text)) >= 1
    assert max(map(len, ran.lines)) <= 100
    assert "...." not in ran.text


@each_command
def test_examples_of_a_help_are_command_lines_that_are_understood(path: tuple[str, ...]) -> None:
    for example in examples_of(run_stratalog(*path, "--help").text):
        words = shlex.split(example)[1:]

        assert tuple(words[: len(path)]) == path
        if path == ("serve",):
            make_parser().parse_args(words[1:])
        else:
            COMMANDS[path].make_context(path[-1], words[len(path) :]).close()


@each_typed_command
def test_every_option_and_argument_is_explained(path: tuple[str, ...]) -> None:
    unexplained = [each.name for each in TYPED[path].params if not each.help]

    assert unexplained == []


@pytest.mark.parametrize("path", [(), *GROUPS], ids=" ".join)
def test_a_list_of_commands_says_of_each_what_it_does_in_a_whole_sentence(
    path: tuple[str, ...],
) -> None:
    asked, alone = run_stratalog(*path, "--help"), run_stratalog(*path)

    assert (asked.exit_code, alone.exit_code, alone.stdout) == (0, 2, b"")
    assert alone.stderr.strip() == asked.text.strip()
    told = asked.text.partition("Commands:\n")[2].splitlines()
    assert len(told) == len((GROUPS[path] if path else ROOT).commands)
    for line in told:
        assert re.fullmatch(r"  [a-z-]+ +[A-Z].*[^.]\.", line), line


@pytest.mark.parametrize("path", EVERYTHING, ids=" ".join)
def test_the_kinds_of_values_are_words_that_people_use(path: tuple[str, ...]) -> None:
    told = run_stratalog(*path, "--help").text

    assert re.findall(r"<[a-z]|\b(TEXT|INTEGER|FLOAT)\b|x>=|<=x", told) == []


# What else takes a directory: one to make, one to keep backups in, or any that Spark reads.
NO_LOG_DIRECTORY = {("pipeline", "init"), ("log", "dump"), ("spark", "load"), ("spark", "package")}


@each_typed_command
def test_a_log_directory_has_one_name_everywhere_and_so_has_a_topic(path: tuple[str, ...]) -> None:
    arguments = [each for each in TYPED[path].params if each.param_type_name == "argument"]
    metavars = {each.metavar for each in arguments}
    options = long_options(path)

    if path not in NO_LOG_DIRECTORY:
        assert not metavars & {"PATH", "DIRECTORY", "LOG_DIR", "FILE"}
        if "DIR" in metavars:
            assert "--log-dir" in options
        assert "--log-directory" not in options
    if "TOPIC" in metavars:
        assert "--topic" in options


# --- completion ----------------------------------------------------------------------------------


def completed(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    """What bash is told when the tabulator is pressed at the end of ``line``."""
    monkeypatch.setenv("_STRATALOG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert run([]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("stratalog log v", ["verify"]),
        ("stratalog log verify --j", ["--jobs"]),
        ("stratalog log verify -o j", ["json"]),
        ("stratalog serve --l", ["--log-dir", "--listen"]),
    ],
)
def test_a_shell_completes_commands_and_options(
    line: str,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert completed(line, monkeypatch, capsys) == words


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_with_what_a_command_does(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_STRATALOG_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "stratalog topic cr")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")

    assert run([]) == 0
    told = capsys.readouterr().out
    assert "create" in told
    assert "Create a topic." in told


def test_a_shell_completes_topics_and_groups_of_whoever_is_asked(
    commands: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with stratalog.open_directory(tmp_path / "logs", create=True) as logs:
        logs.create("completed-here")
    commands.ok("topic", "create", "completed-there")
    commands.ok("produce", "completed-there", stdin=b"one\n")
    commands.ok("consume", "completed-there", "--group", "complete", "--from-beginning", "-e")
    there = f"--bootstrap-server {commands.bootstrap_server}"

    def words(line: str) -> list[str]:
        return completed(f"stratalog {line}", monkeypatch, capsys)

    assert words(f"scan explain --log-dir {tmp_path}/logs --topic comp") == ["completed-here"]
    assert words(f"topic describe {there} completed-t") == ["completed-there"]
    assert words(f"group describe {there} --group compl") == ["complete"]
    assert words("topic describe --bootstrap-server 127.0.0.1:1 com") == []
    assert words(f"scan explain --log-dir {tmp_path}/nowhere --topic com") == []


# --- wrong use -----------------------------------------------------------------------------------


@each_command
def test_an_option_that_there_is_not_is_refused(path: tuple[str, ...]) -> None:
    ran = run_stratalog(*path, "--no-such-option")

    assert_one_sentence(ran, 2)
    assert "--no-such-option" in ran.stderr
    assert f"See 'stratalog {' '.join(path)} --help'." in ran.stderr


@each_typed_command
def test_what_is_no_number_is_refused_where_a_number_is_wanted(path: tuple[str, ...]) -> None:
    kinds = get_type_hints(TYPED[path].callback)
    for param in TYPED[path].params:
        if param.param_type_name == "option" and is_number(kinds.get(param.name)):
            assert_one_sentence(run_stratalog(*path, param.opts[0], "many"), 2)


def is_number(kind: Any) -> bool:
    return kind is int or int in get_args(kind) or any(map(is_number, get_args(kind)))


@pytest.mark.parametrize("path", [(), *GROUPS], ids=" ".join)
def test_a_command_that_there_is_not_is_refused(path: tuple[str, ...]) -> None:
    assert_one_sentence(run_stratalog(*path, "no-such-command"), 2)


def assert_asks(ran: Ran, meant: str, help_of: tuple[str, ...]) -> None:
    """Whether it asks for ``meant``, with each sentence ended once."""
    assert_one_sentence(ran, 2)
    asked = " ".join(("stratalog", *help_of))
    assert re.search(
        rf"[\w'-]\. Did you mean [^?]*'{meant}'[^?]*\? See '{asked} --help'\.$", ran.stderr
    )


@pytest.mark.parametrize("path", EVERYTHING, ids=" ".join)
def test_a_command_mistyped_is_answered_with_the_one_that_was_meant(path: tuple[str, ...]) -> None:
    *before, name = path
    assert_asks(run_stratalog(*before, f"{name}{name[-1]}"), name, tuple(before))


@each_command
def test_an_option_mistyped_is_answered_with_the_one_that_was_meant(path: tuple[str, ...]) -> None:
    named = option_names() if path == ("serve",) else long_options(path)
    for name in named:
        assert_asks(run_stratalog(*path, f"{name}{name[-1]}", "1"), name, path)


def long_options(path: tuple[str, ...]) -> list[str]:
    return [
        name
        for param in TYPED[path].params
        if param.param_type_name == "option"
        for name in param.opts
        if name.startswith("--")
    ]


@each_command
def test_an_option_without_its_value_is_refused(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    flags = {opt for each in command.params if getattr(each, "is_flag", False) for opt in each.opts}
    named = ["--log-dir"] if path == ("serve",) else long_options(path)
    for name in set(named) - flags - getattr(command, "defaults", {}).keys():
        ran = run_stratalog(*path, name)

        assert_one_sentence(ran, 2)
        assert f"See 'stratalog {' '.join(path)} --help'." in ran.stderr


# Where a directory has to be: what else takes a --log-dir only tells a running broker.
OF_A_DIRECTORY = [
    "log segments {}",
    "log segments --log-dir {} --topic orders --partition 0",
    "log usage --log-dir {}",
    "log find {} --offset 0",
    "log verify {}",
    "log repair {}",
    "log backup elsewhere --log-dir {}",
    "log backup {} --list",
    "log backup {} --check",
    "log restore {} --log-dir elsewhere",
    "retention explain {}",
    "retention run {} --config retention.ms=1 --beyond-known-configs",
    "cleaner explain {}",
    "cleaner run {} --config cleanup.policy=compact --beyond-known-configs",
    "scan explain --log-dir {}",
    "topic adopt orders --log-dir {}",
    "topic list --log-dir {}",
    "topic describe --log-dir {}",
    "spark sql 'SELECT 1' --log-dir {}",
    "spark load rows --log-dir {} --topic orders",
    "spark export lake --log-dir {} --topic orders",
    "spark compact --log-dir {} --topic orders",
    "spark verify {}",
    "spark stats --log-dir {}",
]
OF_LEASES = ["lease list --log-dir {}", "lease release --log-dir {} --all"]


def failure_of(line: str) -> int:
    """With 1 ``verify`` says that something is wrong with what it has looked at."""
    return 3 if " verify " in line else 1


def run_line(line: str, place: Path | str = "") -> Ran:
    return run_stratalog(*shlex.split(line.format(shlex.quote(str(place)))))


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory in which nothing is, and no Spark that could be started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


@pytest.mark.parametrize("line", [*OF_A_DIRECTORY, *OF_LEASES])
def test_what_is_no_directory_is_told_at_once(nowhere: Path, line: str) -> None:
    (nowhere / "file").write_text("")
    (nowhere / "loop").symlink_to("loop")
    for name in ("missing", "file", "loop", "n" * 300):
        ran = run_line(line, nowhere / name)

        assert_one_sentence(ran, failure_of(line))
        assert name in ran.stderr
    assert sorted(each.name for each in nowhere.iterdir()) == ["file", "loop"]


@pytest.mark.parametrize("line", OF_A_DIRECTORY)
def test_a_directory_that_is_not_kafkas_is_told_at_once(nowhere: Path, line: str) -> None:
    (nowhere / "empty").mkdir()
    (nowhere / "other").mkdir()
    (nowhere / "other" / "notes.txt").write_text("nothing of Kafka's")
    for name in ("empty", "other"):
        ran = run_line(line, nowhere / name)

        assert_one_sentence(ran, failure_of(line))
        assert name in ran.stderr
    assert list((nowhere / "empty").iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_may_not_be_read_is_told_at_once(nowhere: Path) -> None:
    (nowhere / "secret").mkdir(mode=0)
    for line in OF_A_DIRECTORY:
        assert_one_sentence(run_line(line, nowhere / "secret"), failure_of(line))


def test_what_the_system_refuses_is_a_sentence_wherever_it_happens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(lambda: len(Path("/nowhere/at/all").read_bytes())) == 1
    assert capsys.readouterr().err == "/nowhere/at/all: No such file or directory.\n"


@pytest.mark.parametrize(
    "line",
    [
        "retention explain {} --config no.such.config=1",
        "retention run {} --config retention.ms=soon",
        "cleaner run {} --config cleanup.policy=sometimes",
        "spark compact --log-dir {} --topic orders --set no.such.setting=1",
        "serve --log-dir {} --set no.such.setting=1",
        "serve --log-dir {} --set num.partitions=many",
        "scan explain --log-dir {} --start soon",
        "scan explain --log-dir {} --isolation none",
        "scan explain --log-dir {} --max-lateness-ms 99999999999999999999",
        "log find {}/orders-0 --timestamp yesterday",
        "log find {}/orders-0",
        "log backup elsewhere",
        "lease release --log-dir {}",
    ],
)
def test_what_cannot_be_meant_is_refused_as_such(nowhere: Path, line: str) -> None:
    with stratalog.open_directory(nowhere / "logs", create=True) as logs:
        logs.create("orders")

    assert_one_sentence(run_line(line, nowhere / "logs"), 2)


@pytest.mark.parametrize(
    "line",
    [
        "log repair {}/orders-0",
        "retention run {} --config retention.ms=1 --beyond-known-configs",
        "cleaner run {} --config cleanup.policy=compact --beyond-known-configs",
        "log verify --write-time-ranges {}",
        "serve --log-dir {}",
    ],
)
def test_who_would_change_a_directory_is_told_who_owns_it(tmp_path: Path, line: str) -> None:
    place = tmp_path / "owned"
    with stratalog.open_directory(place, create=True) as logs:
        logs.create("orders")
        ran = run_line(line, place)

    assert_one_sentence(ran, failure_of(line))
    assert str(os.getpid()) in ran.stderr


@pytest.mark.parametrize("line", [each for each in OF_A_DIRECTORY if each.startswith("spark")])
@pytest.mark.parametrize("missing", ["java", "pyspark"])
def test_what_spark_needs_and_has_not_is_told_with_how_to_get_it(
    nowhere: Path, line: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "pyspark":
        monkeypatch.setitem(sys.modules, "pyspark", None)
    place = nowhere / "logs"
    with stratalog.open_directory(place, create=True) as logs:
        logs.create("orders")

    ran = run_line(line.replace("SELECT 1", "SELECT * FROM orders"), place)

    assert_one_sentence(ran, failure_of(line))
    hint = "openjdk-17-jre-headless" if missing == "java" else "pip install 'stratalog[spark]'"
    assert hint in ran.stderr


def test_every_command_of_spark_is_tried_without_it() -> None:
    tried = {tuple(each.split()[:2]) for each in OF_A_DIRECTORY}

    assert {each for each in TYPED if each[0] == "spark"} - tried == {("spark", "package")}


# --- brokers -------------------------------------------------------------------------------------

OF_A_BROKER = {
    ("produce",): ["orders"],
    ("consume",): ["orders"],
    ("topic", "create"): ["orders"],
    ("topic", "list"): [],
    ("topic", "describe"): [],
    ("topic", "alter"): ["orders", "--partitions", "3"],
    ("topic", "delete"): ["orders"],
    ("group", "list"): [],
    ("group", "describe"): ["--all-groups"],
    ("group", "reset-offsets"): ["--group", "g", "--all-topics", "--to-latest"],
    ("group", "delete"): ["--group", "g"],
    ("log", "usage"): [],
    ("config", "describe"): ["--topic", "orders"],
    ("config", "alter"): ["--topic", "orders", "--delete-config", "retention.ms"],
}


def test_every_command_that_asks_a_broker_is_tried() -> None:
    asking = {
        path
        for path, command in TYPED.items()
        if any(each.name == "bootstrap_server" for each in command.params)
    }

    assert asking - {("log", "restore")} == set(OF_A_BROKER)


@pytest.mark.parametrize("path", OF_A_BROKER, ids=" ".join)
def test_a_broker_that_cannot_be_asked_is_told(path: tuple[str, ...]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens, and nobody else can begin to
        unreachable = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = [*path, *OF_A_BROKER[path]]
        gone = run_stratalog(*asked, "--bootstrap-server", unreachable)
    misread = run_stratalog(*asked, "--bootstrap-server", "here")
    unset = run_stratalog(*asked, "--command-config", "/no/such/file")

    assert_one_sentence(gone, 1)
    assert unreachable in gone.stderr
    assert_one_sentence(misread, 2)
    assert_one_sentence(unset, 1)
    assert "/no/such/file" in unset.stderr


@pytest.mark.parametrize(
    "line",
    [
        "consume nobodys -e",
        "topic describe nobodys",
        "topic alter nobodys --partitions 3",
        "topic delete nobodys",
        "group describe --group nobodys",
        "group reset-offsets --group nobodys --topic nobodys --to-latest",
        "group delete --group nobodys",
        "config describe --topic nobodys",
        "config alter --topic nobodys --add-config retention.ms=1",
        "topic create fine --config no.such.config=nobodys",
        "topic create nobodys/name",
    ],
)
def test_what_a_broker_has_not_is_told(commands: CommandLine, line: str) -> None:
    ran = commands.run(*shlex.split(line))

    assert_one_sentence(ran, 1)
    assert "nobodys" in ran.stderr
