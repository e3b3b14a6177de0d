"""Byte ranges of a segment that are known to be damaged, and the offsets lost in them."""

from dataclasses import dataclass

CUT_SHORT = "the batch there is cut short"


@dataclass(frozen=True, slots=True)
class Damage:
    """Half-open ranges: offsets in ``[start_offset, end_offset)`` cannot be read from here."""

    start_position: int
    end_position: int
    start_offset: int
    end_offset: int
    reason: str


class DamageMap:
    """The damaged ranges of one segment, in order; empty for nearly every segment there is."""

    __slots__ = ("ranges",)

    def __init__(self) -> None:
        self.ranges: list[Damage] = []

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def add(self, damage: Damage) -> None:
        self.ranges.append(damage)
        self.ranges.sort(key=lambda known: known.start_position)

    def at(self, position: int) -> Damage | None:
        for damage in self.ranges:
            if damage.start_position <= position < damage.end_position:
                return damage
        return None

    def holding(self, offset: int) -> Damage | None:
        for damage in self.ranges:
            if damage.start_offset <= offset < damage.end_offset:
                return damage
        return None

    def cut(self, position: int) -> None:
        """Forget what lies behind ``position``."""
        self.ranges = [known for known in self.ranges if known.start_position < position]

    def covers(self, position: int) -> bool:
        return self.at(position) is not None

    def next_start(self, position: int, default: int) -> int:
        """Where the first damage behind ``position`` begins."""
        for damage in self.ranges:
            if damage.start_position > position:
                return min(damage.start_position, default)
        return default
