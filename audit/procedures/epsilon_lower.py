"""Bounds on ε from bare counts: the exact joint test, and for comparison the intervals that other tools use.

Proof: docs/proofs/joint-test.md
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..claims.claim import ApproxDP, PureDP
from ..errors import OptionError
from ..floating_point_errors import with_own_arithmetic
from ..inference.event_test import Counts, parameter_lower
from ..known_options import with_known_options
from ..printing import shorten

Method = Literal["joint", "clopper-pearson", "score", "log-ratio"]


@with_known_options()
@with_own_arithmetic
def epsilon_lower(
    count_x: int,
    runs_x: int,
    count_y: int,
    runs_y: int,
    *,
    alpha: float = 0.05,
    delta: float = 0.0,
    method: Method = "joint",
) -> float:
    """A lower confidence bound on ε from the counts of one event, at the given δ.

    For an (ε, δ)-DP mechanism the returned value exceeds ε with probability at most `alpha`, provided that the event
    and the direction (more likely on x) were chosen without looking at these runs.

    Parameters
    ----------
    count_x, runs_x, count_y, runs_y : int
        Runs inside the event and all runs, on each dataset.
    alpha : float
        In (0, 1).
    delta : float
        In [0, 1).
    method : {"joint", "clopper-pearson", "score", "log-ratio"}
        "joint" is the exact joint test. The others are for comparison: two Clopper-Pearson limits at alpha/2 each, as
        in other tools; and the score and log-ratio intervals for a ratio of two proportions. These two are approximate,
        need delta = 0, and can exceed the truth more often than `alpha` if counts are few.

    Returns
    -------
    float
        In nats; 0 if the counts refute no ε.

    Raises
    ------
    OptionError
        For an unknown method, or delta > 0 with an interval for a ratio.

    See Also
    --------
    check_outputs : The audit of outputs, which chooses the event.
    counts.joint_test : P-value and bound for any claim.
    counts.holm : P-values of several audits.

    Notes
    -----
    The counts are independent binomial counts, X ~ Bin(runs_x, p) and Y ~ Bin(runs_y, q). The null of the joint test is
    p ≤ e^ε q + δ (and 1 − q ≤ e^ε (1 − p) + δ); the bound is the largest ε that it refutes.

    References
    ----------
    Berger & Boos (1994), P values maximized over a confidence set for the nuisance parameter. Koopman (1984) and Katz
    et al. (1978) for the approximate intervals. Proof: docs/proofs/joint-test.md.

    Examples
    --------
    >>> round(epsilon_lower(20, 10**6, 0, 10**6, alpha=0.05), 1)
    2.1
    >>> round(epsilon_lower(20, 10**6, 0, 10**6, alpha=0.05, method="clopper-pearson"), 1)
    1.2
    """
    counts = Counts(count_x=count_x, runs_x=runs_x, count_y=count_y, runs_y=runs_y)
    if not isinstance(method, str) or method not in ("joint", "clopper-pearson", "score", "log-ratio"):
        raise OptionError(
            f'method={shorten(method)} is unknown; use "joint", "clopper-pearson", "score" or "log-ratio".',
            method=method,
        )
    if method == "joint":
        return parameter_lower(counts, ApproxDP(0.0, delta) if delta else PureDP(0.0), alpha=alpha)
    if method == "clopper-pearson":
        return _two_limits(counts, delta, alpha)
    if delta:
        raise OptionError(f'method={method!r} bounds a ratio, so delta must be 0; use method="joint".', delta=delta)
    return _ratio_limit(counts, alpha, "score" if method == "score" else "log")


def _two_limits(counts: Counts, delta: float, alpha: float) -> float:
    from statsmodels.stats.proportion import proportion_confint  # imported here because the import is slow

    low, _ = proportion_confint(counts.count_x, counts.runs_x, alpha=alpha, method="beta")
    _, high = proportion_confint(counts.count_y, counts.runs_y, alpha=alpha, method="beta")
    return max(0.0, float(ApproxDP(0.0, delta).parameter_of(low, high)))


def _ratio_limit(counts: Counts, alpha: float, method: str) -> float:
    """Lower end of the two-sided interval at 2·alpha for p/q; 0 if the interval is undefined."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    is_certain = counts.count_x == counts.runs_x and counts.count_y == counts.runs_y
    if counts.count_x == 0 or is_certain or (method == "log" and counts.count_y == 0):
        return 0.0
    if alpha >= 0.5:
        raise OptionError(f"alpha={alpha:g} is too large for this interval; use alpha < 0.5.", alpha=alpha)
    with np.errstate(divide="ignore", invalid="ignore"):  # its formula divides by counts that may be 0
        numbers = counts.count_x, counts.runs_x, counts.count_y, counts.runs_y
        options = {"compare": "ratio", "method": method, "alpha": 2 * alpha, "correction": False}
        low, _ = confint_proportions_2indep(*numbers, **options)
    return max(0.0, math.log(low)) if low > 0 else 0.0
