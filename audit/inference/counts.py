"""The four counts on which every verdict rests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import OptionError
from ..options import checked, is_whole
from ..printing import shorten

MOST = 10**15
"""Largest count: beyond 2⁵³, floating-point numbers are not exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Hits (runs inside the event) and runs, on x and on y.

    Raises
    ------
    OptionError
        Unless 0 <= hits <= runs and runs >= 1 on both sides, all whole numbers.
    """

    hits_x: int
    runs_x: int
    hits_y: int
    runs_y: int

    def __post_init__(self) -> None:
        for side in ("x", "y"):
            hits, runs = getattr(self, f"hits_{side}"), getattr(self, f"runs_{side}")
            for name, value in ((f"hits_{side}", hits), (f"runs_{side}", runs)):
                if not is_whole(value) or abs(value) > MOST:
                    raise OptionError(
                        f"{name}={shorten(value)} is not a count; use a whole number up to {MOST:.0e}.",
                        name=name,
                        value=value,
                    )
                object.__setattr__(self, name, int(value))
            if not (0 <= hits <= runs and runs >= 1):
                raise OptionError(
                    f"hits_{side}={hits} of runs_{side}={runs} is impossible; use 0 <= hits <= runs and runs >= 1.",
                    hits=hits,
                    runs=runs,
                )

    def swapped(self) -> Counts:
        """Return the counts with x and y exchanged."""
        return Counts(hits_x=self.hits_y, runs_x=self.runs_y, hits_y=self.hits_x, runs_y=self.runs_x)

    def __str__(self) -> str:
        return f"{self.hits_x:,} of {self.runs_x:,} on x, {self.hits_y:,} of {self.runs_y:,} on y"


def check_alpha(alpha: Any) -> float:
    """Return `alpha` as a float strictly between 0 and 1; else raise an `OptionError`."""
    return checked("alpha", alpha)  # type: ignore[no-any-return]
