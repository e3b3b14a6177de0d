"""The image that a page shows, but for Docker: what each of its instructions does is done here.

The base image stands for an environment with PySpark and without stratalog. It cannot be had here,
and so its name alone is looked at.
"""

import re
import shlex
import venv
from pathlib import Path

import pyspark
import pytest

from doc_pages import Block, block_of
from doc_shell import ROOT, in_shell
from spark_cluster import OURS, share_packages

pytestmark = pytest.mark.interop

PAGE = "docs/spark-clusters.md"
CHECKOUT = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py", "src")
INSTRUCTIONS = ["FROM", "USER", "COPY", "RUN", "USER"]


@pytest.fixture(scope="module")
def image() -> list[tuple[str, str]]:
    return instructions(block_of(PAGE, "FROM spark"))


def instructions(block: Block) -> list[tuple[str, str]]:
    found = [line.partition(" ") for line in block.code.splitlines()]
    return [(word, rest) for word, _, rest in found]


def test_the_base_is_of_the_spark_that_the_package_asks_for(image: list[tuple[str, str]]) -> None:
    assert [word for word, _ in image] == INSTRUCTIONS
    base = dict(image)["FROM"]

    version = re.fullmatch(r"spark:([\d.]+)-python3", base)
    assert version is not None
    assert version[1] == pyspark.__version__


def test_what_is_copied_is_what_was_built_and_it_installs(
    image: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source, target), line = shlex.split(dict(image)["COPY"]), dict(image)["RUN"]
    monkeypatch.chdir(tmp_path)
    build = block_of(PAGE, "pip wheel").code.replace(" PATH", f" {copied_source(tmp_path)}")
    # What builds is here already, and nothing else is needed: no index is asked.
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_INPUT": "1"}
    done(f"{build.rstrip()} --no-build-isolation", offline)
    assert len(list(tmp_path.glob(source))) == 1
    root = tmp_path / "image"
    programs = make_base(root / "environment")
    place = root / target.lstrip("/")
    place.mkdir()
    done(f"cp {source} {place}/")

    done(line.replace(target, f"{place}/"), {**offline, "PATH": f"{programs}:/usr/bin:/bin"})

    imports = "import stratalog.records._kernels as found, pyspark_stratalog; print(found.__file__)"
    printed = done(f"cd / && {programs}/python -c '{imports}'")
    assert str(root) in printed


def copied_source(home: Path) -> Path:
    """The checkout without what was made in it: building writes beside the source."""
    place = home / "checkout"
    done(f"mkdir {place} && cd {ROOT} && cp -a {' '.join(CHECKOUT)} {place}/")
    done(f"find {place} -name '*.so' -delete")
    return place


def make_base(place: Path) -> Path:
    """An environment with pip and with the packages of this one but for ours."""
    venv.create(place, with_pip=True, symlinks=True)
    share_packages(place, but_for=OURS)
    return place / "bin"


def done(line: str, environment: dict[str, str] | None = None) -> str:
    exit_code, printed = in_shell(line, environment)
    assert exit_code == 0, f"{line} ended with {exit_code}: {printed[-3000:]}"
    return printed
