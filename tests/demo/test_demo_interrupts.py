"""Ctrl-C before the first scene, at chosen steps: a process that looks at its own calls sends it.

Nothing here depends on time: the step is found by its name, as soon as it is called.
"""

import io
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from demo_process import SCALE, running_demo

from hearing import interrupts_heard
from spark_fixture import skip_without_spark
from stratalog.demo.screen import Screen
from stratalog.demo.stopping import Stopped, stoppable

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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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


# --- compiled code, which may do what it likes with an exception that comes within it -------------


@pytest.fixture
def heard() -> Iterator[None]:
    with interrupts_heard():
        yield


def lose_an_interrupt() -> None:
    with suppress(Stopped):
        signal.raise_signal(signal.SIGINT)


def tell_how_far(screen: Screen) -> None:
    with screen.progress("working") as update:
        update(1, None)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize(
    "go_on", [tell_how_far, lambda screen: screen.say("a word"), lambda screen: screen.scene("on")]
)
@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_an_interrupt_that_was_lost_is_found_by_what_comes_next(
    monkeypatch: pytest.MonkeyPatch, kind: type[io.StringIO], go_on: Callable[[Screen], None]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    went_on = False

    def scenes() -> None:
        nonlocal went_on
        with stoppable() as request:
            screen = Screen(kind(), look_up=request.look_up)
            lose_an_interrupt()
            go_on(screen)
            went_on = True

    with pytest.raises(Stopped) as stopped:
        scenes()
    assert stopped.value.args == (signal.SIGINT,)
    assert not went_on


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("came_of_it", [None, TypeError("expected header key to be text")])
def test_and_at_the_latest_by_the_end(came_of_it: Exception | None) -> None:
    def scenes() -> None:
        with stoppable():
            lose_an_interrupt()
            if came_of_it is not None:
                raise came_of_it

    with pytest.raises(Stopped):
        scenes()


@pytest.mark.usefixtures("heard")
def test_what_goes_wrong_without_one_is_what_it_is() -> None:
    with pytest.raises(TypeError, match="its own"), stoppable():
        raise TypeError("its own")
