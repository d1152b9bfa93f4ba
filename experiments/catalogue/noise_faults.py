"""The catalogue of bugs in noise on a single answer: Laplace and geometric noise, by scale, shape and range."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ...audit.datasets.adjacency import AddRemove, Replace, UserLevel, Within
from ...audit.datasets.domains import Answers, Rows
from ...mechanisms import GeometricMechanism, LaplaceMechanism
from ...mechanisms.faulty import (
    AnswerInTheBranchLaplace,
    BestOfDraws,
    BoundedLaplace,
    DeviationAsScaleLaplace,
    FewValuesLaplace,
    InvertedScaleLaplace,
    MisprintedTableGeometric,
    MixedUniformsLaplace,
    NaiveGaussian,
    NaiveLaplace,
    OneSidedLaplace,
    PerRowGeometric,
    RangedCount,
    RangeOfTheRows,
    RedrawnIntoRange,
    RedrawnUntilNonnegative,
    SeededByTheData,
    SignificantDigitsLaplace,
    SinglePrecisionNoise,
    SquaredRatioGeometric,
    TowardsZeroLaplace,
    UnderstatedSensitivityLaplace,
)
from ...mechanisms.faulty.answers import total
from .fault import Fault, FaultMaker, NeighbouringPair, fault

_LAPLACE: Final[FaultMaker] = partial(fault, "laplace")
_GEOMETRIC: Final[FaultMaker] = partial(fault, "geometric")
_FLOATING: Final[FaultMaker] = partial(fault, "floating point")
_ROWS: Final = AddRemove()
_COUNT: Final = NeighbouringPair([1.0] * 3, [1.0] * 2, _ROWS, Rows(values=(1.0,)))
_ANSWER: Final = NeighbouringPair(0.0, 1.0, Within("l1"), Answers())


def noise_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_scales(), *_shapes(), *_counts(), *_floating_point()]


def _scales() -> list[Fault]:
    up_to_two = NeighbouringPair([1.0, 2.0], [1.0], _ROWS, Rows(high=2.0))
    count, sum_to_two = LaplaceMechanism(0.5, query=len), LaplaceMechanism(0.5, 2.0, total)
    return [
        _LAPLACE(
            "sensitivity-understated",
            UnderstatedSensitivityLaplace(0.5, query=total),
            up_to_two,
            correct=sum_to_two,
            cause="A sum of values up to 2 with the sensitivity of a count, 1: 2ε instead of ε",
        ),
        _LAPLACE(
            "replace-half-sensitivity",
            LaplaceMechanism(0.5, query=total),
            NeighbouringPair([1.0, 1.0], [1.0, -1.0], Replace(), Rows(low=-1.0)),
            correct=sum_to_two,
            truth=LaplaceMechanism(1.0).claim,
            cause="Sensitivity 1, the largest value, for a sum of values in [−1, 1] when a row is replaced",
            practice="Add/remove and replace are confused; from −1 to 1 a row moves the sum by 2 (Dwork & Roth 2014).",
        ),
        _LAPLACE("scale-epsilon", InvertedScaleLaplace(0.5, query=len), _COUNT, correct=count),
        _LAPLACE("deviation-as-scale", DeviationAsScaleLaplace(0.5, query=len), _COUNT, correct=count, runs=50_000),
        _LAPLACE(
            "best-of-draws",
            BestOfDraws(0.5, query=len),
            _COUNT,
            correct=count,
            cause="Two noisy answers drawn, and the one nearer to the truth released: 2ε instead of ε",
        ),
    ]


def _shapes() -> list[Fault]:
    noise, count = LaplaceMechanism(0.5), LaplaceMechanism(0.5, query=len)
    near = NeighbouringPair(0.0, 0.5, Within("l1"), Answers())
    whole = NeighbouringPair(0.0, 1.0, Within("l1"), Answers(integer=True))
    nine_ten = NeighbouringPair([1] * 9, [1] * 10, _ROWS, Rows(values=(1,), most=12))
    return [
        _LAPLACE("inverse-cdf-wrong-letter", AnswerInTheBranchLaplace(0.5), near, correct=noise, exact=math.inf),
        _LAPLACE("inverse-cdf-mixed-uniforms", MixedUniformsLaplace(0.5), _ANSWER, correct=noise),
        _LAPLACE(
            "noise-cut-off",
            BoundedLaplace(0.5),
            _ANSWER,
            correct=noise,
            exact=math.inf,
            runs=20_000,
            cause="Laplace noise redrawn until it is within three scales, without a δ: no finite ε",
        ),
        _LAPLACE("noise-one-sided", OneSidedLaplace(0.5), _ANSWER, correct=noise, exact=math.inf),
        _LAPLACE(
            "redrawn-until-nonnegative",
            RedrawnUntilNonnegative(0.5),
            whole,
            correct=noise,
            exact=math.log(2 * math.exp(0.5) - 1),
            runs=100_000,
        ),
        _LAPLACE("seed-from-the-data", SeededByTheData(0.5), _COUNT, correct=count, exact=math.inf),
        _LAPLACE("digits-of-the-answer", SignificantDigitsLaplace(0.5), nine_ten, correct=count, exact=math.inf),
    ]


def _counts() -> list[Fault]:
    count, in_range = GeometricMechanism(0.5, query=len), RangedCount(0.5, 4, is_redrawn=False)
    bits, whole = Rows(values=(0, 1)), NeighbouringPair(0, 1, Within("l1"), Answers(integer=True))
    user = NeighbouringPair([("Ann", 1), ("Bob", 2), ("Bob", 3)], [("Ann", 1)], UserLevel(0))
    one_more = NeighbouringPair([0, 0], [0, 0, 1], _ROWS, bits)
    zero_less = NeighbouringPair([0, 0, 1], [0, 1], _ROWS, bits)
    return [
        _GEOMETRIC(
            "user-with-many-rows",
            PerRowGeometric(0.5, query=len),
            user,
            correct=GeometricMechanism(0.5, 2, len),
            cause="A count with noise for one row, for users with up to two rows: 2ε at user level",
        ),
        _GEOMETRIC("ratio-squared", SquaredRatioGeometric(0.5, query=len), _COUNT, correct=count),
        _GEOMETRIC(
            "one-wrong-entry",
            MisprintedTableGeometric(0.5, 1.2, query=len),
            _COUNT,
            correct=count,
            exact=0.5 + math.log(1.2),
            runs=100_000,
        ),
        _GEOMETRIC(
            "noise-rounded-to-zero",
            TowardsZeroLaplace(0.5),
            whole,
            correct=GeometricMechanism(0.5),
            exact=0.5 + math.log(2),
        ),
        _GEOMETRIC(
            "redrawn-into-range",
            RedrawnIntoRange(0.5),
            one_more,
            correct=in_range,
            runs=50_000,
            cause="A count from 0 to 4 with geometric noise, redrawn instead of clamped while out of range: up to 2ε",
        ),
        _GEOMETRIC("clamped-to-the-rows", RangeOfTheRows(0.5), zero_less, correct=in_range),
        _GEOMETRIC(
            "redrawn-to-the-rows",
            RangeOfTheRows(0.5, is_redrawn=True),
            NeighbouringPair([0, 0, 1], [0, 0], _ROWS, bits),
            correct=in_range,
            cause="Noise redrawn until the count is between 0 and the exact number of rows",
            practice="The range that a library requires is taken from the data.",
        ),
    ]


def _floating_point() -> list[Fault]:
    noise, normal = LaplaceMechanism(1.0), NaiveGaussian(1.0, 0.01)
    euclidean = NeighbouringPair(0.0, 1.0, Within("l2"), Answers())
    fractions = NeighbouringPair(0.1, 0.7, Within("l1"), Answers())
    in_bits: FaultMaker = partial(_FLOATING, runs=20_000, bits=True)
    return [
        _FLOATING(
            "uniform-of-few-bits",
            FewValuesLaplace(0.5),
            _ANSWER,
            correct=LaplaceMechanism(0.5),
            exact=math.inf,
            cause="Laplace noise by the inverse CDF of a uniform number of eight bits, 256 values: no finite ε",
        ),
        in_bits("laplace-doubles", NaiveLaplace(1.0), _ANSWER, correct=noise, exact=math.inf),
        in_bits("normal-doubles", normal, euclidean, correct=normal.on_grid, bound_on="delta"),
        in_bits("single-precision-noise", SinglePrecisionNoise(1.0), fractions, correct=noise, exact=math.inf),
    ]
