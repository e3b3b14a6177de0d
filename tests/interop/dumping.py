"""The ways in which a partition is dumped, for Apache Kafka's tool and for ours alike."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apache_kafka import ToolRun

ALL_KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INDEXES = (".index", ".timeindex")


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


def dump_files(partition_dir: Path, dump: Dump) -> list[str]:
    """The names of a partition's files that a dump is about, in a fixed order."""
    return sorted(file.name for file in partition_dir.iterdir() if file.suffix in dump.suffixes)


def our_dump(files: Sequence[str], *flags: str, cwd: Path) -> ToolRun:
    """``stratalog log dump`` with the same flags, in the same directory."""
    done = subprocess.run(
        [sys.executable, "-m", "stratalog", "log", "dump", *flags, "--files", ",".join(files)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        timeout=120,
    )
    return ToolRun(done.stdout, done.stderr, done.returncode)
