"""What a plan says of itself, and ``stratalog scan explain``, which prints it."""

from datetime import timedelta
from pathlib import Path

import pytest

from command_line import run_stratalog
from stratalog import Record, open_directory
from stratalog.directories.known_directory import KnownDirectory
from stratalog.directories.owners import Ownership
from stratalog.directories.topic_configs import KnownTopic
from stratalog.scans import partition_notes
from stratalog.scans.api import plan
from stratalog.scans.explain import ScanExplanation, explain_plan

BATCHES = 100
WINDOW = "timestamp BETWEEN '1970-01-01 00:00:05' AND '1970-01-01 00:00:05.009'"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Batches of 30 kB, ten a second, in segments of a megabyte."""
    with open_directory(tmp_path, create=True, config={"log.segment.bytes": "1048576"}) as made:
        log = made.create("orders")
        for place in range(BATCHES):
            log.append([Record(None, bytes(30_000), timestamp_ms=100 * place)])
    return tmp_path


def explained(root: Path, **arguments: object) -> ScanExplanation:
    return explain_plan(plan(str(root), "orders", **arguments))  # type: ignore[arg-type]


def test_an_upper_bound_says_whether_and_why_it_prunes(root: Path) -> None:
    assert explained(root).upper_time_bound == "none is asked for"
    found = explained(root, where=WINDOW)
    assert found.upper_time_bound == "prunes, by the time ranges of 3 segments"
    assert found.bytes_kept == found.bytes_total // BATCHES
    for path in sorted(root.glob("*/.stratalog/*.timeranges"))[1:]:
        path.unlink()
    some = explained(root, where=WINDOW)
    assert some.upper_time_bound.startswith(
        "prunes by the time ranges of 1 segment, and could not in others: 2 segments have no"
    )
    for path in root.glob("*/.stratalog/*.timeranges"):
        path.unlink()
    none = explained(root, where=WINDOW)
    assert none.upper_time_bound.startswith("could not prune: 3 segments have no")
    vouched = explained(root, where=WINDOW, max_lateness=timedelta(0))
    assert "nothing is late by more than 0 ms (maxLateness)" in vouched.upper_time_bound
    assert vouched.bytes_kept < none.bytes_kept < none.bytes_total


def test_lines_tell_what_is_read_and_what_is_not(root: Path) -> None:
    lines = explained(root, where=WINDOW).lines()
    assert "(1.00 %), of 1 of 3 segments in 1 of 1 partitions" in lines[0]
    assert lines[1].startswith("tasks: 1, the largest of ")
    assert "2 segments whole: outside the time bounds, by time ranges" in lines[2]


@pytest.mark.parametrize(("count", "absent"), [(1, ""), (2, "1"), (12, "1, 2, 3, 4, 5, 6, 7, 8")])
def test_partitions_that_the_directory_lacks_are_told_where_their_number_is_known(
    root: Path, monkeypatch: pytest.MonkeyPatch, count: int, absent: str
) -> None:
    topics = {"orders": KnownTopic(partition_count=count)}
    known = KnownDirectory(owner=Ownership(), topics=topics)
    monkeypatch.setattr(partition_notes, "learn_directory", lambda *_: known)

    told = [line for line in explained(root).lines() if "not in this directory" in line]

    assert len(told) == (1 if absent else 0)
    assert not absent or f"{count - 1} of its {count} partitions" in told[0]
    assert not absent or f"({absent}" in told[0]


def test_the_command_prints_a_table_and_the_reasons(root: Path) -> None:
    ran = run_stratalog(
        *("scan", "explain", "--log-dir", str(root), "--topic", "orders"),
        *("--where", f"{WINDOW} AND value IS NULL"),
    )
    assert ran.exit_code == 0
    assert ran.lines[0].split()[:3] == ["partition", "from", "to"]
    assert ran.lines[1].split()[:5] == ["orders-0", "0", str(BATCHES), "1", "3"]
    assert "upper time bound: prunes, by the time ranges of 3 segments" in ran.text
    assert ran.lines[-1] == "left to a filter of rows: value IS NULL"


def test_the_command_gives_the_same_as_json(root: Path) -> None:
    ran = run_stratalog(
        *("scan", "explain", "--log-dir", str(root), "--start", "10", "-o", "json"),
        *("--end", "1970-01-01T00:00:02+00:00"),
    )
    told = ran.json
    assert (told["segments"], told["segments_kept"], told["tasks"]) == (3, 1, 1)
    assert (told["details"][0]["start_offset"], told["details"][0]["end_offset"]) == (10, 20)
    assert told["bytes_kept"] == told["bytes"] // 10
    assert told["skipped"][0]["reason"] == "offsets"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--start", "soon"), "--start soon: give an offset, earliest, latest, or a time"),
        (("--start", "2026-01-01"), "it needs a time zone"),
        (("--topic", "no"), "holds no topic 'no'"),
        (("--isolation", "none"), "read_uncommitted or read_committed"),
    ],
)
def test_the_command_says_in_a_sentence_what_it_cannot_do(
    root: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    ran = run_stratalog("scan", "explain", "--log-dir", str(root), *arguments)
    assert ran.exit_code == (1 if "no topic" in sentence else 2)
    assert sentence in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
