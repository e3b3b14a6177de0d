"""JSON from somebody who need not be trusted: each field is read by its type, or refused by name.

A manifest is sealed: its digest is that of all its other fields, whatever order they come in.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn


class JsonFields:
    """A JSON object, whose fields are asked for one by one. ``refuse`` is its readers' own."""

    number_max = 2**63 - 1
    text_characters_max: int | None = None
    rows_max: int | None = None

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            self.refuse("it is not a JSON object")
        self.values: dict[str, Any] = values

    def refuse(self, reason: str) -> NoReturn:
        raise NotImplementedError

    def check_seal(self, version: int) -> None:
        """Refuse what another version wrote, and what was changed since it was sealed."""
        if self.number("version") != version:
            found = self.values["version"]
            self.refuse(f"its version is {found}; this is written for version {version}")
        body = {name: each for name, each in self.values.items() if name != "digest"}
        try:
            digest = digest_of(body)
        except RecursionError:  # what was just about shallow enough to be read
            self.refuse("it has brackets in brackets, too deep")
        if self.values.get("digest") != digest:
            self.refuse("its digest does not match: it was changed after it was made")

    def number(self, name: str, least: int = 0, most: int | None = None) -> int:
        value = self.values.get(name)
        if type(value) is not int or not least <= value <= self.number_max:
            self.refuse(f"{name} is not a number from {least} on")
        if most is not None and value > most:
            self.refuse(f"{name} is {value}, more than {most}")
        return value

    def text(self, name: str) -> str:
        value = self.path_text(name)
        if not is_text(value):
            self.refuse(f"{name} has a half of a character: it cannot be written as UTF-8")
        return value

    def path_text(self, name: str) -> str:
        """A text that may hold bytes of a file's name which are no characters, as Python has them:
        a sentence about a file too."""
        value = self.values.get(name)
        if not isinstance(value, str):
            self.refuse(f"{name} is not a text")
        most = self.text_characters_max
        if most is not None and len(value) > most:
            self.refuse(f"{name} is not a text of at most {most} characters")
        return value

    def matching(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self.text(name)
        if pattern.fullmatch(value) is None:
            self.refuse(f"{name} is {value[:100]!r}, which does not look like one")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if not isinstance(value, bool):
            self.refuse(f"{name} is neither true nor false")
        return value

    def list(self, name: str) -> list[Any]:
        value = self.values.get(name)
        if not isinstance(value, list) or (
            self.rows_max is not None and len(value) > self.rows_max
        ):
            self.refuse(f"{name} is not a list")
        return value


def is_text(value: str) -> bool:
    """Whether it can leave the process: JSON may hold half of a surrogate pair."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest_of(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
