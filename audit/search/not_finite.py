"""Domains with NaN, which a search tries by default where it is a test of the mechanism.

NaN passes most clamps: ``min(max(row, 0.0), 1.0)`` and `numpy.clip` return it, and a sum with it is NaN on one of two
neighbours. A mechanism that does not clamp relies on the range that its domain states, so NaN is not tried on it: it is
as far outside as any number beyond the range. A mechanism clamps if the ends of the range differ to it, and numbers far
beyond the range, on either side, are all the same. One that raises on NaN has refused the dataset; the audit has a
note, as the exception is seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..datasets.domains import Answers, Rows, Values
from ..errors import AuditError, DatasetError, described

_FAR = (1e9, 2e9)  # widths of the range by which numbers are beyond it; doubles keep seven digits of their difference
_ODD = 0.15  # share of the random rows that have NaN, as of the cells of `Tables` that break their declaration


@dataclass(frozen=True, slots=True)
class _RowsWithNan(Rows):
    """The same rows, and rows with NaN in place of some numbers."""

    def corners(self) -> tuple[Any, ...]:
        low, high, *others = Rows.corners(self)
        return low, high, self.row([math.nan] * len(self.ranges[0])), *others

    def draw(self, rng: np.random.Generator) -> Any:
        row, width = Rows.draw(self, rng), len(self.ranges[0])
        if rng.random() >= _ODD:
            return row
        place, parts = int(rng.integers(width)), list(row) if isinstance(row, tuple) else [row]
        parts[place] = math.nan
        return self.row(parts)


@dataclass(frozen=True, slots=True)
class _AnswersWithNan(Answers):
    """The same answers, and NaN in place of all of them."""

    has_nan = True


def with_nan(
    domain: Any, apart: Callable[[Any, Any], float], run: Callable[[Any], BaseException | str | None]
) -> tuple[Any, str]:
    """Return the domain with NaN if the mechanism clamps its numbers and takes NaN, and a note if it raises on it.

    Parameters
    ----------
    apart : callable
        How far the outputs on two datasets are apart: 0 if they do not differ, below 1 if that may be chance.
    run : callable
        Runs the mechanism on a dataset; returns the exception, or its name, if it raises in every run.
    """
    of_numbers = None if getattr(domain, "finite", True) else _of_numbers(domain)
    if of_numbers is None:
        return domain, ""
    low, high, build, larger = of_numbers
    width = high - low
    beyond = [[build(end + sign * far * width) for far in _FAR] for end, sign in ((low, -1), (high, 1))]
    try:
        if not apart(build(low), build(high)) > 0.0 or any(apart(*pair) >= 1.0 for pair in beyond):
            return domain, ""
        raised = run(build(math.nan))
    except AuditError:  # it refuses numbers beyond the range, or NaN
        return domain, ""
    if raised is None:
        return larger(), ""
    if isinstance(raised, DatasetError):
        return domain, ""
    what = raised if isinstance(raised, str) else described(raised)
    return domain, (
        f"NaN was not tried, because the mechanism raises on it ({what}); the exception shows that a row is NaN. List "
        "NaN among the values of the domain to count the exception as an output"
    )


def _of_numbers(domain: Any) -> tuple[float, float, Callable[[float], Any], Callable[[], Any]] | None:
    """Return the range of a domain of floating-point numbers, how to build a dataset of one of them, and the domain
    with NaN; None for any other domain."""
    values = getattr(domain, "values", ())
    if values:
        if not isinstance(domain, (Rows, Values)) or {*map(type, values)} != {float} or not np.isfinite(values).all():
            return None
        return min(values), max(values), _builder(domain), lambda: replace(domain, values=(*values, math.nan))
    if isinstance(domain, Rows) and not domain.integer:
        low, high = domain.ranges
        kept = {each.name: getattr(domain, each.name) for each in fields(Rows)}
        return min(low), max(high), _builder(domain), lambda: _RowsWithNan(**kept)
    if isinstance(domain, Answers) and not domain.integer:
        kept = {each.name: getattr(domain, each.name) for each in fields(Answers)}
        return domain.low, domain.high, _builder(domain), lambda: _AnswersWithNan(**kept)
    return None


def _builder(domain: Rows | Values | Answers) -> Callable[[float], Any]:
    """Return how to build a dataset in which every number is the same."""
    if isinstance(domain, Values):
        return lambda number: number
    if isinstance(domain, Answers):
        return lambda number: domain.build(np.full(domain.n_answers or 1, number))
    n_rows = max(domain.most, 1)
    if domain.values:
        return lambda number: domain.build([number] * n_rows)
    width = len(domain.ranges[0])
    return lambda number: domain.build([domain.row([number] * width)] * n_rows)
