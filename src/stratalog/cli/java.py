"""How Java orders and prints a few things, so that a dump can be compared line by line."""

from collections.abc import Iterable


def string_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned number: over UTF-16 units, 32 bits wide."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Keys in the order in which a ``HashMap`` walks them, if ``computeIfAbsent`` put them there
    in this order: it puts a new key before those that share its bucket."""
    ordered = list(keys)[::-1]
    buckets = 16
    while len(ordered) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: str) -> int:
        value = string_hash(key)
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(ordered, key=bucket)


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def boolean(value: bool) -> str:
    return "true" if value else "false"
