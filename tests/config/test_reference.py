"""The page about settings is the code's, not somebody's memory of it."""

from pathlib import Path

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.reference import main, render
from stratalog.config.settings import settings_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "config.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: make docs"


def test_the_page_names_every_setting() -> None:
    names = [*settings_of(TopicConfig), *settings_of(BrokerConfig)]

    assert [name for name in names if f"| `{name}`" not in render()] == []


def test_the_page_can_be_written_to_a_file(tmp_path: Path) -> None:
    main([str(tmp_path / "config.md")])

    assert (tmp_path / "config.md").read_text(encoding="utf-8") == render()
