"""Configs as kafka-configs takes them on the command line: ``k1=v1,k2=[v1,v2],k3=v3``."""

import re
from collections.abc import Iterable

from stratalog.cli.failures import UsageError

_NAME = re.compile(r"[$a-zA-Z0-9._-]*")


def parse_added(text: str) -> dict[str, str]:
    """Pairs by commas; a comma or an equals sign in brackets belongs to the value."""
    found: dict[str, str] = {}
    for part in _split(text, ","):
        pair = _split(part, "=")
        if len(pair) != 2:
            raise UsageError(f"{part} is not of the form NAME=VALUE or NAME=[VALUE,VALUE].")
        name, value = (each.strip() for each in pair)
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot be the name of a config.")
        found[name] = value.replace("[", "").replace("]", "").strip()
    return found


def parse_deleted(texts: Iterable[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _split(text: str, separator: str) -> list[str]:
    """At each separator that is outside of brackets."""
    parts, start, is_inside = [], 0, False
    for place, character in enumerate(text):
        if character in "[]":
            is_inside = character == "["
        elif character == separator and not is_inside:
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]
