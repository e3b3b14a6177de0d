"""What is typed as the value of an option: ``NAME=VALUE``, and moments.

Each command that takes one reads it here, so that all take the same. Imports nothing that is slow:
``stratalog serve`` needs it at its start.
"""

import re
from collections.abc import Iterable

from stratalog.cli.failures import UsageError

_MILLISECONDS = re.compile(r"[0-9]{1,18}")
_NEGATIVE = re.compile(r"-[0-9]+")


def pairs(arguments: Iterable[str] | None, option: str, *, is_once: bool = False) -> dict[str, str]:
    """``NAME=VALUE``, as often as it was given; the last of a name counts, as in Kafka's tools.

    ``is_once`` is for what decides about data: there a name that is given twice is refused.
    """
    found: dict[str, str] = {}
    for name, value in repeatable_pairs(arguments, option):
        if is_once and name in found:
            raise UsageError(f"{option} gives {name} twice.")
        found[name] = value
    return found


def repeatable_pairs(arguments: Iterable[str] | None, option: str) -> list[tuple[str, str]]:
    """``NAME=VALUE`` of what may have a name more than once, as a record's headers."""
    found = []
    for argument in arguments or ():
        name, separator, value = argument.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"{option} {argument} is not of the form NAME=VALUE.")
        found.append((name.strip(), value))
    return found


def parse_moment(text: str, option: str) -> int:
    """Milliseconds since 1970, from such a number or from ISO 8601, in UTC if it names no zone."""
    from datetime import UTC, datetime

    if _MILLISECONDS.fullmatch(text):
        return int(text)
    if _NEGATIVE.fullmatch(text):
        raise UsageError(f"{option} {text} is negative; time begins at 0, in 1970.")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text} is neither milliseconds nor a date such as 2026-01-31T12:00:00Z."
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # In whole numbers: a float has not the digits for microseconds of far-away years.
    elapsed = moment - datetime.fromtimestamp(0, UTC)
    return elapsed.days * 86_400_000 + elapsed.seconds * 1000 + elapsed.microseconds // 1000
