"""Statistics, kept apart because each JSON file has a module: false alarms, size, runs to a refutation, power."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, PureDP
from ...audit.claims.mironov_propositions import NFoldComposition, ProbabilityPreservation
from ...audit.claims.renyi import RenyiDP, ZeroConcentratedDP
from ...audit.events.events import Event
from ...audit.inference.event_test import Counts, pvalue
from ...audit.results.audit_result import AuditResult
from ...mechanisms import (
    DiscreteGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
    RandomisedResponse,
    ScalarDistribution,
    exact_epsilon,
)
from ...mechanisms.faulty import LaplaceOfScale
from ...mechanisms.faulty.calibration import GaussianOfScale
from .measure import (
    ALPHA,
    Effort,
    Figures,
    Seeds,
    Table,
    Target,
    at_least,
    at_most,
    certainly_at_least,
    certainly_at_most,
    check_values,
    in_batches,
    share_of,
    spread,
)

Array = npt.NDArray[np.float64]

# Whole audits of known pairs, which attain the claim: false alarms.

# Of each kind; 300,000 runs allow 50 looks, and 5,000 so many audits that a rate slightly above alpha shows.
_ALARM_RUNS = {"fixed size": 100_000, "sequential": 300_000, "sequential, short": 5_000}
_QUICK_ALARM_RUNS = 500
_LEAST_SHARE = 0.02  # at 100,000 runs; a test that rarely refutes would meet the other target
_NEAR_ALPHA = ("laplace", "geometric", "randomised-response", "gaussian-0.05", "gaussian-0.001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Mechanism on a pair, with a claim that holds there with equality."""

    name: str
    mechanism: Any
    x: Any
    y: Any
    claim: Claim

    def distributions(self) -> tuple[ScalarDistribution, ScalarDistribution]:
        return self.mechanism.distribution(self.x), self.mechanism.distribution(self.y)


def subjects() -> list[Subject]:
    """Return pairs that attain the claims of their mechanisms."""
    flat, one_up = (0.0,) * 50, (1.0,) + (-1.0,) * 49  # one candidate up and 49 down
    exponential = ExponentialMechanism(1.0)
    loss = exact_epsilon(exponential.distribution(flat), exponential.distribution(one_up))
    tight, rare, whole = GaussianMechanism(1.0, 0.05), GaussianMechanism(1.0, 1e-3), DiscreteGaussianMechanism(2.0, 1.0)
    return [
        Subject(name="laplace", mechanism=LaplaceMechanism(1.0), x=0.0, y=1.0, claim=PureDP(1.0)),
        Subject(name="geometric", mechanism=GeometricMechanism(1.0), x=0, y=1, claim=PureDP(1.0)),
        Subject(name="randomised-response", mechanism=RandomisedResponse(1.0), x=0, y=1, claim=PureDP(1.0)),
        Subject(name="gaussian-0.05", mechanism=tight, x=0.0, y=1.0, claim=tight.claim),
        Subject(name="gaussian-0.001", mechanism=rare, x=0.0, y=1.0, claim=rare.claim),
        Subject(name="discrete-gaussian", mechanism=whole, x=0, y=1, claim=whole.claim),
        Subject(name="exponential", mechanism=exponential, x=flat, y=one_up, claim=PureDP(loss)),
    ]


@cache
def _subjects() -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects()}


def _alarm_runs(effort: Effort, kind: str) -> int:
    return int(effort.either(_QUICK_ALARM_RUNS, _ALARM_RUNS[kind]))


def _alarms(effort: Effort, name: str, kind: str, seeds: range) -> Counter[str]:
    """Return the counts of audits, refutations and failed health checks."""
    subject, runs, sequential = _subjects()[name], _alarm_runs(effort, kind), kind != "fixed size"
    options: dict[str, Any] = {"claim": subject.claim, "runs": runs, "alpha": ALPHA, "sequential": sequential}
    results = [check_values(subject.mechanism, subject.x, subject.y, seed=seed, **options) for seed in seeds]
    return Counter(
        audits=len(results),
        refuted=sum(result.is_refuted for result in results),
        unhealthy=sum(bool(result.findings) for result in results),
    )


def _alarm_cells(effort: Effort, counts: Counter[str], name: str, kind: str) -> Figures:
    refuted, audits = counts["refuted"], counts["audits"]
    targets = [certainly_at_most("the false-alarm rate", refuted, audits, ALPHA)]
    if kind == "fixed size" and name in _NEAR_ALPHA and not effort.is_quick:
        targets.append(at_least("false-alarm rate", refuted / audits, _LEAST_SHARE))
    return {
        "subject": name,
        "claim": str(_subjects()[name].claim),
        "kind": kind,
        "runs": _alarm_runs(effort, kind),
        **dict(counts),
        **share_of(refuted, audits),
    }, targets


# Exact sizes of the test by enumeration.

_RUNS = (5, 20, 100)
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


def smallest_refuted(n: int, m: int, claim: Claim, alpha: float) -> Array:
    """Return for each y from 0 to m the fewest counts x of n that refute the claim, by bisection; n + 1 for none."""

    def is_refuted(x: int, y: int) -> bool:
        return pvalue(Counts(count_x=x, runs_x=n, count_y=y, runs_y=m), claim, alpha=alpha) <= alpha

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
    """Return the largest probability of {X ≥ critical(Y)} with (p, q) on the claim's boundary, and its q."""
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


def _sizes(effort: Effort, seeds: Seeds, name: str, alpha: float) -> Figures:
    pairs = list(itertools.product(effort.either(_RUNS[:2], _RUNS), repeat=2))
    found = list(spread(_size_of, [(name, alpha, n, m) for n, m in pairs], effort.jobs))
    largest, where = max(found)
    return {
        "claim": str(_CLAIMS[name]),
        "alpha": alpha,
        **{f"{n}x{m}": size for (n, m), (size, _) in zip(pairs, found, strict=True)},
        "largest": largest,
        "where": where,
    }, [at_most("largest size", largest, alpha)]


# Runs until audits refute a claim, by how far the truth exceeds it, for several kinds of mechanism.

_CLAIMED = 1.0
_TRUTHS = (2.0, 1.5, 1.1, 1.05, 1.01)
_CAP = 1_000_000
_FIXED_TRUTH, _FIXED_SIZE, _LEAST_FOUND = 1.01, 500_000, 0.95
_REFUTATIONS = 200  # audits


@dataclass(frozen=True, slots=True)
class Kind:
    """Mechanisms by their true epsilon, with a pair at the largest distance and the delta of their claim."""

    mechanism: Callable[[float], Any]
    pair: tuple[Any, Any] = (0.0, 1.0)
    delta: float = 0.0

    @property
    def claim(self) -> Claim:
        return ApproxDP(_CLAIMED, self.delta) if self.delta else PureDP(_CLAIMED)


KINDS = {
    "laplace": Kind(LaplaceMechanism),
    "gaussian .05": Kind(lambda truth: GaussianMechanism(truth, 0.05), delta=0.05),
    "gaussian .001": Kind(lambda truth: GaussianMechanism(truth, 0.001), delta=0.001),
    "randomised response": Kind(RandomisedResponse, (0, 1)),
    "geometric": Kind(GeometricMechanism, (0, 1)),
    "vector of 10": Kind(lambda truth: LaplaceOfScale(1.0 / truth, PureDP(truth)), ((0.0,) * 10, (1.0, *(0.0,) * 9))),
}
_MOST_MEDIAN = {
    "default": dict(zip(_TRUTHS, (100.0, 250.0, 5_000.0, 17_500.0, 375_000.0), strict=True)),
    "all of alpha": dict(zip(_TRUTHS, (90.0, 230.0, 4_300.0, 14_500.0, 340_000.0), strict=True)),
}


def _taken(name: str, truth: float, runs: int, kind: str, seeds: range) -> list[float]:
    """Return the runs on each dataset at which each audit refuted the claim; infinite without a refutation."""
    subject = KINDS[name]
    options: dict[str, Any] = {"claim": subject.claim, "runs": runs, "alpha": ALPHA, "sequential": kind != "fixed"}
    options["seconds"] = math.inf if kind == "all of alpha" else None
    results = (check_values(subject.mechanism(truth), *subject.pair, seed=seed, **options) for seed in seeds)
    return [float(result.runs) if result.is_refuted else math.inf for result in results]


def _refutation(effort: Effort, seeds: Seeds, name: str, truth: float, kind: str) -> Figures:
    runs = _FIXED_SIZE if kind == "fixed" else _CAP
    taken = in_batches(_taken, (name, truth, runs, kind), seeds(effort.either(3, _REFUTATIONS)), 5, effort.jobs)
    found = sum(map(math.isfinite, taken)) / len(taken)
    # Order statistics, so that audits without a refutation can count as infinite.
    median, most = (float(np.quantile(taken, share, method="inverted_cdf")) for share in (0.5, 0.9))
    targets = []
    if name == "laplace" and not effort.is_quick:
        if kind == "fixed":
            targets = [at_least("refuted share", found, _LEAST_FOUND)]
        else:
            targets = [at_most("median runs", median, _MOST_MEDIAN[kind][truth])]
    return {
        "name": name,
        "truth": truth,
        "kind": kind,
        "audits": len(taken),
        "runs": runs,
        "found": found,
        "median": None if kind == "fixed" else median,
        "most": None if kind == "fixed" else most,
    }, targets


# Power of audits at the detectable excess that they state, for every kind of claim.

_POWER, _POWER_ALPHAS = 0.95, (0.05, 1e-5)
_STATING, _POWER_AUDITS, _QUICK_POWER_RUNS = 20, 200, 2_000
_MORE_AUDITS = 1_000  # in all, where fewer leave it open whether the stated power is reached
_LEAK = 50.0  # far outside standard normal noise


def _normal(mu: float) -> GaussianOfScale:
    return GaussianOfScale(1.0 / mu, GaussianDP(mu))


@dataclass(frozen=True, slots=True)
class RareOutcome:
    """Noise that is independent of the answer, with a rare output that is e^ε times as likely for 1 as for 0.

    Its frequency, the mean of both probabilities, is the same for every ε: excesses are stated for an event as frequent
    as the tested one.
    """

    frequency: float
    epsilon: float

    def sample(self, answer: float, size: int, rng: np.random.Generator) -> Any:
        chance = 2.0 * self.frequency * expit(self.epsilon if answer else -self.epsilon)
        return np.where(rng.random(size) < chance, _LEAK, rng.normal(size=size))


@dataclass(frozen=True, slots=True)
class _Subject:
    """Claim, mechanisms that attain each privacy parameter of its family on the pair 1 and 0, and runs of an audit."""

    name: str
    claim: Claim
    of_parameter: Callable[[float], Any]
    runs: int
    is_meant: Callable[[Event], bool] = lambda event: True


def _is_rare_outcome(event: Event) -> bool:
    """Return whether an event separates the rare output from the noise."""
    is_in = event.contains(np.append(np.linspace(-2.05, 1.95, 9), _LEAK))
    return bool(is_in[-1]) != bool(is_in[:-1].any()) and len(set(is_in[:-1].tolist())) == 1


_SUBJECTS = {
    each.name: each
    for each in (
        _Subject("pure, Laplace", PureDP(1.0), LaplaceMechanism, 50_000),
        _Subject("pure, randomised response", PureDP(1.0), RandomisedResponse, 50_000),
        _Subject("delta 1e-3, Gaussian", ApproxDP(1.0, 1e-3), lambda s: GaussianMechanism(s, 1e-3), 50_000),
        _Subject("delta .05, Gaussian", ApproxDP(1.0, 0.05), lambda s: GaussianMechanism(s, 0.05), 50_000),
        _Subject("delta 1e-6, Laplace", ApproxDP(1.0, 1e-6), LaplaceMechanism, 50_000),
        _Subject("mu-GDP, Gaussian", GaussianDP(1.0), _normal, 50_000),
        _Subject("zCDP, Gaussian", ZeroConcentratedDP(0.5), lambda s: _normal(math.sqrt(2.0 * s)), 50_000),
        _Subject("Rényi DP, Gaussian", RenyiDP(4.0, 1.0), lambda s: _normal(math.sqrt(s / 2.0)), 50_000),
        _Subject("pure, rare leak .01", PureDP(1.0), lambda s: RareOutcome(0.01, s), 50_000, _is_rare_outcome),
        _Subject("pure, rare leak .001", PureDP(1.0), lambda s: RareOutcome(0.001, s), 500_000, _is_rare_outcome),
    )
}


def _power_audit(effort: Effort, name: str, excess: float, sequential: bool, alpha: float, seed: int) -> AuditResult:
    subject = _SUBJECTS[name]
    options: dict[str, Any] = {"alpha": alpha, "power": _POWER, "seed": seed, "sequential": sequential}
    runs = effort.either(_QUICK_POWER_RUNS, subject.runs)
    mechanism = subject.of_parameter(subject.claim.parameter + excess)
    return check_values(mechanism, 1, 0, claim=subject.claim, runs=runs, **options)


def _stated(effort: Effort, name: str, sequential: bool, alpha: float, seeds: range) -> list[float]:
    """Return the detectable excesses that audits of the claim, held with equality, state for the intended event."""
    results = [_power_audit(effort, name, 0.0, sequential, alpha, seed) for seed in seeds]
    return [
        each.min_detectable_excess
        for each in results
        if each.min_detectable_excess and _SUBJECTS[name].is_meant(each.event)
    ]


def _refuted(effort: Effort, name: str, excess: float, sequential: bool, alpha: float, seeds: range) -> list[bool]:
    """Return whether audits refute a mechanism with the given excess."""
    return [_power_audit(effort, name, excess, sequential, alpha, seed).is_refuted for seed in seeds]


def _least(audits: int) -> float:
    """The stated power less the standard error of its share of audits."""
    return _POWER - math.sqrt(_POWER * (1.0 - _POWER) / audits)


def _power(effort: Effort, seeds: Seeds, name: str, kind: str, alpha: float) -> Figures:
    stating, audits = effort.either((1, 3), (_STATING, _POWER_AUDITS))
    sequential, jobs = kind == "sequential", effort.jobs
    stated = in_batches(_stated, (effort, name, sequential, alpha), seeds(stating), 5, jobs)
    excess = statistics.median(stated) if stated else math.inf
    found, case = 0, (effort, name, excess, sequential, alpha)
    if excess < math.inf:
        found = sum(in_batches(_refuted, case, seeds(audits, 10_000), 5, jobs))
        if not effort.is_quick and found / audits < _least(audits):
            found += sum(in_batches(_refuted, case, seeds(_MORE_AUDITS - audits, 10_000 + audits), 5, jobs))
            audits = _MORE_AUDITS
    targets: list[Target] = [certainly_at_least("the power", found, audits, _POWER)]
    if not effort.is_quick:
        targets.append(at_least("power", found / audits, _least(audits)))
    return {
        "subject": name,
        "claim": str(_SUBJECTS[name].claim),
        "kind": kind,
        "alpha": alpha,
        "runs": _SUBJECTS[name].runs,
        "stated": excess,
        "stating": len(stated),
        "audits": audits,
        "found": found,
        **share_of(found, audits),
    }, targets


_ALARM_ROWS = {f"{name}, {kind}": (name, kind) for kind in _ALARM_RUNS for name in _subjects()}
_ALARM_QUICK = ("randomised-response, fixed size", "randomised-response, sequential")
_SIZE_ROWS = {f"{name}, {alpha:g}": (name, alpha) for alpha in (0.05, 0.01) for name in _CLAIMS}
_REFUTATION_ROWS = {
    f"{name}, {truth:g}, {kind}": (name, truth, kind)
    for name in KINDS
    for truth, kind in [*itertools.product(_TRUTHS, _MOST_MEDIAN), (_FIXED_TRUTH, "fixed")]
}
_POWER_ROWS = {
    f"{name}, {kind}, {alpha:g}": (name, kind, alpha)
    for name, kind, alpha in itertools.product(_SUBJECTS, ("fixed size", "sequential"), _POWER_ALPHAS)
}

TABLES = (
    Table(
        "false-alarms", 1, _ALARM_ROWS, _alarm_cells, count=_alarms, batch=20, quick=_ALARM_QUICK,
        counts=("audits", "refuted", "unhealthy"),
    ),
    Table("sizes", 2, _SIZE_ROWS, _sizes, quick=("pure, 0.05",)),
    Table("refutation", 4, _REFUTATION_ROWS, _refutation, quick=("laplace, 2, default",)),
    Table("power", 6, _POWER_ROWS, _power, quick=("pure, Laplace, fixed size, 0.05",)),
)  # fmt: skip
