"""Measures entries one after the other, each in a process of its own, and keeps what they find.

After each entry the results are written: a run that is interrupted has lost the entry it was at. An
entry that fails, or takes several times as long as it should, is recorded as not measured, with
why, and the next one begins.
"""

import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.effort import SCALE_VARIABLE, Effort
from benchmarks.entries import BY_NAME, Entry
from benchmarks.machine import ROOT, commit, machine, method_digest, source_digest, versions
from benchmarks.measurement import Outcome
from benchmarks.peers import ALONE_VARIABLE
from benchmarks.results import Results, Run
from benchmarks.worker import LEFT_OUT

PATIENCE = 4  # times the expected
PATIENCE_SECONDS = 300  # and that much
LAST_WORDS = 400
_DIRECTORIES = re.compile(r"/[^\s'\"|]*/")


class OtherMachineError(Exception):
    """A part was to be measured again elsewhere than the rest."""


@dataclass(frozen=True, slots=True)
class Options:
    """What all entries of a run are told."""

    effort: Effort = field(default_factory=Effort)
    scale: float = 1.0
    is_alone: bool = False
    directory: str | None = None

    @property
    def told(self) -> str:
        """What is not as it is by itself, as a command has it."""
        words = [
            *([f"--seconds {self.effort.seconds:g}"] if self.effort != Effort() else []),
            *([f"--rounds {self.effort.rounds}"] if self.effort != Effort() else []),
            *(["--quick"] if self.scale != 1 else []),
            *(["--alone"] if self.is_alone else []),
        ]
        return f' BENCH="{" ".join(words)}"' if words else ""

    def environment(self) -> Mapping[str, str]:
        told = {SCALE_VARIABLE: f"{self.scale:g}", ALONE_VARIABLE: "1" if self.is_alone else ""}
        return {**os.environ, **told}


@dataclass(frozen=True, slots=True)
class Done:
    """Of one entry: what it found, or why it found nothing."""

    seconds: float
    outcomes: Sequence[Outcome] = ()
    why_not: str | None = None
    is_left_out: bool = False  # it could not be measured here, and said so itself


@dataclass(slots=True)
class Plan:
    """The entries still to come, and how long they should take: as long as the last time."""

    names: Sequence[str]
    results: Results
    started: float = field(default_factory=time.monotonic)

    def expected_s(self, name: str) -> float:
        before = self.results.runs.get(name)
        is_known = before is not None and before.why_not is None
        return before.seconds if is_known and before else BY_NAME[name].expected_s

    def left_s(self, done: int) -> float:
        return sum(self.expected_s(name) for name in self.names[done:])

    def line(self, done: int) -> str:
        name = self.names[done]
        spent_min = (time.monotonic() - self.started) / 60
        return (
            f"[{done + 1}/{len(self.names)}] {name}: about {minutes(self.expected_s(name))}; "
            f"{spent_min:.0f} min gone, about {minutes(self.left_s(done))} to go"
        )


def minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def run_all(
    names: Sequence[str],
    results: Results,
    path: Path,
    options: Options,
    *,
    measure: Callable[[Entry, Options], Done] | None = None,
    tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> list[str]:
    """Measure and merge; the names of those that failed."""
    measure = measure or in_process
    plan, failed = Plan(names, results), []
    begin(names, results, options, tell)
    for number, name in enumerate(names):
        tell(plan.line(number))
        done = measure(BY_NAME[name], options)
        run = Run(
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
            seconds=round(done.seconds, 1),
            commit=commit(),
            source=source_digest(),
            command=f"make bench ONLY={name}{options.told}",
            why_not=done.why_not,
            method=method_digest(),
        )
        results.merge(name, run, done.outcomes)
        results.save(path)
        if done.why_not is not None:
            failed += [] if done.is_left_out else [name]
            tell(f"{name} was not measured: {done.why_not}")
        else:
            tell(f"{name}: {len(results.rows[name])} rows in {minutes(done.seconds)}")
    return failed


def begin(
    names: Sequence[str], results: Results, options: Options, tell: Callable[[str], None]
) -> None:
    """The machine and the versions are those of all rows: what is of others cannot stay."""
    here, found = machine(options.directory), versions(is_alone=options.is_alone)
    is_other = results.machine not in ({}, here) or any(
        found.get(name) != known
        for name, known in results.versions.items()
        if name != "stratalog" and known and found.get(name)
    )
    if is_other:
        if left := sorted(set(results.runs) - set(names)):
            raise OtherMachineError(
                "the file was measured on another machine, on another disk or with other "
                f"versions, and {', '.join(left)} would be lost: measure everything, or write to "
                "another file with --results"
            )
        tell("what was known was measured on another machine or with other versions: forgotten")
        results.forget()
    # Without peers nothing is known of them that was not before.
    results.versions = {name: found[name] or results.versions.get(name) for name in found}
    results.machine = here


def in_process(entry: Entry, options: Options) -> Done:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stratalog-bench-", dir=options.directory) as home:
        out, root = Path(home, "found"), Path(home, "root")
        code, why_not = _run(entry, options, out, root)
        outcomes = () if why_not else pickle.loads(out.read_bytes())
    return Done(time.monotonic() - started, outcomes, why_not, code == LEFT_OUT)


def _run(entry: Entry, options: Options, out: Path, root: Path) -> tuple[int, str | None]:
    """How it ended, and why there is nothing in ``out``, or None."""
    command = [sys.executable, "-m", "benchmarks.worker", entry.name, str(root), str(out)]
    command += ["--seconds", f"{options.effort.seconds:g}"]
    command += ["--rounds", str(options.effort.rounds)]
    errors = out.with_suffix(".errors")
    with errors.open("wb") as file:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=options.environment(),
            stdin=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        )
        try:
            patience_s = PATIENCE * entry.expected_s + PATIENCE_SECONDS
            code = _wait(process, entry, patience_s)
        except subprocess.TimeoutExpired:
            return -1, f"it was not done after {minutes(patience_s)}"
        finally:
            _end_all(process)
    if code == 0 and out.exists():
        return code, None
    said = errors.read_text(errors="replace").strip()
    last = said.splitlines()[-1] if said else "it said nothing"
    if code != LEFT_OUT:
        print(said[-5_000:], file=sys.stderr, flush=True)
    return code, without_paths(last)[-LAST_WORDS:]


def without_paths(words: str) -> str:
    """With the names of files alone: where they lie on this machine is nobody's concern."""
    return _DIRECTORIES.sub("", words)


def _wait(process: subprocess.Popen[bytes], entry: Entry, patience_s: float) -> int:
    """With a bar on a terminal: it is full when the entry should be done."""
    console, until = Console(stderr=True), time.monotonic() + patience_s
    columns = TextColumn(entry.name), BarColumn(), TimeElapsedColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(entry.name, total=entry.expected_s)
        while True:
            try:
                return process.wait(1)
            except subprocess.TimeoutExpired:
                bar.advance(task)
                if time.monotonic() > until:
                    raise


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """The entry and whatever it started: brokers and JVMs are in its session."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            continue
        if how is signal.SIGTERM:
            time.sleep(0.2)
    process.wait()
