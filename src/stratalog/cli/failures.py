"""How a command ends that does not succeed: one sentence on stderr, and an exit code.

    1    it was understood, and failed: there is no such topic, the disk is full, the log is damaged
    2    it was not understood: what was typed has to change
    3    of a check, which says with 1 that something is wrong: nothing could be checked
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
NOT_CHECKED = 3
INTERRUPTED = 130
_ENDS = (".", "?", "!")


class UsageError(StratalogError):
    """What was asked for cannot be meant: an option, or options that do not go together."""


class CommandError(StratalogError):
    """What was asked for is clear, and cannot be done as things are."""


class NotCheckedError(StratalogError):
    """A check that could not look, so that it says neither that all is well nor that it is not."""


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
        return _told(_refusal(error), FAILURE)
    except OverflowError:
        # Options take any number, and files and requests those of 64 bits at most.
        return _told("A number that was given is too large.", USAGE)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILURE


def _refusal(error: OSError) -> str:
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{error.strerror or error}."


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
    if isinstance(error, NotCheckedError):
        return NOT_CHECKED
    return USAGE if isinstance(error, UsageError) else FAILURE


@contextmanager
def failures_are_no_findings() -> Iterator[None]:
    """Around what a check does before it has anything to tell."""
    try:
        yield
    except (UsageError, BrokenPipeError):
        raise
    except StratalogError as error:
        raise NotCheckedError(str(error)) from error
    except OSError as error:
        raise NotCheckedError(_refusal(error)) from error


@contextmanager
def refused_as_usage(*kinds: type[StratalogError]) -> Iterator[None]:
    """Where errors of these kinds are about what was typed, and nothing else."""
    try:
        yield
    except kinds as error:
        raise UsageError(str(error)) from error
