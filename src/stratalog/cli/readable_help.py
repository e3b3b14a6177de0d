"""Help that says what a value is in words that people use: OFFSET, MS, BYTES; not <int range>.

An option says so itself, or its name does: the last word of it, but for those below. Usage shows
arguments as they are typed.
"""

import re
from typing import Any

from typer.core import TyperCommand

# By the option's last word.
_WORDS = {
    "ms": "MS",
    "timeout": "MS",
    "bytes": "BYTES",
    "size": "BYTES",
    "to-offset": "OFFSET",
    "shift-by": "N",
    "partition": "N",
    "partitions": "N",
    "factor": "N",
    "retries": "N",
    "messages": "N",
    "version": "N",
    "timestamp": "TIME",
    "until": "TIME",
    "every": "INTERVAL",
    "isolation": "LEVEL",
    "deserializer": "TYPE",
    "master": "URL",
    "compression": "CODEC",
}
_RANGES = (
    (re.compile(r"(\d+)<=x<=(\d+)"), r"from \1 to \2"),
    (re.compile(r"x>=(-?\d+)"), r"at least \1"),
    (re.compile(r"x<=(-?\d+)"), r"at most \1"),
)


def kind_of(option: str) -> str:
    """What the value of ``option`` is, by its name."""
    name = option.lstrip("-")
    last = name.rpartition("-")[2]
    return _WORDS.get(name) or _WORDS.get(last) or last.upper()


class ReadableCommand(TyperCommand):
    """A command whose help does."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}").replace("}...", "...") for piece in _usage(super(), ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, options = [], []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            told = record[1]
            for pattern, words in _RANGES:
                told = pattern.sub(words, told)
            if param.param_type_name == "argument":
                arguments.append((param.metavar or str(param.name).upper(), told))
            else:
                options.append((_named(param), told))
        for title, records in (("Arguments", arguments), ("Options", options)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _usage(command: Any, ctx: Any) -> list[str]:
    found: list[str] = command.collect_usage_pieces(ctx)
    return found


def _named(param: Any) -> str:
    """The names of an option, and what its value is."""
    # Short names first, as everywhere.
    names = ", ".join(sorted(param.opts, key=lambda name: name.startswith("--")))
    if param.secondary_opts:
        names = f"{names} / {', '.join(param.secondary_opts)}"
    if param.is_flag or getattr(param, "count", False):
        return names
    longest = max(param.opts, key=len)
    return f"{names} {param.metavar or kind_of(longest)}"
