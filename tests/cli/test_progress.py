"""Bars of long commands: on stderr, for a person only, and nothing of the output is changed."""

import shlex
from pathlib import Path

import pytest

import stratalog
from command_line import CommandLine, run_stratalog
from stratalog import Record
from stratalog.cli.progress import bytes_bar, logs_bars, waiting
from stratalog.storage.loading import LoadProgress

COMPACT = "--config cleanup.policy=compact --config min.cleanable.dirty.ratio=0"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    with stratalog.open_directory(tmp_path / "logs", create=True) as directory:
        log = directory.create("orders")
        for number in range(10):
            log.append([Record(b"key", b"value %d" % number, timestamp_ms=number)])
    return tmp_path / "logs"


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stratalog.cli.progress.is_watched", lambda: True)
    monkeypatch.setattr("stratalog.cli.produce.is_watched", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("log verify {}", "verify"),
        ("log segments {}/orders-0", "reading"),
        ("log repair {}/orders-0", "reading"),
        ("log backup {}-backup --log-dir {}", "backup"),
        ("scan explain --log-dir {}", "planning"),
        (f"cleaner explain {{}} {COMPACT}", "counting"),
        (f"cleaner run {{}} {COMPACT} --beyond-known-configs", "cleaning"),
        ("retention run {} --config cleanup.policy=delete --config retention.ms=-1", "retention"),
    ],
)
@pytest.mark.usefixtures("watched")
def test_who_watches_sees_how_far_a_command_is(logs: Path, line: str, told: str) -> None:
    ran = run_stratalog(*shlex.split(line.replace("{}", str(logs))))

    assert ran.exit_code == 0, ran
    assert told in ran.stderr
    assert "━" not in ran.text


def test_nobody_else_sees_anything(logs: Path) -> None:
    for line in ("log verify {}", "log segments {}/orders-0", "scan explain --log-dir {}"):
        assert run_stratalog(*line.format(logs).split()).stderr == ""


@pytest.mark.usefixtures("watched")
def test_a_backup_that_is_checked_and_restored_is_watched(logs: Path, tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    run_stratalog("log", "backup", store, "--log-dir", str(logs))

    assert "checking" in run_stratalog("log", "backup", store, "--check").stderr
    assert "restore" in run_stratalog("log", "restore", store, "--log-dir", f"{logs}-2").stderr


@pytest.mark.usefixtures("watched")
def test_a_file_that_is_written_to_a_topic_is_watched(
    commands: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "lines").write_text("one line\n" * 20_000)
    commands.ok("topic", "create", "watched")

    ran = commands.ok("produce", "watched", "--file", str(tmp_path / "lines"))

    assert "writing" in ran.stderr
    assert "180.0/180.0 kB" in ran.stderr


@pytest.mark.usefixtures("watched")
def test_bars_count_what_they_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with bytes_bar("verify", lambda: 4_000) as progress:
        progress(1_000)
        progress(2_000)
    with logs_bars("retention") as (show_opening, show_done):
        show_opening(LoadProgress(logs_total=7, logs_done=3))
        show_done(5)
    with waiting("starting Spark"):
        pass

    drawn = capsys.readouterr().err
    for word in ("3.0/4.0 kB", "3/7", "1/5", "starting Spark"):
        assert word in drawn
