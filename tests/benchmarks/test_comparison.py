"""The report: made from results.json alone, the same each time, and no other figures beside it."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from benchmarks.machine import ROOT
from benchmarks.measurement import Bar
from benchmarks.plots import all_plots
from benchmarks.report import (
    BLOCK,
    FIGURE,
    PLOTS,
    comparison,
    readme_block,
    report_files,
    with_figures,
    write_report,
)
from benchmarks.results import Results
from made_results import FAILED, cost, line, rate, results

# A speed, a time or a size that only a measurement can know.
MEASURED = re.compile(
    r"\d[\d.,   ]*\s?(?:(?:[kMG]B|[a-z]+)/s|[kMG]B|[mµ]?s|seconds?|minutes?|%|CPU-s)(?![\w/])"
    r"|times (?:as fast|as slow|faster|slower)"
    r"|(?:fraction|tenths?|hundredths?|thousandths?) of a second"
)
# What is said of the code and not of a run of it: bounds, and examples.
SAID_BY_THE_CODE = {
    "docs/concepts/compaction.md": {"300 ms"},
    "docs/jobs/compact.md": {"1 GB"},
    "docs/jobs/stats.md": {"1700000000000000 ms"},
    "docs/differences.md": {"25 seconds"},
    "docs/serving.md": {"25 seconds"},
    "docs/watching.md": {"20 seconds", "25 seconds", "100 ms"},
}
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def everything() -> Results:
    plotted = [
        *("produce-by-size", "consume-by-size", "latency", "recovery"),
        *("produce-growth", "consume-growth"),
    ]
    made = results(
        broker_latency=[
            cost("latency.p50", 70, 100, is_headline=True, bar=Bar(ratio=0.7)),
            cost("latency.p50.flush", 500, 100),
        ],
        broker_start=[cost("start.empty", 0.2, 2), cost("start.memory", 40, 400)],
        cleaning=[rate("cleaning.random", 800, 100)],
        spark_scan=[rate("spark-scan.connector", 700, 200)],
        spark_load=[rate("spark-load.default", 2, 1)],
        broker_growth=[line(plot) for plot in plotted],
    )
    made.merge("opening", FAILED, [])
    return made


MADE = report_files(Results.load(), ROOT)


@pytest.mark.parametrize("page", [str(path) for path in MADE if path.suffix == ".md"])
def test_a_page_tells_what_the_file_says(page: str) -> None:
    assert (ROOT / page).read_text() == MADE[Path(page)], "run: python -m benchmarks report"


def test_every_page_that_has_a_figure_is_made() -> None:
    marked = {page.relative_to(ROOT) for page in PAGES if FIGURE.search(page.read_text())}
    assert marked <= set(MADE)
    assert Path("docs/testing.md") in marked


def test_the_plots_are_those_of_the_file() -> None:
    made = report_files(Results.load(), ROOT)
    kept = {path.relative_to(ROOT): path.read_text() for path in (ROOT / PLOTS).glob("*.svg")}
    assert kept == {path: text for path, text in made.items() if path.suffix == ".svg"}


def test_the_report_is_the_same_each_time_it_is_made(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("a\n<!-- figures -->\n<!-- /figures -->\nz\n")
    first = write_report(everything(), tmp_path)
    assert first
    assert write_report(everything(), tmp_path) == []


def test_a_plot_that_is_no_longer_made_is_removed(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("<!-- figures -->\n<!-- /figures -->\n")
    write_report(everything(), tmp_path)
    write_report(results(append=[rate("a", 1)]), tmp_path)
    assert list((tmp_path / PLOTS).glob("*.svg")) == []


def test_a_readme_without_a_place_for_figures_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("a table made by hand\n")
    with pytest.raises(ValueError, match="place for figures"):
        write_report(everything(), tmp_path)


def test_without_a_rival_nothing_is_said_of_being_slower() -> None:
    block = readme_block(results(append=[rate("a", 1)]))
    assert "no row here is a comparison" in block
    assert "In no row" not in block


def test_only_what_stands_between_the_marks_is_written(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n")
    write_report(everything(), tmp_path)
    text = readme.read_text()
    assert text.startswith("before\n<!-- figures -->\n`make bench`")
    assert text.endswith("<!-- /figures -->\nafter\n")
    assert "old" not in text


def test_where_we_are_slower_comes_before_where_we_are_not() -> None:
    block = readme_block(everything())
    assert block.index("cost of latency.p50.flush") < block.index("cost of latency.p50 ")
    page = comparison(everything(), [])
    assert page.index("## Where stratalog is slower") < page.index("## The broker")


def test_a_note_stays_in_its_cell() -> None:
    page = comparison(results(append=[rate("a", 1, note="one | two\nthree")]), [])
    assert "| one \\| two three |" in page


def test_the_page_says_how_each_entry_was_measured_and_how_apache_kafka_was_set() -> None:
    page = comparison(everything(), [])
    assert "one record of 100 bytes a request, acks=all" in page
    assert "| `num.io.threads` | `8` |" in page
    assert page.index("## Where stratalog is slower") < page.index("## How it was measured")


def test_what_was_not_measured_is_told_with_why() -> None:
    assert "Not measured: opening (the disk is full)." in readme_block(everything())
    assert "Not measured: opening (the disk is full)." in comparison(everything(), [])


def test_what_was_never_tried_is_told_too() -> None:
    assert "- Not run: recovery, decode," in readme_block(results(append=[rate("a", 1)]))


def test_there_is_a_plot_of_everything_that_was_promised() -> None:
    plots = all_plots(everything())
    names = [plot.name for plot in plots]
    assert names == ["throughput", "latency", "start", "cleaning", "recovery", "spark", "growth"]
    for plot in plots:
        drawn = ElementTree.fromstring(plot.draw())
        assert drawn.tag.endswith("svg")
        assert "prefers-color-scheme: dark" in plot.draw()


def test_a_mark_inside_a_sentence_takes_its_figure_from_the_file() -> None:
    text = "p50 <!-- figure latency.p50 -->?<!-- /figure -->, <!-- figure latency.p50 ratio -->"
    text += "?<!-- /figure --> of <!-- figure latency.p50 theirs -->?<!-- /figure -->"
    told = re.sub("<!--.*?-->", "", with_figures(text, everything()))
    assert told == "p50 70 µs, 0.70 of 100 µs"


def test_a_mark_for_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no row nowhere"):
        with_figures("<!-- figure nowhere -->?<!-- /figure -->", everything())


PAGES = sorted([*ROOT.glob("README.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_tells_a_measured_figure_that_is_not_from_the_file(page: Path) -> None:
    if page == ROOT / "docs" / "comparison.md":
        return
    text = BLOCK.sub("", page.read_text())
    prose = FENCE.sub("", FIGURE.sub("", text))
    known = SAID_BY_THE_CODE.get(str(page.relative_to(ROOT)), set())
    assert {found[0] for found in MEASURED.finditer(prose)} == known


@pytest.mark.parametrize(
    "words",
    [
        *("at 4 GB/s a core", "2.3 µs", "3 times faster", "1 200 records/s", "about 30 MB"),
        *("in 10 ms", "0.2 s", "5 seconds", "1.5 % of it", "a few hundredths of a second"),
        "in a fraction of a second",
    ],
)
def test_the_words_that_would_be_a_measured_figure_are_found(words: str) -> None:
    assert MEASURED.search(words)


@pytest.mark.parametrize("words", ["a segment of 1 GiB", "in 3 rounds", "4.3 sources", "2 MiB"])
def test_other_numbers_are_no_measured_figures(words: str) -> None:
    assert not MEASURED.search(words)
