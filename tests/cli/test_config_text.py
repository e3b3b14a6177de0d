"""Configs on the command line, as kafka-configs takes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.config_text import parse_added, parse_deleted
from stratalog.cli.failures import UsageError

names = st.from_regex(r"[a-z][a-z.]{0,10}[a-z]", fullmatch=True)
values = st.text("abc012.,=-", max_size=12)


@given(st.dictionaries(names, values, min_size=1, max_size=4))
def test_what_is_in_brackets_is_one_value(configs: dict[str, str]) -> None:
    assert parse_added(",".join(f"{name}=[{value}]" for name, value in configs.items())) == configs


def test_brackets_are_only_needed_for_commas() -> None:
    added = parse_added("retention.ms=5000, cleanup.policy=[compact,delete],empty=")

    assert added == {"retention.ms": "5000", "cleanup.policy": "compact,delete", "empty": ""}


@pytest.mark.parametrize("text", ["retention.ms", "a=1,b", "a=1=2", "a b=1", "a=1,,b=2"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_added(text)


def test_names_to_delete_are_a_list_by_commas_or_by_options() -> None:
    assert parse_deleted(["a, b", "c"]) == ["a", "b", "c"]
