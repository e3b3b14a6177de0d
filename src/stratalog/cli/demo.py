"""``stratalog demo``: a broker, Kafka clients and Spark at work, in two minutes."""

from pathlib import Path
from typing import Annotated

import typer

from stratalog.cli.failures import INTERRUPTED
from stratalog.cli.interrupts import leaves_at_once
from stratalog.cli.output import write_line


def demo(
    directory: Annotated[
        Path,
        typer.Option(
            "--dir", metavar="DIR", help="Where it runs; what an earlier demo left is replaced."
        ),
    ] = Path("stratalog-demo"),
    scale: Annotated[
        float,
        typer.Option("--scale", metavar="SHARE", min=0.01, max=10, help="So much of the data."),
    ] = 1.0,
) -> None:
    """Show everything at work, in two minutes.

    Needs Java 17 or newer and 1 GB of disk.

    A broker is started; a Kafka client produces a shop's orders and customers, and a consumer group
    reads them; Spark queries, streams, compacts and loads the same files; old segments are deleted;
    the broker is killed and recovers; in the end everything is verified. Exit code 1 if anything
    that was shown is not so.

    \b
    Examples:
      stratalog demo
      stratalog demo --dir /tmp/demo --scale 0.1
    """
    with leaves_at_once():
        from stratalog.demo.session import check_spark

        check_spark()  # before what only comes along with Spark is imported
        from stratalog.demo.play import play
    try:
        code = play(directory, scale=scale)
    except KeyboardInterrupt:  # before there was anything to stop
        write_line("\nStopped.")
        code = INTERRUPTED
    raise typer.Exit(code)
