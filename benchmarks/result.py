"""One measured figure, and how it stands to its bar."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """``bar`` is None where the figure is only told."""

    what: str
    figure: float
    unit: str
    bar: float | None
    higher_is_better: bool = True
    detail: str = ""

    @property
    def is_met(self) -> bool:
        if self.bar is None:
            return True
        return self.figure >= self.bar if self.higher_is_better else self.figure <= self.bar

    def row(self) -> tuple[str, str, str, str, str]:
        sign = "≥" if self.higher_is_better else "≤"
        return (
            self.what,
            f"{self.figure:,.3g} {self.unit}"
            if self.figure < 1000
            else f"{self.figure:,.0f} {self.unit}",
            "" if self.bar is None else f"{sign} {self.bar:,g}",
            "" if self.bar is None else "met" if self.is_met else "MISSED",
            self.detail,
        )
