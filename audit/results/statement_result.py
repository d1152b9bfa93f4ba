"""The result of checking a statement that is not a privacy claim: a slope, a tail, a posterior ratio, a scale.

Each number of the statement has an interval, and all intervals hold together with probability 1 − alpha. The statement
is refuted if an interval lies outside the range that the statement allows.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ..errors import OptionError
from ..options import check_fields, in_a_tuple
from ..printing import shorten
from .audit_result import SampledResult
from .verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number of a statement.

    Attributes
    ----------
    at : str
        Place of the number, such as "t = 2"; empty if there is only one.
    estimate, lower, upper : float
        Measured value with its interval; the estimate may be NaN.
    low, high : float
        Range that the statement allows, ends included; infinite for no limit.
    """

    at: str = ""
    estimate: float
    lower: float
    upper: float
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        check_fields(self)
        is_inside = self.lower <= self.estimate <= self.upper or math.isnan(self.estimate)
        interval = f"lower={shorten(self.lower)} to upper={shorten(self.upper)}"
        for names, holds, said in (  # an interval with NaN is empty
            (("lower", "upper"), self.lower <= self.upper, "are an empty interval; give its lower end first"),
            (("estimate",), is_inside, f"lies outside its interval, {interval}; give NaN if there is none"),
            (("low", "high"), self.low <= self.high, "allow nothing; give the smaller end first"),
        ):
            if not holds:
                facts = {name: getattr(self, name) for name in names}
                given = " and ".join(f"{name}={shorten(value)}" for name, value in facts.items())
                raise OptionError(f"{given} {said}.", **facts)

    @property
    def is_outside(self) -> bool:
        """Whether the interval and the allowed range are disjoint."""
        return self.lower > self.high or self.upper < self.low

    @property
    def excess(self) -> float:
        """Distance of the estimate beyond the allowed range, in interval widths; negative inside, −inf for NaN."""
        if math.isnan(self.estimate):
            return -math.inf
        beyond = max(self.estimate - self.high, self.low - self.estimate)
        width = self.upper - self.lower
        if beyond in (-math.inf, math.inf) or width == 0:
            return math.copysign(math.inf, beyond) if beyond else 0.0
        return beyond / width

    @property
    def allowed(self) -> str:
        """The allowed range as text."""
        if self.low == self.high:
            return f"stated {self.low:.4g}"
        if math.isinf(self.low):
            return "nothing stated" if math.isinf(self.high) else f"stated at most {self.high:.4g}"
        if math.isinf(self.high):
            return f"stated at least {self.low:.4g}"
        return f"stated {self.low:.4g} to {self.high:.4g}"

    @property
    def interval(self) -> str:
        """The interval as text, with enough digits to distinguish its ends."""
        digits = 4
        while digits < 8 and self.lower < self.upper and f"{self.lower:.{digits}g}" == f"{self.upper:.{digits}g}":
            digits += 1
        return f"[{self.lower:.{digits}g}, {self.upper:.{digits}g}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Measured and stated values at several places: a curve for a figure, which does not enter the verdict.

    Attributes
    ----------
    x_name, y_name : str
        Labels of the axes, with units.
    x, estimate, lower, upper, stated : tuple of float
        Places in increasing order, the measured values with their intervals, and the stated values; interval ends may
        be infinite.
    intervals : str
        Kind of the intervals, and the probability with which they hold.
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
        n, numbers = len(self.x), (self.estimate, self.lower, self.upper, self.stated)
        for holds, said in (
            (n > 0 and all(len(part) == n for part in numbers), "needs one number of each kind at each, and one place"),
            (all(before <= after for before, after in pairwise(self.x)), "has them out of order; give increasing ones"),
            (all(map(operator.le, self.lower, self.upper)), "has an empty interval; give its lower end first"),
        ):
            if not holds:
                raise OptionError(f"a series of {n} places {said}.", places=n)


@dataclass(frozen=True, kw_only=True, repr=False)
class StatementResult(SampledResult):
    """A statement checked by simulation; a true statement is refuted with probability at most `alpha`.

    Attributes
    ----------
    statement : str
        The statement in one sentence.
    quantity : str
        Name of the estimated quantity, such as "slope".
    points : tuple of Point
        Numbers of the statement; all intervals hold together with probability 1 − alpha.
    method : str
        Method that gives the intervals.
    largest_width : float
        Width of an interval above which the check is inconclusive.
    series : Series, optional
        Curve for a figure.
    """

    kind: ClassVar = "statement"
    _subject_field: ClassVar = "quantity"
    _limit_fields: ClassVar = ("worst.lower", "worst.upper")
    statement: str
    quantity: str
    points: tuple[Point, ...]
    method: str
    largest_width: float = math.inf
    series: Series | None = None

    def __post_init__(self) -> None:
        for name in ("points", "notes"):
            object.__setattr__(self, name, in_a_tuple(getattr(self, name)))
        super().__post_init__()
        if not self.points or not all(isinstance(point, Point) for point in self.points):
            raise OptionError("points are the numbers of a statement; give at least one Point.", points=self.points)

    @property
    def verdict(self) -> Verdict:
        """REFUTED if an interval lies outside the allowed range and no health check failed."""
        if self.findings:
            return Verdict.INCONCLUSIVE
        if any(point.is_outside for point in self.points):
            return Verdict.REFUTED
        widths = [point.upper - point.lower for point in self.points]
        empty = any(point.lower == -math.inf and point.upper == math.inf for point in self.points)
        if empty or any(not width <= self.largest_width for width in widths):
            return Verdict.INCONCLUSIVE
        return Verdict.NOT_REFUTED

    @property
    def worst(self) -> Point:
        """The point farthest outside the allowed range, or nearest to its end; a refuted point if there is one."""
        return max(self.points, key=lambda point: (point.is_outside, point.excess))

    @property
    def pvalue(self) -> float:
        """The value of alpha if the statement is refuted, else 1: a valid, if coarse, p-value for Holm's adjustment."""
        return self.alpha if self.is_refuted else 1.0

    @property
    def claim(self) -> None:
        """None, as a statement is not a privacy claim."""
        return None
