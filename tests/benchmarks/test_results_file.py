"""results.json: what it holds, how parts of it are measured again, and what comes first."""

import json
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.entries import BY_NAME, CHAPTERS, ENTRIES
from benchmarks.machine import (
    busy_cores,
    disk_kind,
    machine,
    method_digest,
    source_digest,
    versions,
)
from benchmarks.measurement import Bar
from benchmarks.results import PATH, Results, slower_first
from made_results import FAILED, RUN, YARDSTICK, cost, line, rate, results

FIELDS = {
    *("id", "entry", "what", "unit", "better", "ours", "theirs", "peer", "ratio", "bar", "is_met"),
    *("is_slower", "is_headline", "note", "command", "date", "commit", "source"),
}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    made = results(
        append=[rate("a", 1, 2, peer=YARDSTICK, bar=Bar(ratio=0.5), note="why", is_headline=True)],
        broker_latency=[cost("b", 3), line("latency")],
    )
    made.save(tmp_path / "results.json")
    again = Results.load(tmp_path / "results.json")
    assert again.to_json() == made.to_json()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "results.json").read_bytes()


def test_each_row_carries_all_that_a_reader_asks_for() -> None:
    row = results(append=[rate("a", 150, 100, bar=Bar(ratio=2))]).to_json()["rows"][0]
    assert set(row) == FIELDS
    assert row["ours"] == {"median": 150, "low": 150, "high": 150, "repeats": 1}
    assert row["peer"] == {"name": "Apache Kafka", "is_rival": True}
    assert (row["ratio"], row["is_met"], row["is_slower"]) == (1.5, False, False)
    assert (row["commit"], row["source"], row["date"]) == (RUN.commit, RUN.source, RUN.date)


def test_a_part_that_is_measured_again_replaces_its_own_rows_alone() -> None:
    made = results(append=[rate("a", 1)], lookup=[cost("b", 1), cost("c", 1)])
    newer = replace(RUN, source="newer")
    made.merge("lookup", newer, [cost("b", 2)])
    assert [(row.id, row.ours.median) for _, row in made.all_rows()] == [("a", 1), ("b", 2)]
    sources = {row["id"]: row["source"] for row in made.to_json()["rows"]}
    assert sources == {"a": RUN.source, "b": "newer"}


def test_an_entry_that_failed_is_recorded_with_why_and_has_no_rows() -> None:
    made = results(append=[rate("a", 1)], lookup=[cost("b", 1)])
    made.merge("lookup", FAILED, [cost("b", 2)])
    data = made.to_json()
    assert data["entries"]["lookup"]["why_not"] == "the disk is full"
    assert [row["id"] for row in data["rows"]] == ["a"]


def test_rows_that_lose_to_a_rival_come_first_the_worst_of_them_at_the_top() -> None:
    rows = [
        rate("ahead", 3, 1),
        rate("yardstick", 1, 9, peer=YARDSTICK),
        rate("missed", 3, 1, bar=Bar(ratio=5)),
        cost("a little slower", 11, 10),
        rate("half as fast", 1, 2),
    ]
    found = [row.id for _, row in slower_first([("append", row) for row in rows])]
    assert found == ["half as fast", "a little slower", "missed", "ahead", "yardstick"]


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="format 99"):
        Results.load(path)


def test_the_digest_is_of_sources_and_not_of_what_is_built_from_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    before = source_digest(tmp_path)
    (tmp_path / "a.so").write_text("built")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.py").write_text("compiled")
    assert source_digest(tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2")
    assert source_digest(tmp_path) != before
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    (tmp_path / "b.py").write_text("x = 1")
    assert source_digest(tmp_path) != before


def test_the_digest_of_what_measures_is_not_of_what_tells(tmp_path: Path) -> None:
    for name in ("append.py", "report.py"):
        (tmp_path / name).write_text("x = 1")
    before = method_digest(tmp_path)
    (tmp_path / "report.py").write_text("x = 2")
    assert method_digest(tmp_path) == before
    (tmp_path / "append.py").write_text("x = 2")
    assert method_digest(tmp_path) != before


def test_the_disk_that_is_told_is_the_one_that_is_written_to(tmp_path: Path) -> None:
    in_memory = Path("/dev/shm")
    if not in_memory.is_dir():
        pytest.skip("there is no second file system here")
    assert machine(str(in_memory))["disk"] == disk_kind(in_memory) == "tmpfs"
    assert machine(str(tmp_path))["disk"] == disk_kind(tmp_path)


def test_a_machine_that_others_use_is_seen_to_be_busy() -> None:
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            pass

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert 0.1 < busy_cores(0.5) <= len(os.sched_getaffinity(0))
    finally:
        is_over.set()
        worker.join()


def test_machine_and_versions_are_told() -> None:
    assert set(machine()) == {"cpu", "cores", "memory_gb", "kernel", "disk", "tcp"}
    assert all(machine().values())
    told = versions()
    assert {"python", "stratalog", "kafka", "spark", "librdkafka", "java"} <= set(told)
    assert told["kafka"] is None, "it was left out"


def test_every_entry_is_a_module_with_a_place_in_the_docs() -> None:
    from importlib.util import find_spec

    assert len(BY_NAME) == len(ENTRIES)
    for entry in ENTRIES:
        assert find_spec(entry.module) is not None, entry.name
        assert entry.chapter in CHAPTERS


def test_every_entry_is_in_the_file_that_is_kept_with_rows_or_with_why_not() -> None:
    kept = Results.load()
    measured = {name for name, run in kept.runs.items() if kept.rows.get(name) or run.why_not}
    missing = {entry.name for entry in ENTRIES} - measured
    assert not missing, f"run: make bench ONLY={','.join(sorted(missing))}"


def test_the_file_that_is_kept_has_the_shape_that_is_promised() -> None:
    data = json.loads(PATH.read_text())
    assert set(data) == {"format", "machine", "versions", "entries", "rows", "series"}
    ids = [row["id"] for row in data["rows"]]
    assert len(ids) == len(set(ids)), "an id names one row"
    for row in data["rows"]:
        assert set(row) == FIELDS, row["id"]
        assert row["entry"] in data["entries"]
        assert row["ours"]["low"] <= row["ours"]["median"] <= row["ours"]["high"], row["id"]
    for name, run in data["entries"].items():
        measured = [row for row in data["rows"] if row["entry"] == name]
        assert bool(measured) is (run["why_not"] is None), name
