"""The whole demo, small: real broker, clients and Spark; what it claims is counted again here."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_process import (
    END_SECONDS,
    SCALE,
    DemoProcess,
    clean_environment,
    figures,
    next_commands,
    running_demo,
)

import stratalog
from stratalog.demo.play import SCENES
from stratalog.demo.stage import CUSTOMERS, DELIVERIES, ORDERS, Sizes
from stratalog.spark.session import SparkUnavailableError, check_available

pytestmark = pytest.mark.xdist_group("spark")
deep = pytest.mark.deep
TOPICS = (ORDERS, CUSTOMERS, DELIVERIES)


@pytest.fixture(scope="module", autouse=True)
def _java() -> None:
    try:
        check_available()
    except SparkUnavailableError as unavailable:
        pytest.skip(str(unavailable))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "shop"


@pytest.fixture(scope="module")
def played(place: Path) -> Iterator[DemoProcess]:
    """One run to the end, of which the tests look at different things."""
    with running_demo(place, "--scale", SCALE) as demo:
        code = demo.end()
        assert code == 0, demo.printed
        yield demo


def test_it_plays_every_scene_and_leaves_nothing_running(played: DemoProcess) -> None:
    for number, (name, title, _) in enumerate(SCENES, start=1):
        assert f"{number}/{len(SCENES)} {title}\n" in played.printed
        assert f"\n    {name} " in played.printed.partition("What happened, and how fast")[2]
    assert "\x1b" not in played.printed
    assert "Traceback" not in played.printed
    played.assert_nothing_runs()


def test_its_figures_are_those_of_the_files_that_it_leaves(
    played: DemoProcess, place: Path
) -> None:
    told = figures(played.printed)
    assert all(expected == found for expected, found in told.values()), told
    for topic in TOPICS:
        counted = stratalog.scan(str(place / "data"), topic).read_all().num_rows
        assert told[f"{topic}: records, by a client"] == (counted, counted)
        assert told[f"{topic}: records, by log verify"] == (counted, counted)
    sizes = Sizes(float(SCALE))
    assert told["deliveries loaded"] == (sizes.deliveries, sizes.deliveries)
    assert told["orders: produced"] == (sizes.orders, sizes.orders)
    # What Spark's tasks read for one hour; the plan is not asked.
    assert re.search(r"bytes read for that hour +at most [\d,]+ +[1-9][\d,]* +✓", played.printed)
    # Something was deleted by age, and something by compaction; else there was nothing to see.
    assert told["orders: records, by a client"][0] < sizes.orders + sizes.orders_at_the_crash
    assert told["customers: records, by a client"][0] < sizes.customer_updates
    events = [json.loads(line) for line in (place / "broker.log").read_text().splitlines()]
    assert sum(event["event"] == "logs_recovered" for event in events) == 1


def test_two_of_the_commands_to_try_next_work_as_they_are(played: DemoProcess, place: Path) -> None:
    explain, query, _ = next_commands(played.printed)
    assert "are read" in run(explain, place)
    rows = [json.loads(line) for line in run(f"{query} -o json", place).splitlines()]
    assert sum(row["records"] for row in rows) == Sizes(float(SCALE)).deliveries


def test_the_third_serves_what_is_left_behind(played: DemoProcess, place: Path) -> None:
    *_, serve = next_commands(played.printed)
    assert serve.endswith("serve --log-dir shop/data")
    # The port is the one thing that a test cannot leave to chance.
    with subprocess.Popen(
        f"exec {serve} --listen 127.0.0.1:0",
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=place.parent,
        env=clean_environment(),
    ) as broker:
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline().startswith("stratalog is ready on 127.0.0.1:")
        finally:
            broker.send_signal(signal.SIGTERM)
        assert broker.wait(END_SECONDS) == 0


@pytest.mark.parametrize(
    "scene", [2, 5, *(pytest.param(each, marks=deep) for each in (6, 7, 9, 10))]
)
def test_ctrl_c_stops_everything_in_any_scene_also_of_a_second_run(
    played: DemoProcess, place: Path, scene: int
) -> None:
    with running_demo(place, "--scale", SCALE) as demo:
        demo.wait_for(f"\n{scene}/{len(SCENES)} ")
        demo.interrupt()
        assert demo.end() == 130, demo.printed
        demo.assert_nothing_runs()
        *_, last = demo.printed.splitlines()
        assert last == "Stopped; what there was until then is in shop."
        assert "Traceback" not in demo.printed


def run(command: str, place: Path) -> str:
    """In a shell at the place from where the demo was started."""
    done = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        cwd=place.parent,
        env=clean_environment(),
        timeout=END_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout
