"""Google's statistical test cases of counts and bounded sums: audits of PyDP, and which noise their own tests let pass.

The cases are those of the folder proto/testing of google/differential-privacy. There, a case draws 10⁶ outputs on each
of two neighbouring datasets, compares histograms of them with (ε, δ + tolerance), and takes the majority of nine such
votes. The files write every case out; here they are sweeps over datasets and settings.

The release is the output on the pair of the file, with the claim of the file, whose event the audit searches for. For
small epsilon few runs cannot tell these datasets apart. The second audit is therefore of the noise itself:

- several users are added, and the claim is composed as often (k users lose at most k times as much);
- Gaussian noise must keep μ-GDP, μ being the sensitivity over the standard deviation that (ε, δ) needs;
- the event is known: outputs on the side of the first dataset's exact answer that is averted from the second's, and
  for Gaussian noise the half-line that has a given probability on the second dataset.

References
----------
Wilson, Zhang, Lam, Desfontaines, Simmons-Marengo & Gipson (2020), Differentially private SQL with bounded user
contribution (stochastic testing).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ...audit.claims.claim import ApproxDP, Claim, GaussianDP, GroupClaim, PureDP
from ...audit.datasets.adjacency import UserLevel
from ...audit.power.joint_test_power import runs_needed
from ...audit.procedures.check import check
from ...audit.results.audit_result import AuditResult
from ...audit.sampling.pilot_and_batch_sizes import with_pilot
from ...mechanisms import GaussianDistribution, LaplaceDistribution, analytic_gaussian_scale
from ..libraries.subjects import release_of
from .measure import Effort, Figures, Seeds, Table, at_least, at_most, by_name

Row: TypeAlias = tuple[int, float]
"""A user and a value; of counts, a number of values that are counted at once."""
Pair: TypeAlias = tuple[list[Row], list[Row]]

VOTES: Final = 9
SAMPLES: Final = 1_000_000
"""Votes of a case, and outputs on each dataset of a vote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case of one of the files, named by noise, dataset and setting.

    Delta is 0 for Laplace noise. A user contributes one value to each of at most `partitions` partitions. `rows` are
    the values of the first dataset, and `extra` those of one user that the second has in addition. The test adds
    `tolerance` to `tested_delta`, and compares histograms whose cells have the width `granularity`.
    """

    file: str
    name: str
    epsilon: float
    delta: float
    tested_delta: float
    partitions: int
    lower: float = 0.0
    upper: float = 1.0
    rows: tuple[float, ...]
    extra: tuple[float, ...]
    tolerance: float
    granularity: float

    @property
    def key(self) -> str:
        return f"{self.file}: {self.name}"

    @property
    def is_count(self) -> bool:
        return self.file == "count"

    @property
    def is_whole(self) -> bool:
        """Whether outputs are rounded."""
        return self.file != "bounded sum"

    @property
    def is_laplace(self) -> bool:
        return self.delta == 0.0

    @property
    def claim(self) -> Claim:
        """Claim that the test checks, without its tolerance."""
        return ApproxDP(self.epsilon, self.tested_delta) if self.tested_delta else PureDP(self.epsilon)

    @property
    def change(self) -> float:
        """Largest change of the answer by one value."""
        return 1.0 if self.is_count else max(abs(self.lower), abs(self.upper))

    @property
    def scale(self) -> float:
        """Scale of the noise, the standard deviation of Gaussian noise."""
        if self.is_laplace:
            return self.partitions * self.change / self.epsilon
        return analytic_gaussian_scale(self.epsilon, self.delta) * math.sqrt(self.partitions) * self.change

    def pair(self) -> Pair:
        """Return the datasets of the file."""
        x = list(enumerate(self.rows))
        return x, x + [(len(x), value) for value in self.extra]

    def answer(self, rows: list[Row]) -> float:
        """Return the exact answer."""
        values = [value for _, value in rows]
        return float(sum(values) if self.is_count else sum(min(max(one, self.lower), self.upper) for one in values))


LN3: Final = math.log(3)
_COUNTS: dict[str, tuple[float, ...]] = {
    "empty count": (),
    "small count": (7, 1, 8, 12),
    "large count": (2147483647, 2146736422, 1383713414, 2146374624, 1989764249),
}
# Setting: epsilon, delta, partitions, values of a user, tolerance.
_COUNT_SETTINGS = {
    "Laplace": {
        "default parameters": (LN3, 0.0, 1, 1, 0.0025),
        "two partitions contributed": (LN3, 0.0, 2, 2, 0.0035),
        "many partitions contributed": (LN3, 0.0, 250, 250, 0.02),
        "small epsilon": (0.01, 0.0, 1, 1, 0.0131),
        "large epsilon": (2 * LN3, 0.0, 1, 1, 0.0035),
    },
    "Gaussian": {
        "default parameters": (LN3, 1e-5, 1, 1, 0.0001),
        "two partitions contributed": (LN3, 1e-5, 2, 1, 0.0001),
        "many partitions contributed": (LN3, 1e-5, 250, 15, 0.00031),
        "small epsilon": (0.1, 1e-5, 1, 1, 0.001),
        "large epsilon": (2 * LN3, 1e-5, 1, 1, 0.0001),
        "small delta": (LN3, 1e-6, 1, 1, 0.0001),
        "large delta": (LN3, 1e-4, 1, 1, 0.0005),
    },
}
# Setting: epsilon, delta, tested delta, partitions, values of a user.
_SETTINGS = {
    "Laplace": {
        "default": (LN3, 0.0, 0.0, 1, 1),
        "many": (LN3, 0.0, 0.0, 25, 25),
        "large bounds": (LN3, 0.0, 0.0, 1, 1),
        "small epsilon": (0.1, 0.0, 0.0, 1, 1),
        "large epsilon": (2 * LN3, 0.0, 0.0, 1, 1),
    },
    "Gaussian": {
        "default": (LN3, 1e-5, 1e-5, 1, 1),
        "many": (LN3, 1e-5, 1e-5, 25, 5),
        "large bounds": (LN3, 1e-5, 1e-5, 1, 1),
        "small epsilon": (0.25, 1e-5, 1e-5, 1, 1),
        "large epsilon": (2 * LN3, 1e-5, 1e-5, 1, 1),
        "small delta": (LN3, 1e-6, 1e-6, 1, 1),
        "small delta, smaller for the noise": (LN3, 1e-7, 1e-6, 1, 1),
    },
}
_WORDS = {"default": "default parameters", "small delta, smaller for the noise": "small delta"}
# Tolerance and granularity of a setting, for values in [0, 1], for values up to 50, and for no values.
_UNIT = {
    "Laplace": {
        "default": (0.02, 2**-6), "many": (0.04, 2**-3), "small epsilon": (0.0135, 2**-4),
        "large epsilon": (0.0135, 2**-4),
    },
    "Gaussian": {
        "default": (0.00117, 2**-7), "many": (0.00242, 2**-6), "small epsilon": (0.0003, 2**-1),
        "large epsilon": (0.00092, 2**-7), "small delta, smaller for the noise": (0.00092, 2**-7),
    },
}  # fmt: skip
_FIFTY = {
    "Laplace": {
        "default": (0.04, 2**-2), "many": (0.04, 1.0), "small epsilon": (0.023, 1.0), "large epsilon": (0.023, 2**-1),
    },
    "Gaussian": {
        "default": (0.00513, 2**-4), "many": (0.006, 2**-2), "small epsilon": (0.00113, 4.0),
        "large epsilon": (0.0035, 2**-4), "small delta": (0.0048, 2**-4),
    },
}  # fmt: skip
_EMPTY = {
    "Laplace": {
        "default": (0.02, 2**-6), "many": (0.04, 2**-3), "large bounds": (0.04, 2**-2),
        "small epsilon": (0.0135, 2**-4), "large epsilon": (0.0135, 2**-5),
    },
    "Gaussian": {
        "default": (0.00117, 2**-7), "many": (0.00242, 2**-6), "large bounds": (0.00513, 2**-4),
        "small epsilon": (0.0003, 2**-1), "large epsilon": (0.00092, 2**-7),
        "small delta, smaller for the noise": (0.00092, 2**-7),
    },
}  # fmt: skip
_FRACTIONS = (0.64872, 0.12707, 0.00128, 0.14684, 0.86507)
_LARGE = (32.43606, 35.35006, 40.73424, 32.53939, 7.081785)
_MIXED = (-32.43606, 35.35006, -40.73424, -32.53939, 7.081785)


def _sum_cases(*, whole: bool) -> Iterator[Case]:
    unit = (1.0, 0.0, 0.0, 0.0, 1.0) if whole else _FRACTIONS
    large, mixed = ((32.0, 35.0, 41.0, 33.0, 7.0), (-32.0, 35.0, -41.0, -33.0, 7.0)) if whole else (_LARGE, _MIXED)
    signed = (-50.0, 50.0 if whole else 49.9, -50_000.0)
    datasets = {  # rows; bounds and the extra value; tolerances
        "empty sum": ((), (0.0, 1.0, 1_000.0), _EMPTY),
        "small positive sum": (unit, (0.0, 1.0, 1_000.0), _UNIT),
        "large positive sum": (large, (0.0, 50.0, 50_000.0), _FIFTY),
        "large mixed sum": (mixed, signed, _FIFTY),
    }
    for noise in ("Laplace", "Gaussian"):
        for dataset, (rows, usual, tolerances) in datasets.items():
            for setting, (tolerance, granularity) in tolerances[noise].items():
                epsilon, delta, tested, partitions, added = _SETTINGS[noise][setting]
                lower, upper, value = signed if setting == "large bounds" else usual
                words = _WORDS.get(setting, setting)
                if setting == "many":
                    is_turned = noise == "Gaussian" and dataset.startswith("large")
                    words = "many contributed partitions" if is_turned else "many partitions contributed"
                yield Case(
                    file="long bounded sum" if whole else "bounded sum", name=f"{noise} noise, {dataset}, {words}",
                    epsilon=epsilon, delta=delta, tested_delta=tested, partitions=partitions, lower=lower, upper=upper,
                    rows=rows, extra=(value,) * added, tolerance=tolerance, granularity=granularity,
                )  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the 36 cases of counts, and 38 each of bounded sums of fractions and of whole numbers."""
    for noise, settings in _COUNT_SETTINGS.items():
        for dataset, rows in _COUNTS.items():
            for setting, (epsilon, delta, partitions, added, tolerance) in settings.items():
                yield Case(
                    file="count", name=f"{noise} noise, {dataset}, {setting}", epsilon=epsilon, delta=delta,
                    tested_delta=delta, partitions=partitions, rows=rows, extra=(added,), tolerance=tolerance,
                    granularity=1.0,
                )  # fmt: skip
    yield from _sum_cases(whole=False)
    yield from _sum_cases(whole=True)


# Mechanisms of PyDP on rows.

ONE_USER: Final = UserLevel(0)
"""Neighbours: all rows of one user, the first entry of a row."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Repeated:
    """A function of PyDP, called once for each run with its own source of randomness.

    `prepare` maps the values of a dataset to a function that returns one output.
    """

    name: str
    prepare: Callable[[list[float]], Callable[[], Any]] = field(repr=False)
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return self.name

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        draw = self.prepare([value for _, value in dataset])
        return np.array([draw() for _ in range(size)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Whether each output differs from `origin` by at least `least` in the direction of `sign`, shape (size,)."""

    mechanism: Repeated
    origin: float
    sign: float
    least: float
    adjacency: UserLevel = ONE_USER

    def __str__(self) -> str:
        return str(self.mechanism)

    def sample(self, dataset: list[Row], size: int, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
        outputs = self.mechanism.sample(dataset, size, rng)
        return np.asarray((outputs - self.origin) * self.sign >= self.least)


def released(case: Case, share: float = 1.0) -> Repeated:
    """Return PyDP's aggregate with a share of its noise, or its noise on the exact answer.

    PyDP's aggregates have Laplace noise only, and count rows one by one, too slowly for the large counts.
    """
    if case.is_laplace and sum(case.rows) <= 10**6:
        kind = "Count" if case.is_count else "BoundedSum"
        number = int if case.is_whole else float
        limits = {"lower_bound": number(case.lower), "upper_bound": number(case.upper), "dtype": number.__name__}
        options = {"epsilon": case.epsilon / share, "l0_sensitivity": case.partitions}
        aggregate = getattr(import_module("pydp.algorithms.laplacian"), kind)(
            **options, **({} if case.is_count else limits)
        )

        def aggregated(values: list[float]) -> Callable[[], Any]:
            rows = [1] * int(sum(values)) if case.is_count else [number(value) for value in values]
            return lambda: aggregate.quick_result(rows)

        return Repeated(name=f"PyDP {kind}", prepare=aggregated)
    library = import_module("pydp.algorithms.numerical_mechanisms")
    if case.is_laplace:
        noise = library.LaplaceMechanism(case.epsilon / share, case.partitions * case.change)
    else:
        noise = library.GaussianMechanism(case.epsilon, case.delta, share * math.sqrt(case.partitions) * case.change)

    def noisy(values: list[float]) -> Callable[[], Any]:
        answer = case.answer(list(enumerate(values)))
        exact = int(answer) if case.is_whole else answer
        return lambda: noise.add_noise(exact)

    return Repeated(name=f"PyDP {type(noise).__name__} on the {'count' if case.is_count else 'sum'}", prepare=noisy)


# The audits of a case.

VARIANT_SHARE: Final = 0.95
"""Share of the noise of a faulty variant."""
# Probability, as planned, with which the audit of a variant refutes it. Audits of Laplace noise have more: they draw
# more often on the dataset on which the event is rare, which the plan does not count on.
_LAPLACE_POWER, _GAUSSIAN_POWER = 0.99, 0.9999
_LOSS, _LOSS_OF_MANY, _MU = 2.2, 1.1, 2.0  # losses and μ of all users for which few runs are enough
_MANY: Final = 25  # partitions from which the rows of several users take long to count
_LIKELY: Final = 0.15  # probability of the event on y, for Gaussian noise
_RELEASE_RUNS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audited:
    """A mechanism, a pair that `users` users differ in, the claim for one, and the runs."""

    mechanism: Repeated | Counts
    pair: Pair
    users: int = 1
    claim: Claim
    runs: int

    @property
    def claim_in_words(self) -> str:
        return f"{self.claim}, {self.users} users" if self.users > 1 else str(self.claim)

    def audit(self, *, alpha: float, seed: int, runs: int | None = None) -> AuditResult:
        """Audit by values, since low bits are a question of their own."""
        options: dict[str, Any] = {"claim": self.claim, "distance": self.users, "alpha": alpha, "seed": seed}
        options |= {"runs": self.runs if runs is None else runs, "floating_point": "ignore", "jobs": 1}
        result: AuditResult = check(self.mechanism, *self.pair, name=str(self.mechanism), **options)
        return result


def release(case: Case) -> Audited:
    """Return the release of a case on the pair of the file."""
    return Audited(mechanism=released(case), pair=case.pair(), claim=case.claim, runs=_RELEASE_RUNS)


def noise(case: Case, *, alpha: float, share: float = 1.0) -> Audited:
    """Return the noise of a case, with this share of it, and the runs that find one with `VARIANT_SHARE` of it."""
    claim, users, number, tightness = _users_of(case)
    x, _ = case.pair()
    y = [*x, *_of_users(case, len(x), users, number)]
    origin, other = case.answer(x), case.answer(y)
    sign = math.copysign(1.0, origin - other)
    moved = abs(other - origin)
    if case.is_laplace:
        least = 0.5 if case.is_whole else 0.0  # a rounded output that equals the exact answer favours neither
        q, power = 0.5 * math.exp(-(least + moved) / (VARIANT_SHARE * case.scale)), _LAPLACE_POWER
    else:
        q, power = _LIKELY, _GAUSSIAN_POWER
        least = case.scale * -float(ndtri(_LIKELY)) - moved
        least = math.ceil(least) - 0.5 if case.is_whole else least
    composed = claim if users == 1 else GroupClaim(claim, users)
    excess = claim.parameter * tightness / VARIANT_SHARE - claim.parameter
    runs = with_pilot(runs_needed(composed, q, excess=excess, power=power, alpha=alpha), q)
    event = Counts(mechanism=released(case, share), origin=origin, sign=sign, least=least)
    return Audited(mechanism=event, pair=(x, y), users=users, claim=claim, runs=runs)


def _users_of(case: Case) -> tuple[PureDP | GaussianDP, int, int, float]:
    """Return the claim of the noise for one user, a number of users and their values for which few runs are enough.

    Each user may add as many values to one partition as there are partitions under Laplace noise, and the root of it
    under Gaussian noise. The last number is the whole number of values as a share of what all users may add.
    """
    if case.is_laplace:
        users = max(1, round((_LOSS_OF_MANY if case.partitions >= _MANY else _LOSS) / case.epsilon))
        return PureDP(case.epsilon), users, users * case.partitions, 1.0
    claim = GaussianDP(1 / analytic_gaussian_scale(case.epsilon, case.delta))
    each, about = math.sqrt(case.partitions), max(1, round(_MU / claim.parameter))

    def whole(users: int) -> int:
        return math.floor(users * each * (1 + 1e-12))

    near = range(max(1, about * 3 // 5), about * 8 // 5 + 1)
    users = max(near, key=lambda users: (round(whole(users) / (users * each), 3), -abs(users - about)))
    return claim, users, whole(users), whole(users) / (users * each)


def _of_users(case: Case, first: int, users: int, number: int) -> list[Row]:
    """Return rows with the values spread over the users; of counts, one row for each user, with their number."""
    owners = [first + place * users // number for place in range(number)]
    if case.is_count:
        return [(first + user, float(owners.count(first + user))) for user in range(users)]
    return [(owner, case.extra[0]) for owner in owners]


# The statistical test of google/differential-privacy, on outputs of a known distribution: which noise does it let pass?
#
# A vote compares histograms of outputs on the two datasets. It takes the differences between the frequencies on one
# dataset and e^ε times those on the other, and adds the positive ones; the sum must be below δ + tolerance, in both
# directions. The sampling error of the frequencies makes the sum positive even if the claim holds; the tolerance leaves
# room for it.

_STEPS: Final = 9
_SHORTEST: Final = 0.1
"""Share of the noise at which the search begins; a case that lets this much pass has it as its limit."""


def passes(case: Case, share: float, *, seed: int) -> bool:
    """Return whether the majority of nine votes accepts the case with this share of the noise."""
    p, q = (_in_cells(case, rows, share) for rows in case.pair())
    rng, limit, ratio = np.random.default_rng(seed), case.tested_delta + case.tolerance, math.exp(case.epsilon)
    accepted = rejected = 0
    while 2 * max(accepted, rejected) < VOTES:
        x, y = (rng.multinomial(SAMPLES, cells) / SAMPLES for cells in (p, q))
        found = max(float(np.maximum(x - ratio * y, 0.0).sum()), float(np.maximum(y - ratio * x, 0.0).sum()))
        accepted, rejected = accepted + (found < limit), rejected + (found >= limit)
    return accepted > rejected


def least_noise_that_passes(case: Case, *, seed: int) -> float:
    """Return the least share of the noise that the test accepts, by bisection to .002."""
    low, high = _SHORTEST, 1.0
    if passes(case, low, seed=seed):
        return low
    for step in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if passes(case, middle, seed=seed + 1 + step) else (middle, high)
    return high


def _in_cells(case: Case, rows: list[Row], share: float) -> npt.NDArray[np.float64]:
    """Return the probabilities of the test's cells, multiples of the granularity; counts are from the first's count.

    The cells reach 25 scales of Laplace noise or 8 of Gaussian noise beyond the exact answers.
    """
    first = list(enumerate(case.rows))
    base = case.answer(first) if case.is_count else 0.0
    centre, answer = case.answer(first) - base, case.answer(rows) - base
    kind, scales = (LaplaceDistribution, 25.0) if case.is_laplace else (GaussianDistribution, 8.0)
    distribution = kind(answer, share * case.scale)
    added = sum(case.extra) if case.is_count else case.change * len(case.extra)
    reach = math.ceil((scales * distribution.scale + added) / case.granularity)
    edges = (round(centre / case.granularity) + np.arange(-reach, reach) + 0.5) * case.granularity
    cells = np.maximum(np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]])), 0.0)
    return np.asarray(cells / cells.sum())


# The table: each case with its audits, and what Google's tests need for the same.

ALPHA: Final = 1e-5 / 550
"""Alpha of each audit; all audits of Google's nine files, of which these are three, would be 550."""
_CASES: Final = {case.key: case for case in cases()}
_QUICK_RUNS: Final = 2_000
_TIMED: Final = 5_000  # draws whose time is measured


def _cells(effort: Effort, seeds: Seeds, key: str) -> Figures:
    case, used = _CASES[key], seeds(4)
    audits = (release(case), noise(case, alpha=ALPHA), noise(case, alpha=ALPHA, share=VARIANT_SHARE))
    found, seconds = [], []
    for audited, seed in zip(audits, used, strict=False):
        started = time.process_time()
        found.append(audited.audit(alpha=ALPHA, seed=seed, runs=effort.either(_QUICK_RUNS, audited.runs)))
        seconds.append(time.process_time() - started)
    of_release, right, variant = found
    targets = [at_most("refuted", of_release.is_refuted + right.is_refuted, 0)]
    if not effort.is_quick:
        targets.append(at_least("refuted variants", variant.is_refuted, 1))
    return {
        "file": case.file,
        "case": case.name,
        "claim": str(case.claim),
        "on": str(audits[0].mechanism),
        "release": release_of("pydp"),
        "runs": of_release.runs,
        "verdict": of_release.verdict.value,
        "bound": of_release.bound,
        "min_detectable_excess": of_release.min_detectable_excess,
        "noise_on": str(audits[1].mechanism),
        "noise_claim": audits[1].claim_in_words,
        "noise_runs": right.runs,
        "right": right.verdict.value,
        "right_bound": right.bound,
        "variant": variant.verdict.value,
        "variant_bound": variant.bound,
        "seconds": seconds[0] + seconds[1],
        "variant_seconds": seconds[2],
        "their_samples": VOTES * SAMPLES,
        "their_seconds": 2 * VOTES * SAMPLES * _seconds_of_a_draw(audits[0]),
        "they_pass_variant": None if effort.is_quick else ("no", "yes")[passes(case, VARIANT_SHARE, seed=used[3])],
        "they_pass": None if effort.is_quick else least_noise_that_passes(case, seed=used[3]),
    }, targets


def _seconds_of_a_draw(audited: Audited) -> float:
    """Return the core-seconds of one output, the mean over the datasets."""
    rng, started = np.random.default_rng(0), time.process_time()
    for dataset in audited.pair:
        audited.mechanism.sample(dataset, _TIMED, rng)
    return (time.process_time() - started) / (2 * _TIMED)


TABLES = (
    Table(
        "google", 46, by_name(_CASES), _cells, quick=("count: Laplace noise, empty count, large epsilon",),
        library=lambda key: "pydp",
    ),
)  # fmt: skip
