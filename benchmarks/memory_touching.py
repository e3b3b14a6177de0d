"""Memory that the machine has been given before anybody is measured."""

from pathlib import Path


def touch_memory(root: Path, size_bytes: int) -> None:
    """Fill that much of the page cache and free it again. A virtual machine gets its memory from
    the host when it is first touched, at several times the cost of writing to it; nobody who is
    measured here should be the one to pay for that."""
    scratch = root / "scratch"
    with scratch.open("wb", buffering=0) as file:
        piece = bytes(1 << 20)
        for _ in range(size_bytes // len(piece) + 1):
            file.write(piece)
    scratch.unlink()
