"""``stratalog log dump`` against Apache Kafka's kafka-dump-log.

``golden/dirs`` holds files written by Apache Kafka 4.3.1 (and a few broken on purpose), and
``golden/dump`` what its tool said about them: arguments, exit code, stdout, stderr. A stack trace
stands there as ``(a stack trace)``: ours is one sentence.
"""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from cli_harness import Done, stratalog

GOLDEN = Path(__file__).parent / "golden"


class Golden(NamedTuple):
    arguments: list[str]
    exit_code: int
    stdout: str
    stderr: str


def read_golden(path: Path) -> Golden:
    match = re.fullmatch(
        r"\$ (.*?)\n--- exit (\d+)\n--- stdout\n(.*?)--- stderr\n(.*)", path.read_text(), re.S
    )
    assert match is not None, path
    return Golden(match[1].split(), int(match[2]), match[3], match[4])


def dump(*arguments: str) -> Done:
    return stratalog("log", "dump", *arguments)


@pytest.fixture(autouse=True)
def _in_golden_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GOLDEN / "dirs")


@pytest.mark.parametrize(
    "path", sorted((GOLDEN / "dump").glob("*.txt")), ids=lambda path: str(path.stem)
)
def test_dump_says_what_kafka_says(path: Path) -> None:
    golden = read_golden(path)

    done = dump(*golden.arguments)

    assert done.exit_code == golden.exit_code
    assert done.stdout == golden.stdout
    if golden.stderr == "(a stack trace)\n":
        assert_one_sentence(done.stderr)
    else:
        assert done.stderr == golden.stderr.replace("{directory}", str(GOLDEN / "dirs"))


def assert_one_sentence(stderr: str) -> None:
    assert len(stderr.splitlines()) == 1
    assert "Traceback" not in stderr


@pytest.mark.parametrize("path", sorted((GOLDEN / "dump").glob("*.txt")), ids=lambda p: str(p.stem))
def test_json_output_is_one_object_a_line(path: Path) -> None:
    golden = read_golden(path)

    done = dump(*golden.arguments, "-o", "json")

    assert done.exit_code == golden.exit_code
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["kind"] == "file"
    batches = sum(line.startswith(("baseOffset:", "offset: ")) for line in shallow(golden))
    entries = ("batch", "offset_entry")
    assert sum(row["kind"] in entries for row in rows) == batches


def shallow(golden: Golden) -> list[str]:
    return [line for line in golden.stdout.splitlines() if not line.startswith("timestamp")]


def test_files_may_be_arguments_too() -> None:
    first, second = "plain-0/00000000000000000000.index", "plain-0/00000000000000000057.snapshot"

    assert dump(first, second).stdout == dump("--files", f"{first},{second}").stdout


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((), "No files"),
        (("nowhere/00000000000000000000.log",), "cannot be read"),
        (("nowhere/00000000000000000000.index",), "cannot be read"),
        (("nowhere/00000000000000000000.snapshot",), "cannot be read"),
        (("plain-0",), "unknown file"),
        (("plain.log",), "no segment"),
        (("--max-bytes", "-1", "plain-0/00000000000000000000.log"), "negative"),
        (
            ("--value-decoder-class", "com.example.Mine", "plain-0/00000000000000000000.log"),
            "com.example.Mine",
        ),
        (
            ("--value-decoder-class", "LongDecoder", "horizon-0/00000000000000000007.log"),
            "8 bytes",
        ),
    ],
)
def test_bad_input_is_answered_with_one_sentence(arguments: tuple[str, ...], word: str) -> None:
    done = dump(*arguments)

    codes = {"unknown file": 0, "No files": 2, "negative": 2}
    assert done.exit_code == codes.get(word, 1)
    assert_one_sentence(done.stderr)
    assert word in done.stderr


def test_a_dump_creates_no_file(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "dirs" / "plain-0", tmp_path / "plain-0")
    (tmp_path / "plain-0" / "00000000000000000000.index").unlink()
    before = sorted((tmp_path / "plain-0").iterdir())

    done = dump(str(tmp_path / "plain-0" / "00000000000000000000.timeindex"))

    assert done.exit_code == 0
    assert "offset: 92" in done.stdout
    assert sorted((tmp_path / "plain-0").iterdir()) == before


@pytest.mark.parametrize("cut", range(0, 403, 31))
def test_a_batch_whose_records_end_early_stops_the_dump(tmp_path: Path, cut: int) -> None:
    source = GOLDEN / "dirs" / "torn-0" / "00000000000000000351.log"
    whole = source.read_bytes()
    broken = bytearray(whole)
    broken[61 + cut : 403] = bytes(403 - 61 - cut) if cut < 342 else b""
    path = tmp_path / "00000000000000000351.log"
    path.write_bytes(broken)

    done = dump("--deep-iteration", str(path))

    assert done.exit_code in (0, 1)
    assert "Traceback" not in done.stderr
    assert "isvalid: false" in done.stdout or bytes(broken) == whole
