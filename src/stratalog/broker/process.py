"""A process that is a broker and nothing else: signals, limits, and what the interpreter may know.

SIGTERM and Ctrl-C stop it cleanly; a second one ends it at once, and so does the end of
``STOP_SECONDS``, which the next start has to recover from and nothing acknowledged is lost by. The
rest of the broker is imported when it is run, so that a signal is heard from the first moment on.
"""

import asyncio
import gc
import math
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stratalog.broker.server import Broker

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# For a clean stop; what is not done by then is recovered by the next start.
STOP_SECONDS = 25.0
# Below that, a few clients and partitions are enough to have requests refused.
_FEW_OPEN_FILES = 256


class _Stopped(BaseException):
    """A signal while the broker is starting."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_broker(
    properties: Mapping[str, str], *, is_config_known: bool, ready: "Callable[[Broker], None]"
) -> int:
    """Run a broker until a signal says otherwise; the exit code. ``ready`` is called when it
    accepts."""
    before = {number: signal.signal(number, _stop_start) for number in _SIGNALS}
    gc.disable()  # all that a start makes stays: what looks for garbage would find none
    open_files_max = _allow_open_files()
    try:
        from stratalog.broker.broker_loop import BrokerLoop
        from stratalog.broker.event_log import log_event, start_event_log, stop_event_log
        from stratalog.broker.server import Broker
        from stratalog.config import BrokerConfig
        from stratalog.config.broker_file import served_config

        config = served_config(properties)
        handler = start_event_log(style=config.event_log_format)
        try:
            if unused := BrokerConfig.unused_names(properties):
                log_event("settings_unused", names=", ".join(unused))
            if unknown := BrokerConfig.unknown_names(properties):
                log_event("settings_unknown", names=", ".join(unknown))
            if open_files_max < _FEW_OPEN_FILES:
                log_event("few_open_files", allowed=open_files_max, enough=_FEW_OPEN_FILES)
            with asyncio.Runner(loop_factory=BrokerLoop) as runner:
                runner.run(_serve(lambda: Broker(config, is_config_known=is_config_known), ready))
        finally:
            stop_event_log(handler)
    except _Stopped as stopped:
        return 128 + stopped.number
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        gc.enable()
        for number, handler_before in before.items():
            signal.signal(number, handler_before)
    return 0


async def _serve(make_broker: "Callable[[], Broker]", ready: "Callable[[Broker], None]") -> None:
    broker = make_broker()
    await broker.start()
    try:
        loop = asyncio.get_running_loop()

        def stop(number: int, _frame: FrameType | None) -> None:
            _end_in_time(number)
            # A second one while the first is dealt with, or while the loop closes logs.
            for each in _SIGNALS:
                signal.signal(each, _hurry)
            loop.call_soon_threadsafe(broker.stop_asked.set)

        for number in _SIGNALS:
            signal.signal(number, stop)
        _tune_process()
        ready(broker)
        await broker.stop_asked.wait()
    finally:
        await broker.stop()


def _allow_open_files() -> float:
    """As many as the system lets this user have, and how many that are: connections and segments
    are files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return math.inf if soft == resource.RLIM_INFINITY else soft


def _tune_process() -> None:
    # What has been imported and opened stays; looking through it again and again finds nothing.
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()
    # A worker that computes lets the loop go on after half a millisecond instead of five.
    sys.setswitchinterval(0.0005)


def _stop_start(number: int, _frame: FrameType | None) -> None:
    _end_in_time(number)
    raise _Stopped(number)


def _end_in_time(number: int) -> None:
    """However much there is to finish, and whatever a disk is waiting for: end as a second signal
    would when the time for a clean stop is over. Who supervises processes kills them soon after."""

    def cut_short(_number: int, _frame: FrameType | None) -> None:
        from stratalog.broker.event_log import log_event

        with suppress(RuntimeError):  # it interrupts whoever is writing to the log, or nobody
            log_event("stop_cut_short", seconds=STOP_SECONDS)
        os._exit(128 + number)

    signal.signal(signal.SIGALRM, cut_short)
    signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)


def _hurry(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)
