"""How a command ends that does not succeed: one sentence on stderr, and an exit code.

    1    it was understood, and failed: there is no such topic, the disk is full, the log is damaged
    2    it was not understood: what was typed has to change
    130  it was interrupted, by Ctrl-C

``run_command`` is the one place that turns errors to exits. Imports nothing but errors:
``stratalog serve`` needs it at its start.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stratalog.errors import StratalogError

FAILURE = 1
USAGE = 2
INTERRUPTED = 130
_ENDS = (".", "?", "!")


class UsageError(StratalogError):
    """What was asked for cannot be meant: an option, or options that do not go together."""


class CommandError(StratalogError):
    """What was asked for is clear, and cannot be done as things are."""


def run_command(command: Callable[[], int | None]) -> int:
    """Run one command; returns its exit code. Never a traceback for what we foresaw."""
    try:
        code = command() or 0
        _flush()  # here, where it is told if it cannot be written
        return code
    except StratalogError as error:
        return _told(str(error), exit_code_of(error))
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        return _silent(FAILURE)
    except OSError as error:
        # What the system refuses where no command says it better: a file that may not be read.
        where = "" if error.filename is None else f"{error.filename}: "
        return _told(f"{where}{error.strerror or error}.", FAILURE)
    except OverflowError:
        # Options take any number, and files and requests those of 64 bits at most.
        return _told("A number that was given is too large.", USAGE)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILURE


def _told(sentence: str, exit_code: int) -> int:
    try:
        _flush()
    except OSError:
        _silent(exit_code)
    if sys.stderr is not None:
        # Errors are often part of a longer sentence, so that not all of them end as one.
        sys.stderr.write(f"{sentence}{'' if sentence.endswith(_ENDS) else '.'}\n")
    return exit_code


def _flush() -> None:
    if sys.stdout is not None:  # it may have been closed by who started us
        sys.stdout.flush()


def _silent(exit_code: int) -> int:
    """What is still to be written goes nowhere: Python would complain again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_code


def exit_code_of(error: StratalogError) -> int:
    return USAGE if isinstance(error, UsageError) else FAILURE


@contextmanager
def refused_as_usage(*kinds: type[StratalogError]) -> Iterator[None]:
    """Where errors of these kinds are about what was typed, and nothing else."""
    try:
        yield
    except kinds as error:
        raise UsageError(str(error)) from error
