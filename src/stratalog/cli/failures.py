"""How a command ends that does not succeed: one sentence on stderr, and an exit code.

    1    it was understood, and failed: there is no such topic, the disk is full, the log is damaged
    2    it was not understood: what was typed has to change
    130  it was interrupted, by Ctrl-C

Imports nothing but errors: ``stratalog serve`` needs it at its start.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from stratalog.errors import StratalogError

FAILURE = 1
USAGE = 2
INTERRUPTED = 130


class UsageError(StratalogError):
    """What was asked for cannot be meant: an option, or options that do not go together."""


class CommandError(StratalogError):
    """What was asked for is clear, and cannot be done as things are."""


def exit_code_of(error: StratalogError) -> int:
    return USAGE if isinstance(error, UsageError) else FAILURE


@contextmanager
def refused_as_usage(*kinds: type[StratalogError]) -> Iterator[None]:
    """Where errors of these kinds are about what was typed, and nothing else."""
    try:
        yield
    except kinds as error:
        raise UsageError(str(error)) from error
