"""Domains with special numbers, which a search tries by default where they are a test of the mechanism.

NaN passes most clamps: ``min(max(row, 0.0), 1.0)`` and `numpy.clip` return it, and a sum with it is NaN on one of two
neighbours. Infinity passes a clamp that divides by the norm. A mechanism that does not clamp relies on the range that
its domain states, so neither is tried on it: they are as far outside as any number beyond the range. A mechanism clamps
if the ends of the range differ to it (or, of a median of equal rows, an end and the middle, in runs with equal random
numbers), and numbers far beyond the range, on either side, are all the same. A table may hold numbers beyond its
ranges, so they are tried on every mechanism of tables. Negative zero lies in a range with 0.

Infinity and negative zero make no other pairs if the mechanism takes them for the end of the range and for 0. A
mechanism that raises on a number has refused the dataset; the audit has a note, as the exception is seen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from ..datasets.domains import Answers, Domain, Rows, Values
from ..datasets.tables import Tables
from ..errors import AuditError, DatasetError, described
from ..events.named_parts import printed

_Compared = Callable[[Any, Any], float]  # two datasets
_FAR = (1e9, 2e9)  # widths of the range by which numbers are beyond it; doubles keep seven digits of their difference
_NAMES = {"nan": "NaN", "inf": "inf", "-inf": "-inf", "-0.0": "-0.0"}


@dataclass(frozen=True, slots=True)
class Enlarged:
    """A domain with the special numbers that a search is to try, and those that it leaves out, with the first error."""

    domain: Any
    numbers: tuple[float, ...] = ()
    refused: tuple[str, ...] = ()
    error: str = ""

    def left_out(self, by: str) -> str:
        """Why a search does not try some numbers; empty if it tries all. `by` is what raises on them."""
        return f"{_listed({*self.refused})} not tried, because {by} raises on it ({self.error})" if self.refused else ""

    def remarks(self, x: Any, y: Any, tried: list[Any], *, is_refuted: bool) -> tuple[str, ...]:
        """The note, how to leave out a number of a refuted pair, and which numbers no tried dataset has."""
        way_out = (
            'without "beyond" in outside=' if isinstance(self.domain, Tables) else "with finite=True in the domain"
        )
        numbers, remarks = {str(number) for number in self.numbers}, []
        found, missed = _special([x, y]) & numbers, numbers - _special(tried) if numbers else numbers
        if left_out := self.left_out("the mechanism"):
            way_on = "the exception shows that a row has it. Pass pairs with it to count the exception as an output"
            remarks.append(f"{left_out}; {way_on}")
        if found and is_refuted:
            remarks.append(
                f"the pair has {_listed(found)}, which a search tries because it passes many clamps; if no dataset can "
                f"have it, leave it out {way_out}"
            )
        if missed:
            remarks.append(f"{_listed(missed)} not tried, as the search ended before; use more runs (search_runs=)")
        return tuple(remarks)


def _special(datasets: list[Any]) -> set[str]:
    """The special numbers that datasets print."""
    return {word for each in datasets for word in re.findall(r"(?<![\w.])(?:nan|-?inf|-0\.0)(?![\w.])", _text(each))}


def _text(dataset: Any) -> str:
    """The contents, with numpy's spelling of negative zero, -0., as Python's."""
    text = dataset.to_csv(na_rep="nan") if hasattr(dataset, "to_csv") else printed(dataset)
    return re.sub(r"-0\.(?!\d)", "-0.0", text)


def _listed(names: set[str]) -> str:
    return ", ".join(name for key, name in _NAMES.items() if key in names)


def with_special_numbers(
    domain: Any, apart: _Compared, run: Callable[[Any], BaseException | str | None], differ: _Compared | None = None
) -> Enlarged:
    """Return the domain with NaN, infinity and negative zero, as far as the mechanism takes them and they may matter.

    `apart` is how far the outputs on two datasets are apart: 0 if they do not differ, below 1 if that may be chance.
    `run` returns the mechanism's exception on a dataset, or its name, if it raises in every run. `differ` is whether
    any run has another output on the one than on the other; without noise it is `apart`.
    """
    is_open = isinstance(domain, Domain) and not getattr(domain, "finite", False)
    of_numbers = _of_numbers(domain) if is_open else None
    if of_numbers is None:
        return Enlarged(domain)
    low, high, build, larger = of_numbers
    width = high - low
    ends = {-math.inf: low - _FAR[0] * width, math.inf: high + _FAR[0] * width}
    likened: dict[float, float | None] = {math.nan: None, **ends}  # what each number is taken for, by a clamp
    if isinstance(domain, Tables):
        if domain.form == "frame" and "missing" in domain.outside:
            del likened[next(iter(likened))]  # None is NaN in a column of numbers
    elif not _clamps(low, high, build, apart, differ or apart):
        likened = {}
    if low <= 0.0 <= high:
        likened[-0.0] = 0.0
    numbers, refused = [], dict[str, str]()
    for number, usual in likened.items():
        try:
            raised = run(build(number))
            if raised is None and (usual is None or apart(build(usual), build(number)) > 0.0):
                numbers.append(number)
        except AuditError as error:  # it refuses the number
            raised = None if isinstance(error, DatasetError) else error
        if raised is not None and not isinstance(raised, DatasetError):
            refused[str(number)] = (
                raised if isinstance(raised, str) else described(raised, shows_data=not domain.lists_values)
            )
    first = next(iter(refused.values()), "")
    return Enlarged(larger(tuple(numbers)) if numbers else domain, tuple(numbers), tuple(refused), first)


def _clamps(low: float, high: float, build: Callable[[float], Any], apart: _Compared, differ: _Compared) -> bool:
    """Whether numbers of the range differ to the mechanism, and those beyond it, on either side, are the same."""
    width = high - low
    beyond = [[build(end + sign * far * width) for far in _FAR] for end, sign in ((low, -1), (high, 1))]
    try:
        if apart(build(low), build(high)) > 0.0:
            return not any(apart(*pair) >= 1.0 for pair in beyond)
        return differ(build(low), build(low + width / 2)) > 0.0 and not any(differ(*pair) for pair in beyond)
    except AuditError:  # it refuses numbers beyond the range
        return False


def _of_numbers(domain: Any) -> tuple[float, float, Callable[[float], Any], Callable[[tuple[float, ...]], Any]] | None:
    """Return the range of a domain of floating-point numbers, how to build a dataset of one of them, and the domain
    with special numbers; None for any other domain."""
    match domain:
        case Tables(columns_of_floats=columns, most=most) if columns and "beyond" in domain.outside:
            low, high = (float(pick(column.ends[end] for column in columns)) for end, pick in enumerate((min, max)))
            return low, high, lambda number: domain.build([domain.row_of(number)] * most), domain.with_numbers
        case Rows(values=values) | Values(values=values) if values:
            if {*map(type, values)} != {float} or not np.isfinite(values).all():
                return None
            build = domain.build if isinstance(domain, Rows) else itemgetter(0)
            most, larger = getattr(domain, "most", 1), lambda more: replace(domain, values=(*values, *more))
            return min(values), max(values), lambda number: build([number] * most), larger
        case Rows(integer=False, ranges=(lows, highs), most=most):
            row = domain.row
            return min(lows), max(highs), lambda n: domain.build([row([n] * len(lows))] * most), domain.with_numbers
        case Answers(integer=False, n_answers=n):
            return domain.low, domain.high, lambda number: domain.build(np.full(n or 1, number)), domain.with_numbers
    return None
