"""Where ``stratalog`` begins: the one place that turns errors to exits.

``stratalog serve`` is what people wait for, so it is not made to wait for the other commands nor
for what they are made with, which are imported with ``app``.
"""

import os
import sys
from collections.abc import Callable, Sequence

from stratalog.cli.failures import FAILURE, INTERRUPTED, exit_code_of
from stratalog.errors import StratalogError


def run_command(command: Callable[[], int | None]) -> int:
    """Run one command; returns its exit code. Never a traceback for what we foresaw."""
    try:
        return command() or 0
    except StratalogError as error:
        return _told(str(error), exit_code_of(error))
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE
    except OSError as error:
        # What the system refuses where no command says it better: a file that may not be read.
        where = "" if error.filename is None else f"{error.filename}: "
        return _told(f"{where}{error.strerror or error}.", FAILURE)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILURE


def _told(sentence: str, exit_code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{sentence}\n")
    return exit_code


def run_serve(arguments: Sequence[str]) -> int:
    from stratalog.cli.serve import main as serve

    return run_command(lambda: serve(arguments))


def main() -> None:
    try:
        sys.exit(_main(sys.argv[1:]))
    except KeyboardInterrupt:  # while there was nothing yet that would have noticed
        sys.exit(INTERRUPTED)


def _main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["serve"]:
        return run_serve(arguments[1:])
    from stratalog.cli.app import run

    return run(arguments)
