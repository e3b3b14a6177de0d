"""The package as an archive that workers unpack."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stratalog.spark.shipping import ShippingError, package_archive, shipping_configs


def test_what_an_archive_holds_can_be_imported_with_nothing_of_ours_beside_it(
    tmp_path: Path,
) -> None:
    archive = package_archive(tmp_path / "package.zip")
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "unpacked")

    said = subprocess.run(
        [
            sys.executable,
            "-S",  # no site-packages: what comes from elsewhere is named
            "-c",
            "import stratalog.records._kernels as kernels\n"
            "import stratalog.records.compression as codecs\n"
            "print(kernels.__file__, codecs.cramjam.__file__)",
        ],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()

    assert all(each.startswith(str(tmp_path / "unpacked")) for each in said)


def test_an_archive_holds_no_sources_of_compiled_code_and_no_caches(tmp_path: Path) -> None:
    with zipfile.ZipFile(package_archive(tmp_path / "package.zip")) as packed:
        names = packed.namelist()

    assert {"stratalog/__init__.py", "pyspark_stratalog/__init__.py"} <= set(names)
    assert any(name.startswith("stratalog/records/_kernels.") for name in names)
    assert not [name for name in names if name.endswith((".c", ".pyx", ".pyc", ".pxi"))]


def test_the_same_package_makes_the_same_bytes(tmp_path: Path) -> None:
    first = Path(package_archive(tmp_path / "first.zip")).read_bytes()
    second = Path(package_archive(tmp_path / "deeper" / "second.zip")).read_bytes()

    assert first == second
    assert sorted(each.name for each in tmp_path.iterdir()) == ["deeper", "first.zip"]


def test_a_name_that_spark_would_not_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ShippingError, match=r"\.zip"):
        package_archive(tmp_path / "package.egg")


def test_settings_that_are_there_are_kept() -> None:
    assert shipping_configs(
        "/a/b.zip", {"spark.archives": "c.zip#d", "spark.executorEnv.PYTHONPATH": "./d", "x": "y"}
    ) == {
        "spark.archives": "c.zip#d,/a/b.zip#stratalog_package",
        "spark.executorEnv.PYTHONPATH": "./d:./stratalog_package",
        "x": "y",
    }
