"""``tools/setup`` says in one sentence, with the Debian package's name, what a machine lacks.

Each case is a PATH on which all is there but one thing. Everything that is looked for is looked for
before anything is made, so that none of these runs changes anything.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("sh", "dirname", "sed", "find", "make", "gcc", "cat")
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A directory for PATH, with what setup needs, or what stands in for it."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for name in PROGRAMS:
        found = shutil.which(name)
        if found is None:
            script(bin_dir / name, "exit 0")
        else:
            (bin_dir / name).symlink_to(found)
    script(bin_dir / "python3", f'exec "{sys.executable}" "$@"')
    java(bin_dir, "17.0.1")
    return bin_dir


def script(path: Path, code: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{code}\n")
    path.chmod(0o755)


def java(bin_dir: Path, version: str) -> None:
    script(bin_dir / "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")


def lacking(bin_dir: Path, *arguments: str, **environment: str) -> str:
    """What setup says that it lacks: one line, and the exit code 1."""
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "tools" / "setup"), *arguments],
        # Were it to go on, pip would find nothing to install.
        env={"PATH": str(bin_dir), "HOME": "/", "PIP_NO_INDEX": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done
    assert len(done.stderr.splitlines()) == 1, done
    return done.stderr.strip()


def without(name: str) -> Callable[[Path], None]:
    return lambda bin_dir: (bin_dir / name).unlink()


def python_that(code: str) -> Callable[[Path], None]:
    """A Python that answers the question ``$2`` in its own way, and the others as ours does."""
    line = f'case "$2" in {code};; esac\nexec "{sys.executable}" "$@"'
    return lambda bin_dir: script(bin_dir / "python3", line)


@pytest.mark.parametrize(
    ("take", "sentence"),
    [
        (without("make"), "stratalog needs make: install the Debian package make."),
        (
            without("python3"),
            "stratalog needs Python 3.11 or newer: install the Debian package python3.11.",
        ),
        (
            python_that('"import sys; sys.exit"*) exit 1;; -V) echo Python 3.9.2; exit 0'),
            "stratalog needs Python 3.11 or newer, and python3 is",
        ),
        (
            python_that('"import ensurepip"*) echo "No module named venv" >&2; exit 1'),
            f"stratalog needs Python's venv module: install the Debian package {VERSION}-venv.",
        ),
        (without("gcc"), "stratalog needs a C compiler: install the Debian package gcc."),
        (
            python_that("*get_path*) echo /nowhere; exit 0"),
            f"stratalog needs Python's header files: install the Debian package {VERSION}-dev.",
        ),
        (
            lambda bin_dir: script(bin_dir / "gcc", "cat >/dev/null; exit 1"),
            "stratalog needs the C library's headers: install the Debian package libc6-dev.",
        ),
    ],
)
def test_what_is_missing_is_told_in_one_sentence(
    machine: Path, take: Callable[[Path], None], sentence: str
) -> None:
    take(machine)
    assert lacking(machine).startswith(sentence)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "16"])
def test_an_old_java_is_none_for_the_demo(machine: Path, version: str) -> None:
    java(machine, version)
    assert lacking(machine, "--java") == (
        "stratalog needs Java 17 or newer for Spark: install the Debian package "
        "openjdk-17-jre-headless."
    )


def test_no_java_is_told_by_make_demo_before_anything_is_made(machine: Path) -> None:
    (machine / "java").unlink()
    assert "install the Debian package openjdk-17-jre-headless." in lacking(machine, "--java")
    recipe = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    lines = [line.strip() for line in recipe.splitlines()[1:]]
    assert lines[0] == "@tools/setup --java"
    assert "stratalog demo" in lines[-1]


def test_the_java_of_java_home_counts_as_it_does_for_spark(machine: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    assert f"JAVA_HOME={home} is none" in lacking(machine, "--java", JAVA_HOME=str(home))
    java(home / "bin", "21.0.3")
    (machine / "java").unlink()
    subprocess.run(
        ["/bin/sh", str(ROOT / "tools" / "setup"), "--java"],
        env={"PATH": str(machine), "JAVA_HOME": str(home)},
        check=True,
    )


def test_a_second_set_up_has_nothing_to_do(tmp_path: Path) -> None:
    """Make's own view of it, in a copy of what it decides by."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make")
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "tools").mkdir()
    for name in ("setup", "build-kernels"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    (tmp_path / ".venv").mkdir()

    def is_due() -> bool:
        return subprocess.run([make, "-q", "setup"], cwd=tmp_path, check=False).returncode == 1

    assert is_due()
    for name in (".ready", ".kernels"):
        (tmp_path / ".venv" / name).touch()
    assert not is_due()
    os.utime(tmp_path / "constraints.txt", (2**31, 2**31))
    assert is_due()
