"""Running entries: one after the other, each on its own, and none that takes the others with it."""

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.effort import Effort
from benchmarks.entries import BY_NAME, STORAGE, Entry
from benchmarks.machine import machine
from benchmarks.results import Results
from benchmarks.runner import (
    Done,
    Options,
    OtherMachineError,
    Plan,
    in_process,
    run_all,
    without_paths,
)
from made_results import cost, rate, results

TINY = Options(Effort(seconds=0.1, rounds=1), scale=0.01, is_alone=True)


def test_an_entry_that_fails_does_not_lose_the_others(tmp_path: Path) -> None:
    path = tmp_path / "results.json"

    def measure(entry: Entry, _options: Options) -> Done:
        if entry.name == "decode":
            return Done(1.0, why_not="no room on the disk")
        return Done(2.0, [rate(entry.name, 1)])

    said: list[str] = []
    failed = run_all(
        ["append", "decode", "lookup"], Results(), path, TINY, measure=measure, tell=said.append
    )
    assert failed == ["decode"]
    kept = Results.load(path)
    assert [row.id for _, row in kept.all_rows()] == ["append", "lookup"]
    assert kept.runs["decode"].why_not == "no room on the disk"
    assert "decode was not measured: no room on the disk" in said


def test_what_is_measured_is_kept_before_the_next_entry_begins(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    seen = []

    def measure(entry: Entry, _options: Options) -> Done:
        seen.append([row.id for _, row in Results.load(path).all_rows()])
        return Done(1.0, [rate(entry.name, 1)])

    run_all(["append", "decode"], Results(), path, TINY, measure=measure, tell=lambda _: None)
    assert seen == [[], ["append"]]


def test_a_part_is_merged_into_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    known = results(append=[rate("a", 1)], lookup=[cost("b", 1)])
    known.machine, known.versions = machine(), {}
    known.save(path)
    run_all(
        ["lookup"],
        Results.load(path),
        path,
        TINY,
        measure=lambda *_: Done(1.0, [cost("b", 7)]),
        tell=lambda _: None,
    )
    found = {row.id: row.ours.median for _, row in Results.load(path).all_rows()}
    assert found == {"a": 1, "b": 7}


def measured_again(names: list[str], known: Results, path: Path) -> list[str]:
    said: list[str] = []
    run_all(
        names,
        known,
        path / "results.json",
        TINY,
        measure=lambda entry, _: Done(1.0, [cost(f"new {entry.name}", 7)]),
        tell=said.append,
    )
    return said


def test_what_was_measured_on_another_machine_is_forgotten(tmp_path: Path) -> None:
    known = results(append=[rate("a", 1)])  # on a machine that a test made up
    said = measured_again(["append", "lookup"], known, tmp_path)
    assert [row.id for _, row in known.all_rows()] == ["new append", "new lookup"]
    assert known.machine == machine()
    assert any("on another machine" in line for line in said)


def test_a_part_measured_on_another_machine_does_not_cost_the_rest(tmp_path: Path) -> None:
    known = results(append=[rate("a", 1)], lookup=[cost("b", 1)])
    with pytest.raises(OtherMachineError, match="append would be lost"):
        measured_again(["lookup"], known, tmp_path)
    assert [row.id for _, row in known.all_rows()] == ["a", "b"]
    assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize(
    ("versions", "is_kept"),
    [
        ({"python": "2.7"}, False),
        ({"stratalog": "0.0.1"}, True),  # its source is told with each entry
        ({"kafka": "4.3.1"}, True),  # left out now: nothing else is known of it
        ({"no longer told": "1"}, True),
    ],
)
def test_rows_of_other_versions_are_not_told_beside_new_ones(
    tmp_path: Path, versions: dict[str, str], is_kept: bool
) -> None:
    known = results(append=[rate("a", 1)])
    known.machine, known.versions = machine(), versions
    if is_kept:
        measured_again(["lookup"], known, tmp_path)
    else:
        with pytest.raises(OtherMachineError):
            measured_again(["lookup"], known, tmp_path)
    assert known.row("a") is not None


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (Options(), "make bench ONLY=lookup"),
        (Options(scale=0.5, is_alone=True), 'make bench ONLY=lookup BENCH="--quick --alone"'),
        (
            Options(Effort(seconds=2, rounds=1)),
            'make bench ONLY=lookup BENCH="--seconds 2 --rounds 1"',
        ),
    ],
)
def test_a_row_tells_the_command_that_made_it(
    tmp_path: Path, options: Options, command: str
) -> None:
    found = Results()
    run_all(
        ["lookup"],
        found,
        tmp_path / "results.json",
        options,
        measure=lambda *_: Done(1.0, [cost("b", 7)]),
        tell=lambda _: None,
    )
    assert found.runs["lookup"].command == command


def test_how_long_it_will_take_is_told_from_the_last_time() -> None:
    plan = Plan(["append", "broker-cost"], results(append=[rate("a", 1)]))
    assert plan.line(0).startswith("[1/2] append: about 2 s; 0 min gone")
    assert plan.expected_s("append") == 1.5
    assert plan.expected_s("broker-cost") == BY_NAME["broker-cost"].expected_s


def test_an_entry_runs_in_a_process_of_its_own() -> None:
    done = in_process(BY_NAME["decode"], TINY)
    assert done.why_not is None
    assert [each.id for each in done.outcomes] == ["decode.rate", "decode.records"]


def test_an_entry_whose_process_fails_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    done = in_process(Entry("no-such-entry", STORAGE, 1), TINY)
    assert done.outcomes == ()
    assert done.why_not == "KeyError: 'no-such-entry'"
    assert "Traceback" in capfd.readouterr().err


def test_nothing_that_an_entry_wrote_is_left(tmp_path: Path) -> None:
    in_process(BY_NAME["lookup"], replace(TINY, directory=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_an_entry_that_needs_what_is_not_there_says_so_and_has_not_failed(tmp_path: Path) -> None:
    found = Results()
    path = tmp_path / "results.json"
    assert run_all(["broker-java"], found, path, TINY, tell=lambda _: None) == []
    why_not = "these are Apache Kafka's own tools: left out as asked"
    assert found.runs["broker-java"].why_not == why_not


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "OSError: [Errno 28] no room: '/tmp/bench-1/root/x.log'",
            "OSError: [Errno 28] no room: 'x.log'",
        ),
        ("only 3 MB/s of 4 GB/s", "only 3 MB/s of 4 GB/s"),
    ],
)
def test_why_an_entry_failed_is_told_without_the_paths_of_this_machine(
    said: str, told: str
) -> None:
    assert without_paths(said) == told
