"""The 20 mechanisms of the evaluation of DP-Sniper, which also measured StatDP.

The dataset of a mechanism is a list of query answers. Mechanisms with a parameter `epsilon` run at 0.1.

References
----------
Bichsel, Steffen, Bogunovic & Vechev (2021), DP-Sniper: black-box discovery of differential privacy violations using
classifiers, IEEE Symposium on Security and Privacy; Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of
differential privacy (StatDP); Lyu, Su & Li (2017), Understanding the sparse vector technique for differential privacy
(its algorithms 1 to 6 are the sparse vectors here).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ...audit.claims.claim import Claim, PureDP
from ...audit.datasets.adjacency import Adjacency, Local, Within
from ...audit.datasets.domains import Answers, Domain, Values
from ...mechanisms import (
    Distribution,
    FiniteDistribution,
    LaplaceMechanism,
    NoisyThreshold,
    ProductDistribution,
    ReportNoisyMax,
    SparseVector,
    composed,
)
from ...mechanisms.composition import total_budget
from ...mechanisms.distributions.divergences import PureMechanism, ReferenceMechanism, check_rule
from ...mechanisms.faulty import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from ...mechanisms.faulty.noise import LaplaceOfScale
from ...mechanisms.faulty.selection import LargestNoisyCount, MaximumLaplaceDistribution
from ...mechanisms.local.frequency_oracles import bit_distribution, log_odds_of_one
from ...mechanisms.noise_samplers import Floats, Integers
from ...mechanisms.queries import identity, whole_answer
from .entry import Entry, entry
from .statdp import LargestExponential, RunningSums

# RAPPOR: the noisy bits of the Bloom filter of one person's value.


@dataclass(frozen=True, slots=True)
class Rappor:
    """The bits of the Bloom filter of a value, each reported by randomised response: h ln(odds ratio)-DP.

    The permanent step keeps a bit with probability 1 − f and otherwise replaces it by a fair coin. The report is 1 with
    probability `report_one` after a 1 and `report_zero` after a 0; 0 and 1 report the permanent bits unchanged
    (one-time RAPPOR). Every run is the first report of a person, so that the two steps are equivalent to one coin for
    each bit. A value sets at most h bits, so two values differ in at most 2h bits, h in each direction; one bit of each
    direction together costs the log odds ratio of a reported 1.

    The dataset is the value, an integer. Its i-th hash is MurmurHash3 of its decimal digits with seed i, as a signed
    32-bit integer, modulo the number of bits.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR: randomized aggregatable privacy-preserving ordinal response, Section
    3 (the claim is the epsilon of one report).
    """

    f: float
    report_zero: float = 0.45
    report_one: float = 0.55
    n_bits: int = 20
    n_hashes: int = 4

    def __str__(self) -> str:
        steps = f"f={self.f:g}, reports {self.report_zero:g} and {self.report_one:g}"
        return f"Rappor({steps}, {self.n_hashes} of {self.n_bits} bits)"

    @property
    def epsilon(self) -> float:
        """h times the log odds ratio of a reported 1 after a 1 and after a 0: the epsilon of one report."""
        return self.n_hashes * log_odds_of_one((self.probability_of_one(True), self.probability_of_one(False)))

    @property
    def claim(self) -> PureDP:
        return PureDP(self.epsilon)

    def probability_of_one(self, bit: bool) -> float:
        """Return the probability of reporting a 1 for this bit."""
        permanent = self.f / 2 + (1 - self.f) * bit
        return permanent * self.report_one + (1 - permanent) * self.report_zero

    def set_bits(self, value: int) -> tuple[int, ...]:
        """Return the positions of the 1s in the Bloom filter of the value, ascending."""
        from sklearn.utils import murmurhash3_32  # takes long to import

        hashes = (murmurhash3_32(str(value), seed) for seed in range(self.n_hashes))
        return tuple(sorted({int(number) % self.n_bits for number in hashes}))

    def distribution(self, dataset: Any) -> ProductDistribution:
        """Return the exact distribution of the reported bits."""
        return ProductDistribution(tuple(map(bit_distribution, self._probabilities(dataset))))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
        """Draw `size` independent reports of 0 and 1, shape (size, n_bits), uint8."""
        return (rng.random((size, self.n_bits)) < self._probabilities(dataset)).astype(np.uint8)

    def _probabilities(self, dataset: Any) -> list[float]:
        """Return the probability of a 1 at each position."""
        bits = self.set_bits(whole_answer(identity, dataset))
        return [self.probability_of_one(place in bits) for place in range(self.n_bits)]


# Independent mechanisms on one dataset, each with a row as its output.


@dataclass(frozen=True, slots=True)
class SideBySideDistribution(Distribution):
    """The joint distribution of independent rows of the same width, whose coordinates may be dependent."""

    parts: tuple[Distribution, ...]

    def log_density(self, outputs: npt.ArrayLike) -> Floats:
        """Return the log-density of each row of `outputs`, shape (size, n_parts * width)."""
        blocks = np.split(np.asarray(outputs, dtype=np.float64), len(self.parts), axis=1)
        return np.asarray(
            sum(distribution.log_density(block) for distribution, block in zip(self.parts, blocks, strict=True))
        )

    def is_comparable(self, other: Self) -> bool:
        return len(self.parts) == len(other.parts) and all(
            type(one) is type(two) and one.is_comparable(two) for one, two in zip(self.parts, other.parts, strict=True)
        )

    def epsilon_from(self, other: Self, delta: float) -> float:
        """Return the sum of the largest losses, at delta 0 only."""
        check_rule("delta", delta, delta == 0, "delta=0, where the largest losses add up")
        return sum(one.epsilon_from(two, 0.0) for one, two in zip(self.parts, other.parts, strict=True))


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Outputs of several mechanisms, with dependent coordinates, side by side in one row; their claims add up."""

    parts: tuple[ReferenceMechanism, ...]

    def __str__(self) -> str:
        return f"SideBySide({len(self.parts)} mechanisms, {self.claim})"

    @property
    def claim(self) -> Claim:
        return total_budget(part.claim for part in self.parts)

    def distribution(self, dataset: Any) -> SideBySideDistribution:
        return SideBySideDistribution(tuple(part.distribution(dataset) for part in self.parts))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Floats:
        """Draw `size` independent rows, shape (size, n_parts * width), float64."""
        rows: Floats = np.concatenate([part.sample(dataset, size, rng) for part in self.parts], axis=1, dtype=float)
        return rows


# Geometric noise on a count from 0 to n, drawn in integer arithmetic.


@dataclass(frozen=True, slots=True)
class TruncatedGeometric(PureMechanism):
    """A count with two-sided geometric noise of ratio 2ᵏ/(2ᵏ + 1), clipped to [0, n]: ln(1 + 2⁻ᵏ)-DP.

    The suite sets k = ⌈ln(2/epsilon)⌉, although the claim of `epsilon` needs at least log₂(1/(e^epsilon − 1)); the
    claim is therefore wrong at epsilon 0.1, for example. All probabilities are exact multiples of 1/d for an integer d.

    References
    ----------
    Balcer & Vadhan (2018), Differential privacy on finite computers.
    """

    n: int = 5

    @property
    def k(self) -> int:
        return max(0, math.ceil(math.log(2 / self.epsilon)))

    @property
    def denominator(self) -> int:
        """The common denominator d of all probabilities."""
        step: int = 2**self.k
        return (2 * step + 1) * int((step + 1) ** (self.n - 1))

    @property
    def loss(self) -> float:
        """The true epsilon, in nats."""
        return math.log1p(2.0**-self.k)

    def cumulative(self, count: int) -> list[int]:
        """Return d times Pr[output ≤ z] for z = 0 … n."""
        d, step, base = self.denominator, 2**self.k, 2**self.k + 1
        below = [step ** (count - z) * base ** (self.n - (count - z)) for z in range(count)]
        above = [d - step ** (z - count + 1) * base ** (self.n - 1 - (z - count)) for z in range(count, self.n)]
        return [*below, *above, d]

    def distribution(self, dataset: Any) -> FiniteDistribution:
        """Return the exact distribution of the output."""
        weights = np.diff(self.cumulative(whole_answer(identity, dataset)), prepend=0)
        return FiniteDistribution(tuple((np.log(weights) - math.log(self.denominator)).tolist()))

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Integers:
        """Draw `size` independent outputs in range(n + 1), shape (size,), int64."""
        numbers = rng.integers(1, self.denominator, size, endpoint=True)
        return np.searchsorted(self.cumulative(whole_answer(identity, dataset)), numbers).astype(np.int64, copy=False)


Bounds: TypeAlias = tuple[float | None, float | None, float | None, float | None]

PUBLISHED: Final[dict[str, Bounds]] = {
    "LaplaceMechanism": (0.0968, 0.0976, 0.0998, 0.0996),
    "TruncatedGeometricMechanism": (0.1156, 0.1155, 0.1159, 0.1169),
    "NoisyHist1": (0.0978, 0.0977, 0.0828, 0.0994),
    "NoisyHist2": (4.6020, 4.6015, 9.7169, 10.0022),
    "ReportNoisyMax1": (0.0923, 0.0925, 0.0920, 0.0921),
    "ReportNoisyMax2": (0.0975, 0.0979, 0.0996, 0.0997),
    "ReportNoisyMax3": (0.2478, 0.2488, 0.1991, 0.1961),
    "ReportNoisyMax4": (0.3463, 0.3534, 0.1960, 0.1988),
    "SparseVectorTechnique1": (0.0858, 0.0858, 0.0298, 0.0298),
    "SparseVectorTechnique2": (0.0859, 0.0852, 0.0316, 0.0407),
    "SparseVectorTechnique3": (0.1716, 0.1822, 0.0231, 0.1793),
    "SparseVectorTechnique4": (0.1687, 0.1696, 0.1709, 0.1719),
    "SparseVectorTechnique5": (1.7612, 1.7610, 14.3143, 14.3143),
    "SparseVectorTechnique6": (0.2720, 0.2698, 0.3220, 0.3200),
    "Rappor": (0.2930, 0.3008, 0.2416, 0.0243),
    "OneTimeRappor": (0.5978, 0.5999, 0.4706, 0.0602),
    "LaplaceParallel": (0.0350, 0.0299, 0.0126, 0.0135),
    "SVT34Parallel": (0.2610, 0.2616, 0.1371, 0.1963),
    "PrefixSum": (0.5040, 0.5774, 0.3516, 0.3446),
    "NumericalSVT": (0.0343, 0.0345, None, None),
}
"""Lower bounds on epsilon at confidence .9, from the logs in DP-Sniper's repository.

The columns are DP-Sniper with logistic regression, DP-Sniper with a neural network, and two runs of StatDP by the same
authors; None if StatDP gave no result.
"""

_CLAIM: Final = PureDP(0.1)
_ONE_MOVES: Final = Within("l1")
_ALL_MOVE: Final = Within("linf")


@cache
def entries() -> tuple[Entry, ...]:
    """Return the suite, each mechanism on the pair with the largest loss; of equal ones, that with the fewest runs."""
    groups = (_of_few_answers(), _noisy_maxima(), _sparse_vectors(), _rappor(), _of_many_parts())
    by_name = {each.name: each for group in groups for each in group}
    return tuple(by_name[name] for name in PUBLISHED)


def published_bound(name: str, exact: float) -> float:
    """Return the largest published bound that does not exceed the exact value."""
    return max(bound for bound in PUBLISHED[name] if bound is not None and bound <= exact)


def _entry(
    name: str, mechanism: Any, pair: tuple[Any, Any], domain: Domain, note: str = "", adjacency: Adjacency = _ALL_MOVE
) -> Entry:
    exact = _largest_loss(*(mechanism.distribution(dataset) for dataset in pair))
    published = published_bound(name, exact)
    return entry(name, mechanism, pair, adjacency, domain, note, exact=exact, published=published)


def _largest_loss(distribution_x: Any, distribution_y: Any) -> float:
    """Return the supremum of the log-likelihood ratio of x to y."""
    if isinstance(distribution_x, MaximumLaplaceDistribution):
        # A ratio of log-concave distribution functions decreases if no answer of y is smaller than that of x, and is
        # constant below all answers.
        below_all = min(*distribution_x.locations, *distribution_y.locations) - distribution_x.scale
        return float(distribution_x.log_density(below_all) - distribution_y.log_density(below_all))
    return float(distribution_x.epsilon_from(distribution_y, 0.0))


def _of_few_answers() -> list[Entry]:
    five, one_fewer = Answers(5), ((1.0,) * 5, (0.0, 1.0, 1.0, 1.0, 1.0))
    counts, histogram = Answers(None, 0, 5, integer=True), LaplaceOfScale(10.0, _CLAIM)
    bits = "number of bits from the natural logarithm, true epsilon ln(9/8)"
    inverted, scale = LaplaceOfScale(0.1, _CLAIM), "noise of scale epsilon instead of 1/epsilon"
    return [
        _entry("LaplaceMechanism", LaplaceMechanism(0.1), (1.0, 0.0), Answers()),
        _entry("TruncatedGeometricMechanism", TruncatedGeometric(0.1), (2, 1), counts, bits),
        _entry("NoisyHist1", histogram, one_fewer, five, adjacency=_ONE_MOVES),
        _entry("NoisyHist2", inverted, one_fewer, five, scale, adjacency=_ONE_MOVES),
    ]


def _noisy_maxima() -> list[Entry]:
    five, ones = Answers(5), (1.0,) * 5
    one_falls, all_rise = (ones, (0.0, 2.0, 2.0, 2.0, 2.0)), (ones, (2.0,) * 5)
    value, exponential = LargestNoisyCount(20.0, _CLAIM), LargestExponential(_CLAIM, scale=20.0)
    bound = "release of the value, a bound on all answers; rare event, outputs below 2 with probability 3e-7"
    return [
        _entry("ReportNoisyMax1", ReportNoisyMax(0.1), one_falls, five),
        _entry("ReportNoisyMax2", ReportNoisyMax(0.1, noise="exponential"), one_falls, five),
        _entry("ReportNoisyMax3", value, all_rise, five, "release of the value: 5/2 epsilon"),
        _entry("ReportNoisyMax4", exponential, all_rise, five, bound),
    ]


def _sparse_vectors() -> list[Entry]:
    ten, ones, half_rise = Answers(10), (1.0,) * 10, (2.0,) * 5 + (0.0,) * 5
    mixed, all_rise, ordered = (ones, half_rise), (ones, (2.0,) * 10), (half_rise, ones)
    plain = NoisyThreshold(_CLAIM, 30.0, 120.0, cutoff=2, threshold=1.0, release_value=True, value_scale=60.0)
    released, unscaled = (
        [kind(0.1, threshold=1.0, cutoff=cutoff) for cutoff in (1, 2)]
        for kind in (SparseVectorReleasingValue, SparseVectorUnscaledNoise)
    )
    silent, endless = (kind(0.1, threshold=1.0) for kind in (SparseVectorWithoutQueryNoise, SparseVectorWithoutCutoff))
    both, name = SideBySide((released[1], unscaled[1])), "SparseVectorTechnique"
    far, limit = "release of the compared value, visible far below the answers", "(1 + 6)/4 epsilon for many answers"
    return [
        _entry(f"{name}1", SparseVector(0.1, cutoff=1, threshold=0.5), mixed, ten),
        _entry(f"{name}2", SparseVector(0.1, cutoff=1, threshold=1.0, refresh=True), mixed, ten),
        _entry(f"{name}3", released[0], all_rise, ten, far),
        _entry(f"{name}4", unscaled[0], mixed, ten, f"too little noise on the answers: {limit}"),
        _entry(f"{name}5", silent, ordered, ten, "no noise on the answers"),
        _entry(f"{name}6", endless, mixed, ten, "ten answers, budget for one"),
        _entry("NumericalSVT", plain, mixed, ten),
        _entry("SVT34Parallel", both, mixed, ten, "variants 3 and 4 side by side, each with a claim of 0.1-DP"),
    ]


def _rappor() -> list[Entry]:
    values, pair, note = Values((0, 1, 2)), (1, 0), "6 different bits for 0 and 1, up to 8 for other values"
    one_time = Rappor(f=0.95, report_zero=0.0, report_one=1.0)
    return [
        _entry("Rappor", Rappor(f=0.75), pair, values, note, adjacency=Local()),
        _entry("OneTimeRappor", one_time, pair, values, note, adjacency=Local()),
    ]


def _of_many_parts() -> list[Entry]:
    twenty, sums = composed(LaplaceMechanism(0.005), 20), RunningSums(LaplaceOfScale(10.0, _CLAIM))
    all_fall, note = ((1.0,) * 10, (0.0,) * 10), "all ten answers changed; claim of 0.1 true for one changed answer"
    return [
        _entry("LaplaceParallel", twenty, (1.0, 0.0), Answers()),
        _entry("PrefixSum", sums, all_fall, Answers(10), note),
    ]
