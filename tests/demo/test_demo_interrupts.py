"""Ctrl-C before the first scene, at chosen steps: a process that looks at its own calls sends it.

Nothing here depends on time: the step is found by its name, as soon as it is called.
"""

import signal
from pathlib import Path

import pytest
from demo_process import SCALE, running_demo

from spark_fixture import skip_without_spark
from stratalog.demo.play import stoppable

pytestmark = pytest.mark.xdist_group("spark")

# The whole group hears it, as it does from a terminal.
AT_A_STEP = """
import os, signal, sys

step = sys.argv.pop(1)

def look(frame, event, _argument):
    name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
    if event == "call" and name == step:
        sys.setprofile(None)
        os.killpg(0, signal.SIGINT)

sys.setprofile(look)
from stratalog.cli.main import main
main()
"""
BEFORE = "Stopped."
WITHIN = "Stopped; what there was until then is in shop."


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("stratalog.cli.main._main", ""),
        ("stratalog.cli.app._run", ""),
        ("stratalog.demo.play.play", BEFORE),
        ("stratalog.demo.session.settle_environment", BEFORE),
        ("stratalog.demo.folder._clear", BEFORE),
        ("stratalog.demo.stage.own_output", WITHIN),
        ("stratalog.demo.stage.stage", WITHIN),
        ("stratalog.demo.broker.BrokerProcess.__init__", WITHIN),
        ("stratalog.demo.session.SparkInBackground.start", WITHIN),
        ("stratalog.demo.broker.BrokerProcess._ready_line", WITHIN),
        ("stratalog.demo.clients.create_topics", WITHIN),
    ],
)
def test_ctrl_c_before_the_first_scene_ends_quietly(tmp_path: Path, step: str, said: str) -> None:
    skip_without_spark()
    place = tmp_path / "shop"
    with running_demo(place, "--scale", SCALE, start=("-c", AT_A_STEP, step)) as demo:
        assert demo.end() == 130, demo.printed
        demo.assert_nothing_runs()
        shown = [line for line in demo.printed.splitlines() if line]
        assert shown[-1:] == ([said] if said else []), demo.printed
        assert "Traceback" not in demo.printed


def test_what_is_ignored_already_does_not_stop_it_as_nohup_has_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
