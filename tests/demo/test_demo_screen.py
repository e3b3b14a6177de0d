"""The demo's screen: colour and movement for a terminal, plain lines for everything else."""

import io
import re

import pytest

from stratalog.demo.screen import PLAIN_EVERY_SECONDS, Screen, segments_picture, size_text

ESCAPE = "\x1b"
COLOURS = re.compile(r"\x1b\[[0-9;]*(?:3[0-9]|9[0-7])[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def show_all(screen: Screen) -> None:
    screen.title("a title", "below it")
    screen.scene("a scene")
    screen.say("a sentence that is long enough to need more than one line in a narrow terminal")
    screen.table(("name", "count"), [("orders", "1,000"), ("customers", "20")], right="1")
    screen.show(segments_picture({"orders-0": [100, 100, 40]}, 100, "utf-8"))
    with screen.progress("working", 10) as update:
        update(5, None)
    screen.command("stratalog spark sql 'SELECT partition, count(*) FROM orders GROUP BY 1'")


def test_a_terminal_gets_colour() -> None:
    file = Terminal()
    show_all(Screen(file, scenes=1))
    assert COLOURS.search(file.getvalue())
    assert "1/1" in file.getvalue()


def test_a_file_gets_plain_lines_without_blanks_at_the_end_of_sentences() -> None:
    file = io.StringIO()
    show_all(Screen(file, scenes=1))
    text = file.getvalue()
    assert ESCAPE not in text
    assert "\r" not in text
    assert "1/1 a scene\n" in text
    assert "in a narrow terminal\n" in text


def test_no_color_takes_the_colour_and_leaves_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = Terminal()
    show_all(Screen(file, scenes=1))
    assert not COLOURS.search(file.getvalue())
    assert "a sentence" in file.getvalue()


def test_a_dumb_terminal_is_not_moved_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    file = Terminal()
    screen = Screen(file)
    with screen.progress("working", 10) as update:
        update(5, None)
    assert not screen.is_moving
    assert ESCAPE not in file.getvalue()


@pytest.mark.parametrize("columns", [30, 60, 200])
def test_nothing_is_wider_than_a_terminal_but_the_commands_to_copy(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    file = Terminal()
    show_all(Screen(file, scenes=1))
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue())
    *lines, command, _ = shown.split("\n")
    assert command.strip().startswith("stratalog spark sql 'SELECT")
    assert command.strip().endswith("GROUP BY 1'")
    assert max(len(part) for line in lines for part in line.split("\r")) <= columns


def test_where_nothing_moves_progress_is_a_line_every_two_seconds() -> None:
    now = [0.0]
    file = io.StringIO()
    screen = Screen(file, now=lambda: now[0])
    with screen.progress("reading", 100) as update:
        for done in range(100):
            now[0] += PLAIN_EVERY_SECONDS / 8
            update(done, None)
    lines = file.getvalue().splitlines()
    assert len(lines) == 12
    assert lines[0].strip() == "… reading: 7 of 100"


def test_quick_work_is_not_told_of() -> None:
    file = io.StringIO()
    with Screen(file, now=lambda: 0.0).progress("reading", 100) as update:
        update(50, None)
    assert file.getvalue() == ""


def test_a_log_is_drawn_with_a_block_for_each_segment_and_the_last_as_high_as_it_is_full() -> None:
    file = io.StringIO()
    screen = Screen(file)
    logs = {"full-0": [100, 100, 100], "half-0": [100, 50], "none-0": []}
    screen.show(segments_picture(logs, 100, "utf-8"))
    screen.show(segments_picture(logs, 100, "ascii"))
    lines = [" ".join(line.split()) for line in file.getvalue().splitlines()]
    assert lines == [
        "full-0 ███ 3 segments 300 bytes",
        "half-0 █▅ 2 segments 150 bytes",
        "none-0 0 segments 0 bytes",
        "full-0 ### 3 segments 300 bytes",
        "half-0 #: 2 segments 150 bytes",
        "none-0 0 segments 0 bytes",
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (17_300_000, "17.3 MB"),
     (2_500_000_000, "2.5 GB"), (7_000_000_000_000, "7000.0 GB")],
)  # fmt: skip
def test_sizes_are_told_in_powers_of_ten(size: int, text: str) -> None:
    assert size_text(size) == text
