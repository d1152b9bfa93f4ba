"""The catalogue of bugs in noise on a single answer: Laplace and geometric noise, by scale, shape and range."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ...audit.claims.claim import ApproxDP, GaussianDP, PureDP
from ...audit.claims.renyi import RenyiDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, UserLevel, Within
from ...audit.datasets.domains import Answers, Rows, Values
from ...mechanisms import (
    BinomialMechanism,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    Interval,
    LaplaceMechanism,
    LocalGaussianMechanism,
    VectorGaussianMechanism,
    faulty,
    gaussian_delta,
)
from ...mechanisms.faulty.calibration import GaussianOfScale
from ...mechanisms.faulty.flaw import GradientSum, total
from .fault import Fault, FaultMaker, NeighbouringPair, fault

# The catalogue of bugs in normal and binomial noise: calibration, accounting, and vectors of answers.

_NORMAL: Final[FaultMaker] = partial(fault, "normal noise", bound_on="delta")
_DISCRETE: Final[FaultMaker] = partial(fault, "discrete noise")
_ACCOUNT: Final[FaultMaker] = partial(fault, "accounting")
_GAUSSIAN_ANSWER: Final = NeighbouringPair(0.0, 1.0, Within("l2"), Answers())


def normal_faults() -> list[Fault]:
    """All bugs of this module."""
    return [*_calibrations(), *_discrete(), *_accounts(), *_gradients()]


def _calibrations() -> list[Fault]:
    tenth = NeighbouringPair(0.0, 0.1, Within("l2", 0.1), Answers(high=0.1))
    variance = faulty.VarianceAsScaleGaussian(1.0, 1e-5, sensitivity=0.1)
    right_tenth = GaussianMechanism(1.0, 1e-5, 0.1)
    classical, right_seven = faulty.ClassicalBeyondOneGaussian(7.0, 0.4), GaussianMechanism(7.0, 0.4)
    one, newton = faulty.OneForEpsilonGaussian(1.1, 0.01), faulty.MisprintedNewtonGaussian(2.0, 1e-5)
    right_one, right_newton = GaussianMechanism(1.1, 0.01), GaussianMechanism(2.0, 1e-5)
    return [
        _NORMAL("variance-as-deviation", variance, tenth, correct=right_tenth, runs=50_000),
        _NORMAL("classical-formula-beyond-one", classical, _GAUSSIAN_ANSWER, correct=right_seven, runs=1_000_000,
            cause="Gaussian noise from the classical formula at ε = 7, where its theorem does not hold"),
        _NORMAL("one-for-epsilon", one, _GAUSSIAN_ANSWER, correct=right_one, runs=500_000),
        _NORMAL("misprinted-newton", newton, _GAUSSIAN_ANSWER, correct=right_newton, runs=10_000_000),
        _NORMAL("normal-noise-without-delta", GaussianMechanism(1.0, 0.05), _GAUSSIAN_ANSWER,
            correct=LaplaceMechanism(1.0), claim=PureDP(1.0), bound_on=None, truth=None,
            cause="Gaussian noise claimed to be ε-DP: no finite ε",
            practice="The δ is small, so it is left out. Far out the ratio of two normal densities is unbounded.",
            runs=200_000),
        _NORMAL("domain-not-clipped", faulty.UnclippedLocalGaussian(1.0, 0.01, Interval(0, 1)),
            NeighbouringPair(0.0, 3.0, Local(), Values((0.0, 0.5, 1.0, 3.0))),
            correct=LocalGaussianMechanism(1.0, 0.01, Interval(0, 1))),
    ]  # fmt: skip


def _discrete() -> list[Fault]:
    narrow, wide = DiscreteGaussianMechanism(0.7**2, 0.5), DiscreteGaussianMechanism(0.7, 0.5)
    one, two = BinomialMechanism(64, 1.0, 1), BinomialMechanism(64, 1.0, 2)
    return [
        _DISCRETE("discrete-normal-variance", narrow, NeighbouringPair(0, 1, Within("l1"), Answers(integer=True)),
            correct=wide, claim=wide.claim, bound_on="delta", truth=narrow.claim,
            cause="Discrete Gaussian noise with the variance as σ, which is .7",
            practice="Papers and programs differ in which of the two is the parameter of exp(−k²/(2σ²))."),
        _DISCRETE("coins-for-half-the-sensitivity", one,
            NeighbouringPair(0, 2, Within("l1", 2.0), Answers(high=4.0, integer=True)),
            correct=BinomialMechanism(512, 1.0, 2), bound_on="delta", truth=two.claim,
            cause="Binomial noise for answers 1 apart, where the answers are 2 apart",
            practice="A replaced row moves two counts (Dwork, Kenthapadi, McSherry, Mironov & Naor 2006 on the noise).",
            runs=500_000),
    ]  # fmt: skip


def _accounts() -> list[Fault]:
    normal, four = GaussianMechanism(1.0, 0.05), VectorGaussianMechanism(1.0, 0.05)
    mu = 1 / normal.scale
    own_rho = mu**2 / 2
    converted = 0.5 + math.sqrt(0.5 * math.log(1 / 0.01))
    return [
        _ACCOUNT("rho-for-epsilon", GaussianOfScale(math.sqrt(0.5), ApproxDP(1.0, 1e-5)), _GAUSSIAN_ANSWER,
            bound_on="delta", correct=GaussianMechanism(1.0, 1e-5),
            truth=ApproxDP(1.0, gaussian_delta(1.0, math.sqrt(0.5))),
            cause="Gaussian noise for ρ = 1 of concentrated DP, claimed to be (1, 1e-5)-DP",
            practice="Both are called the privacy budget (Bun & Steinke 2016 give the conversion)."),
        _ACCOUNT("conversion-without-two", GaussianOfScale(1.0, ApproxDP(converted, 0.01)), _GAUSSIAN_ANSWER,
            bound_on="delta", correct=GaussianMechanism(converted, 0.01),
            truth=ApproxDP(converted, gaussian_delta(converted, 1.0)),
            cause="ρ + √(ρ ln(1/δ)) as the ε of ρ-concentrated DP, without the 2 before the root",
            practice="A factor of Proposition 1.3 of Bun & Steinke (2016) is lost in copying.", runs=500_000),
        _ACCOUNT("renyi-without-the-order", normal, _GAUSSIAN_ANSWER,
            correct=GaussianMechanism(1.0, 0.05, math.sqrt(8)), claim=RenyiDP(8.0, own_rho),
            truth=RenyiDP(8.0, 8 * own_rho), exact=8 * own_rho,
            cause="1/(2σ²) as the divergence of order 8, which is 8/(2σ²)",
            practice="The divergence is looked up at order 1, or the order is taken for a constant (Mironov 2017).",
            runs=50_000),
        _ACCOUNT("mu-not-added", four, NeighbouringPair((0.0,) * 4, (1.0,) * 4, Within("linf"), Answers(4)),
            correct=VectorGaussianMechanism(1.0, 0.05, 2.0), claim=GaussianDP(mu), truth=GaussianDP(2 * mu),
            exact=2 * mu, cause="Four answers with the noise for one, charged with μ instead of √4·μ",
            practice="The sensitivity is that of one coordinate (Dong, Roth & Su 2022)."),
    ]  # fmt: skip


def _gradients() -> list[Fault]:
    """Sums of clipped gradients, as a step of stochastic gradient descent releases them (Abadi et al. 2016)."""
    epsilon, delta = 1.0, 0.01
    each, noise = GradientSum(1.0), partial(VectorGaussianMechanism, epsilon, delta)
    right = noise(1.0, each)
    batch = [(0.6, 0.0, 0.0, 0.8)] * 3

    def learning(
        name: str, mechanism: Any, added: tuple[float, ...], ratio: float, correct: Any = right, **texts: Any
    ) -> Fault:
        """Fault on an added row that moves the sum by `ratio` times the change for which there is noise."""
        pair = NeighbouringPair(batch, [*batch, added], AddRemove(), Rows(low=(-5.0,) * 4, high=(5.0,) * 4))
        truth = ApproxDP(epsilon, gaussian_delta(epsilon, right.scale, ratio))
        return fault("learning", name, mechanism, pair, correct=correct, bound_on="delta", truth=truth, **texts)

    far = (0.0, 5.0, 0.0, 0.0)
    return [
        learning("clipped-by-the-batch", noise(0.25, GradientSum(1.0, "mean")), (-60.0, 0.0, 0.0, -80.0), 8.0,
            cause="The mean gradient clipped, with the noise for one clipped gradient in a batch of four",
            practice="Frameworks return the averaged gradient, and clip_grad_norm is called on it."),
        learning("clipped-by-the-layer", noise(1.0, GradientSum(1.0, "coordinate")), (5.0, 5.0, 5.0, 5.0), 2.0,
            cause="Each of four coordinates clipped to 1, with the noise for a vector of norm 1",
            practice="Layers are clipped one by one, each to the norm of all."),
        learning("divided-twice-by-the-batch", noise(0.25, each), far, 4.0,
            cause="A sum of gradients with the noise for their mean",
            practice="Sum and noise are divided by the batch size in two places, one of which divides only the noise."),
        learning("noise-without-the-clip", noise(1.0, GradientSum(3.0)), far, 3.0, correct=noise(3.0, GradientSum(3.0)),
            cause="A noise multiplier that is not multiplied by the clipping norm, 3",
            practice="The norm is 1 in the paper's experiments and is tuned later."),
        learning("noise-by-root-of-dimension", noise(0.5, each), far, 2.0,
            cause="A standard deviation divided by the root of the dimension, 4",
            practice="The norm of the whole noise vector is set to the standard deviation meant for one coordinate."),
    ]  # fmt: skip


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
        _LAPLACE("sensitivity-understated", faulty.UnderstatedSensitivityLaplace(0.5, query=total), up_to_two,
            correct=sum_to_two, cause="A sum of values up to 2 with the sensitivity of a count, 1: 2ε instead of ε"),
        _LAPLACE("replace-half-sensitivity", LaplaceMechanism(0.5, query=total),
            NeighbouringPair([1.0, 1.0], [1.0, -1.0], Replace(), Rows(low=-1.0)), correct=sum_to_two,
            truth=LaplaceMechanism(1.0).claim,
            cause="Sensitivity 1, the largest value, for a sum of values in [−1, 1] when a row is replaced",
            practice="Add/remove and replace are confused; from −1 to 1 a row moves the sum by 2 (Dwork & Roth 2014)."),
        _LAPLACE("scale-epsilon", faulty.InvertedScaleLaplace(0.5, query=len), _COUNT, correct=count),
        _LAPLACE("deviation-as-scale", faulty.DeviationAsScaleLaplace(0.5, query=len), _COUNT, correct=count,
            runs=50_000),
        _LAPLACE("best-of-draws", LaplaceMechanism(1.0, query=len), _COUNT, correct=count, claim=count.claim,
            cause="Two noisy answers drawn, and the one nearer to the truth released: 2ε instead of ε",
            practice="A release that looks too noisy is drawn again. The smaller of two exponential magnitudes is "
            "exponential with twice the rate."),
    ]  # fmt: skip


def _shapes() -> list[Fault]:
    noise, count = LaplaceMechanism(0.5), LaplaceMechanism(0.5, query=len)
    near = NeighbouringPair(0.0, 0.5, Within("l1"), Answers())
    whole = NeighbouringPair(0.0, 1.0, Within("l1"), Answers(integer=True))
    nine_ten = NeighbouringPair([1] * 9, [1] * 10, _ROWS, Rows(values=(1,), most=12))
    return [
        _LAPLACE("inverse-cdf-wrong-letter", faulty.AnswerInTheBranchLaplace(0.5), near, correct=noise, exact=math.inf),
        _LAPLACE("inverse-cdf-mixed-uniforms", faulty.MixedUniformsLaplace(0.5), _ANSWER, correct=noise),
        _LAPLACE("noise-cut-off", faulty.BoundedLaplace(0.5), _ANSWER, correct=noise, exact=math.inf, runs=20_000,
            cause="Laplace noise redrawn until it is within three scales, without a δ: no finite ε"),
        _LAPLACE("noise-one-sided", faulty.OneSidedLaplace(0.5), _ANSWER, correct=noise, exact=math.inf),
        _LAPLACE("redrawn-until-nonnegative", faulty.RedrawnUntilNonnegative(0.5), whole, correct=noise,
            exact=math.log(2 * math.exp(0.5) - 1), runs=100_000),
        _LAPLACE("seed-from-the-data", faulty.SeededByTheData(0.5), _COUNT, correct=count, exact=math.inf),
        _LAPLACE("digits-of-the-answer", faulty.SignificantDigitsLaplace(0.5), nine_ten, correct=count, exact=math.inf),
    ]  # fmt: skip


def _counts() -> list[Fault]:
    count, in_range = GeometricMechanism(0.5, query=len), faulty.RangedCount(0.5, 4, is_redrawn=False)
    bits, whole = Rows(values=(0, 1)), NeighbouringPair(0, 1, Within("l1"), Answers(integer=True))
    user = NeighbouringPair([("Ann", 1), ("Bob", 2), ("Bob", 3)], [("Ann", 1)], UserLevel(0))
    one_more = NeighbouringPair([0, 0], [0, 0, 1], _ROWS, bits)
    zero_less = NeighbouringPair([0, 0, 1], [0, 1], _ROWS, bits)
    return [
        _GEOMETRIC("user-with-many-rows", faulty.PerRowGeometric(0.5, query=len), user,
            correct=GeometricMechanism(0.5, 2, len),
            cause="A count with noise for one row, for users with up to two rows: 2ε at user level"),
        _GEOMETRIC("ratio-squared", faulty.SquaredRatioGeometric(0.5, query=len), _COUNT, correct=count),
        _GEOMETRIC("one-wrong-entry", faulty.MisprintedTableGeometric(0.5, 1.2, query=len), _COUNT, correct=count,
            exact=0.5 + math.log(1.2), runs=100_000),
        _GEOMETRIC("noise-rounded-to-zero", faulty.TowardsZeroLaplace(0.5), whole, correct=GeometricMechanism(0.5),
            exact=0.5 + math.log(2)),
        _GEOMETRIC("redrawn-into-range", faulty.RedrawnIntoRange(0.5), one_more, correct=in_range, runs=50_000,
            cause="A count from 0 to 4 with geometric noise, redrawn instead of clamped while out of range: up to 2ε"),
        _GEOMETRIC("clamped-to-the-rows", faulty.RangeOfTheRows(0.5), zero_less, correct=in_range),
        _GEOMETRIC("redrawn-to-the-rows", faulty.RangeOfTheRows(0.5, is_redrawn=True),
            NeighbouringPair([0, 0, 1], [0, 0], _ROWS, bits), correct=in_range,
            cause="Noise redrawn until the count is between 0 and the exact number of rows",
            practice="The range that a library requires is taken from the data."),
    ]  # fmt: skip


def _floating_point() -> list[Fault]:
    noise, normal = LaplaceMechanism(1.0), faulty.NaiveGaussian(1.0, 0.01)
    euclidean = NeighbouringPair(0.0, 1.0, Within("l2"), Answers())
    fractions = NeighbouringPair(0.1, 0.7, Within("l1"), Answers())
    in_bits: FaultMaker = partial(_FLOATING, runs=20_000, floating_point="test")
    return [
        _FLOATING("uniform-of-few-bits", faulty.FewValuesLaplace(0.5), _ANSWER, correct=LaplaceMechanism(0.5),
            exact=math.inf,
            cause="Laplace noise by the inverse CDF of a uniform number of eight bits, 256 values: no finite ε"),
        in_bits("laplace-doubles", faulty.NaiveLaplace(1.0), _ANSWER, correct=noise, exact=math.inf),
        in_bits("normal-doubles", normal, euclidean, correct=normal.on_grid, bound_on="delta"),
        in_bits("single-precision-noise", faulty.SinglePrecisionNoise(1.0), fractions, correct=noise, exact=math.inf),
    ]  # fmt: skip
