"""Check the slope of log-probabilities in the utility, which the exponential mechanism states for its choices.

Proof: docs/proofs/statements.md
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit, logsumexp

from ..errors import MechanismError, OptionError
from ..events.outputs import outcome_key, outcome_words, tally
from ..floating_point_errors import with_own_arithmetic
from ..health.findings import checks_to_ignore
from ..inference.binomial_tails import probability_limits
from ..known_options import with_known_options
from ..options import Progress, checked_seed, in_a_tuple
from ..printing import confidence
from ..results.statement_result import Point, Series, StatementResult
from ..sampling.sampler import as_sampler
from .check_noise import called, draw_runs

METHOD = (
    "Poisson regression with log link (statsmodels), interval by Chernoff's bound on the likelihood ratio; exact "
    "limits of pairs' log odds"
)


@with_known_options()
@with_own_arithmetic
def check_slope(
    mechanism: Any,
    dataset: Any,
    utilities: Any,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    monotonic: bool = False,
    candidates: Sequence[Any] | None = None,
    runs: int = 100_000,
    alpha: float = 0.01,
    seed: int | None = 0,
    jobs: int | None = None,
    name: str | None = None,
    ignore: str | Iterable[str] = (),
    progress: Progress = None,
) -> StatementResult:
    """Check that a mechanism chooses candidates with log-probabilities that grow with their utility as stated.

    The exponential mechanism states the slope epsilon/(2 sensitivity), or epsilon/sensitivity if the utilities are
    monotonic in the dataset. A mechanism with this slope is refuted with probability at most `alpha`, for any number of
    runs. `slope_points` describes the tests.

    Parameters
    ----------
    mechanism : callable or object
        As in `check`; its outputs are the numbers 0 … K − 1 of the candidates, or the `candidates` themselves.
    dataset : Any
        Dataset that the mechanism is run on, in any form that it takes.
    utilities : array-like of shape (K,), or callable
        Utilities of the candidates on this dataset, not all equal, or a function that computes them from the dataset.
    epsilon, sensitivity : float
        Positive.
    monotonic : bool
        Whether an additional row never lowers a utility, so that the factor 2 is omitted.
    candidates : sequence, optional
        The possible outputs, in the order of the utilities; all different.
    runs : int
        At least 40.
    alpha : float
        Allowed probability of refuting a mechanism with the stated slope.
    seed, jobs, name, ignore, progress : optional
        As in `check`.

    Returns
    -------
    StatementResult
        Inconclusive if a health check fails, as in `check_noise`.

    Raises
    ------
    OptionError, DatasetError
        If an argument is outside its range.
    MechanismError
        If the mechanism cannot be run, or returns an output that is not a candidate.

    See Also
    --------
    check_noise : Noise that is added to an answer.
    check : Audit of the privacy claim itself.

    References
    ----------
    McSherry & Talwar (2007), Mechanism design via differential privacy. Dwork & Roth (2014), The algorithmic
    foundations of differential privacy, Definition 3.4 and Theorem 3.10.

    Examples
    --------
    >>> import numpy as np
    >>> def choose(utilities, size, rng):  # the 2 is missing
    ...     weights = np.exp(1.0 * np.array(utilities))
    ...     return rng.choice(len(weights), p=weights / weights.sum(), size=size)
    >>> result = check_slope(choose, (0.0, 1.0, 2.0), (0.0, 1.0, 2.0), epsilon=1.0)
    >>> result.is_refuted, 0.95 < result.points[0].lower < 1.0 < result.points[0].upper < 1.05
    (True, True)
    """
    sampler = as_sampler(mechanism, name)
    slope = epsilon / sensitivity / (1.0 if monotonic else 2.0)
    u = _utilities(utilities, dataset)
    places = _places(candidates, len(u))
    drawn = draw_runs(sampler, dataset, runs, checked_seed(seed), jobs, progress, checks_to_ignore(ignore))
    found, outcomes = tally(drawn.outputs)
    stray = [key for key in found if key not in places]
    if stray:
        times = sum(found[key] for key in stray)
        raise MechanismError(
            f"{sampler.name} returned {times:,} outputs in {runs:,} runs that are not among the {len(u)} candidates, "
            f"such as {outcome_words(outcomes[stray[0]])!r}; return the number of a candidate (from 0), or pass the "
            "possible outputs as candidates.",
            mechanism=sampler.name,
            runs=times,
        )
    counts = np.zeros(len(u), np.int64)
    for key, seen in found.items():
        counts[places[key]] += seen
    if np.abs(u).max() > 1e3 * np.ptp(u):  # a large common offset would cost digits of the differences
        u = u - u.max()
    points = slope_points(u, counts, slope, alpha)
    kept = [points[0], *(pair for pair in points[1:] if pair.is_outside or pair.upper - pair.lower <= slope)]
    notes = _notes(points, slope, monotonic)
    if len(kept) < len(points):
        notes.append(
            f"{len(points) - len(kept)} of {len(u)} candidates were chosen too seldom for a separate test; the fit "
            "includes them"
        )
    return drawn.result(
        statement=f"The log-probabilities of the choices of {sampler.name} grow with the utility at rate {slope:g}.",
        quantity="slope",
        points=kept,
        alpha=alpha,
        method=METHOD,
        largest_width=slope,
        notes=notes,
        series=_series(points, u, alpha),
    )


def slope_points(u: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], slope: float, alpha: float) -> list[Point]:
    """Compare the slope of the log-probabilities with the stated slope: in a fit to all candidates, and for pairs.

    The first point is the maximum-likelihood fit, with half of alpha, as that of independent Poisson counts, whose
    likelihood in the slope is the same (Baker 1994). Its interval is Chernoff's. The other points, in the order of the
    candidates, are ln(p/p_best)/(u − u_best) of each candidate below the best, with exact limits.
    """
    points = [Point(at="the fit", **fit_slope(u, counts, alpha / 2), low=slope, high=slope)]
    best, below = int(u.argmax()), np.flatnonzero(u < u.max())
    for place in below:
        step = float(u[place] - u[best])
        seen, either = int(counts[place]), int(counts[place] + counts[best])
        values = (seen / max(either, 1), *probability_limits(seen, either, alpha=alpha / (2 * len(below))))
        estimate, upper, lower = (float(logit(value)) / step for value in values)
        at = f"utilities {u[place]:g} and {u[best]:g}"
        points.append(Point(at=at, estimate=estimate, lower=lower, upper=upper, low=slope, high=slope))
    return points


def _series(points: list[Point], u: npt.NDArray[np.float64], alpha: float) -> Series:
    """Return the log-probabilities of the other candidates minus that of the best, from the slopes of the pairs."""
    below = (u[u < u.max()] - u.max()).tolist()
    pairs = sorted(zip(below, points[1:], strict=True), key=lambda pair: pair[0])
    return Series(
        x_name="utility minus the best utility",
        y_name="log of the probability relative to the best",
        x=tuple(step for step, _ in pairs),
        estimate=tuple(point.estimate * step for step, point in pairs),
        lower=tuple(point.upper * step for step, point in pairs),  # a step is negative
        upper=tuple(point.lower * step for step, point in pairs),
        stated=tuple(point.low * step for step, point in pairs),
        intervals=f"exact, all together at {confidence(alpha / 2)}",
    )


def fit_slope(u: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], alpha: float) -> dict[str, float]:
    """Fit the slope in u of the log of the mean counts; return it with its interval, as fields of a point."""
    from scipy.optimize import brentq
    from statsmodels.genmod.families import Poisson  # statsmodels.api imports much more
    from statsmodels.genmod.generalized_linear_model import GLM
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    seen = u[counts > 0]
    if seen.min() == seen.max() and seen[0] in (u.min(), u.max()):  # the likelihood grows without end
        return {"estimate": math.copysign(math.inf, seen[0] - u.mean()), "lower": -math.inf, "upper": math.inf}
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        # With two candidates the fitted means equal the counts; the undefined dispersion is not used.
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        fit = GLM(counts, np.column_stack((np.ones(len(u)), u - u.mean())), family=Poisson()).fit(tol=1e-12)
    runs, mean, slope = float(counts.sum()), float(counts @ u / counts.sum()), float(fit.params[1])

    def beyond(other: float) -> float:
        """n·KL(slope ‖ other) minus its limit."""
        gap = (slope - other) * mean - float(logsumexp(slope * u)) + float(logsumexp(other * u))
        return runs * gap - math.log(2 / alpha)

    ends = []
    for side in (-1.0, 1.0):
        step = side / math.sqrt(runs)
        while beyond(slope + step) < 0:
            step *= 2
        ends.append(float(brentq(beyond, slope, slope + step)))
    return {"estimate": slope, "lower": ends[0], "upper": ends[1]}


def _utilities(utilities: Any, dataset: Any) -> npt.NDArray[np.float64]:
    utilities = called("utilities", utilities, dataset)
    try:
        found = np.asarray(utilities)
        is_vector = found.dtype.kind in "iuf" and found.ndim == 1 and len(found) >= 2
    except ValueError:  # lists of different lengths
        is_vector = False
    if not is_vector or not np.isfinite(found).all():
        raise OptionError(
            "utilities are not finite numbers, one for each of two or more candidates; pass such a list, or a function "
            "that computes it from the dataset.",
            utilities=utilities,
        )
    u = found.astype(np.float64)
    if u.min() == u.max():
        raise OptionError(
            f"all {len(u)} utilities are {u[0]:g}, so no slope can be estimated; use a dataset on which they differ.",
            utilities=utilities,
        )
    return u


def _places(candidates: Sequence[Any] | None, n: int) -> dict[Any, int]:
    """Return the index of each candidate, by the key of its outcome."""
    listed = range(n) if candidates is None else in_a_tuple(candidates)
    try:
        places = {outcome_key(value): place for place, value in enumerate(listed)}
    except TypeError:
        raise OptionError(
            "one of the candidates is not hashable; use numbers, strings or tuples.", candidates=listed
        ) from None
    if len(listed) != n or len(places) != n:
        raise OptionError(
            f"{len(places)} different candidates were passed for {n} utilities; pass one for each utility.",
            candidates=len(places),
            utilities=n,
        )
    return places


def _notes(points: list[Point], slope: float, monotonic: bool) -> list[str]:
    """Explain the consequences of a wrong slope for privacy and utility."""
    fit, *pairs = points
    notes = []
    if fit.lower > slope:
        missing = not monotonic and fit.lower <= 2 * slope <= fit.upper
        notes.append(
            f"steeper than stated ({fit.estimate:.4g}, stated {slope:.4g}"
            + ("; about twice as steep, as if the factor 2 of the sensitivity were missing" if missing else "")
            + "): the best candidates are chosen too often, and the privacy loss exceeds epsilon"
        )
    elif fit.upper < slope:
        notes.append(
            f"flatter than stated ({fit.estimate:.4g}, stated {slope:.4g}): utility is lost; privacy is kept if the "
            "log-probabilities are linear in the utility"
        )
    elif any(pair.is_outside for pair in pairs) and math.isinf(fit.upper - fit.lower):
        notes.append("one candidate is chosen (almost) always: no slope fits")
    elif any(pair.is_outside for pair in pairs):
        notes.append("the overall slope fits, but pairs do not: the log-probabilities are not linear in the utility")
    return notes
