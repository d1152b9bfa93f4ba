"""The catalogue of bugs in noise on a single answer: Laplace and geometric noise, by scale, shape and range."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

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
from .fault import Fault, FaultMaker, fault

_LAPLACE: Final[FaultMaker] = partial(fault, "laplace")
_GEOMETRIC: Final[FaultMaker] = partial(fault, "geometric")
_FLOATING: Final[FaultMaker] = partial(fault, "floating point")
_ROWS: Final = AddRemove()
_ANSWER: Final = Within("l1")
_ONES: Final = ([1.0] * 3, [1.0] * 2)
_BIT: Final = Rows(values=(0, 1))


def noise_faults() -> list[Fault]:
    """All of them."""
    return [*_scales(), *_shapes(), *_counts(), *_floating_point()]


def _scales() -> list[Fault]:
    count = LaplaceMechanism(0.5, query=len)
    on_count: dict[str, Any] = {"correct": count, "domain": Rows(values=(1.0,)), "runs": 10_000}
    return [
        _LAPLACE(
            "sensitivity-understated",
            UnderstatedSensitivityLaplace(0.5, query=total),
            ([1.0, 2.0], [1.0]),
            _ROWS,
            correct=LaplaceMechanism(0.5, 2.0, total),
            domain=Rows(high=2.0),
            cause="the sensitivity of a count, 1, is used for a sum of values up to 2",
            practice="code for a count is reused for a sum, or the clipping bound is changed in one place only",
            runs=10_000,
        ),
        _LAPLACE(
            "replace-half-sensitivity",
            LaplaceMechanism(0.5, query=total),
            ([1.0, 1.0], [1.0, -1.0]),
            Replace(),
            correct=LaplaceMechanism(0.5, 2.0, total),
            domain=Rows(low=-1.0),
            truth=LaplaceMechanism(1.0).claim,
            cause="the largest value, 1, for the sensitivity of a sum of values in [-1, 1] when a row is replaced",
            practice="add/remove and replace are confused; from -1 to 1 a row moves the sum by 2 (Dwork & Roth 2014)",
            runs=10_000,
        ),
        _LAPLACE(
            "scale-epsilon",
            InvertedScaleLaplace(0.5, query=len),
            _ONES,
            _ROWS,
            cause="the noise has scale epsilon instead of 1/epsilon",
            practice="the generator's scale is taken for the rate; at epsilon 1 no test can see it (Ding et al. 2018)",
            **on_count,
        ),
        _LAPLACE(
            "deviation-as-scale",
            DeviationAsScaleLaplace(0.5, query=len),
            _ONES,
            _ROWS,
            cause="the noise has standard deviation 1/epsilon instead of scale 1/epsilon",
            practice="noise is specified by its standard deviation, as normal noise is; Laplace's is sqrt(2) scales",
            **on_count | {"runs": 50_000},
        ),
        _LAPLACE(
            "best-of-draws",
            BestOfDraws(0.5, query=len),
            _ONES,
            _ROWS,
            cause="two noisy answers are drawn and the one nearer to the truth is released",
            practice="a release that looks too noisy is drawn again",
            **on_count,
        ),
    ]


def _shapes() -> list[Fault]:
    noise, pair = LaplaceMechanism(0.5), (0.0, 1.0)
    on_answer: dict[str, Any] = {"correct": noise, "domain": Answers(), "runs": 10_000}
    return [
        _LAPLACE(
            "inverse-cdf-wrong-letter",
            AnswerInTheBranchLaplace(0.5),
            (0.0, 0.5),
            _ANSWER,
            cause="one branch of the inverse CDF takes the logarithm of the answer for that of the uniform",
            practice="a misprinted formula is copied; the two letters look alike",
            exact=math.inf,
            **on_answer,
        ),
        _LAPLACE(
            "inverse-cdf-mixed-uniforms",
            MixedUniformsLaplace(0.5),
            pair,
            _ANSWER,
            cause="the inverse CDF mixes a uniform on (0, 1) with the same less a half",
            practice="a variable keeps its name while its range is shifted",
            **on_answer,
        ),
        _LAPLACE(
            "noise-cut-off",
            BoundedLaplace(0.5),
            pair,
            _ANSWER,
            cause="noise beyond three scales is drawn again, without a delta",
            practice="absurd results are kept from users; the output beyond one answer's reach gives the other away",
            exact=math.inf,
            **on_answer | {"runs": 20_000},
        ),
        _LAPLACE(
            "noise-one-sided",
            OneSidedLaplace(0.5),
            pair,
            _ANSWER,
            cause="the noise is never negative",
            practice="a count may not be understated, or an exponential is drawn and its sign forgotten",
            exact=math.inf,
            **on_answer,
        ),
        _LAPLACE(
            "redrawn-until-nonnegative",
            RedrawnUntilNonnegative(0.5),
            pair,
            _ANSWER,
            cause="a negative noisy count is drawn again, so the law is renormalised by the chance to be kept",
            practice="negative counts are impossible; setting them to 0 would have been free",
            exact=math.log(2 * math.exp(0.5) - 1),
            **on_answer | {"domain": Answers(integer=True), "runs": 100_000},
        ),
        _LAPLACE(
            "seed-from-the-data",
            SeededByTheData(0.5),
            _ONES,
            _ROWS,
            cause="the generator is seeded with a hash of the rows",
            practice="answers are cached or made sticky, so that averaging repeated answers gains nothing",
            exact=math.inf,
            **on_answer | {"correct": LaplaceMechanism(0.5, query=len), "domain": Rows(values=(1.0,))},
        ),
        _LAPLACE(
            "digits-of-the-answer",
            SignificantDigitsLaplace(0.5),
            ([1] * 9, [1] * 10),
            _ROWS,
            cause="the noisy count is rounded to a grid that depends on how many digits the exact one has",
            practice="two significant digits are those of the answer",
            exact=math.inf,
            **on_answer | {"correct": LaplaceMechanism(0.5, query=len), "domain": Rows(values=(1,), most=12)},
        ),
    ]


def _counts() -> list[Fault]:
    noise = GeometricMechanism(0.5)
    rows: tuple[list[int], list[int]] = ([0, 0, 1], [0, 0])
    return [
        _GEOMETRIC(
            "user-with-many-rows",
            PerRowGeometric(0.5, query=len),
            ([("Ann", 1), ("Bob", 2), ("Bob", 3)], [("Ann", 1)]),
            UserLevel(0),
            correct=GeometricMechanism(0.5, 2, len),
            cause="noise for one row, said to protect a person, who has two",
            practice="the unit of privacy is a person while the table has a row for each event",
            runs=10_000,
        ),
        _GEOMETRIC(
            "ratio-squared",
            SquaredRatioGeometric(0.5, query=len),
            _ONES,
            _ROWS,
            correct=GeometricMechanism(0.5, query=len),
            domain=Rows(values=(1.0,)),
            cause="noise of ratio e^(-2 epsilon)",
            practice="a factor 2 that belongs below the epsilon is written above it",
            runs=10_000,
        ),
        _GEOMETRIC(
            "noise-rounded-to-zero",
            TowardsZeroLaplace(0.5),
            (0, 1),
            _ANSWER,
            correct=noise,
            domain=Answers(integer=True),
            exact=0.5 + math.log(2),
            cause="Laplace noise is cut to its whole part before it is added, so 0 has twice its share",
            practice="int() rounds towards zero; or -0 is kept beside +0 (Canonne, Kamath & Steinke 2020, Algorithm 2)",
            runs=10_000,
        ),
        _GEOMETRIC(
            "redrawn-into-range",
            RedrawnIntoRange(0.5),
            ([0, 0], [0, 0, 1]),
            _ROWS,
            correct=RangedCount(0.5, 4, is_redrawn=False),
            domain=_BIT,
            cause="noise that leads out of a fixed range is drawn again instead of clamped",
            practice="truncated noise is renormalised, by a factor that depends on the count",
            runs=50_000,
        ),
        _GEOMETRIC(
            "clamped-to-the-rows",
            RangeOfTheRows(0.5),
            ([0, 0, 1], [0, 1]),
            _ROWS,
            correct=RangedCount(0.5, 4, is_redrawn=False),
            domain=_BIT,
            cause="the noisy count is clamped to the exact number of rows: a post-processing that looks at the data",
            practice="a result above the number of rows looks wrong",
            runs=10_000,
        ),
        _GEOMETRIC(
            "redrawn-to-the-rows",
            RangeOfTheRows(0.5, is_redrawn=True),
            rows,
            _ROWS,
            correct=RangedCount(0.5, 4, is_redrawn=False),
            domain=_BIT,
            cause="the noise is drawn again until the count is between 0 and the exact number of rows",
            practice="the range that a library asks for is taken from the data",
            runs=10_000,
        ),
    ]


def _floating_point() -> list[Fault]:
    noise, pair = LaplaceMechanism(1.0), (0.0, 1.0)
    normal = NaiveGaussian(1.0, 0.01)
    in_bits: dict[str, Any] = {"domain": Answers(), "runs": 20_000, "bits": True}
    return [
        _FLOATING(
            "uniform-of-few-bits",
            FewValuesLaplace(0.5),
            (0.0, 1.0),
            _ANSWER,
            correct=LaplaceMechanism(0.5),
            domain=Answers(),
            exact=math.inf,
            cause="the uniform number behind the noise has eight bits, so the noise takes 256 values",
            practice="rand() has 15 bits in many C libraries, single precision 24",
            runs=10_000,
        ),
        _FLOATING(
            "laplace-doubles",
            NaiveLaplace(1.0),
            pair,
            _ANSWER,
            correct=noise,
            cause="the sum of answer and Laplace noise is a double whose low bits tell the answer",
            practice="it is what textbooks print (Mironov 2012)",
            exact=math.inf,
            **in_bits,
        ),
        _FLOATING(
            "normal-doubles",
            normal,
            pair,
            Within("l2"),
            correct=normal.on_grid,
            cause="the sum of answer and normal noise is a double whose low bits tell the answer",
            practice="it is what textbooks print (Jin, McMurtry, Rubinstein & Ohrimenko 2022)",
            **in_bits,
        ),
        _FLOATING(
            "single-precision-noise",
            SinglePrecisionNoise(1.0),
            (0.1, 0.7),
            _ANSWER,
            correct=noise,
            cause="noise in single precision is added to a double",
            practice="noise comes from the graphics card; below its 24 bits the answer shows as it is",
            exact=math.inf,
            **in_bits,
        ),
    ]
