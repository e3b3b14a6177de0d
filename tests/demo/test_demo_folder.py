"""The demo's folder: a second run replaces the first, and nothing else is ever removed."""

import json
from pathlib import Path

import pytest

from broker_fixture import running_broker
from stratalog.demo import folder as folders
from stratalog.demo.errors import DemoError
from stratalog.demo.folder import open_folder
from stratalog.demo.play import exit_code
from stratalog.demo.session import check_spark
from stratalog.demo.stage import Check, Sizes


def test_a_second_run_finds_the_folder_empty(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "demo"
    with open_folder(place) as first:
        for each in (first.data, first.parquet, first.spark):
            each.mkdir()
            (each / "file").write_text("of the first run")
        for each in (first.events, first.others):
            each.write_text("of the first run")
    with open_folder(place):
        assert [each.name for each in place.iterdir()] == [folders.MARKER]


def test_what_is_no_demo_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(DemoError, match="holds other things than a demo"), open_folder(tmp_path):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_others_put_into_a_demos_folder_stays(tmp_path: Path) -> None:
    with open_folder(tmp_path):
        (tmp_path / "notes.txt").write_text("interesting")
    with open_folder(tmp_path):
        assert (tmp_path / "notes.txt").read_text() == "interesting"


def test_two_demos_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        open_folder(tmp_path),
        pytest.raises(DemoError, match="Another demo runs in"),
        open_folder(tmp_path),
    ):
        pass


def test_a_folder_whose_data_is_served_is_not_cleared(tmp_path: Path) -> None:
    with open_folder(tmp_path) as folder:
        pass
    with running_broker(folder.data):
        with pytest.raises(DemoError, match=r"Process \d+ serves"), open_folder(tmp_path):
            pass
        assert (folder.data / "meta.properties").exists()


def test_a_file_in_its_place_is_told_in_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "demo"
    place.write_text("")
    with pytest.raises(DemoError, match="is not a directory: name another"), open_folder(place):
        pass
    with pytest.raises(DemoError, match="cannot be used"), open_folder(place / "below"):
        pass


def test_a_full_disk_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "FREE_BYTES_MIN", 1 << 60)
    with pytest.raises(DemoError, match="MB free, and the demo needs"), open_folder(tmp_path):
        pass


def test_without_java_one_sentence_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DemoError) as told:
        check_spark()
    assert "install the Debian package openjdk-17-jre-headless" in str(told.value)
    assert "\n" not in str(told.value)


def test_the_exit_code_is_1_unless_something_was_checked_and_all_of_it_holds() -> None:
    right, wrong = Check("one", 5, 5), Check("other", 5, 4)
    assert exit_code([right, right]) == 0
    assert exit_code([right, wrong]) == 1
    assert exit_code([]) == 1
    assert exit_code([Check("at most five", 5, 4, is_bound=True)]) == 0
    assert exit_code([Check("at most five", 5, 6, is_bound=True)]) == 1


@pytest.mark.parametrize("scale", [0.001, 0.02, 0.5, 1.0, 10.0])
def test_every_scale_has_something_of_everything_and_segments_that_are_allowed(
    scale: float,
) -> None:
    sizes = Sizes(scale)
    assert sizes.customer_updates >= sizes.customers >= 1
    assert min(sizes.orders, sizes.orders_at_the_crash, sizes.deliveries) >= 40
    ((name, value),) = sizes.segment_config.items()
    assert (name == "segment.bytes") == (int(value) >= 1 << 20)
    assert json.loads(value) == sizes.segment_bytes
