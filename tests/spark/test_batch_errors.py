"""What is wrong is told in one sentence, on the driver, before any task."""

from pathlib import Path
from typing import Any

import pytest
from batch_loads import load
from topics import write_topic

pytestmark = pytest.mark.xdist_group("spark")


def failure(spark: Any, path: Path, **options: str) -> list[str]:
    """The lines of what Spark says about a count of this load."""
    with pytest.raises(Exception) as caught:
        load(spark, path, **options).count()
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribe": "nobody"}, "holds no topic 'nobody'"),
        ({"assign": '{"nobody":[7]}'}, "holds no topic 'nobody'"),
        ({"subscribe": "orders", "assign": '{"orders":[0]}'}, "give exactly one of"),
        ({"startingOffsets": "latest"}, "a batch query cannot begin at the latest offset"),
        ({"endingOffsets": "earliest"}, "a batch query cannot end at the earliest offset"),
        ({"minPartitions": "none"}, "option 'minPartitions' is 'none'"),
        ({"startingOffset": "earliest"}, "is startingOffsets meant?"),
        ({"startingOffsets": '{"orders":{"0":9}}'}, "orders-0 would begin at 9, after its end 2"),
    ],
)
def test_a_wrong_option_is_told_in_the_first_lines(
    spark: Any, tmp_path: Path, options: dict[str, str], sentence: str
) -> None:
    write_topic(tmp_path, "orders", 1, 2)

    lines = failure(spark, tmp_path, **options)

    assert any(sentence in line for line in lines[:5]), lines


def test_a_path_that_is_no_log_directory_is_told(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")

    for path in (tmp_path / "missing", tmp_path / "notes.txt", tmp_path):
        lines = failure(spark, path)
        assert any(str(path) in line for line in lines[:5]), lines


def test_damage_is_told_by_file_and_position_or_passed_over(spark: Any, tmp_path: Path) -> None:
    write_topic(tmp_path, "orders", 1, 30, batch_records=10)
    (file,) = (tmp_path / "orders-0").glob("*.log")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)

    lines = failure(spark, tmp_path)
    assert any(file.name in line and "position" in line for line in lines), lines[:9]
    found = load(spark, tmp_path, mode="permissive")
    assert sorted(row.offset for row in found.collect()) == [*range(10), *range(20, 30)]
