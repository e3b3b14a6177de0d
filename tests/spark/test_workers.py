"""How a Python worker keeps house, in one of its own: what it is told holds for the process."""

import subprocess
import sys

ELSEWHERE = """
import gc, sys
from importlib.machinery import ModuleSpec
from stratalog.spark.workers import freeze_imports

for name in (None, "somebody.elses", "pyspark.daemon"):
    sys.modules["__main__"].__spec__ = name and ModuleSpec(name, None)
    freeze_imports()
    print(gc.get_freeze_count() > 10_000)
"""

TOLD = """
import gc
from stratalog.spark.workers import settle_in

frozen = []
for number in range(3):
    settle_in()
    frozen.append(gc.get_freeze_count())
    kept = [[number] for _ in range(10_000)]  # what comes with a task, and stays behind it
    gc.collect()
print(*frozen)
"""

CLOSED = """
import sys, traceback
from importlib.machinery import ModuleSpec

main = sys.modules["__main__"]
main.__spec__ = ModuleSpec({name!r}, None)
import stratalog.spark.source

def told(error):
    try:
        raise error
    except BaseException:
        main.traceback.print_exc(file=sys.stdout)

told(BrokenPipeError())
told(ValueError())
"""


def said(script: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


def test_only_in_processes_of_sparks_own_is_anything_kept() -> None:
    assert said(ELSEWHERE) == ["False", "False", "True"]


def test_what_is_there_at_the_first_two_calls_is_collected_no_more_and_later_things_are() -> None:
    first, second, third = map(int, said(TOLD))
    assert first > 10_000
    assert second > first + 10_000
    assert third <= second


def test_a_closed_pipe_is_told_by_none_of_sparks_processes_and_anything_else_is() -> None:
    assert said(CLOSED.format(name="pyspark.daemon"))[-1] == "ValueError"
    assert "BrokenPipeError" not in said(CLOSED.format(name="pyspark.daemon"))
    assert "BrokenPipeError" in said(CLOSED.format(name="somebody.elses"))
