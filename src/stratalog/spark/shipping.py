"""Sends the package to a cluster whose machines do not have it.

    archive = package_archive("/tmp/stratalog.zip")
    spark = session("spark://master:7077", configs=shipping_configs(archive))

Spark unpacks an archive into the working directory of every executor, so that the compiled module
lies there as a file: from ``spark.submit.pyFiles`` it could not be loaded, since Python imports no
shared library from a zip. The machines need the Python and the platform that the archive was made
on, and PySpark's own needs, PyArrow and pandas; what else tasks import is in the archive.
"""

import os
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from stratalog.errors import StratalogError

# What tasks import and a machine with PySpark need not have.
SHIPPED_PACKAGES = ("stratalog", "pyspark_stratalog", "cramjam", "typing_extensions")

_UNPACKED = "stratalog_package"
_LEFT_OUT_SUFFIXES = frozenset({".c", ".h", ".pxi", ".pyc", ".pyi", ".pyx"})

# The same files make the same archive: Spark caches by content on some clusters.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class ShippingError(StratalogError):
    """The package cannot be packed."""


def package_archive(path: str | Path) -> str:
    """Write the archive for ``shipping_configs``; returns where it is.

    It is put in place whole: a driver that is starting beside this one never sees half of it.
    """
    target = Path(path).absolute()
    if target.suffix != ".zip":
        raise ShippingError(f"{target} does not end with .zip, by which Spark knows how to unpack")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
            for package in SHIPPED_PACKAGES:
                for file, name in _files(package):
                    entry = zipfile.ZipInfo(name, _NO_TIME)
                    entry.external_attr = 0o644 << 16
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, file.read_bytes())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return str(target)


def shipping_configs(archive: str, configs: Mapping[str, str] | None = None) -> dict[str, str]:
    """``configs`` with what makes executors unpack ``archive`` and import from it."""
    settings = dict(configs or {})
    _append(settings, "spark.archives", f"{archive}#{_UNPACKED}", ",")
    _append(settings, "spark.executorEnv.PYTHONPATH", f"./{_UNPACKED}", ":")
    return settings


def _append(settings: dict[str, str], name: str, value: str, separator: str) -> None:
    before = settings.get(name)
    settings[name] = f"{before}{separator}{value}" if before else value


def _files(package: str) -> Iterator[tuple[Path, str]]:
    """Files of an importable package or module, and their names in the archive, sorted."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ShippingError(f"there is no {package} here to ship; install stratalog whole")
    origin = Path(spec.origin)
    if spec.submodule_search_locations is None:
        yield origin, origin.name
        return
    for file in sorted(origin.parent.rglob("*")):
        if file.is_file() and file.suffix not in _LEFT_OUT_SUFFIXES:
            yield file, f"{package}/{file.relative_to(origin.parent).as_posix()}"
