"""What is to be reached, and what was."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Goal:
    """One of them, with what each round measured. Without a bound it stands beside the others to be compared."""

    part: str
    what: str
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    values: list = field(default_factory=list)
    # what it was made of, for people
    detail: str = ""

    @property
    def measured(self):
        """The median of the rounds; nothing where there is none."""
        return statistics.median(self.values) if self.values else None

    @property
    def met(self):
        """Whether it was reached; nothing where nothing was asked for or measured."""
        if self.measured is None or (self.at_least is None and self.at_most is None):
            return None
        return (self.at_least is None or self.measured >= self.at_least) and \
            (self.at_most is None or self.measured <= self.at_most)

    def bound(self):
        """The goal, for people."""
        if self.at_least is not None:
            return f"≥ {shown(self.at_least)}{self.unit}"
        return "–" if self.at_most is None else f"≤ {shown(self.at_most)}{self.unit}"

    def told(self):
        """What was measured, for people."""
        return "failed" if self.measured is None else f"{shown(self.measured)}{self.unit}"

    def as_json(self):
        """All of it."""
        return {"part": self.part, "what": self.what, "unit": self.unit.strip(), "at_least": self.at_least,
                "at_most": self.at_most, "measured": self.measured, "met": self.met, "values": self.values,
                "detail": self.detail}


def shown(value):
    """A number with as many digits as mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"


def ratio(values, base):
    """Medians of two lists, one to the other."""
    return statistics.median(values) / statistics.median(base)
