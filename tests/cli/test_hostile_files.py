"""No command ends in a traceback, whatever is in the files."""

import shutil
import tempfile
from pathlib import Path

from cli_harness import Done, stratalog
from hypothesis import given
from hypothesis import strategies as st

GOLDEN = Path(__file__).parent / "golden" / "dirs"
REPLICAS = ("plain-0", "transactions-0", "codecs-0", "legacy-0", "horizon-0", "idempotent-0")
FILES = [path for name in REPLICAS for path in sorted((GOLDEN / name).iterdir())]
DEEP = ("--print-data-log", "--deep-iteration")


@st.composite
def broken_files(draw: st.DrawFn) -> tuple[Path, bytes]:
    """A real file, and what it holds after some bytes were changed, cut, or put in."""
    path = draw(st.sampled_from(FILES))
    data = bytearray(path.read_bytes())
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        change = draw(st.sampled_from(("flip", "cut", "insert", "number", "drop")))
        if change == "flip" and at < len(data):
            data[at] ^= draw(st.integers(1, 255))
        elif change == "cut":
            del data[at:]
        elif change == "insert":
            data[at:at] = draw(st.binary(max_size=20))
        elif change == "number":
            number = draw(st.sampled_from((0, 1, -1, 2**31 - 1, -(2**31), 13, 61)))
            data[at : at + 4] = number.to_bytes(4, "big", signed=True)
        else:
            del data[at : at + draw(st.integers(1, 40))]
    return path, bytes(data)


def assert_settled(done: Done) -> None:
    assert done.exit_code in (0, 1)
    assert "Traceback" not in done.stderr


@given(broken_files())
def test_commands_survive_broken_files(broken: tuple[Path, bytes]) -> None:
    source, data = broken
    with tempfile.TemporaryDirectory() as name:
        replica = Path(name) / source.parent.name
        shutil.copytree(source.parent, replica)
        (replica / source.name).write_bytes(data)
        path = str(replica / source.name)
        assert_settled(stratalog("log", "dump", *map(str, sorted(replica.iterdir()))))
        assert_settled(stratalog("log", "dump", *DEEP, path))
        assert_settled(stratalog("log", "dump", "--offsets-decoder", "-o", "json", path))
        assert_settled(stratalog("log", "dump", "--index-sanity-check", path))
        for command in ("verify", "segments"):
            assert_settled(stratalog("log", command, str(replica)))
        for search in (("--offset", "9"), ("--timestamp", "1700000000010")):
            assert_settled(stratalog("log", "find", str(replica), *search))
        assert_settled(stratalog("log", "repair", str(replica), "--dry-run"))


@given(broken_files())
def test_a_repaired_log_is_in_order_or_waits_for_a_decision(broken: tuple[Path, bytes]) -> None:
    source, data = broken
    with tempfile.TemporaryDirectory() as name:
        replica = Path(name) / source.parent.name
        shutil.copytree(source.parent, replica)
        (replica / source.name).write_bytes(data)

        done = stratalog("log", "repair", str(replica))

        assert_settled(done)
        if done.exit_code == 0:
            assert stratalog("log", "verify", str(replica)).exit_code == 0
        else:
            assert "for you to decide" in done.stdout or "still wrong" in done.stdout
