"""The result of checking a statement that is no boundary: a slope, a tail, a posterior ratio, a law's scale.

Each number of the statement gets an interval, and all intervals hold together with probability 1 − alpha. The statement
is refuted where an interval lies outside what the statement allows.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..errors import OptionError
from ..printing import confidence as confidence_words
from ..sampling.provenance import Provenance
from .audit_result import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number of a statement.

    Attributes
    ----------
    at : str
        Which one, such as "t = 2"; empty where there is only one.
    estimate, lower, upper : float
        What was measured, with its interval; the estimate is NaN where there is none.
    low, high : float
        What the statement allows, ends included; infinite for no limit.
    """

    at: str = ""
    estimate: float
    lower: float
    upper: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:  # NaN fails
            raise OptionError(
                f"the interval [{self.lower!r}, {self.upper!r}] is empty; give its lower end first.",
                lower=self.lower,
                upper=self.upper,
            )
        if not (self.lower <= self.estimate <= self.upper or math.isnan(self.estimate)):
            raise OptionError(
                f"the estimate {self.estimate!r} lies outside its interval [{self.lower!r}, {self.upper!r}]; give NaN "
                "where there is none.",
                estimate=self.estimate,
            )
        if not self.low <= self.high:
            raise OptionError(
                f"the statement allows [{self.low!r}, {self.high!r}], which is empty; give the smaller end first.",
                low=self.low,
                high=self.high,
            )

    @property
    def is_outside(self) -> bool:
        """Whether no number in the interval is allowed."""
        return self.lower > self.high or self.upper < self.low

    @property
    def excess(self) -> float:
        """By how many interval widths the estimate is beyond what is allowed; negative inside, −inf without one."""
        if math.isnan(self.estimate):
            return -math.inf
        beyond = max(self.estimate - self.high, self.low - self.estimate)
        width = self.upper - self.lower
        if beyond in (-math.inf, math.inf) or width == 0:
            return math.copysign(math.inf, beyond) if beyond else 0.0
        return beyond / width

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        if self.low == self.high:
            return f"stated {self.low:.4g}"
        if math.isinf(self.low):
            return "nothing stated" if math.isinf(self.high) else f"stated at most {self.high:.4g}"
        if math.isinf(self.high):
            return f"stated at least {self.low:.4g}"
        return f"stated {self.low:.4g} to {self.high:.4g}"

    @property
    def interval(self) -> str:
        """The interval, with digits enough to tell its ends apart."""
        digits = 4
        while digits < 8 and self.lower < self.upper and f"{self.lower:.{digits}g}" == f"{self.upper:.{digits}g}":
            digits += 1
        return f"[{self.lower:.{digits}g}, {self.upper:.{digits}g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What was measured at several places beside what is stated there: a curve to look at, no part of the verdict.

    Attributes
    ----------
    x_name, y_name : str
        What the two axes show, with units where there are any.
    x, estimate, lower, upper, stated : tuple of float
        Places from the smallest on, what was measured there with its interval, and what is stated; ends may be
        infinite.
    intervals : str
        What the intervals are, and with which probability they hold.
    """

    x_name: str
    y_name: str
    x: tuple[float, ...]
    estimate: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    stated: tuple[float, ...]
    intervals: str

    def __post_init__(self) -> None:
        n = len(self.x)
        if n == 0 or any(len(part) != n for part in (self.estimate, self.lower, self.upper, self.stated)):
            raise OptionError(f"a series of {n} places needs one number of each kind at each, and one place.", places=n)
        if any(not before <= after for before, after in pairwise(self.x)):
            raise OptionError("the places of a series are out of order; give them from the smallest on.", places=n)
        if any(not low <= high for low, high in zip(self.lower, self.upper, strict=True)):
            raise OptionError("an interval of a series is empty; give its lower end first.", places=n)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """A statement checked by simulation.

    A statement that is true is refuted with probability at most `alpha`.

    Attributes
    ----------
    statement : str
        In a sentence.
    quantity : str
        What is estimated, such as "slope".
    points : tuple of Point
        Its numbers; all intervals hold together with probability 1 − alpha.
    alpha : float
    method : str
        Where the intervals come from.
    runs : int
        Executions of the mechanism on each dataset.
    seed : int
        Fixes every number.
    largest_width : float
        Width of an interval above which the check says too little and is inconclusive.
    notes : tuple of str
        What else a reader should know.
    series : Series, optional
        For a figure.
    provenance : Provenance, optional
        The code of the mechanism, where one was run.
    versions : tuple of (str, str)
    environment : dict
        Timings: all that may differ between two runs with the same seed. Not compared.
    """

    statement: str
    quantity: str
    points: tuple[Point, ...]
    alpha: float
    method: str
    runs: int
    seed: int
    largest_width: float = math.inf
    notes: tuple[str, ...] = ()
    series: Series | None = None
    provenance: Provenance | None = None
    versions: tuple[tuple[str, str], ...] = ()
    environment: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(self.points))
        object.__setattr__(self, "notes", tuple(self.notes))
        if not self.points or not all(isinstance(point, Point) for point in self.points):
            raise OptionError("a statement without numbers says nothing; give at least one Point.", points=self.points)
        if isinstance(self.runs, bool) or not isinstance(self.runs, int) or self.runs < 1:
            raise OptionError(f"runs={self.runs!r} is no number of runs; use 1 or more.", runs=self.runs)
        if not isinstance(self.alpha, float) or not 0.0 < self.alpha < 1.0:
            raise OptionError(f"alpha={self.alpha!r} is no error probability; use 0 < alpha < 1.", alpha=self.alpha)

    @property
    def verdict(self) -> Verdict:
        """REFUTED if any interval lies outside what is allowed."""
        if any(point.is_outside for point in self.points):
            return Verdict.REFUTED
        widths = [point.upper - point.lower for point in self.points]
        empty = any(point.lower == -math.inf and point.upper == math.inf for point in self.points)
        if empty or any(not width <= self.largest_width for width in widths):
            return Verdict.INCONCLUSIVE
        return Verdict.NOT_REFUTED

    @property
    def is_refuted(self) -> bool:
        """Whether an interval lies outside what the statement allows."""
        return self.verdict is Verdict.REFUTED

    @property
    def worst(self) -> Point:
        """The point farthest outside what is allowed, or nearest to its end; of those refuted if there are any."""
        return max(self.points, key=lambda point: (point.is_outside, point.excess))

    @property
    def p_value(self) -> float:
        """alpha where the statement is refuted and 1 elsewhere: valid, if coarse, and so fit for Holm's correction."""
        return self.alpha if self.is_refuted else 1.0

    def __str__(self) -> str:
        worst, confidence = self.worst, confidence_words(self.alpha)
        quantity = f"{self.quantity} at {worst.at}" if worst.at else self.quantity
        text = f"{self.verdict.name.replace('_', ' ')}: {quantity} in {worst.interval}, {worst.allowed} ({confidence})"
        if self.verdict is Verdict.INCONCLUSIVE and not self.notes:
            wanted = "" if math.isinf(self.largest_width) else f" at most {self.largest_width:.2g} wide"
            text += f"; intervals{wanted} are needed for every number, so use more runs"
        if len(self.points) > 1:
            text += f"; {len(self.points)} numbers were looked at"
        return "\n  note: ".join([text, *self.notes])

    def __repr__(self) -> str:
        return f"<StatementResult {self.quantity}: {self.verdict.value}, {self.worst.interval}, {self.worst.allowed}>"
