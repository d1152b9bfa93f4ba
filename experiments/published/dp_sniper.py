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

from functools import cache
from typing import Any, Final, TypeAlias

from ...audit.claims.claim import PureDP
from ...audit.datasets.adjacency import Adjacency, Local, Within
from ...audit.datasets.domains import Answers, Domain, Values
from ...mechanisms import LaplaceMechanism, NoisyThreshold, ReportNoisyMax, SparseVector, composed
from ...mechanisms.faulty import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from ...mechanisms.faulty.selection.faulty_noisy_max import LargestNoisyCount, MaximumLaplaceLaw
from ...mechanisms.queries import identity
from .entry import Entry, entry
from .largest_exponential import LargestExponential
from .noisy_answers import NoisyAnswers
from .rappor import Rappor
from .side_by_side import SideBySide
from .truncated_geometric import TruncatedGeometric

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
    """Return the suite in its order, each mechanism on the pair of the suite with the largest loss.

    If several pairs have this loss, the pair that shows it in the fewest runs is used.
    """
    groups = (_of_few_answers(), _noisy_maxima(), _sparse_vectors(), _rappor(), _of_many_parts())
    by_name = {each.name: each for group in groups for each in group}
    return tuple(by_name[name] for name in PUBLISHED)


def published_bound(name: str, exact: float) -> float:
    """Return the largest published bound that does not exceed the exact value."""
    return max(bound for bound in PUBLISHED[name] if bound is not None and bound <= exact)


def _entry(
    name: str, mechanism: Any, pair: tuple[Any, Any], domain: Domain, note: str = "", adjacency: Adjacency = _ALL_MOVE
) -> Entry:
    exact = _largest_loss(*(mechanism.law(dataset) for dataset in pair))
    published = published_bound(name, exact)
    return entry(name, mechanism, pair, adjacency, domain, note, exact=exact, published=published)


def _largest_loss(law_x: Any, law_y: Any) -> float:
    """Return the supremum of the log-likelihood ratio of x to y."""
    if isinstance(law_x, MaximumLaplaceLaw):
        # A ratio of log-concave distribution functions decreases if no answer of y is smaller than that of x, and is
        # constant below all answers.
        below_all = min(*law_x.locations, *law_y.locations) - law_x.scale
        return float(law_x.log_density(below_all) - law_y.log_density(below_all))
    return float(law_x.epsilon_from(law_y, 0.0))


def _of_few_answers() -> list[Entry]:
    five, one_fewer = Answers(5), ((1.0,) * 5, (0.0, 1.0, 1.0, 1.0, 1.0))
    counts, histogram = Answers(None, 0, 5, integer=True), NoisyAnswers(_CLAIM, scale=10.0)
    bits = "number of bits from the natural logarithm, true epsilon ln(9/8)"
    inverted, scale = NoisyAnswers(_CLAIM, scale=0.1), "noise of scale epsilon instead of 1/epsilon"
    return [
        _entry("LaplaceMechanism", LaplaceMechanism(0.1), (1.0, 0.0), Answers()),
        _entry("TruncatedGeometricMechanism", TruncatedGeometric(0.1), (2, 1), counts, bits),
        _entry("NoisyHist1", histogram, one_fewer, five, adjacency=_ONE_MOVES),
        _entry("NoisyHist2", inverted, one_fewer, five, scale, adjacency=_ONE_MOVES),
    ]


def _noisy_maxima() -> list[Entry]:
    five, ones = Answers(5), (1.0,) * 5
    one_falls, all_rise = (ones, (0.0, 2.0, 2.0, 2.0, 2.0)), (ones, (2.0,) * 5)
    value, exponential = LargestNoisyCount(20.0, _CLAIM, identity, 5), LargestExponential(_CLAIM, scale=20.0)
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
    twenty, sums = composed(LaplaceMechanism(0.005), 20), NoisyAnswers(_CLAIM, scale=10.0, running_sums=True)
    all_fall, note = ((1.0,) * 10, (0.0,) * 10), "all ten answers changed; claim of 0.1 true for one changed answer"
    return [
        _entry("LaplaceParallel", twenty, (1.0, 0.0), Answers()),
        _entry("PrefixSum", sums, all_fall, Answers(10), note),
    ]
