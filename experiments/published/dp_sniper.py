"""The 20 mechanisms on which DP-Sniper was measured, and StatDP beside it.

The mechanisms take query answers as the dataset. Where a mechanism has an `epsilon`, the suite runs it at 0.1.

References
----------
Bichsel, Steffen, Bogunovic & Vechev (2021), DP-Sniper: black-box discovery of differential privacy violations using
classifiers, IEEE Symposium on Security and Privacy; Ding, Wang, Wang, Zhang & Kifer (2018), Detecting violations of
differential privacy (StatDP); Lyu, Su & Li (2017), Understanding the sparse vector technique for differential privacy
(its algorithms 1 to 6 are the sparse vectors here).
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from ...audit.claims.pure_approx_gaussian import PureDP
from ...audit.datasets.adjacency import Local, Within
from ...audit.datasets.domains import Answers, Values
from ...mechanisms import LaplaceMechanism, NoisyThreshold, ReportNoisyMax, SparseVector, composed
from ...mechanisms.faulty import (
    SparseVectorReleasingValue,
    SparseVectorUnscaledNoise,
    SparseVectorWithoutCutoff,
    SparseVectorWithoutQueryNoise,
)
from ...mechanisms.faulty.selection.faulty_noisy_max import LargestNoisyCount, MaximumLaplaceLaw
from ...mechanisms.queries import identity
from .entry import Entry
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
"""Confident lower bounds on epsilon, at confidence .9, from the logs in DP-Sniper's repository.

Of DP-Sniper with logistic regression, DP-Sniper with a neural network, and two runs of StatDP by the same authors;
None where StatDP gave no result.
"""

_CLAIM: Final = PureDP(0.1)
_ONE_MOVES: Final = Within("l1")
_ALL_MOVE: Final = Within("linf")


def entries() -> list[Entry]:
    """The suite, in its order, each mechanism on that of the suite's pairs where its largest loss is largest.

    Where several are, on the one that shows in the fewest runs.
    """
    groups = (_of_few_answers(), _noisy_maxima(), _sparse_vectors(), _rappor(), _of_many_parts())
    by_name = {entry.name: entry for group in groups for entry in group}
    return [by_name[name] for name in PUBLISHED]


def published_bound(name: str, exact: float) -> float:
    """The largest published bound that is not above the exact value: one above it did not hold."""
    return max(bound for bound in PUBLISHED[name] if bound is not None and bound <= exact)


def _entry(name: str, mechanism: Any, **others: Any) -> Entry:
    """With the claim of the mechanism and the numbers that follow, unless given."""
    exact = _largest_loss(mechanism.law(others["x"]), mechanism.law(others["y"]))
    defaults = {"claim": mechanism.claim, "is_broken": False, "exact": exact}
    return Entry(name=name, mechanism=mechanism, published=published_bound(name, exact), **(defaults | others))


def _largest_loss(law_x: Any, law_y: Any) -> float:
    """The supremum of the log-likelihood ratio of x to y."""
    if isinstance(law_x, MaximumLaplaceLaw):
        # A ratio of log-concave distribution functions falls where all answers of y are as large as those of x, and is
        # constant below them all.
        below_all = min(*law_x.locations, *law_y.locations) - law_x.scale
        return float(law_x.log_density(below_all) - law_y.log_density(below_all))
    return float(law_x.epsilon_from(law_y, 0.0))


def _of_few_answers() -> list[Entry]:
    one_number: dict[str, Any] = {"adjacency": _ALL_MOVE, "domain": Answers()}
    one_of_five: dict[str, Any] = {"adjacency": _ONE_MOVES, "domain": Answers(5), "x": (1.0,) * 5}
    one_of_five["y"] = (0.0, 1.0, 1.0, 1.0, 1.0)
    return [
        _entry("LaplaceMechanism", LaplaceMechanism(0.1), **one_number, x=1.0, y=0.0),
        _entry(
            "TruncatedGeometricMechanism",
            TruncatedGeometric(0.1),
            is_broken=True,
            adjacency=_ALL_MOVE,
            domain=Answers(None, 0, 5, integer=True),
            x=2,
            y=1,
            note="the number of bits is from the natural logarithm, and ln(9/8) is what holds",
        ),
        _entry("NoisyHist1", NoisyAnswers(_CLAIM, scale=10.0), **one_of_five),
        _entry(
            "NoisyHist2",
            NoisyAnswers(_CLAIM, scale=0.1),
            is_broken=True,
            **one_of_five,
            note="noise of scale epsilon instead of 1/epsilon",
        ),
    ]


def _noisy_maxima() -> list[Entry]:
    of_five: dict[str, Any] = {"adjacency": _ALL_MOVE, "domain": Answers(5), "x": (1.0,) * 5}
    one_falls, all_rise = (0.0, 2.0, 2.0, 2.0, 2.0), (2.0,) * 5
    value = LargestNoisyCount(20.0, _CLAIM, identity, 5)
    exponential_value = LargestExponential(_CLAIM, scale=20.0)
    return [
        _entry("ReportNoisyMax1", ReportNoisyMax(0.1), **of_five, y=one_falls),
        _entry("ReportNoisyMax2", ReportNoisyMax(0.1, noise="exponential"), **of_five, y=one_falls),
        _entry(
            "ReportNoisyMax3", value, is_broken=True, **of_five, y=all_rise, note="the value is released: 5/2 epsilon"
        ),
        _entry(
            "ReportNoisyMax4",
            exponential_value,
            is_broken=True,
            **of_five,
            y=all_rise,
            note="the value is released, and bounds all answers; rare: outputs below 2 have probability 3e-7",
        ),
    ]


def _sparse_vectors() -> list[Entry]:
    half_rise = (2.0,) * 5 + (0.0,) * 5
    of_ten: dict[str, Any] = {"adjacency": _ALL_MOVE, "domain": Answers(10), "x": (1.0,) * 10, "y": half_rise}
    broken: dict[str, Any] = of_ten | {"is_broken": True}
    numbered = "SparseVectorTechnique{}".format
    with_values = NoisyThreshold(_CLAIM, 30.0, 120.0, cutoff=2, threshold=1.0, release_value=True, value_scale=60.0)
    return [
        _entry(numbered(1), SparseVector(0.1, cutoff=1, threshold=0.5), **of_ten),
        _entry(numbered(2), SparseVector(0.1, cutoff=1, threshold=1.0, refresh=True), **of_ten),
        _entry(
            numbered(3),
            SparseVectorReleasingValue(0.1, threshold=1.0),
            **broken | {"y": (2.0,) * 10},
            note="the value that was compared is released; shows in a last value far below the answers",
        ),
        _entry(
            numbered(4),
            SparseVectorUnscaledNoise(0.1, threshold=1.0),
            **broken,
            note="too little noise on the answers: (1 + 6)/4 epsilon in the limit of many",
        ),
        _entry(
            numbered(5),
            SparseVectorWithoutQueryNoise(0.1, threshold=1.0),
            **broken | {"x": half_rise, "y": (1.0,) * 10},
            note="no noise on the answers",
        ),
        _entry(numbered(6), SparseVectorWithoutCutoff(0.1, threshold=1.0), **broken, note="pays for one answer of ten"),
        _entry("NumericalSVT", with_values, **of_ten),
        _entry(
            "SVT34Parallel",
            SideBySide(
                (
                    SparseVectorReleasingValue(0.1, threshold=1.0, cutoff=2),
                    SparseVectorUnscaledNoise(0.1, threshold=1.0, cutoff=2),
                )
            ),
            **broken,
            note="the third and the fourth side by side, each said to be 0.1-DP",
        ),
    ]


def _rappor() -> list[Entry]:
    whole: dict[str, Any] = {"adjacency": Local(), "domain": Values((0, 1, 2)), "x": 1, "y": 0}
    note = "0 and 1 differ in 6 bits, other values in up to 8"
    return [
        _entry("Rappor", Rappor(f=0.75), **whole, note=note),
        _entry("OneTimeRappor", Rappor(f=0.95, report_zero=0.0, report_one=1.0), **whole, note=note),
    ]


def _of_many_parts() -> list[Entry]:
    twenty = composed(LaplaceMechanism(0.005), 20)
    ten_sums = NoisyAnswers(_CLAIM, scale=10.0, running_sums=True)
    return [
        _entry("LaplaceParallel", twenty, adjacency=_ALL_MOVE, domain=Answers(), x=1.0, y=0.0),
        _entry(
            "PrefixSum",
            ten_sums,
            is_broken=True,
            adjacency=_ALL_MOVE,
            domain=Answers(10),
            x=(1.0,) * 10,
            y=(0.0,) * 10,
            note="all ten answers move; where one does, 0.1 holds",
        ),
    ]
