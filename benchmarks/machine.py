"""On what, and of what, something was measured: the machine, the versions, and the source.

The source is told twice: as a commit, and as a digest of ``src/`` that stays the same when only
results, docs or tests change. What measures has a digest of its own. Nothing here names a host or a
path.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.peers import connector_version, kafka_version, why_no_kafka

ROOT = Path(__file__).resolve().parents[1]
SOURCE_SUFFIXES = (".py", ".pyi", ".pyx", ".pxi", ".pxd", ".h", ".sql")
# Modules here that tell what was measured and have no part in measuring it.
TELLING = ("__main__", "entries", "machine", "plots", "report", "results", "runner", "svg", "table")


def source_digest(root: Path = ROOT / "src") -> str:
    """Of all that is written by hand or kept: names and bytes, in order."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in SOURCE_SUFFIXES and "__pycache__" not in path.parts:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(root)}\0{len(data)}\0".encode())
            digest.update(data)
    return digest.hexdigest()[:12]


def method_digest(root: Path = ROOT / "benchmarks") -> str:
    """Of what measures."""
    digest = hashlib.sha256()
    for path in sorted(root.glob("*.py")):
        if path.stem not in TELLING:
            digest.update(f"{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def commit() -> str:
    """Of the checkout; with a plus where ``src`` has been changed since."""
    found = _said("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    if not found:
        return "unknown"
    changed = _said("git", "-C", str(ROOT), "status", "--porcelain", "--", "src")
    return f"{found}+" if changed else found


def machine(directory: str | None = None) -> dict[str, object]:
    """With the disk below ``directory``, which is where entries write."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "kernel": platform.release().split("-")[0],
        "disk": disk_kind(Path(directory or tempfile.gettempdir())),
        "tcp": _congestion_control(),
    }


def versions(*, is_alone: bool = False) -> dict[str, str | None]:
    """None where something is not there, or is left out."""
    return {
        "stratalog": _package("stratalog"),
        "python": platform.python_version(),
        "kafka": None if is_alone or why_no_kafka() is not None else kafka_version(),
        "spark": _package("pyspark"),
        "spark_kafka_connector": None if is_alone else connector_version(),
        "librdkafka": _librdkafka(),
        "pyarrow": _package("pyarrow"),
        "java": _java(),
    }


def disk_kind(directory: Path) -> str:
    """The file system, and what is below it as far as the kernel says."""
    best = ("", "", "unknown")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, mount, kind, *_ = line.split()
        if directory.resolve().is_relative_to(mount) and len(mount) >= len(best[1]):
            best = (device, mount, kind)
    name = re.sub(r"p?\d+$", "", Path(best[0]).name)
    rotational = Path(f"/sys/block/{name}/queue/rotational")
    if not rotational.exists():
        return best[2]
    if name.startswith(("vd", "xvd")):
        return f"{best[2]} on a virtual disk"
    turns = rotational.read_text().strip() == "1"
    return f"{best[2]} on {'a disk that turns' if turns else 'flash'}"


def busy_cores(seconds: float = 1.0) -> float:
    """How many are at work by now, before anything is measured: those of others."""
    before = _ticks()
    time.sleep(seconds)
    (total, idle), (total_before, idle_before) = _ticks(), before
    share = 1 - (idle - idle_before) / max(total - total_before, 1)
    return share * len(os.sched_getaffinity(0))


def _ticks() -> tuple[int, int]:
    """All of them, and those in which a core had nothing to do."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def _congestion_control() -> str:
    setting = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return setting.read_text().strip() if setting.exists() else "unknown"


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _package(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _librdkafka() -> str | None:
    try:
        import confluent_kafka
    except ImportError:
        return None
    return str(confluent_kafka.libversion()[0])


def _java() -> str | None:
    if shutil.which("java") is None:
        return None
    found = re.search(r'version "([^"]+)"', _said("java", "-version", stream="stderr"))
    return found[1] if found else None


def _said(*command: str, stream: str = "stdout") -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return str(getattr(done, stream)).strip()
