"""Reaching a broker: what is said, and how soon, when there is none."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import CommandLine, run_stratalog
from stratalog.cli import client_wire
from stratalog.cli.client import REQUEST_SECONDS, addresses
from stratalog.cli.failures import UsageError
from stratalog.cli.optional_values import with_values

EVERY_COMMAND = [
    ["topic", "list"],
    ["topic", "create", "t"],
    ["topic", "describe"],
    ["topic", "alter", "t", "--partitions", "2"],
    ["topic", "delete", "t"],
    ["produce", "t"],
    ["consume", "t"],
    ["group", "list"],
    ["group", "describe", "--group", "g"],
    ["group", "reset-offsets", "--group", "g", "--topic", "t", "--to-latest"],
    ["group", "delete", "--group", "g"],
    ["config", "describe", "--topic", "t"],
    ["config", "alter", "--topic", "t", "--add-config", "flush.ms=1"],
]


@contextmanager
def listener(answer: bytes | None) -> Iterator[str]:
    """Something that listens and is no broker: sends ``answer`` and closes, or says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held = []

        def accept() -> None:
            channel, _ = server.accept()
            held.append(channel)
            if answer is not None:
                channel.recv(100)
                channel.sendall(answer)
                channel.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(60)
        for channel in held:
            channel.close()


@contextmanager
def nobody() -> Iterator[str]:
    """A port on which nobody listens, and nobody else can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("command", EVERY_COMMAND, ids=" ".join)
def test_a_broker_that_is_not_there_is_one_sentence_at_once(command: list[str]) -> None:
    with nobody() as address:
        began = time.monotonic()
        ran = run_stratalog(*command, "--bootstrap-server", address)

    assert (ran.exit_code, ran.stdout) == (1, b"")
    assert ran.stderr == f"No broker answers at {address}: Connection refused.\n"
    assert time.monotonic() - began < REQUEST_SECONDS, "what librdkafka would have waited for"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "no answer within 0.2 s"),
        (b"", "the connection was closed without an answer"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Kafka's protocol"),
        (b"\0\0\0\4\0\0\0\1", "does not speak Kafka's protocol"),
    ],
    ids=["silent", "closing", "http", "garbage"],
)
def test_what_is_no_broker_is_told_from_one(
    answer: bytes | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer is None:
        monkeypatch.setattr(client_wire, "WAIT_SECONDS", 0.2)
    with listener(answer) as address:
        said = CommandLine(address).refused("topic", "list")

    assert said.startswith(f"No broker answers at {address}: ")
    assert reason in said


def test_one_address_that_answers_is_enough(commands: CommandLine) -> None:
    with nobody() as closed:
        CommandLine(f"{closed},{commands.bootstrap_server}").ok("topic", "list")


def test_settings_of_the_client_come_from_a_file(commands: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "good.properties").write_text("client.id=me\n")
    (tmp_path / "bad.properties").write_text("no.such.setting=1\n")

    commands.ok("topic", "list", "--command-config", str(tmp_path / "good.properties"))
    said = commands.refused("topic", "list", "--command-config", str(tmp_path / "bad.properties"))
    missing = commands.refused("topic", "list", "--command-config", str(tmp_path / "none"))

    assert 'No such configuration property: "no.such.setting"' in said
    assert "No such file or directory." in missing


def test_addresses_are_hosts_and_ports() -> None:
    found = addresses("localhost:9092, [::1]:19092,PLAINTEXT://example.org:1")

    assert found == [("localhost", 9092), ("::1", 19092), ("example.org", 1)]


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", ":9092", "h:0", "h:65536", "h:x", "a:1,"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not of the form HOST:PORT"):
        addresses(text)


words = st.sampled_from(["--state", "--type", "--other", "-o", "stable", "json"])


@given(st.lists(words, max_size=6))
def test_a_value_is_put_in_exactly_where_one_may_be_and_is_not(arguments: list[str]) -> None:
    filled = with_values(arguments, {"--state": "", "--type": ""})

    assert [each for each in filled if each] == arguments
    for place, argument in enumerate(filled):
        if argument in ("--state", "--type"):
            assert not filled[place + 1].startswith("-")
