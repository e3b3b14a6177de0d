"""Directories and dumps of Apache Kafka kept in the repository, so that every test run has them.

``golden/kafka.tar.xz`` holds, for some scenarios, the partition at three moments of a run and what
kafka-dump-log prints for the clean one. ``python tests/interop/golden.py`` writes it anew from the
release that the pom names.
"""

import json
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from apache_kafka import KafkaDistribution
from dumping import DUMPS, dump_files
from kafka_runs import RECOVERY_POINTS, checkpoint, run_scenarios

ARCHIVE = Path(__file__).resolve().parent / "golden" / "kafka.tar.xz"
KINDS = ("shallow", "data")
MOMENTS = ("clean", "crashed", "damaged", "recovered")
TOPICS = (
    "empty",
    "plain",
    "codecs",
    "rolled-by-size",
    "rolled-by-time",
    "rolled-by-index",
    "disordered",
    "tied",
    "timeless",
    "idempotent",
    "transactions-rolled",
    "torn-tail",
    "garbled-tail",
    "lost-indexes",
)


@dataclass(frozen=True, slots=True)
class Golden:
    """The archive, unpacked."""

    root: Path

    def partition_dir(self, moment: str, topic: str) -> Path:
        """A partition as Kafka left it at one moment."""
        return self.root / moment / f"{topic}-0"

    def dump(self, kind: str) -> str:
        """What kafka-dump-log printed for all clean partitions, run in their log directory."""
        return (self.root / "dumps" / f"{kind}.txt").read_text()

    def recovery_point(self, topic: str) -> int:
        """Where Kafka had checkpointed that everything below is flushed, before the crash."""
        return checkpoint(self.root / "crashed", RECOVERY_POINTS)[topic]

    @property
    def started_ms(self) -> list[int]:
        """When each life of the broker began."""
        return list(json.loads((self.root / "run.json").read_text())["started_ms"])


def unpack(target: Path) -> Golden:
    """Unpack the archive into an empty directory."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(target, filter="data")
    return Golden(target)


def make(distribution: KafkaDistribution, work_dir: Path) -> None:
    """Run Kafka and pack what it left."""
    run = run_scenarios(distribution, work_dir)
    dumps = work_dir / "dumps"
    dumps.mkdir()
    for kind in KINDS:
        dump = DUMPS[kind]
        files = dump_files(run.clean, TOPICS, dump.suffixes)
        printed = distribution.dump_log(files, *dump.flags, cwd=run.clean)
        (dumps / f"{kind}.txt").write_text(printed.stdout)
    (work_dir / "run.json").write_text(json.dumps({"started_ms": run.started_ms}))
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for path in _kept(work_dir):
            archive.add(work_dir / path, path, recursive=False, filter=_anonymous)


def _kept(work_dir: Path) -> list[str]:
    kept = [Path("run.json"), Path("crashed", RECOVERY_POINTS)]
    kept += (path.relative_to(work_dir) for path in work_dir.glob("dumps/*"))
    for moment in MOMENTS:
        for topic in TOPICS:
            partition_dir = work_dir / moment / f"{topic}-0"
            kept += (path.relative_to(work_dir) for path in partition_dir.iterdir())
    # Likeness compresses: the same file of all moments side by side.
    return [str(path) for path in sorted(kept, key=lambda path: (path.parts[1:], path.parts))]


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        make(KafkaDistribution.resolve(), Path(directory))
    sys.stdout.write(f"{ARCHIVE}: {ARCHIVE.stat().st_size} bytes\n")
