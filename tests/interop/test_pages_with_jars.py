"""What the page of the export shows with jars: each command as it is shown, but for paths.

``--packages`` would have Spark fetch the jars by itself. They are those of lakes/pom.xml, fetched
once, and so the option gives way to them, when it has named what the pom names.
"""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from tools_fetched import LAKES_POM, ToolUnavailableError, iceberg_spark, lake_jars

import stratalog
from doc_pages import block_of
from doc_shell import in_shell
from spark_fixture import SETTINGS
from stratalog import Record

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("spark")]

PAGE = "docs/jobs/export.md"
EXPORT = "stratalog spark export lake/orders --log-dir /var/lib/stratalog --topic orders "
RECORDS = 9
COORDINATES = re.compile(
    r"<groupId>([^<*]+)</groupId>\s*<artifactId>([^<*]+)</artifactId>\s*<version>([^<]+)</version>"
)


@pytest.fixture(scope="module")
def jars() -> list[Path]:
    try:
        return lake_jars()
    except ToolUnavailableError as why:
        pytest.skip(str(why))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """A topic whose values are one long each, as Avro writes it; and Spark's settings in a file."""
    monkeypatch.chdir(tmp_path)
    with stratalog.open_directory("log", create=True) as logs:
        logs.create("orders").append([Record(b"k", bytes([2 * n])) for n in range(RECORDS)])
    settings = tmp_path / "spark-conf" / "spark-defaults.conf"
    settings.parent.mkdir()
    settings.write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    return {"SPARK_CONF_DIR": str(settings.parent), "SPARK_LOCAL_IP": "127.0.0.1"}


def shown(beginning: str, containing: str) -> str:
    lines = block_of(PAGE, beginning).code.splitlines()
    (line,) = [each for each in lines if containing in each]
    return line


def run(line: str, jars: list[Path], environment: Mapping[str, str]) -> None:
    """The line with our paths, and with jars in the place of the packages that it names."""
    home = Path.cwd()
    told = line.replace("/var/lib/stratalog", str(home / "log"))
    told = re.sub(r"(?<=[ =])/lake\b", str(home / "lakes"), told)
    (package,) = re.findall(r" --packages (\S+)", told)
    assert package in packages(), f"{package} is not what the tests use"
    _, name, version = package.split(":")
    assert f"{name}-{version}.jar" in {jar.name for jar in jars}
    given = shlex.quote(f"spark.jars={','.join(map(str, fitting(jars, name)))}")
    exit_code, printed = in_shell(
        told.replace(f"--packages {package}", f"--conf {given}"), environment
    )
    assert exit_code == 0, printed[-5000:]


def packages() -> set[str]:
    return {":".join(found) for found in COORDINATES.findall(LAKES_POM.read_text())}


def fitting(jars: list[Path], name: str) -> list[Path]:
    """Iceberg's and Delta's are for Sparks of their own, and do not go together."""
    family = next((each for each in ("iceberg", "delta", "avro") if each in name), name)
    return [jar for jar in jars if family in jar.name]


def rows(directory: Path) -> list[dict[str, Any]]:
    files = [str(path) for path in directory.rglob("*.parquet")]
    return list(pyarrow.dataset.dataset(files).to_table().to_pylist())


def test_avro_as_the_page_decodes_it(jars: list[Path], environment: Mapping[str, str]) -> None:
    run(shown(EXPORT + "--packages", "from_avro"), jars, environment)

    landed = sorted(row["payload"]["id"] for row in rows(Path("lake/orders")))
    assert landed == list(range(RECORDS))


def test_avro_of_a_registry_as_the_page_decodes_it(
    jars: list[Path], environment: Mapping[str, str]
) -> None:
    """Each value by the schema it was written with, all as the newest."""
    fields = [{"name": "id", "type": "long"}, {"name": "amount", "type": "long", "default": 7}]
    values = [bytes.fromhex("0000000011") + bytes([2 * n]) for n in range(3)]
    values += [bytes.fromhex("0000000012") + bytes([2 * n, 2 * 9]) for n in range(3, 6)]
    values += [bytes.fromhex("0000000063") + b"other"]
    with stratalog.open_directory("log", topics={"orders": {}}) as logs:
        logs.create("typed").append([Record(b"k", value) for value in values])
    expression = " ".join(block_of(PAGE, "CASE hex").code.split())
    for schema_id, count in ((17, 1), (18, 2)):
        schema = {"type": "record", "name": "Order", "fields": fields[:count]}
        expression = expression.replace(f"{{{schema_id}}}", json.dumps(schema))
    (package,) = [each for each in packages() if "spark-avro" in each]
    export = "stratalog spark export lake/typed --log-dir /var/lib/stratalog --topic typed "

    line = f"{export} --packages {package} --column offset --column {shlex.quote(expression)}"
    run(line, jars, environment)

    landed = sorted(rows(Path("lake/typed")), key=lambda row: row["offset"])
    expected = [(n, 7 if n < 3 else 9) for n in range(6)]
    assert [(r["payload"]["id"], r["payload"]["amount"]) for r in landed[:-1]] == expected
    assert landed[-1]["payload"] is None


def test_delta_as_the_page_writes_it(jars: list[Path], environment: Mapping[str, str]) -> None:
    run(shown(EXPORT + "--format delta", "--format delta"), jars, environment)

    assert sorted(row["offset"] for row in rows(Path("lake/orders"))) == list(range(RECORDS))
    assert list(Path("lake/orders/_delta_log").glob("*.json"))


def test_iceberg_as_the_page_writes_it(jars: list[Path], environment: Mapping[str, str]) -> None:
    try:
        _, older_spark = iceberg_spark()
    except ToolUnavailableError as why:
        pytest.skip(str(why))
    line = shown(EXPORT + "--format delta", "--format iceberg")
    run(line, jars, {"PYTHONPATH": older_spark["PYTHONPATH"], **environment})

    table = Path("lakes/db/orders")
    assert sorted(row["offset"] for row in rows(table / "data")) == list(range(RECORDS))
    assert list((table / "metadata").glob("*.metadata.json"))
