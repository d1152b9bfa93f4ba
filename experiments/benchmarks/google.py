"""Google's statistical test cases: what is audited of a case, verdicts, variants with too little noise, runs and time.

The release is the output of the aggregation on the pair of the file, with the claim of the file. The audit searches for
an event. Noise that is slightly too small need not show there: a mean of one row hides most of the loss, and for small
epsilon few runs cannot tell the datasets apart.

The second audit is therefore of the noise itself:

- several users are added, and the claim is composed as often (k users lose at most k times as much);
- of means, variances and quantiles, it sees the noisy sums or counts from which they are computed;
- Gaussian noise must keep μ-GDP, μ being the sensitivity over the standard deviation that (ε, δ) needs;
- the event is known: outputs on the side of the first dataset's exact answers that is averted from the second's, and
  for Gaussian noise the half-line that has a given probability on the second dataset.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ...audit.claims.claim import Claim, GaussianDP, GroupClaim, PureDP
from ...audit.datasets.adjacency import UserLevel
from ...audit.distribution_checks.check_noise import check_noise
from ...audit.distribution_checks.noise_distributions import GaussianNoise, LaplaceNoise
from ...audit.power.joint_test_power import runs_needed
from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...audit.results.statement_result import StatementResult
from ...audit.sampling.pilot_and_batch_sizes import with_pilot
from ...mechanisms import GaussianDistribution, LaplaceDistribution, analytic_gaussian_scale
from ...mechanisms.aggregates import ApproximateBounds, BoundedMoments, NoisyAnswers, noisy_moments, noisy_tree_counts
from ..libraries.subjects import release_of
from .google_cases import VOTES, Case, ClosenessCase, Row, closeness_cases, dp_cases
from .measure import Effort, Figures, Seeds, Table, Target, at_least, at_most, by_name

# Mechanisms of PyDP's objects and of likelihood ratios, on rows (user, value).

ONE_USER: Final = UserLevel(0)
"""Neighbours: all rows of one user, the first entry of a row."""
Values = list[float]
Prepare = Callable[[Values], Callable[[], Any]]
"""Maps the values of a dataset to a function that returns one output."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeated:
    """Outputs of a function that is called once for each run and has its own source of randomness."""

    name: str
    prepare: Prepare = field(repr=False)
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return self.name

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        draw = self.prepare([value for _, value in dataset])
        return np.array([draw() for _ in range(size)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnValues:
    """A reference mechanism, applied to the values of rows (user, value)."""

    mechanism: Any
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return str(self.mechanism)

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = self.mechanism.sample([value for _, value in dataset], size, rng)
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Whether each output of a mechanism belongs to an event that is known beforehand, shape (size,).

    The event is the outputs whose score, shape (size,), is at least `least`.
    """

    mechanism: Repeated | OnValues
    score: Callable[[Any], npt.NDArray[Any]] = field(repr=False)
    least: float
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return str(self.mechanism)

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        return np.asarray(self.score(self.mechanism.sample(dataset, size, rng)) >= self.least)


def pydp_noise(case: Case | ClosenessCase, change: float, share: float = 1.0) -> Any:
    """Return PyDP's mechanism for answers that change by `change` in each partition, with a share of its noise."""
    library = import_module("pydp.algorithms.numerical_mechanisms")
    if case.noise == "laplace":
        return library.LaplaceMechanism(case.epsilon / share, case.partitions * change)
    return library.GaussianMechanism(case.epsilon, case.delta, share * math.sqrt(case.partitions) * change)


def pydp_count(case: Case, share: float = 1.0) -> Repeated:
    """Return PyDP's count; where it cannot count so many values or has no such noise, its noise on the exact count."""
    if case.noise == "gaussian" or sum(case.rows) > 10**6:
        noise = pydp_noise(case, 1.0, share)

        def noisy(values: Values) -> Callable[[], Any]:
            count = int(sum(values))
            return lambda: noise.add_noise(count)

        return Repeated(name=f"PyDP {type(noise).__name__} on the count", prepare=noisy)
    count = _aggregate("Count", case, share)

    def counted(values: Values) -> Callable[[], Any]:
        ones = [1] * int(sum(values))
        return lambda: count.quick_result(ones)

    return Repeated(name="PyDP Count", prepare=counted)


def pydp_sum(case: Case, share: float = 1.0) -> Repeated:
    """Return PyDP's bounded sum; for Gaussian noise, PyDP's mechanism on the exact sum of clipped values."""
    whole = case.file.startswith("long")
    if case.noise == "laplace":
        total = _aggregate("BoundedSum", case, share, **_limits(case, whole))
        return Repeated(name="PyDP BoundedSum", prepare=_quick(total, int if whole else float))
    noise = pydp_noise(case, max(abs(case.lower), abs(case.upper)), share)

    def noisy(values: Values) -> Callable[[], Any]:
        exact = float(np.clip(values, case.lower, case.upper).sum()) if values else 0.0
        answer = int(exact) if whole else exact
        return lambda: noise.add_noise(answer)

    return Repeated(name="PyDP GaussianMechanism on the sum", prepare=noisy)


def pydp_moment(case: Case) -> Repeated:
    """Return PyDP's bounded mean or standard deviation, with Laplace noise."""
    name = "BoundedMean" if case.file == "bounded mean" else "BoundedStandardDeviation"
    options = {"linf_sensitivity": case.per_partition, **_limits(case, False)}
    return Repeated(name=f"PyDP {name}", prepare=_quick(_aggregate(name, case, 1.0, **options), float))


def pydp_quantiles(case: Case) -> Repeated:
    """Return the quantiles of PyDP's tree at the ranks of the case."""
    library, ranks = import_module("pydp.algorithms.quantile_tree"), list(case.ranks)

    def prepared(values: Values) -> Callable[[], Any]:
        tree = library.QuantileTree(case.lower, case.upper, *case.tree)
        for value in values:
            tree.add_entry(min(max(value, case.lower), case.upper))
        given = (case.epsilon, case.delta, case.partitions, case.per_partition, ranks, case.noise)
        return lambda: tree.compute_quantiles(*given)

    return Repeated(name="PyDP QuantileTree", prepare=prepared)


def _aggregate(name: str, case: Case, share: float, **options: Any) -> Any:
    library = import_module("pydp.algorithms.laplacian")
    return getattr(library, name)(epsilon=case.epsilon / share, l0_sensitivity=case.partitions, **options)


def _limits(case: Case, whole: bool) -> dict[str, Any]:
    kind = int if whole else float
    return {"lower_bound": kind(case.lower), "upper_bound": kind(case.upper), "dtype": "int" if whole else "float"}


def _quick(aggregate: Any, kind: type) -> Prepare:
    def prepared(values: Values) -> Callable[[], Any]:
        rows = [kind(value) for value in values]
        return lambda: aggregate.quick_result(rows)

    return prepared


# The audits of a case.

VARIANT_SHARE: Final = 0.95
"""Share of the noise of a faulty variant."""
POWER: Final = {"laplace": 0.99, "gaussian": 0.9999}
"""Probability, as planned, with which the audit of a variant refutes it. Audits of Laplace noise have more: they draw
more
often on the dataset on which the event is rare, which the plan does not count on."""

_COUNTS_AND_SUMS = ("count", "bounded sum", "long bounded sum")
_LOSS, _LOSS_OF_MANY, _MU = 2.2, 1.1, 2.0  # losses and μ of all users for which few runs are enough
_MANY = 25  # partitions from which the rows of several users take long to count
_LIKELY: Final = 0.15  # probability of the event on y, for Gaussian noise
_SLOW_RUNS = {"PyDP BoundedMean": 20_000, "PyDP BoundedStandardDeviation": 30_000, "PyDP QuantileTree": 10_000}
_USUAL_RUNS, _REFERENCE_RUNS = 30_000, 1_000_000
_LARGE = 2.0  # (ε, δ) above which 10,000 runs of a tree could detect no excess


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audited:
    """A mechanism, a pair of rows (user, value) that `users` users differ in, the claim for one, and the runs."""

    on: str
    mechanism: Any
    x: list[Row]
    y: list[Row]
    users: int = 1
    claim: Claim
    runs: int

    @property
    def claim_in_words(self) -> str:
        return f"{self.claim}, {self.users} users" if self.users > 1 else str(self.claim)

    def audit(self, *, alpha: float, seed: int, runs: int | None = None) -> AuditResult:
        """Audit by values, since low bits are a question of their own."""
        options: dict[str, Any] = {"claim": self.claim, "distance": self.users, "alpha": alpha, "seed": seed}
        options |= {"runs": self.runs if runs is None else runs, "floating_point": "ignore", "jobs": 1, "name": self.on}
        result: AuditResult = check(self.mechanism, self.x, self.y, **options)
        return result


def why_not_pydp(case: Case) -> str:
    """Return why no aggregate of PyDP releases what the case asks for; empty if one does."""
    if case.file == "approximate bounds":
        return "PyDP has no approximate bounds"
    if case.noise == "gaussian" and case.file != "quantiles":
        return "PyDP's aggregates have Laplace noise only"
    if case.file == "count" and sum(case.rows) > 10**6:
        return "PyDP counts rows one by one, and these are 9.8·10⁹"
    return ""


def release(case: Case) -> Audited:
    """Return the release of a case on the pair of the file."""
    x, y = case.pair()
    mechanism = _release(case)
    on = str(mechanism) if isinstance(mechanism, Repeated) else f"reference {case.file}"
    runs = _SLOW_RUNS.get(on, _USUAL_RUNS if isinstance(mechanism, Repeated) else _REFERENCE_RUNS)
    if on == "PyDP QuantileTree" and case.delta and case.epsilon > _LARGE:
        runs *= 2
    return Audited(on=on, mechanism=mechanism, x=x, y=y, claim=case.claim, runs=runs)


def _release(case: Case) -> Repeated | OnValues:
    match case.file:
        case "count":
            return pydp_count(case)
        case "bounded sum" | "long bounded sum":
            return pydp_sum(case)
        case "quantiles":
            return pydp_quantiles(case)
        case "approximate bounds":
            return OnValues(mechanism=ApproximateBounds(case.epsilon, case.per_partition))
    if case.noise == "laplace":
        return pydp_moment(case)
    return OnValues(mechanism=BoundedMoments(_parts_of(case, 1.0), case.lower, case.upper))


def noise(case: Case, *, alpha: float, share: float = 1.0) -> Audited:
    """Return the noise of a case, with this share of it, and the runs that find one with `VARIANT_SHARE` of it."""
    if case.file in _COUNTS_AND_SUMS:
        return _one_answer(case, share, alpha)
    return _bounds(case, share, alpha) if case.file == "approximate bounds" else _parts(case, share, alpha)


def _one_answer(case: Case, share: float, alpha: float) -> Audited:
    """Return a count or a sum: one answer with noise."""
    is_count, change = case.file == "count", 1.0 if case.file == "count" else max(abs(case.lower), abs(case.upper))
    sampler = pydp_count(case, share) if is_count else pydp_sum(case, share)
    tried = _users_of(case, case.partitions)
    claim, users, number, _ = tried
    x, _ = case.pair()
    y = [*x, *_of_users(len(x), users, [1.0 if is_count else case.extra[0]] * number, as_counts=is_count)]
    if is_count:
        answers = [sum(value for _, value in rows) for rows in (x, y)]
    else:
        answers = [float(sum(min(max(value, case.lower), case.upper) for _, value in rows)) for rows in (x, y)]
    up = math.copysign(1.0, answers[1] - answers[0])
    is_whole = case.file != "bounded sum"  # a rounded output that equals the exact answer favours neither
    q = None
    if isinstance(claim, GaussianDP):
        sigma = analytic_gaussian_scale(case.epsilon, case.delta) * math.sqrt(case.partitions) * change
        least = sigma * -float(ndtri(_LIKELY)) - up * (answers[1] - answers[0])
        if is_whole:
            least = math.ceil(least) - 0.5
    else:
        least = 0.5 if is_whole else 0.0
        scale = VARIANT_SHARE * case.partitions * change / case.epsilon
        q = 0.5 * math.exp(-(least + up * (answers[1] - answers[0])) / scale)
    origin, sign = answers[0], -up

    def score(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray((outputs - origin) * sign)

    return _of_counts(str(sampler), Counts(mechanism=sampler, score=score, least=least), (x, y), tried, alpha, q)


def _parts(case: Case, share: float, alpha: float) -> Audited:
    """Return the noisy sums of a mean or a variance, or the noisy counts of a quantile tree, of no rows and of rows."""
    full, used = _parts_of(case, 1.0), _parts_of(case, share)
    tried = _users_of(case, case.partitions * case.per_partition, case.per_partition, full)
    claim, users, number, tightness = tried
    y = _of_users(0, users, [case.upper] * number, as_counts=False)
    distributions = full.distribution([]), full.distribution([value for _, value in y])

    def score(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(distributions[0].log_density(outputs) - distributions[1].log_density(outputs))

    if isinstance(claim, GaussianDP):
        mu, q = users * claim.parameter * tightness, None
        least = mu * -float(ndtri(_LIKELY)) - mu**2 / 2
    else:
        changed = case.tree[0] if case.file == "quantiles" else len(full.scales)
        least = users * claim.parameter * (1 - 1e-9)  # the largest loss
        q = 0.5**changed * math.exp(-users * claim.parameter / VARIANT_SHARE)
    on = f"noisy {'counts' if case.file == 'quantiles' else 'sums'} of the reference {case.file}"
    counts = Counts(mechanism=OnValues(mechanism=used), score=score, least=least)
    return _of_counts(on, counts, ([], y), tried, alpha, q)


def _bounds(case: Case, share: float, alpha: float) -> Audited:
    """Return approximate bounds of equal rows, as many as the least threshold; the event is a failure."""
    full, value = ApproximateBounds(case.epsilon, case.per_partition), case.extra[0]
    tried = _users_of(case, case.per_partition)
    _, users, number, _ = tried
    x = [(user, value) for user in range(math.ceil(full.thresholds[-1]))]
    fails = math.exp(full.distribution([value] * len(x)).log_probabilities[-1])
    used = ApproximateBounds(case.epsilon, case.per_partition, noise_share=share)
    counts = Counts(mechanism=OnValues(mechanism=used), score=lambda outputs: np.isnan(outputs[:, 0]), least=1.0)
    y = [*x, *_of_users(len(x), users, [value] * number, as_counts=False)]
    q = fails * math.exp(-users * case.epsilon / VARIANT_SHARE)
    return _of_counts("reference approximate bounds", counts, (x, y), tried, alpha, q)


def _of_counts(
    on: str, counts: Counts, pair: tuple[list[Row], list[Row]], tried: _Tried, alpha: float, q: float | None
) -> Audited:
    """Return the audit of an event, whose probability on y is `q` for the variant of Laplace noise."""
    claim, users, _, tightness = tried
    runs = _planned(claim, users, tightness, alpha, q)
    return Audited(on=on, mechanism=counts, x=pair[0], y=pair[1], users=users, claim=claim, runs=runs)


_Tried: TypeAlias = tuple[Claim, int, int, float]
"""The claim of the noise for one user, a number of users, their values, and their tightness."""


def _users_of(case: Case, copies: int, per_partition: int = 1, parts: NoisyAnswers | None = None) -> _Tried:
    """Return a number of users and their values for which few runs are enough.

    The users may add `copies` values each to one partition under Laplace noise, and the root of the number of
    partitions times `per_partition` under Gaussian noise. Their tightness is the distance of the whole number of values
    as a share of the allowed distance.
    """
    if case.noise == "laplace":
        claim: Claim = PureDP(case.epsilon)
        users = max(1, round((_LOSS_OF_MANY if case.partitions >= _MANY else _LOSS) / case.epsilon))
        return claim, users, users * copies, 1.0
    claim = GaussianDP(1 / analytic_gaussian_scale(case.epsilon, case.delta)) if parts is None else parts.tight_claim
    each, about = math.sqrt(case.partitions) * per_partition, max(1, round(_MU / claim.parameter))
    near = range(max(1, about * 3 // 5), about * 8 // 5 + 1)
    users = max(near, key=lambda users: (round(_whole(users * each) / (users * each), 3), -abs(users - about)))
    number = _whole(users * each)
    return claim, users, number, number / (users * each)


def _whole(number: float) -> int:
    return math.floor(number * (1 + 1e-12))


def _of_users(first: int, users: int, values: list[float], *, as_counts: bool) -> list[Row]:
    """Return rows (user, value), the values spread over the users; or one row for each user, with their number."""
    owners = [first + place * users // len(values) for place in range(len(values))]
    if as_counts:
        return [(first + user, float(owners.count(first + user))) for user in range(users)]
    return list(zip(owners, values, strict=True))


def _planned(claim: Claim, users: int, tightness: float, alpha: float, q: float | None) -> int:
    """Return the runs with which an audit refutes the variant, if the event has probability `q` on y."""
    parameter = claim.parameter * tightness / VARIANT_SHARE
    composed = claim if users == 1 else GroupClaim(claim, users)
    power, q = POWER["gaussian" if q is None else "laplace"], _LIKELY if q is None else q
    main = runs_needed(composed, q, excess=parameter - claim.parameter, power=power, alpha=alpha)
    return with_pilot(main, q)


def _parts_of(case: Case, share: float) -> NoisyAnswers:
    options: dict[str, Any] = {
        "epsilon": case.epsilon,
        "delta": case.delta,
        "partitions": case.partitions,
        "per_partition": case.per_partition,
        "noise_share": share,
    }
    if case.file == "quantiles":
        height, branching = case.tree
        return noisy_tree_counts(case.lower, case.upper, height=height, branching=branching, **options)
    return noisy_moments(1 if case.file == "bounded mean" else 2, case.lower, case.upper, **options)


# The statistical test of google/differential-privacy, on outputs of a known distribution: which noise does it let pass?
#
# A vote compares histograms of outputs on the two datasets. It takes the differences between the frequencies on one
# dataset and e^ε times those on the other, and adds the positive ones; the sum must be below δ + tolerance, in both
# directions. The sampling error of the frequencies makes the sum positive even if the claim holds; the tolerance leaves
# room for it.

_RANGE: Final = {"laplace": 25.0, "gaussian": 8.0}
"""Scales beyond the exact answers in which cells are formed; the outputs beyond are part of the last cells."""
_STEPS: Final = 9
_SHORTEST: Final = 0.1
"""Share of the noise at which the search begins; a case that lets this much pass has it as its limit."""


def passes(case: Case, share: float, *, seed: int) -> bool:
    """Return whether the majority of nine votes accepts a count or sum with this share of the noise."""
    p, q = (_in_cells(case, rows, share) for rows in case.pair())
    rng, limit, ratio = np.random.default_rng(seed), case.tested_delta + case.tolerance, math.exp(case.epsilon)
    accepted = rejected = 0
    while 2 * max(accepted, rejected) < VOTES:
        x, y = (rng.multinomial(case.samples, cells) / case.samples for cells in (p, q))
        found = max(float(np.maximum(x - ratio * y, 0.0).sum()), float(np.maximum(y - ratio * x, 0.0).sum()))
        accepted, rejected = accepted + (found < limit), rejected + (found >= limit)
    return accepted > rejected


def least_noise_that_passes(case: Case, *, seed: int) -> float:
    """Return the least share of the noise of a count or sum that the test accepts, by bisection to .002."""
    low, high = _SHORTEST, 1.0
    if passes(case, low, seed=seed):
        return low
    for step in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(case, middle, seed=seed + 1 + step) else (middle, high)
    return high


def _in_cells(case: Case, rows: list[Row], share: float) -> npt.NDArray[np.float64]:
    """Return the probabilities of the test's cells, multiples of the granularity; counts are from the first's count."""
    is_count = case.file == "count"
    base = sum(case.rows) if is_count else 0.0
    answers = [_clipped(case, values) - base for values in (case.rows, [value for _, value in rows])]
    change = 1.0 if is_count else max(abs(case.lower), abs(case.upper))
    distribution: LaplaceDistribution | GaussianDistribution
    if case.noise == "laplace":
        distribution = LaplaceDistribution(answers[1], share * case.partitions * change / case.epsilon)
    else:
        unit = analytic_gaussian_scale(case.epsilon, case.delta)
        distribution = GaussianDistribution(answers[1], share * unit * math.sqrt(case.partitions) * change)
    width = case.granularity
    added = sum(case.extra) if is_count else change * len(case.extra)
    reach = math.ceil((_RANGE[case.noise] * distribution.scale + added) / width)
    edges = (round(answers[0] / width) + np.arange(-reach, reach) + 0.5) * width
    cells = np.maximum(np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]])), 0.0)
    return np.asarray(cells / cells.sum())


def _clipped(case: Case, values: Iterable[float]) -> float:
    return float(sum(values) if case.file == "count" else sum(min(max(one, case.lower), case.upper) for one in values))


# The table: each case with its audits, and what Google's tests need for the same.

SUITE_ALPHA: Final = 1e-5
"""Probability with which any right mechanism of the whole suite is refuted."""
_CASES: Final = {case.key: case for case in dp_cases()}
_CLOSENESS: Final = {case.key: case for case in closeness_cases()}
ALPHA: Final = SUITE_ALPHA / (2 * len(_CASES) + len(_CLOSENESS))
"""Alpha of each audit: two of each case of an aggregation, and one of each distribution of noise."""
_NOISE_RUNS, _QUICK_RUNS = 40_000, 2_000
_TIMED = 5_000  # draws whose time is measured


def _cells(effort: Effort, seeds: Seeds, key: str) -> Figures:
    return (_google_cells if key in _CASES else _closeness_cells)(effort, seeds(4), key)


def _targets(effort: Effort, n_refuted: int, is_variant_refuted: bool) -> list[Target]:
    refuted = at_most("refuted", n_refuted, 0)
    return [refuted] if effort.is_quick else [refuted, at_least("refuted variants", is_variant_refuted, 1)]


def needs_pydp(case: Case) -> bool:
    """Return whether an audit of the case draws from PyDP."""
    return case.file in (*_COUNTS_AND_SUMS, "quantiles") or (
        case.noise == "laplace" and case.file != "approximate bounds"
    )


def _google_cells(effort: Effort, seeds: range, key: str) -> Figures:
    case = _CASES[key]
    audits = (release(case), noise(case, alpha=ALPHA), noise(case, alpha=ALPHA, share=VARIANT_SHARE))
    found, seconds = [], []
    for audited, seed in zip(audits, seeds, strict=False):
        runs = _QUICK_RUNS if effort.is_quick else audited.runs
        started = time.process_time()
        found.append(audited.audit(alpha=ALPHA, seed=seed, runs=runs))
        seconds.append(time.process_time() - started)
    released, right, variant = found
    is_simulated = case.file in _COUNTS_AND_SUMS and not effort.is_quick
    return {
        "file": case.file,
        "case": case.name,
        "claim": str(case.claim),
        "on": audits[0].on,
        "release": release_of("pydp") if isinstance(audits[0].mechanism, Repeated) else "–",
        "why": why_not_pydp(case) or None,
        "note": case.note or None,
        "runs": released.runs,
        "verdict": released.verdict.value,
        "bound": released.bound,
        "min_detectable_excess": released.min_detectable_excess,
        "noise_on": audits[1].on,
        "noise_claim": audits[1].claim_in_words,
        "noise_runs": right.runs,
        "right": right.verdict.value,
        "right_bound": right.bound,
        "variant": variant.verdict.value,
        "variant_bound": variant.bound,
        "seconds": seconds[0] + seconds[1],
        "variant_seconds": seconds[2],
        "their_samples": VOTES * case.samples,
        "their_seconds": 2 * VOTES * case.samples * _seconds_of_a_draw(audits[0].mechanism, audits[0].x, audits[0].y),
        "they_pass_variant": ("no", "yes")[passes(case, VARIANT_SHARE, seed=seeds[3])] if is_simulated else None,
        "they_pass": least_noise_that_passes(case, seed=seeds[3]) if is_simulated else None,
    }, _targets(effort, released.is_refuted + right.is_refuted, variant.is_refuted)


def _closeness_cells(effort: Effort, seeds: range, key: str) -> Figures:
    case = _CLOSENESS[key]
    runs = _QUICK_RUNS if effort.is_quick else _NOISE_RUNS
    found, seconds = [], []
    for share, seed in zip((1.0, VARIANT_SHARE), seeds, strict=False):
        started = time.process_time()
        found.append(closeness_check(case, share, runs=runs, seed=seed))
        seconds.append(time.process_time() - started)
    right, variant = found
    name, scale = str(_closeness_sampler(case, 1.0)), "scale" if case.noise == "laplace" else "standard deviation"
    return {
        "file": case.file,
        "case": case.name,
        "claim": f"{case.noise.capitalize()} noise, {scale} {_scale(case):.5g}",
        "on": name,
        "release": release_of("pydp"),
        "noise_on": name,
        "noise_claim": "distribution of the noise",
        "noise_runs": runs,
        "right": right.verdict.value,
        "right_bound": right.points[0].estimate / _scale(case),
        "variant": variant.verdict.value,
        "variant_bound": variant.points[0].estimate / _scale(case),
        "seconds": seconds[0],
        "variant_seconds": seconds[1],
        "their_samples": VOTES * case.samples,
        "their_seconds": VOTES * case.samples * _seconds_of_a_draw(_closeness_sampler(case, 1.0), []),
    }, _targets(effort, right.is_refuted, variant.is_refuted)


def closeness_check(case: ClosenessCase, share: float, *, runs: int, seed: int) -> StatementResult:
    """Check the distribution of PyDP's noise for a case, or of noise with a smaller scale."""
    mechanism = _closeness_sampler(case, share)
    distribution = LaplaceNoise(_scale(case)) if case.noise == "laplace" else GaussianNoise(_scale(case))
    return check_noise(mechanism, [], noise=distribution, answer=case.answer, runs=runs, alpha=ALPHA, seed=seed, jobs=1)


def _closeness_sampler(case: ClosenessCase, share: float) -> Repeated:
    made, answer = pydp_noise(case, case.change, share), case.answer
    return Repeated(name=f"PyDP {type(made).__name__}", prepare=lambda values: lambda: made.add_noise(answer))


def _seconds_of_a_draw(mechanism: Any, *datasets: Any) -> float:
    """Return the core-seconds of one output, the mean over the datasets."""
    rng, started = np.random.default_rng(0), time.process_time()
    for dataset in datasets:
        mechanism.sample(dataset, _TIMED, rng)
    return (time.process_time() - started) / (_TIMED * len(datasets))


def _scale(case: ClosenessCase) -> float:
    return math.sqrt(case.variance / 2) if case.noise == "laplace" else math.sqrt(case.variance)


_QUICK = (
    "count: Laplace noise, empty count, large epsilon",
    "bounded mean: Gaussian noise, empty mean, default parameters",
    "approximate bounds: basic (bounding failure)",
    "Laplace closeness: Default parameters",
)


def _library_of(key: str) -> str:
    return "pydp" if key in _CLOSENESS or needs_pydp(_CASES[key]) else ""


TABLES = (Table("google", 46, by_name((*_CASES, *_CLOSENESS)), _cells, quick=_QUICK, library=_library_of),)
