"""Where ``stratalog`` begins, and where it is left.

Rule: imports nothing but ``sys``. A Ctrl-C at an import would end the process in Python's way, with
a traceback, and what is imported before ``main`` runs is imported where nobody could do about it.

``stratalog serve`` is what people wait for, so it is not made to wait for the other commands nor
for what they are made with, which are imported with ``app``.
"""

import sys

# ``failures`` has it too, and may not have been imported when it is needed.
_INTERRUPTED = 130


def main() -> None:
    try:
        code = _main(sys.argv[1:])
        from stratalog.cli.interrupts import leave_at_once

        leave_at_once()  # nothing is left to be interrupted but the interpreter's own end
    except KeyboardInterrupt:  # while there was nothing yet that would have noticed
        code = _INTERRUPTED
    sys.exit(code)


def _main(arguments: list[str]) -> int:
    from stratalog.cli.interrupts import interrupts_stay, leaves_at_once

    if arguments[:1] == ["serve"]:
        return run_serve(arguments[1:])
    with leaves_at_once():
        from stratalog.cli.app import run
    with interrupts_stay():
        return run(arguments)


def run_serve(arguments: list[str]) -> int:
    from stratalog.cli.failures import run_command
    from stratalog.cli.serve import main as serve

    return run_command(lambda: serve(arguments))
