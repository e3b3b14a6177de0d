"""The page about settings is the code's, not somebody's memory of it."""

import re
from pathlib import Path

from stratalog.config import BrokerConfig, TopicConfig
from stratalog.config.reference import NO_EFFECT, main, render
from stratalog.config.settings import settings_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "config.md"
SOURCE = Path(__file__).parents[2] / "src" / "stratalog"
# What the settings themselves make something of that others read: addresses, the segment's size.
READ_BY_CONFIG = {
    "advertised.listeners",
    "alter.config.policy.class.name",
    "broker.id",
    "controller.listener.names",
    "create.topic.policy.class.name",
    "internal.segment.bytes",
    "listener.security.protocol.map",
    "remote.storage.enable",
}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run: make docs"


def test_the_page_names_every_setting() -> None:
    names = [*settings_of(TopicConfig), *settings_of(BrokerConfig)]

    assert [name for name in names if f"| `{name}`" not in render()] == []


def test_the_page_says_of_each_setting_that_nothing_reads_that_it_has_no_effect() -> None:
    names = {*settings_of(TopicConfig), *settings_of(BrokerConfig)}
    defaults = {name for each in settings_of(TopicConfig).values() for name in each.synonyms}
    own = re.compile(r"/(?:config|protocol/messages)/")
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*.py")
        if not own.search(path.as_posix())
    )
    words = set(re.findall(r"\w+", code))

    unread = {name for name in names if name.replace(".", "_") not in words}
    of_topics = {
        name
        for each in settings_of(TopicConfig).values()
        if each.name in NO_EFFECT
        for name in each.synonyms
    }
    assert (unread - READ_BY_CONFIG - defaults) | of_topics | (unread & NO_EFFECT) == NO_EFFECT


def test_the_page_can_be_written_to_a_file(tmp_path: Path) -> None:
    main([str(tmp_path / "config.md")])

    assert (tmp_path / "config.md").read_text(encoding="utf-8") == render()
