"""The four counts on which every verdict rests."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OptionError


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
                if not isinstance(value, (int, float, np.number)) or not float(value).is_integer():
                    raise OptionError(f"{name}={value!r} is not a count; use a whole number.", name=name, value=value)
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
    is_number = isinstance(alpha, numbers.Real) and not isinstance(alpha, bool)
    number = float(alpha) if is_number else math.nan
    if not 0.0 < number < 1.0:  # NaN fails
        raise OptionError(
            f"alpha={alpha!r} is not an allowed error probability; use 0 < alpha < 1 (0.05 allows one false alarm in "
            "20 audits of mechanisms that attain their claim).",
            alpha=alpha,
        )
    return number
