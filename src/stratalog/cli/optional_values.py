"""Options whose value may be left out, as in Kafka's tools: ``--state`` and ``--state stable``.

Typer has no such option, so the value is put in before the command line is parsed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from stratalog.cli.readable_help import ReadableCommand


def with_values(arguments: Sequence[str], defaults: Mapping[str, str]) -> list[str]:
    """``arguments`` with the default after each of these options that has no value."""
    filled = []
    for place, argument in enumerate(arguments):
        filled.append(argument)
        following = arguments[place + 1] if place + 1 < len(arguments) else None
        if argument in defaults and (following is None or following.startswith("-")):
            filled.append(defaults[argument])
    return filled


class OptionalValues(ReadableCommand):
    """A command with such options; subclasses say which."""

    defaults: ClassVar[Mapping[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_values(args, self.defaults))
