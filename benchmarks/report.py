"""What is told of ``results.json``: the README's figures, docs/comparison.md and the plots.

All of it is made from that file alone, so that a test can make it again and see whether anybody
wrote a figure by hand. Where we are slower than a rival comes first, the worst of it at the top.

In Markdown, what stands between two comments is written here:

    <!-- figures -->          in the README, to <!-- /figures -->
    <!-- figure ID -->        anywhere in README and docs, to <!-- /figure -->: our median of a row;
                              ``ID theirs`` the peer's, ``ID ratio`` ours by theirs
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.broker_processes import KAFKA_SETTINGS
from benchmarks.effort import Effort
from benchmarks.entries import BY_NAME, CHAPTERS, ENTRIES, Entry
from benchmarks.measurement import Measurement, short
from benchmarks.peers import KAFKA_JVM
from benchmarks.plots import all_plots
from benchmarks.results import Results, slower_first
from benchmarks.svg import Plot
from benchmarks.table import bar, ratio, spread, verdict

BLOCK = re.compile(r"(?<=<!-- figures -->\n).*?(?=<!-- /figures -->)", re.DOTALL)
FIGURE = re.compile(r"(<!-- figure (\S+?)(?: (theirs|ratio))? -->).*?(<!-- /figure -->)", re.DOTALL)
COMPARISON = Path("docs/comparison.md")
PLOTS = Path("docs/plots")
INTRO = """\
`make bench` measures stratalog with Apache Kafka, Spark's Kafka connector and Spark's Parquet
beside it in one run, and writes `benchmarks/results.json`. `python -m benchmarks report` writes
this page from that file; a test compares the two, so do not edit it."""
HOW = f"""\
- A figure is a median, with the least and the most of its repeats in brackets; one without brackets
  was measured once. Plots have them as a thin line across a bar or a point, or as a band. A ratio
  is ours by theirs, in the unit of the row.
- Sides take turns within a run (but for idle brokers, watched one after the other), so that what
  else the machine does meets them alike. All run the same client, on the same two cores.
- Where brokers are held against each other by cost, throughput or latency, each is warmed up for
  {Effort.seconds:g} s before the first of {Effort.rounds} rounds.
- Both settings of durability are told. Rows beside Apache Kafka that say nothing acknowledge from
  the page cache, which is what Apache Kafka does (`log.flush.on.ack=false`); rows with *each
  acknowledgement on disk* are stratalog's default, beside the same Apache Kafka.
- Where a machine paces what it sends (bbr, see `tcp`), stratalog turns that off for connections
  within the machine and Apache Kafka does not: part of what fetches cost there.
- Apache Kafka is one KRaft node from Maven's artifacts, with the JVM flags of its own start script
  and what its own `server.properties` sets, see below. stratalog is `stratalog serve` as it comes.
  Both delete files after 100 ms, not after a minute.
- A peer that cannot be had, or is not wanted (`make bench BENCH=--alone`), is missing: our part is
  measured alone then, and the note of the row says why.
- `make bench ONLY=NAME` measures one entry again, on the same machine with the same versions."""

NOTHING_BESIDE = "Nothing was measured beside stratalog: no row here is a comparison."


def write_report(results: Results, root: Path) -> list[Path]:
    """The files whose contents changed."""
    made = report_files(results, root)
    changed = []
    for path, content in made.items():
        target = root / path
        if not target.exists() or target.read_text() != content:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
            changed.append(target)
    for old in sorted((root / PLOTS).glob("*.svg")):
        if old.relative_to(root) not in made:
            old.unlink()
            changed.append(old)
    return changed


def report_files(results: Results, root: Path) -> Mapping[Path, str]:
    """All that is made from the results, by its path: nothing is written."""
    plots = all_plots(results)
    made = {PLOTS / f"{plot.name}.svg": plot.draw() for plot in plots}
    made[COMPARISON] = comparison(results, plots)
    readme = (root / "README.md").read_text()
    if len(BLOCK.findall(readme)) != 1:
        raise ValueError("README.md has not one place for figures: <!-- figures -->")
    made[Path("README.md")] = BLOCK.sub(lambda _: readme_block(results), readme)
    for page in sorted(
        [Path("README.md"), *(p.relative_to(root) for p in root.glob("docs/**/*.md"))]
    ):
        text = made.get(page) or (root / page).read_text()
        if FIGURE.search(text):
            made[page] = with_figures(text, results)
    return made


def with_figures(text: str, results: Results) -> str:
    def figure(found: re.Match[str]) -> str:
        row = results.row(found[2])
        if row is None:
            raise ValueError(f"there is no row {found[2]} in results.json")
        return f"{found[1]}{one_figure(row, found[3])}{found[4]}"

    return FIGURE.sub(figure, text)


def one_figure(row: Measurement, which: str | None) -> str:
    if which == "ratio":
        return "?" if row.ratio is None else f"{row.ratio:.2f}"
    figure = row.theirs if which == "theirs" else row.ours
    return "?" if figure is None else f"{short(figure.median)} {row.unit}"


# --- the README ---------------------------------------------------------------------------------


def readme_block(results: Results) -> str:
    rows = results.all_rows()
    slower = [row for _, row in slower_first(rows) if row.is_slower]
    missed = [row for _, row in rows if row.is_met is False and not row.is_slower]
    ahead = [row for _, row in rows if row.is_headline and row not in slower + missed]
    lines = wrapped(
        f"`make bench` on {machine_words(results)}. Medians; a ratio is ours by theirs."
    )
    if slower:
        lines += ["", "Where stratalog is **slower** or costs more, the worst first:", ""]
        lines += table(slower)
    elif is_compared(rows):
        lines += ["", "In no row is stratalog slower than what it was compared with."]
    else:
        lines += ["", NOTHING_BESIDE]
    if missed:
        lines += ["", "Bars that were **missed**:", "", *table(missed)]
    if ahead:
        lines += ["", "The rest, in short:", "", *table(ahead)]
    lines += ["", *not_measured(results)]
    lines.append(
        "All rows, with their spread, and plots: [docs/comparison.md](docs/comparison.md)."
    )
    return "\n".join(lines) + "\n"


def is_compared(rows: list[tuple[str, Measurement]]) -> bool:
    return any(row.peer and row.peer.is_rival and row.theirs is not None for _, row in rows)


def wrapped(words: str) -> list[str]:
    return textwrap.wrap(words, 100, break_long_words=False, break_on_hyphens=False)


def table(rows: list[Measurement]) -> list[str]:
    lines = ["| what | stratalog | beside it | ratio | bar |", "|---|---|---|---|---|"]
    for row in rows:
        theirs = ""
        if row.peer is not None:
            median = "not measured" if row.theirs is None else short(row.theirs.median)
            theirs = f"{median}, {row.peer.name}"
        cells = (
            row.what,
            f"{short(row.ours.median)} {row.unit}",
            theirs,
            ratio(row),
            barred(row),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def barred(row: Measurement) -> str:
    wanted = bar(row.bar, row.better, row.unit)
    return f"{wanted}, **missed**" if row.is_met is False else wanted


def machine_words(results: Results) -> str:
    machine, versions = results.machine, results.versions
    words = f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_gb']:g} GB"
    beside = [f"Python {versions['python']}"]
    for name, label in (
        ("kafka", "Apache Kafka"),
        ("spark", "Spark"),
        ("spark_kafka_connector", "its Kafka connector"),
    ):
        if versions.get(name):
            beside.append(f"{label} {versions[name]}")
    return f"{words}, with {', '.join(beside)}"


def not_measured(results: Results) -> list[str]:
    """A line for each entry that failed, and one for all that were never tried."""
    runs = results.runs
    lines = [
        f"- Not measured: {entry.name} ({runs[entry.name].why_not})."
        for entry in ENTRIES
        if entry.name in runs and runs[entry.name].why_not is not None
    ]
    if untried := [entry.name for entry in ENTRIES if entry.name not in runs]:
        lines += wrapped(f"- Not run: {', '.join(untried)}.")
    return [*lines, ""] if lines else []


# --- docs/comparison.md -------------------------------------------------------------------------


def comparison(results: Results, plots: list[Plot]) -> str:
    """Where we are slower comes before anything else is told."""
    parts = (
        head(results),
        slower(results),
        charts(plots),
        chapters(results),
        how_measured(results),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def head(results: Results) -> Iterator[str]:
    minutes = sum(run.seconds for run in results.runs.values()) / 60
    yield from ("# What was measured", "", *INTRO.splitlines(), "")
    yield from wrapped(
        f"This is of {machine_words(results)}; it took {minutes:.0f} minutes. Figures are medians "
        "with their spread, a ratio is ours by theirs: [how it was measured](#how-it-was-measured)."
    )
    yield ""


def how_measured(results: Results) -> Iterator[str]:
    yield from ("## How it was measured", "", *HOW.splitlines(), "", "| machine | |", "|---|---|")
    names = {"cpu": "CPU", "memory_gb": "memory, GB"}
    for name, value in results.machine.items():
        yield f"| {names.get(name, name)} | {value} |"
    yield from ("", "| version | |", "|---|---|")
    for name, value in results.versions.items():
        yield f"| {name.replace('_', ' ')} | {value or 'not there'} |"
    yield from ("", "| Apache Kafka | |", "|---|---|", f"| JVM flags | `{' '.join(KAFKA_JVM)}` |")
    for name, value in KAFKA_SETTINGS.items():
        yield f"| `{name}` | `{value}` |"
    yield from ("", *sources(results))


def sources(results: Results) -> Iterator[str]:
    """Which code the figures are of: one line where it is the same for all."""
    by_source: dict[tuple[str, str], list[str]] = {}
    for entry in ENTRIES:
        if entry.name in results.runs:
            run = results.runs[entry.name]
            by_source.setdefault((run.source, run.commit), []).append(entry.name)
    for (source, commit), names in by_source.items():
        which = "All entries" if len(by_source) == 1 else ", ".join(names)
        yield f"- {which}: source `{source}`, commit `{commit}`"


def slower(results: Results) -> Iterator[str]:
    rows = [row for _, row in slower_first(results.all_rows()) if row.is_slower]
    yield from ("## Where stratalog is slower", "")
    if rows:
        yield from long_table(rows)
    else:
        yield "In no row." if is_compared(results.all_rows()) else NOTHING_BESIDE
    yield ""
    missed = [row for _, row in results.all_rows() if row.is_met is False]
    if missed:
        yield from ("## Bars that were missed", "", *long_table(missed), "")
    failed = not_measured(results)
    if failed:
        yield from ("## Not measured", "", *failed)


def charts(plots: list[Plot]) -> Iterator[str]:
    if plots:
        yield from ("## Plots", "")
    for plot in plots:
        yield from (f"![{plot.title}](plots/{plot.name}.svg)", "", sentence(plot.caption), "")


def chapters(results: Results) -> Iterator[str]:
    for chapter in CHAPTERS:
        rows = [pair for pair in results.all_rows() if BY_NAME[pair[0]].chapter == chapter]
        if rows:
            yield from (f"## {chapter}", "")
        for entry in ENTRIES:
            of_entry = [row for name, row in slower_first(rows) if name == entry.name]
            if of_entry:
                run = results.runs[entry.name]
                yield from (f"### {entry.name}", "", *words_of(entry), "")
                yield from (f"`{run.command}`, {run.date}, {run.seconds:.0f} s", "")
                yield from (*long_table(of_entry), "")


def sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def words_of(entry: Entry) -> list[str]:
    """What its module says of how it measures."""
    said = ast.get_docstring(ast.parse(Path(__file__).with_name(entry.file).read_text())) or ""
    return said.replace("``", "`").splitlines()


def long_table(rows: list[Measurement]) -> Iterator[str]:
    yield "| what | unit | stratalog | beside it | ratio | bar | met | note |"
    yield "|---|---|---|---|---|---|---|---|"
    for row in rows:
        theirs = ""
        if row.theirs is not None and row.peer is not None:
            theirs = f"{spread(row.theirs)}, {row.peer.name}"
        unit = f"{row.unit}, {'more' if row.better == 'higher' else 'less'} is better"
        cells = (
            row.what,
            unit,
            spread(row.ours),
            theirs,
            ratio(row),
            bar(row.bar, row.better, row.unit),
            verdict(row),
            row.note.replace("|", "\\|").replace("\n", " "),
        )
        yield f"| {' | '.join(cells)} |"
