"""Inference on counts: exact sizes by enumeration, and coverage of the two-sided interval."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ....audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ....audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ....audit.claims.renyi import RenyiDP
from ....audit.inference.binomial_tails import probability_limits
from ....audit.inference.boundary_test import Counts, p_value
from ....audit.inference.ratio_intervals import maximum_interval
from ..core.bench_json import CERTAIN, Column, Figures, Value, at_least, at_most, columns
from ..core.effort import ALPHA, Bench, Effort, Task, in_batches, once, seeds_of, spread

Array = npt.NDArray[np.float64]

_RUNS = (5, 20, 100)
_ALPHAS = (0.05, 0.01)
_CLAIMS: dict[str, Claim] = {
    "equal": PureDP(0.0),
    "pure": PureDP(1.0),
    "pure-3": PureDP(3.0),
    "approximate": ApproxDP(1.0, 0.05),
    "gaussian": GaussianDP(1.0),
    "renyi": RenyiDP(2.0, 0.3),
    "probability-preservation": ProbabilityPreservation(2.0, 0.3),
    "n-fold": NFoldComposition(0.1, 4),
    "n-fold-1": NFoldComposition(0.02, 1),
}
_QUICK_CLAIMS = ("pure",)


def smallest_refuted(n: int, m: int, claim: Claim, alpha: float) -> Array:
    """Return for each y from 0 to m the fewest hits x out of n that refute the claim, n + 1 where none do.

    Bisection is valid because the p-value does not increase with x.
    """

    def is_refuted(x: int, y: int) -> bool:
        return p_value(Counts(hits_x=x, runs_x=n, hits_y=y, runs_y=m), claim, alpha=alpha) <= alpha

    found = np.empty(m + 1)
    for y in range(m + 1):
        low, high = -1, n + 1  # low is not refuted; high is refuted, n + 1 by convention
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_refuted(middle, y) else (middle, high)
        found[y] = high
    return found


def rates_on_the_boundary() -> tuple[Array, Array]:
    """Return q and 1 − q, evenly on the arcsine scale and down to 1e-12 from both ends."""
    angle = np.linspace(0.0, math.pi / 2, 2_001)[1:-1]
    end = np.geomspace(1e-12, 1e-4, 161)
    return np.concatenate([end, np.sin(angle) ** 2, 1 - end]), np.concatenate([1 - end, np.cos(angle) ** 2, end])


def exact_size(critical: Array, n: int, claim: Claim) -> tuple[float, float]:
    """Return the largest probability of {X ≥ critical(Y)} with (p, q) on the claim's boundary, and its q.

    Tails are computed from the smaller of a probability and its complement.
    """
    from scipy.stats import binom  # takes long to import

    m = len(critical) - 1
    q, q_rest = rates_on_the_boundary()
    p, p_rest = claim.max_power(q, q_rest)
    y = np.arange(m + 1)[:, None]
    on_y = np.where(q < 0.5, binom.pmf(y, m, np.minimum(q, 0.5)), binom.pmf(m - y, m, np.minimum(q_rest, 0.5)))
    least = critical[:, None]
    on_x = np.where(
        p < 0.5, binom.sf(least - 1, n, np.minimum(p, 0.5)), binom.cdf(n - least, n, np.minimum(p_rest, 0.5))
    )
    size = (on_x * on_y).sum(axis=0)
    worst = int(np.argmax(size))
    return float(size[worst]), float(q[worst])


def _size_of(name: str, alpha: float, n: int, m: int) -> tuple[float, float]:
    return exact_size(smallest_refuted(n, m, _CLAIMS[name], alpha), n, _CLAIMS[name])


def _sizes(effort: Effort, name: str, alpha: float) -> Figures:
    pairs = list(itertools.product(effort.either(_RUNS[:2], _RUNS), repeat=2))
    found = list(spread(_size_of, [(name, alpha, n, m) for n, m in pairs], effort.jobs))
    largest, where = max(found)
    cells: dict[str, Value] = {
        "claim": str(_CLAIMS[name]),
        "alpha": alpha,
        **{f"{n}x{m}": size for (n, m), (size, _) in zip(pairs, found, strict=True)},
        "largest": largest,
        "where": where,
    }
    return cells, [at_most("largest size", largest, alpha)]


def _size_tasks(effort: Effort) -> Iterator[Task]:
    for alpha, name in itertools.product(effort.either(_ALPHAS[:1], _ALPHAS), _CLAIMS):
        if effort.wants(name) and (not effort.is_quick or name in _QUICK_CLAIMS):
            yield once(f"{name}, {alpha:g}", _sizes, effort, name, alpha)


SIZES = Bench(
    name="sizes",
    title="Exact size of the joint test",
    method=(
        "Probability that the test refutes a claim that holds with equality, summed over all outcomes and maximised "
        f"over {len(rates_on_the_boundary()[0]):,} values of q, down to 1e-12 from both ends. The size must not exceed "
        "alpha. Columns n × m: runs on x × runs on y."
    ),
    columns=(
        *columns("claim | alpha :g"),
        *(Column(f"{n} × {m}", f"{n}x{m}", ".4f") for n, m in itertools.product(_RUNS, repeat=2)),
        *columns("largest size = largest :.4f | q of the largest size = where :.3g"),
    ),
    names=tuple(_CLAIMS),
    tasks=_size_tasks,
)


_OUTCOMES, _COVERAGE_RUNS = (5, 50), (10_000, 1_000_000)
_LAWS = ("distinct", "tied")


def outcome_laws(kind: str, outcomes: int) -> tuple[Array, Array]:
    """Return the probabilities on x and y: log ratios evenly spread over [−1, 1] before normalisation, or all ±1."""
    if kind == "distinct":
        q = np.full(outcomes, 1.0 / outcomes)
        weights = np.exp(np.linspace(-1.0, 1.0, outcomes))
        return weights / weights.sum(), q
    is_up = np.arange(outcomes) % 2 == 0
    share_p, share_q = (
        math.e / (1 + math.e),
        1 / (1 + math.e),
    )  # of the outcomes likelier on x, in total
    up, down = int(is_up.sum()), int((~is_up).sum())
    return np.where(is_up, share_p / up, (1 - share_p) / down), np.where(is_up, share_q / up, (1 - share_q) / down)


def _intervals_of(kind: str, outcomes: int, runs: int, seeds: range) -> list[tuple[bool, float]]:
    """Return for each seed whether the interval covers the largest absolute log ratio, and its width."""
    p, q = outcome_laws(kind, outcomes)
    truth = float(np.abs(np.log(p) - np.log(q)).max())
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        interval = maximum_interval(rng.multinomial(runs, p), runs, rng.multinomial(runs, q), runs, alpha=ALPHA)
        found.append((interval.lower <= truth <= interval.upper, interval.upper - interval.lower))
    return found


def _coverage(effort: Effort, kind: str, outcomes: int, runs: int, seeds: range) -> Figures:
    found = in_batches(_intervals_of, (kind, outcomes, runs), seeds, 50, effort.jobs)
    covered = sum(holds for holds, _ in found)
    low, high = probability_limits(covered, len(found), alpha=0.05)
    cells: dict[str, Value] = {
        "law": kind,
        "outcomes": outcomes,
        "runs": runs,
        "repetitions": len(found),
        "covered": covered,
        "share": covered / len(found),
        "low": low,
        "high": high,
        "width": statistics.median(width for _, width in found),
    }
    certain = probability_limits(covered, len(found), alpha=CERTAIN)[1]
    return cells, [at_least("99.9% upper limit of the coverage", certain, 1 - ALPHA)]


def _coverage_tasks(effort: Effort) -> Iterator[Task]:
    for number, (kind, outcomes, runs) in enumerate(itertools.product(_LAWS, _OUTCOMES, _COVERAGE_RUNS)):
        if effort.wants(f"{kind}-{outcomes}") and (number == 0 or not effort.is_quick):
            seeds = seeds_of(5, number, 0, effort.either(30, 2_000))
            yield once(f"{kind}, {outcomes}, {runs}", _coverage, effort, kind, outcomes, runs, seeds)


COVERAGE = Bench(
    name="coverage",
    title="Coverage of the two-sided interval for the largest log ratio",
    method=(
        f"Intervals of alpha {ALPHA:g} for the largest absolute log ratio over all outcomes. Distinct log ratios are "
        "evenly spread and have one maximum; tied log ratios are 1 or −1 for every outcome. The limits of the coverage "
        "are exact."
    ),
    columns=columns(
        "log ratios = law | outcomes | runs :, | repetitions :, | coverage = share :.4f | 95% lower limit = low :.4f | "
        "95% upper limit = high :.4f | median width = width :.4g"
    ),
    names=tuple(f"{kind}-{outcomes}" for kind in _LAWS for outcomes in _OUTCOMES),
    tasks=_coverage_tasks,
)
