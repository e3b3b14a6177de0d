"""One measured figure, and how it stands to its bar."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    what: str
    figure: float
    unit: str
    bar: float
    higher_is_better: bool = True
    detail: str = ""

    @property
    def is_met(self) -> bool:
        return self.figure >= self.bar if self.higher_is_better else self.figure <= self.bar

    def row(self) -> tuple[str, str, str, str, str]:
        sign = "≥" if self.higher_is_better else "≤"
        return (
            self.what,
            f"{self.figure:,.3g} {self.unit}"
            if self.figure < 1000
            else f"{self.figure:,.0f} {self.unit}",
            f"{sign} {self.bar:,g}",
            "met" if self.is_met else "MISSED",
            self.detail,
        )
