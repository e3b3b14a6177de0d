"""The ways in which a log directory is dumped, for Apache Kafka's tool and for ours alike.

Both run inside the directory and are given the same relative names, so that what they print can be
compared as it is.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from apache_kafka import ToolRun

ALL_KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INDEXES = (".index", ".timeindex")
OUR_TOOL = "from stratalog.cli.main import main; main()"


@dataclass(frozen=True, slots=True)
class Dump:
    """Flags of kafka-dump-log, and the kinds of files to give it."""

    flags: tuple[str, ...]
    suffixes: tuple[str, ...]


DUMPS = {
    "shallow": Dump((), ALL_KINDS),
    "deep": Dump(("--deep-iteration",), (".log",)),
    "data": Dump(("--print-data-log",), (".log",)),
    "data-only": Dump(("--print-data-log", "--skip-record-metadata"), (".log",)),
    "verify": Dump(("--verify-index-only",), INDEXES),
    "sanity": Dump(("--index-sanity-check",), INDEXES),
    "first-bytes": Dump(("--deep-iteration", "--max-bytes", "1500"), (".log",)),
}


def dump_files(log_dir: Path, topics: Iterable[str], suffixes: Sequence[str]) -> list[str]:
    """The files of some partitions that a dump is about, named from the log directory."""
    return [
        f"{topic}-0/{name}"
        for topic in topics
        for name in sorted(file.name for file in (log_dir / f"{topic}-0").iterdir())
        if name.endswith(tuple(suffixes))
    ]


def our_dump(files: Sequence[str], *flags: str, cwd: Path) -> ToolRun:
    """``stratalog log dump`` with the same flags, in the same directory."""
    done = subprocess.run(
        [sys.executable, "-c", OUR_TOOL, "log", "dump", *flags, "--files", ",".join(files)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        timeout=300,
    )
    return ToolRun(done.stdout, done.stderr, done.returncode)
