"""The project that ``stratalog pipeline init`` writes; that Spark runs it, tests/spark tries."""

import ast
import json
from pathlib import Path

import pytest
from cli_harness import stratalog
from hypothesis import given
from hypothesis import strategies as st

from stratalog.cli.pipeline import SinkKind, project_files


def test_a_project_is_written_for_each_kind_of_sink(tmp_path: Path) -> None:
    place, log_dir = tmp_path / "lines", tmp_path / "logs"

    done = stratalog(
        *("pipeline", "init", str(place), "--topic", "orders", "--log-dir", str(log_dir)),
        *("--sink", "stratalog", "--to-topic", "copies", "--sink", "parquet", "-o", "json"),
    )

    assert done.exit_code == 0, done.stderr
    written = sorted(str(each.relative_to(place)) for each in place.rglob("*") if each.is_file())
    assert json.loads(done.stdout) == {"directory": str(place), "files": written}
    assert written == [
        "spark-pipeline.yml",
        "transformations/source.py",
        "transformations/to_parquet.py",
        "transformations/to_topic.py",
        "transformations/transform.sql",
    ]


def test_parquet_is_the_sink_that_is_meant_without_a_word(tmp_path: Path) -> None:
    place = tmp_path / "lines"

    done = stratalog("pipeline", "init", str(place), "--topic", "orders", "--log-dir", "logs")

    assert (place / "transformations" / "to_parquet.py").exists()
    assert not (place / "transformations" / "to_topic.py").exists()
    assert "spark-pipelines run --spec" in done.stdout


def test_the_name_of_a_pipeline_is_a_text_whatever_it_looks_like() -> None:
    yaml = pytest.importorskip("yaml")
    texts = project_files(
        Path("/home/lines/017"), topic="t", log_dir="/d", sinks=[SinkKind.PARQUET], to_topic=None
    )

    found = yaml.safe_load(texts["spark-pipeline.yml"])

    assert (found["name"], found["storage"]) == ("017", "file:///home/lines/017/storage")


@pytest.mark.parametrize("name", ["my lines", "50%", "a#b", "a?b", "a{b}"])
def test_where_spark_would_keep_checkpoints_elsewhere_no_project_is_made(
    tmp_path: Path, name: str
) -> None:
    place = tmp_path / name / "lines"
    place.parent.mkdir()

    done = stratalog("pipeline", "init", str(place), "--topic", "orders", "--log-dir", "logs")

    assert done.exit_code == 2
    assert "choose another place" in done.stderr
    assert not place.exists()


@given(name=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_whatever_a_log_directory_is_called_the_files_are_valid(name: str) -> None:
    log_dir = f"/data/{name}"
    texts = project_files(
        Path("/home/lines"),
        topic="orders",
        log_dir=log_dir,
        sinks=list(SinkKind),
        to_topic="copies",
    )

    for path in ("transformations/source.py", "transformations/to_topic.py"):
        tree = ast.parse(texts[path])
        places = [
            ast.literal_eval(each.value)
            for each in tree.body
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "LOG_DIR"
        ]
        assert places == [log_dir]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--topic", "orders"], "is there already, and nothing is overwritten"),
        (["--topic", "or/ders"], "a topic name holds only"),
        (["--topic", "orders", "--sink", "stratalog"], "--to-topic belong together"),
        (["--topic", "orders", "--to-topic", "copies"], "--to-topic belong together"),
        (
            ["--topic", "orders", "--sink", "stratalog", "--to-topic", "orders"],
            "is the topic that is read",
        ),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    place = tmp_path / "lines"
    is_taken = "already" in sentence
    if is_taken:
        place.mkdir()

    done = stratalog("pipeline", "init", str(place), "--log-dir", "logs", *arguments)

    assert done.exit_code == (2 if sentence.startswith(("--", "is the topic")) else 1)
    assert sentence in done.stderr
    assert list(place.iterdir()) == [] if is_taken else not place.exists()
