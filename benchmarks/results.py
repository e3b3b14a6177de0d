"""``benchmarks/results.json``: every figure that is told anywhere, and where it comes from.

    machine, versions      of the last run
    entries                by name: when, how long, on which source; or why it was not measured
    rows                   a measurement each, in the order of the entries
    series                 the lines of the plots

A run replaces what it measured and leaves the rest, so that the file can be made in parts. An entry
that failed loses its old rows: what cannot be measured any more is not told either.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.entries import BY_NAME, ENTRIES
from benchmarks.measurement import Bar, Better, Figure, Measurement, Outcome, Peer, Series

PATH = Path(__file__).resolve().parent / "results.json"
FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How an entry was measured the last time. ``why_not`` is set where it was not."""

    date: str
    seconds: float
    commit: str
    source: str
    command: str
    why_not: str | None = None
    method: str = ""  # digest of what measured


@dataclass(slots=True)
class Results:
    machine: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    rows: dict[str, list[Measurement]] = field(default_factory=dict)
    series: dict[str, list[Series]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path = PATH) -> Self:
        """What is there; empty where there is nothing yet."""
        return cls.from_json(json.loads(path.read_text())) if path.exists() else cls()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        if data["format"] != FORMAT:
            raise ValueError(f"results.json has format {data['format']}, this reads {FORMAT}")
        results = cls(machine=data["machine"], versions=data["versions"])
        results.runs = {name: Run(**run) for name, run in data["entries"].items()}
        for row in data["rows"]:
            results.rows.setdefault(row["entry"], []).append(row_from_json(row))
        for series in data["series"]:
            kept = {key: value for key, value in series.items() if key != "entry"}
            results.series.setdefault(series["entry"], []).append(Series(**kept))
        return results

    def to_json(self) -> dict[str, Any]:
        names = [entry.name for entry in ENTRIES if entry.name in self.runs]
        return {
            "format": FORMAT,
            "machine": self.machine,
            "versions": self.versions,
            "entries": {name: asdict(self.runs[name]) for name in names},
            "rows": [
                row_to_json(name, row, self.runs[name])
                for name in names
                for row in self.rows.get(name, ())
            ],
            "series": [
                {"entry": name, **asdict(each)}
                for name in names
                for each in self.series.get(name, ())
            ],
        }

    def save(self, path: Path = PATH) -> None:
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False) + "\n"
        partial = path.with_suffix(".partial")
        partial.write_text(text)
        partial.replace(path)

    def merge(self, name: str, run: Run, outcomes: Iterable[Outcome]) -> None:
        """What was measured of one entry, in place of what was known of it."""
        if name not in BY_NAME:
            raise ValueError(f"there is no benchmark {name}")
        kept = [] if run.why_not is not None else list(outcomes)
        self.runs[name] = run
        self.rows[name] = [each for each in kept if isinstance(each, Measurement)]
        self.series[name] = [each for each in kept if isinstance(each, Series)]

    def forget(self) -> None:
        for each in (self.runs, self.rows, self.series):
            each.clear()

    def all_rows(self) -> list[tuple[str, Measurement]]:
        """With the entry of each, in the order of the entries."""
        return [(entry.name, row) for entry in ENTRIES for row in self.rows.get(entry.name, ())]

    def plotted(self, plot: str) -> list[Series]:
        found = (each for entry in ENTRIES for each in self.series.get(entry.name, ()))
        return [each for each in found if each.plot == plot]

    def row(self, id: str) -> Measurement | None:  # noqa: A002
        return next((row for _, row in self.all_rows() if row.id == id), None)


def slower_first(rows: Iterable[tuple[str, Measurement]]) -> list[tuple[str, Measurement]]:
    """Those that lose to a rival, the worst of them first; then missed bars; then the rest."""

    def key(row: Measurement) -> tuple[int, float]:
        if row.is_slower:
            return 0, -row.disadvantage
        return (1 if row.is_met is False else 2), 0.0

    return sorted(rows, key=lambda pair: key(pair[1]))


# --- one row ------------------------------------------------------------------------------------


def row_to_json(entry: str, row: Measurement, run: Run) -> dict[str, Any]:
    return {
        "id": row.id,
        "entry": entry,
        "what": row.what,
        "unit": row.unit,
        "better": row.better.value,
        "ours": rounded(row.ours),
        "theirs": None if row.theirs is None else rounded(row.theirs),
        "peer": None if row.peer is None else asdict(row.peer),
        "ratio": None if row.ratio is None else float(f"{row.ratio:.4g}"),
        "bar": asdict(row.bar),
        "is_met": row.is_met,
        "is_slower": row.is_slower,
        "is_headline": row.is_headline,
        "note": row.note,
        "command": run.command,
        "date": run.date,
        "commit": run.commit,
        "source": run.source,
    }


def row_from_json(data: dict[str, Any]) -> Measurement:
    return Measurement(
        id=data["id"],
        what=data["what"],
        unit=data["unit"],
        better=Better(data["better"]),
        ours=Figure(**data["ours"]),
        theirs=None if data["theirs"] is None else Figure(**data["theirs"]),
        peer=None if data["peer"] is None else Peer(**data["peer"]),
        bar=Bar(**data["bar"]),
        note=data["note"],
        is_headline=data["is_headline"],
    )


def rounded(figure: Figure) -> dict[str, float | int]:
    """Four digits: what is told has three."""
    short = {name: float(f"{getattr(figure, name):.4g}") for name in ("median", "low", "high")}
    return {**short, "repeats": figure.repeats}
