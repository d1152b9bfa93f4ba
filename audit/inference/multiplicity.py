"""One error probability for multiple tests: shares of an error budget, or the Holm adjustment.

Proof: docs/proofs/multiplicity.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import OptionError
from .binomial_tails import ROUNDING, Array
from .event_test import check_alpha


def holm(pvalues: Sequence[float]) -> Array:
    """Return Holm-adjusted p-values: refuting those that are at most a has family-wise error at most a.

    The tests need not be independent, and p-values with a positive floor stay valid.

    Parameters
    ----------
    pvalues : sequence of float, shape (m,)
        In [0, 1], such as `AuditResult.pvalue`; the tests may be tuned to any alpha.

    Returns
    -------
    ndarray, shape (m,)
        Adjusted p-values, in the order of `pvalues`.

    Raises
    ------
    OptionError
        For a number that is not a probability.

    See Also
    --------
    joint_test : A p-value from counts.
    results.Suite.adjusted_pvalues : The same for the results of a suite.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0.0) & (p <= 1.0)):
        raise OptionError(f"pvalues={pvalues!r} are not p-values; use numbers from 0 to 1.", pvalues=pvalues)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """An error budget and its shares.

    Attributes
    ----------
    total : float
        Allowed probability that any statement is wrong.
    shares : tuple of (str, float)
        Each statement and its positive share of the total; the shares add up to the total or less.
    beside : tuple of (str, float)
        Errors outside the total, each with a bound in (0, 1) on its probability.

    Examples
    --------
    >>> print(ErrorBudget(0.05, (("event test", 0.045), ("cell intervals", 0.005))))
    error budget 0.05 = event test 0.045 + cell intervals 0.005
    """

    total: float
    shares: tuple[tuple[str, float], ...]
    beside: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        check_alpha(self.total)
        spent = math.fsum(alpha for _, alpha in self.shares)
        if not all(alpha > 0.0 for _, alpha in self.shares) or spent > self.total * (1 + ROUNDING):
            raise OptionError(
                f"shares that add up to {spent:g} do not fit into alpha {self.total:g}; use smaller positive shares.",
                spent=spent,
                total=self.total,
            )
        for what, bound in self.beside:
            if not 0.0 < bound < 1.0:
                raise OptionError(f"beside={what!r}: {bound!r} is not a probability; use 0 < bound < 1.", bound=bound)

    def __str__(self) -> str:
        text = f"error budget {self.total:g} = {' + '.join(f'{what} {alpha:g}' for what, alpha in self.shares)}"
        beside = ", ".join(f"{what} {alpha:g}" for what, alpha in self.beside)
        return f"{text}; outside the budget: {beside}" if beside else text
