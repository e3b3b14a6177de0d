"""Options of Spark's readers and writers as they were given: found in any case, and read by type.

What nobody can act on is told in one sentence that names the option. A name that is nearly one of
the known ones is refused: a misspelt option that does nothing is the dearest kind.
"""

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from stratalog.scans.errors import ScanOptionError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_DURATION = re.compile(r"(-?\d+)\s*(us|ms|s|m|min|h|d)?")
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class GivenOptions:
    """The options as given, found by name in any case, and turned into values."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.values = {name.lower(): value for name, value in options.items()}
        self._names = {name.lower(): name for name in options}

    def text(self, name: str) -> str | None:
        return self.values.get(name.lower())

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise ScanOptionError(name, text, "expected true or false")
        return text.strip().lower() == "true"

    def count(self, name: str, *, at_least: int = 1, at_most: int = 2**63 - 1) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            number = int(text.strip())
        except ValueError:
            number = -1
        if not at_least <= number <= at_most:
            raise ScanOptionError(
                name, text, f"expected a whole number from {at_least} to {at_most}"
            )
        return number

    def size_bytes(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        match = re.fullmatch(r"(\d{1,18})\s*([kmgt]?)b?", text.strip().lower())
        size = 0 if match is None else int(match[1]) << (10 * " kmgt".index(match[2] or " "))
        if not 0 < size < 2**63:
            raise ScanOptionError(name, text, "expected a size in bytes, such as 67108864 or 64m")
        return size

    def duration_ms(self, name: str) -> int | None:
        """A time as Spark writes it: ``15m``, ``500ms``; a bare number is milliseconds."""
        text = self.text(name)
        if text is None:
            return None
        match = _DURATION.fullmatch(text.strip().lower())
        if match is None or int(match[1]) < 0 or len(match[1]) > 15:
            raise ScanOptionError(name, text, "expected a time such as 500ms, 30s, 15m, 2h or 1d")
        if match[2] == "us":
            return int(match[1]) // 1000
        return int(match[1]) * _UNIT_MS[match[2] or "ms"]

    def check_spelling(self, names: Iterable[str]) -> None:
        known = {name.lower(): name for name in names}
        for lower, name in self._names.items():
            if lower in known or lower.startswith(("kafka.", "stratalog.", "option.")):
                continue
            close = difflib.get_close_matches(lower, known, n=1, cutoff=0.85)
            if close:
                raise ScanOptionError(
                    name,
                    self.values[lower],
                    f"there is no such option; is {known[close[0]]} meant?",
                )

    def kafka(self) -> dict[str, str]:
        """The settings of a client: options that begin with ``kafka.``, without that."""
        return {
            name.removeprefix("kafka."): text
            for name, text in self.values.items()
            if name.startswith("kafka.")
        }


def parse_path(path: str, what_for: str = "read") -> str:
    """A log directory as an absolute path: from a path, or from the URI of one."""
    if not path.strip():
        raise ScanOptionError("path", path, f"name the log directory to {what_for}")
    scheme = _SCHEME.match(path)
    if scheme is None:
        return os.path.abspath(path)  # noqa: PTH100
    if scheme[1].lower() != "file":
        raise ScanOptionError("path", path, "only directories of a mounted file system will do")
    # As a catalog's LOCATION is told: a URI, whose spaces are %20.
    return os.path.abspath(unquote("/" + path[scheme.end() :].lstrip("/")))  # noqa: PTH100
