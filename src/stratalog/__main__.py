"""``python -m stratalog``: the command line, for environments that are not activated."""

from stratalog.cli.main import main

main()
