"""``stratalog serve`` as people run it: what it says, how it stops, what it refuses."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from startup_worlds import unpack_kafka

from stratalog.cli.failures import UsageError
from stratalog.cli.main import run_serve
from stratalog.cli.serve import read_settings
from stratalog.errors import LogDirectoryError, StratalogError
from stratalog.metadata.sqlite_store import METADATA_FILE
from stratalog.storage.owner_file import Owner, read_owner, write_owner_files

SECONDS = 120


@contextmanager
def serving(*arguments: str, code: str = "") -> Iterator["subprocess.Popen[str]"]:
    """The command in a process of its own; ``code`` runs in it before."""
    script = f"{textwrap.dedent(code)}\nfrom stratalog.cli.main import main\nmain()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=SECONDS)


def ready(process: "subprocess.Popen[str]") -> tuple[str, int]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("stratalog is ready on 127.0.0.1:"), line + str(process.communicate())
    host, port = line.split()[-1].rsplit(":", 1)
    return host, int(port)


def ask(address: tuple[str, int], request: str) -> bytes:
    """A request without a client's name, by hand."""
    with socket.create_connection(address, timeout=SECONDS) as client:
        data = bytes.fromhex(request)
        client.sendall(len(data).to_bytes(4, "big") + data)
        return client.recv(4096)


def ask_versions(address: tuple[str, int]) -> bytes:
    """ApiVersions of version 0."""
    return ask(address, "0012 0000 00000007 ffff")


def ask_producer_id(address: tuple[str, int]) -> int:
    """InitProducerId of version 0, of no transaction."""
    answer = ask(address, "0016 0000 00000007 ffff ffff 00000000")
    assert answer[12:14] == bytes(2), "an error code"
    return int.from_bytes(answer[14:22], "big")


def test_it_serves_says_so_in_one_line_and_stops_cleanly(tmp_path: Path) -> None:
    log_dir = tmp_path / "deep" / "logs"
    arguments = ("--log-dir", str(log_dir), "--listen", "127.0.0.1:0")
    with serving(*arguments) as process:
        address = ready(process)
        assert ask_versions(address)[4:10] == bytes.fromhex("00000007 0000")

        file = log_dir / ".stratalog-owner"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        owner = read_owner(str(log_dir))
        assert owner.pid == process.pid
        with urllib.request.urlopen(f"{owner.admin}/health", timeout=SECONDS) as answer:
            assert answer.status == 200

        with serving(*arguments) as second:
            out, err = second.communicate(timeout=SECONDS)
        assert (second.returncode, out) == (1, "")
        assert f"locked by process {process.pid}" in err
        assert "Traceback" not in err

        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, "")
    assert "Traceback" not in err
    assert not file.exists()
    assert (log_dir / ".kafka_cleanshutdown").exists()
    with pytest.raises(LogDirectoryError, match="no broker runs on"):
        read_owner(str(log_dir))


def test_ctrl_c_stops_it_cleanly_and_a_port_in_use_is_told(tmp_path: Path) -> None:
    with serving("--log-dir", str(tmp_path / "a"), "--listen", "127.0.0.1:0") as process:
        _, port = ready(process)
        with serving("--log-dir", str(tmp_path / "b"), "--listen", f"127.0.0.1:{port}") as second:
            out, err = second.communicate(timeout=SECONDS)
        assert (second.returncode, out) == (1, "")
        assert "Address already in use" in err
        assert "Traceback" not in err
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert (tmp_path / "a" / ".kafka_cleanshutdown").exists()


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    never_stops = """
        import asyncio, sys
        from stratalog.broker.server import Broker
        async def stop(broker):
            sys.stdout.write("stopping\\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
        Broker.stop = stop
    """
    arguments = ("--log-dir", str(tmp_path), "--listen", "127.0.0.1:0")
    with serving(*arguments, code=never_stops) as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 128 + signal.SIGTERM
    with serving(*arguments) as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def test_a_signal_ends_a_start_that_takes_long(tmp_path: Path) -> None:
    never_opens = """
        import sys, threading
        from stratalog.storage.manager import LogManager
        def start(logs):
            sys.stdout.write("opening\\n")
            sys.stdout.flush()
            threading.Event().wait()
        LogManager.start = start
    """
    with serving(
        "--log-dir", str(tmp_path), "--listen", "127.0.0.1:0", code=never_opens
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "opening\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in err


def test_producer_ids_go_on_after_a_kill(tmp_path: Path) -> None:
    given: list[int] = []
    for _ in range(3):
        with serving("--log-dir", str(tmp_path), "--listen", "127.0.0.1:0") as process:
            address = ready(process)
            given += [ask_producer_id(address) for _ in range(3)]
            process.kill()
    assert given == sorted(set(given))


def test_kafkas_server_properties_can_be_used_as_they_are(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    unpack_kafka(log_dir)
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\nnum.io.threads=8\nplugin.of.ours=1\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:9093\n"
        "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        f"log.dirs={log_dir}\n"
    )
    with serving("--config", str(properties), "--set", "event.log.format=json") as process:
        ready(process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=SECONDS)
    events = [json.loads(line) for line in err.splitlines()]
    names = {event["event"]: event for event in events}
    assert "num.io.threads" in names["settings_unused"]["names"]
    assert names["settings_unknown"]["names"] == "plugin.of.ours"
    assert {"ready", "stopping"} <= set(names)
    assert (log_dir / METADATA_FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Say where the logs are: --log-dir DIR, or log.dirs in --config."),
        (["--log-dir", "a,b"], "A log directory has no comma in its name: log.dirs is a list."),
        (["--log-dir", "a", "--set", "no"], "--set no is not of the form NAME=VALUE."),
        (["--log-dir", "a", "--set", "=1"], "--set =1 is not of the form NAME=VALUE."),
        (["--log-dir", "a", "--listen", "here"], "--listen=here: must be host:port."),
        (["--log-dir", "a", "--listen", "h:65536"], "--listen=h:65536: must be host:port."),
        (["--config", "/no/file"], "--config /no/file: No such file or directory."),
        (
            ["--log-dir", "a", "--set", "num.partitons=1"],
            "num.partitons=1: there is no such broker setting; did you mean num.partitions?",
        ),
        (
            ["--log-dir", "a", "--set", "plugin.setting=1"],
            "plugin.setting=1: there is no such broker setting.",
        ),
        (
            ["--log-dir", "a", "--listen", "0.0.0.0:0"],
            "advertised.listeners=PLAINTEXT://0.0.0.0:0: must be an address that clients can "
            "connect to, which this is not.",
        ),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_serve(arguments) == (1 if sentence.startswith(("--config", "adv")) else 2)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == sentence


def test_an_option_that_does_not_exist_is_a_matter_of_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_serve(["--log-directory", "a"]) == 2
    assert "Unrecognized arguments: --log-directory a." in capsys.readouterr().err


def test_the_command_line_counts_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "log.dirs=/from/file\nnum.partitions=2\nmessage.max.bytes=5\n"
        "listeners=A://10.0.0.1:1\nadvertised.listeners=A://somewhere:1\n"
        "listener.security.protocol.map=A:PLAINTEXT\n"
    )
    found = read_settings(["x", "/y"], "[::1]:5", str(file), ["num.partitions=3", "a=b=c"])
    assert found == {
        "log.dirs": f"{Path.cwd()}/x,/y",
        "num.partitions": "3",
        "message.max.bytes": "5",
        "listeners": "PLAINTEXT://[::1]:5",
        "a": "b=c",
    }
    assert read_settings([], None, str(file), [])["listeners"] == "A://10.0.0.1:1"


def test_the_command_line_opens_no_port_in_place_of_one_that_asks_who_clients_are(
    tmp_path: Path,
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/a\nlisteners=SASL_SSL://:1,C://:2\ncontroller.listener.names=C\n")
    with pytest.raises(UsageError, match=r"SASL_SSL://:1: is SASL_SSL, which is not served"):
        read_settings([], "127.0.0.1:5", str(file), [])


# --- the owner's file ---------------------------------------------------------------------------


def test_an_owner_that_has_ended_is_no_owner(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_owner_files([str(tmp_path)], Owner(pid=ended.pid, admin="http://x", token="t"))
    with pytest.raises(LogDirectoryError, match=f"process {ended.pid}, has ended"):
        read_owner(str(tmp_path))


def test_the_file_is_replaced_and_never_shows_its_token_in_a_repr(tmp_path: Path) -> None:
    for token in ("one", "two"):
        owner = Owner(pid=os.getpid(), admin="http://127.0.0.1:1", token=token)
        write_owner_files([str(tmp_path)], owner)
        assert read_owner(str(tmp_path)) == owner
        assert token not in repr(owner)
    assert [file.name for file in tmp_path.iterdir()] == [".stratalog-owner"]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b"\xff", b'{"pid": "x", "admin": "", "token": ""}']
)
def test_a_file_that_no_broker_wrote_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".stratalog-owner").write_bytes(content)
    with pytest.raises(StratalogError, match="is not what a broker writes there"):
        read_owner(str(tmp_path))
