"""Lines of generated source: indentation, names that are free, runs of fixed-size fields."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterator
from contextlib import contextmanager

# What generated functions call their own, and must not be hidden by a field of that name.
OWN_NAMES = ("buffer", "count", "end", "new", "out", "parts", "position", "raw", "size", "stop")
RESERVED = frozenset((*keyword.kwlist, *dir(builtins), *OWN_NAMES, "_", "tags", "value"))


class Layouts:
    """The struct formats that one module needs, each bound once to a module-level name."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}

    def use(self, direction: str, letters: str) -> str:
        """The name of ``unpack_from`` or ``pack`` of these letters."""
        tidy = letters.replace("16s", "u").replace("?", "t")
        name = f"_{direction}_{tidy}"
        self._names[direction, letters] = name
        return name

    def lines(self) -> list[str]:
        method = {"unpack": "unpack_from", "pack": "pack"}
        return [
            f'{name} = Struct(">{letters}").{method[direction]}'
            for (direction, letters), name in sorted(self._names.items())
        ]


class Source:
    """Lines under construction, and the local names already taken."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._taken: set[str] = set(RESERVED)

    def add(self, line: str) -> None:
        self.lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.add("pass")
        self._depth -= 1

    def fresh(self, name: str) -> str:
        """``name``, or ``name_2`` and so on if it is taken."""
        free = name
        number = 1
        while free in self._taken:
            number += 1
            free = f"{name}_{number}"
        self._taken.add(free)
        return free
