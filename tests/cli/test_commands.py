"""The commands on a log of our own: what they say, how they end, what they leave unchanged."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cli_harness import BATCHES, START_MS, Done, stratalog, time_of
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.values import parse_moment
from stratalog.storage.files import OsFileSystem
from stratalog.storage.kept_cuts import KeptCut, KeptCuts

RECORDS = 3 * BATCHES


def ok(*arguments: str) -> Done:
    done = stratalog(*arguments)
    assert done.exit_code == 0, done
    assert done.stderr == ""
    return done


def answer(*arguments: str) -> Any:
    return json.loads(ok(*arguments, "-o", "json").stdout)


def snapshot_of(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(directory)): (path.stat().st_ino, path.stat().st_mtime_ns, content)
        for path in directory.rglob("*")
        for content in [path.read_bytes() if path.is_file() else b""]
    }


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        (("verify", "{}/nowhere-0"), 3, "does not exist"),
        (("segments", "{}/nowhere-0"), 1, "does not exist"),
        (("segments", "{}/plain-file"), 1, "not a directory"),
        (("segments", "{}/no_partition"), 1, "neither"),
        (("segments", "{}"), 1, "log directory"),
        (("find", "{}/orders-0", "--offset", "-1"), 2, "negative"),
        (("find", "{}/orders-0", "--offset", "36"), 1, "outside the log, which holds [0, 36)"),
        (("find", "{}/orders-0", "--timestamp", "-5"), 2, "negative"),
        (("find", "{}/orders-0", "--timestamp", "yesterday"), 2, "neither milliseconds nor a date"),
        (("find", "{}/orders-0"), 2, "either --offset or --timestamp"),
        (("find", "{}/orders-0", "--offset", "1", "--timestamp", "1"), 2, "either"),
        (("repair", "{}/orders-0", "--truncate-at", "-2"), 2, "negative"),
        (("repair", "{}/orders-0", "--drop-batch", "77", "--dry-run"), 1, "outside the log"),
        (("repair", "{}/orders-0", "--drop-batch", "7", "--truncate-at", "7"), 2, "one after"),
        (("verify", "{}/orders-0", "--jobs", "-1"), 2, "greater than or equal to 0"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(
    replica: Path, arguments: tuple[str, ...], exit_code: int, word: str
) -> None:
    (replica.parent / "plain-file").write_text("")
    (replica.parent / "no_partition").mkdir()
    before = snapshot_of(replica.parent)

    done = stratalog("log", *(each.format(replica.parent) for each in arguments))

    assert done.exit_code == exit_code
    assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert snapshot_of(replica.parent) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "{}"),
        ("verify", "{}/orders-0", "-o", "json"),
        ("segments", "{}/orders-0"),
        ("find", "{}/orders-0", "--offset", "7"),
        ("find", "{}/orders-0", "--timestamp", "0"),
        ("repair", "{}/orders-0", "--reindex", "--dry-run"),
    ],
)
def test_looking_changes_nothing(replica: Path, arguments: tuple[str, ...]) -> None:
    before = snapshot_of(replica.parent)

    ok("log", *(each.format(replica.parent) for each in arguments))

    assert snapshot_of(replica.parent) == before


# --- verify --------------------------------------------------------------------------------------


def test_verify_finds_nothing_wrong_with_a_sound_log(replica: Path) -> None:
    done = ok("log", "verify", str(replica.parent))

    assert done.stdout.startswith("1 replica, ")
    assert "nothing wrong" in done.stdout


def test_verify_says_what_is_wrong_where(replica: Path) -> None:
    path = replica / "00000000000000000000.log"
    flip(path, 80)

    done = stratalog("log", "verify", str(replica), "--jobs", "2")

    assert done.exit_code == 1
    assert f"error: {path} at position 0 (offset 0): its CRC" in done.stdout
    assert "1 error, " in done.stdout.splitlines()[-1]

    done = stratalog("log", "verify", str(replica), "-o", "json")
    found = json.loads(done.stdout)["directories"][0]["findings"]
    assert (found[0]["kind"], found[0]["position"]) == ("batch", 0)


def test_verify_looks_again_at_a_directory_in_use(replica: Path) -> None:
    lock = OsFileSystem().lock(str(replica.parent / ".lock"))
    try:
        with (replica / sorted_logs(replica)[-1]).open("ab") as log:
            log.write(bytes(1000))  # as if preallocated by its owner
        report = answer("log", "verify", str(replica.parent))
        assert report["directories"][0]["is_live"] is True
        assert report["directories"][0]["findings"] == []
    finally:
        lock.release()
    assert stratalog("log", "verify", str(replica.parent)).exit_code == 1


def test_looking_at_a_directory_of_its_own_does_not_drop_the_lock(replica: Path) -> None:
    lock = OsFileSystem().lock(str(replica.parent / ".lock"))
    try:
        ok("log", "verify", str(replica.parent))
        script = (
            "import fcntl, sys; f = open(sys.argv[1], 'r+'); "
            "fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)"
        )
        attempt = subprocess.run(
            [sys.executable, "-c", script, str(replica.parent / ".lock")],
            capture_output=True,
            check=False,
        )
        assert attempt.returncode != 0
    finally:
        lock.release()


def sorted_logs(replica: Path) -> list[str]:
    return sorted(path.name for path in replica.glob("*.log"))


# --- segments ------------------------------------------------------------------------------------


def test_segments_tells_what_each_holds(replica: Path) -> None:
    rows = answer("log", "segments", str(replica))["segments"]

    assert [row["base_offset"] for row in rows] == [
        int(n.split(".")[0]) for n in sorted_logs(replica)
    ]
    assert sum(row["records"] for row in rows) == RECORDS
    assert sum(row["batches"] for row in rows) == BATCHES
    assert rows[-1]["next_offset"] == RECORDS
    assert rows[0]["first_timestamp"] == time_of(2)
    assert rows[-1]["last_timestamp"] == time_of(RECORDS - 1)
    assert {codec for row in rows for codec in row["codecs"]} == {"none", "zstd"}
    assert rows[0]["roll"] is None
    assert all("size" in row["roll"] for row in rows[1:])
    assert all(row["trouble"] == [] for row in rows)
    assert all(
        row["size_bytes"] == (replica / f"{row['base_offset']:020d}.log").stat().st_size
        for row in rows
    )
    assert sum(row["index_entries"] for row in rows) == sum(
        path.stat().st_size // 8 for path in replica.glob("*.index")
    )


def test_segments_draws_a_table_with_a_line_for_each(replica: Path) -> None:
    lines = ok("log", "segments", str(replica)).stdout.splitlines()

    assert lines[0].split()[:3] == ["base", "next", "records"]
    assert len(lines) == 1 + len(sorted_logs(replica))
    assert "2023-11-14 22:13:22.000" in lines[1]


def test_segments_shows_a_damaged_one(replica: Path) -> None:
    flip(replica / "00000000000000000000.log", 80)

    assert "batch" in ok("log", "segments", str(replica)).stdout.splitlines()[1]


def test_segments_shows_where_recovery_has_cut(replica: Path) -> None:
    cuts = KeptCuts(OsFileSystem(), str(replica))
    cut = KeptCut(1_700_000_000_000, 9, 0, 300, 99, "its CRC does not match", ())
    cuts.finish(cuts.begin(cut, []))

    rows = answer("log", "segments", str(replica))["segments"]
    assert rows[0]["trouble"] == ["recovery-cut"]
    told = " ".join(ok("log", "verify", str(replica)).stdout.split())
    assert "recovery has cut off 99 bytes" in told
    assert "nothing wrong" in told


# --- find ----------------------------------------------------------------------------------------


def test_every_record_is_found_by_its_offset(replica: Path) -> None:
    for offset in range(RECORDS):
        found = answer("log", "find", str(replica), "--offset", str(offset))
        assert found["record"]["offset"] == offset
        assert found["record"]["value"] == f"value {offset % 3} of batch {offset // 3}"
        assert found["steps"][0]["action"] == "segment"


def test_every_record_is_found_by_its_time(replica: Path) -> None:
    for offset in range(RECORDS):
        for timestamp_ms in (time_of(offset), time_of(offset) - 999):
            found = answer("log", "find", str(replica), "--timestamp", str(timestamp_ms))
            assert found["record"]["offset"] == offset


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_answers_do_not_depend_on_the_indexes(replica: Path, suffix: str) -> None:
    for path in replica.glob(f"*{suffix}"):
        path.write_bytes(bytes(255 - n for n in range(path.stat().st_size)))
    test_every_record_is_found_by_its_offset(replica)

    for path in replica.glob(f"*{suffix}"):
        path.unlink()
    test_every_record_is_found_by_its_offset(replica)
    test_every_record_is_found_by_its_time(replica)


def test_a_time_after_all_records_finds_none(replica: Path) -> None:
    done = stratalog("log", "find", str(replica), "--timestamp", str(time_of(RECORDS)))

    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "No record is that late."


def test_the_steps_of_a_search_are_told(replica: Path) -> None:
    lines = ok("log", "find", str(replica), "--offset", "35").stdout.splitlines()

    assert "owns offset 35" in lines[0]
    assert ".index: slot " in lines[1]
    assert lines[-2].startswith("batch ")
    assert lines[-1].startswith("found offset 35 with timestamp")


def test_a_search_that_meets_damage_says_so(replica: Path) -> None:
    log = replica / sorted_logs(replica)[0]
    data = bytearray(log.read_bytes())
    data[8:12] = b"\0\0\0\0"
    log.write_bytes(data)
    for path in replica.glob("*.index"):
        path.unlink()

    done = stratalog("log", "find", str(replica), "--offset", "4")

    assert done.exit_code == 1
    assert "damaged at position 0" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001
def test_dates_are_read_to_the_millisecond(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    expected = round(moment.replace(tzinfo=UTC).timestamp() * 1000)

    assert parse_moment(moment.isoformat(), "--timestamp") == expected
    assert parse_moment(moment.isoformat() + "+00:00", "--timestamp") == expected
    assert parse_moment(str(expected), "--timestamp") == expected


def test_a_date_may_have_a_zone() -> None:
    assert parse_moment("2023-11-14T22:13:20Z", "--timestamp") == START_MS
    assert parse_moment("2023-11-15T00:13:20+02:00", "--timestamp") == START_MS


# --- repair --------------------------------------------------------------------------------------


def test_repair_cuts_what_an_interrupted_write_left_and_keeps_it(replica: Path) -> None:
    log = replica / sorted_logs(replica)[-1]
    whole = log.read_bytes()
    log.write_bytes(whole + b"half a batch")
    assert stratalog("log", "verify", str(replica)).exit_code == 1

    done = ok("log", "repair", str(replica))

    assert f"cut bytes [{len(whole)}, {len(whole) + 12})" in done.stdout
    assert log.read_bytes() == whole
    (aside,) = (replica / ".stratalog" / "cut").iterdir()
    assert aside.read_bytes() == b"half a batch"
    assert aside.name.startswith(f"{log.name}.{len(whole)}.")
    ok("log", "verify", str(replica.parent))


def test_repair_leaves_damage_to_a_person_and_then_does_as_told(replica: Path) -> None:
    flip(replica / "00000000000000000000.log", 80)

    undecided = stratalog("log", "repair", str(replica))
    assert undecided.exit_code == 1
    assert "for you to decide" in undecided.stdout
    assert "--drop-batch 0" in undecided.stdout

    ok("log", "repair", str(replica), "--drop-batch", "0")
    ok("log", "verify", str(replica))
    assert answer("log", "find", str(replica), "--offset", "1")["record"]["offset"] == 3


def test_a_dry_run_says_the_same_and_does_nothing(replica: Path) -> None:
    flip(replica / "00000000000000000000.log", 80)
    before = snapshot_of(replica.parent)

    planned = ok("log", "repair", str(replica), "--truncate-at", "0", "--dry-run")
    assert snapshot_of(replica.parent) == before
    done = ok("log", "repair", str(replica), "--truncate-at", "0")

    assert planned.stdout.splitlines() == [f"would {line}" for line in done.stdout.splitlines()]


def test_a_repair_of_a_directory_in_use_is_refused(replica: Path) -> None:
    lock = OsFileSystem().lock(str(replica.parent / ".lock"))
    try:
        done = stratalog("log", "repair", str(replica), "--reindex")
    finally:
        lock.release()

    assert done.exit_code == 1
    assert f"({os.getpid()})" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_repairing_a_sound_log_does_nothing(replica: Path) -> None:
    before = snapshot_of(replica)

    assert ok("log", "repair", str(replica)).stdout == "nothing to repair\n"
    assert snapshot_of(replica) == before


# --- the program ---------------------------------------------------------------------------------


def cpu_seconds(script: str) -> float:
    """What a process that runs ``script`` takes of a processor, however long it waits for one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = (
        "; import resource; used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(used.ru_utime + used.ru_stime, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {script}{told}"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stderr)


def test_help_is_quick_and_pulls_in_nothing_heavy() -> None:
    """The library of the command line is most of it, and takes what it takes on any machine."""
    imported = "import typer.main, typer.rich_utils, rich.console"
    helped = (
        "from stratalog.cli.app import run; code = run(['log', '--help']); "
        "heavy = {'pyarrow', 'numpy', 'cramjam', 'stratalog.records'} & set(sys.modules); "
        "assert (code, heavy) == (0, set()), (code, heavy)"
    )

    cpu_seconds(helped)  # the first time, sources may have to be compiled

    assert cpu_seconds(helped) < 6 * cpu_seconds(imported)


def test_a_reader_that_has_seen_enough_is_no_error_to_complain_about(replica: Path) -> None:
    script = "import sys; from stratalog.cli.app import run; sys.exit(run(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    log = str(replica / sorted_logs(replica)[0])
    command = [sys.executable, "-c", script, "log", "dump", "--files", ",".join([log] * 500)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
