"""Bugs in noise on a single answer and in local protocols, kept apart because each subject has a module."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

from ... import mechanisms as m
from ...audit.claims.claim import ApproxDP, GaussianDP, PureDP
from ...audit.claims.renyi import RenyiDP
from ...audit.datasets.adjacency import AddRemove, Local, Replace, UserLevel, Within
from ...audit.datasets.domains import Answers, Rows, Values
from ...mechanisms import faulty
from ...mechanisms.faulty.calibration import GaussianOfScale
from ...mechanisms.faulty.flaw import GradientSum, total
from ...mechanisms.local.frequency_oracles import BitReports, unary_coins
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
    right_tenth = m.GaussianMechanism(1.0, 1e-5, 0.1)
    classical, right_seven = faulty.ClassicalBeyondOneGaussian(7.0, 0.4), m.GaussianMechanism(7.0, 0.4)
    one, newton = faulty.OneForEpsilonGaussian(1.1, 0.01), faulty.MisprintedNewtonGaussian(2.0, 1e-5)
    right_one, right_newton = m.GaussianMechanism(1.1, 0.01), m.GaussianMechanism(2.0, 1e-5)
    return [
        _NORMAL("variance-as-deviation", variance, tenth, correct=right_tenth, runs=50_000),
        _NORMAL("classical-formula-beyond-one", classical, _GAUSSIAN_ANSWER, correct=right_seven, runs=1_000_000,
            cause="Gaussian noise from the classical formula at ε = 7, where its theorem does not hold"),
        _NORMAL("one-for-epsilon", one, _GAUSSIAN_ANSWER, correct=right_one, runs=500_000),
        _NORMAL("misprinted-newton", newton, _GAUSSIAN_ANSWER, correct=right_newton, runs=10_000_000),
        _NORMAL("normal-noise-without-delta", m.GaussianMechanism(1.0, 0.05), _GAUSSIAN_ANSWER,
            correct=m.LaplaceMechanism(1.0), claim=PureDP(1.0), bound_on=None, truth=None,
            cause="Gaussian noise claimed to be ε-DP: no finite ε",
            practice="The δ is small, so it is left out. Far out the ratio of two normal densities is unbounded.",
            runs=200_000),
        _NORMAL("domain-not-clipped", m.GaussianMechanism(1.0, 0.01),
            NeighbouringPair(0.0, 3.0, Local(), Values((0.0, 0.5, 1.0, 3.0))), truth=None,
            correct=m.LocalGaussianMechanism(1.0, 0.01, m.Interval(0, 1)),
            cause="A person's value with noise for a domain to which the value is not clipped: no (ε, δ) holds",
            practice="The sensitivity is taken as max − min of the data seen so far, or of what a sensor should "
            "deliver, and the value is sent unchanged. The bug shows as soon as a value leaves the domain, and more "
            "the farther it lies."),
    ]  # fmt: skip


def _discrete() -> list[Fault]:
    narrow, wide = m.DiscreteGaussianMechanism(0.7**2, 0.5), m.DiscreteGaussianMechanism(0.7, 0.5)
    one, two = m.BinomialMechanism(64, 1.0, 1), m.BinomialMechanism(64, 1.0, 2)
    return [
        _DISCRETE("discrete-normal-variance", narrow, NeighbouringPair(0, 1, Within("l1"), Answers(integer=True)),
            correct=wide, claim=wide.claim, bound_on="delta", truth=narrow.claim,
            cause="Discrete Gaussian noise with the variance as σ, which is .7",
            practice="Papers and programs differ in which of the two is the parameter of exp(−k²/(2σ²))."),
        _DISCRETE("coins-for-half-the-sensitivity", one,
            NeighbouringPair(0, 2, Within("l1", 2.0), Answers(high=4.0, integer=True)),
            correct=m.BinomialMechanism(512, 1.0, 2), bound_on="delta", truth=two.claim,
            cause="Binomial noise for answers 1 apart, where the answers are 2 apart",
            practice="A replaced row moves two counts (Dwork, Kenthapadi, McSherry, Mironov & Naor 2006 on the noise).",
            runs=500_000),
    ]  # fmt: skip


def _accounts() -> list[Fault]:
    normal, four = m.GaussianMechanism(1.0, 0.05), m.VectorGaussianMechanism(1.0, 0.05)
    mu = 1 / normal.scale
    own_rho = mu**2 / 2
    converted = 0.5 + math.sqrt(0.5 * math.log(1 / 0.01))
    return [
        _ACCOUNT("rho-for-epsilon", GaussianOfScale(math.sqrt(0.5), ApproxDP(1.0, 1e-5)), _GAUSSIAN_ANSWER,
            bound_on="delta", correct=m.GaussianMechanism(1.0, 1e-5),
            truth=ApproxDP(1.0, m.gaussian_delta(1.0, math.sqrt(0.5))),
            cause="Gaussian noise for ρ = 1 of concentrated DP, claimed to be (1, 1e-5)-DP",
            practice="Both are called the privacy budget (Bun & Steinke 2016 give the conversion)."),
        _ACCOUNT("conversion-without-two", GaussianOfScale(1.0, ApproxDP(converted, 0.01)), _GAUSSIAN_ANSWER,
            bound_on="delta", correct=m.GaussianMechanism(converted, 0.01),
            truth=ApproxDP(converted, m.gaussian_delta(converted, 1.0)),
            cause="ρ + √(ρ ln(1/δ)) as the ε of ρ-concentrated DP, without the 2 before the root",
            practice="A factor of Proposition 1.3 of Bun & Steinke (2016) is lost in copying.", runs=500_000),
        _ACCOUNT("renyi-without-the-order", normal, _GAUSSIAN_ANSWER,
            correct=m.GaussianMechanism(1.0, 0.05, math.sqrt(8)), claim=RenyiDP(8.0, own_rho),
            truth=RenyiDP(8.0, 8 * own_rho), exact=8 * own_rho,
            cause="1/(2σ²) as the divergence of order 8, which is 8/(2σ²)",
            practice="The divergence is looked up at order 1, or the order is taken for a constant (Mironov 2017).",
            runs=50_000),
        _ACCOUNT("mu-not-added", four, NeighbouringPair((0.0,) * 4, (1.0,) * 4, Within("linf"), Answers(4)),
            correct=m.VectorGaussianMechanism(1.0, 0.05, 2.0), claim=GaussianDP(mu), truth=GaussianDP(2 * mu),
            exact=2 * mu, cause="Four answers with the noise for one, charged with μ instead of √4·μ",
            practice="The sensitivity is that of one coordinate (Dong, Roth & Su 2022)."),
    ]  # fmt: skip


def _gradients() -> list[Fault]:
    """Sums of clipped gradients, as a step of stochastic gradient descent releases them (Abadi et al. 2016)."""
    epsilon, delta = 1.0, 0.01
    each, noise = GradientSum(1.0), partial(m.VectorGaussianMechanism, epsilon, delta)
    right = noise(1.0, each)
    batch = [(0.6, 0.0, 0.0, 0.8)] * 3

    def learning(
        name: str, mechanism: Any, added: tuple[float, ...], ratio: float, correct: Any = right, **texts: Any
    ) -> Fault:
        """Fault on an added row that moves the sum by `ratio` times the change for which there is noise."""
        pair = NeighbouringPair(batch, [*batch, added], AddRemove(), Rows(low=(-5.0,) * 4, high=(5.0,) * 4))
        truth = ApproxDP(epsilon, m.gaussian_delta(epsilon, right.scale, ratio))
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
    count, sum_to_two = m.LaplaceMechanism(0.5, query=len), m.LaplaceMechanism(0.5, 2.0, total)
    return [
        _LAPLACE("sensitivity-understated", m.LaplaceMechanism(0.5, query=total), up_to_two, correct=sum_to_two,
            truth=PureDP(1.0), cause="A sum of values up to 2 with the sensitivity of a count, 1: 2ε instead of ε",
            practice="Code for a count is reused for a sum, or the clipping bound is changed in one place only. The "
            "bug shows on add/remove neighbours that differ by a row at the bound."),
        _LAPLACE("replace-half-sensitivity", m.LaplaceMechanism(0.5, query=total),
            NeighbouringPair([1.0, 1.0], [1.0, -1.0], Replace(), Rows(low=-1.0)), correct=sum_to_two,
            truth=m.LaplaceMechanism(1.0).claim,
            cause="Sensitivity 1, the largest value, for a sum of values in [−1, 1] when a row is replaced",
            practice="Add/remove and replace are confused; from −1 to 1 a row moves the sum by 2 (Dwork & Roth 2014)."),
        _LAPLACE("scale-epsilon", m.LaplaceMechanism(1 / 0.5, query=len), _COUNT, correct=count, claim=count.claim,
            cause="A count with Laplace noise of scale ε instead of 1/ε: (1/ε)-DP",
            practice="The generator's `scale` is taken for the rate, or for the privacy parameter itself. There is too "
            "little noise for ε < 1 and too much for ε > 1. At ε = 1 the bug is invisible, so it passes a test written "
            "there (Ding et al. 2018)."),
        _LAPLACE("deviation-as-scale", m.LaplaceMechanism(0.5 * math.sqrt(2), query=len), _COUNT, correct=count,
            claim=count.claim, runs=50_000,
            cause="Laplace noise of standard deviation 1/ε instead of scale 1/ε: √2·ε",
            practice="Noise is specified by its standard deviation, as Gaussian noise is; that of Laplace noise is √2 "
            "scales."),
        _LAPLACE("best-of-draws", m.LaplaceMechanism(1.0, query=len), _COUNT, correct=count, claim=count.claim,
            cause="Two noisy answers drawn, and the one nearer to the truth released: 2ε instead of ε",
            practice="A release that looks too noisy is drawn again. The smaller of two exponential magnitudes is "
            "exponential with twice the rate."),
    ]  # fmt: skip


def _shapes() -> list[Fault]:
    noise, count = m.LaplaceMechanism(0.5), m.LaplaceMechanism(0.5, query=len)
    near = NeighbouringPair(0.0, 0.5, Within("l1"), Answers())
    whole = NeighbouringPair(0.0, 1.0, Within("l1"), Answers(integer=True))
    nine_ten = NeighbouringPair([1] * 9, [1] * 10, _ROWS, Rows(values=(1,), most=12))
    return [
        _LAPLACE("inverse-cdf-wrong-letter", faulty.AnswerInTheBranchLaplace(0.5), near, correct=noise, exact=math.inf),
        _LAPLACE("inverse-cdf-mixed-uniforms", faulty.MixedUniformsLaplace(0.5), _ANSWER, correct=noise,
            exact=math.inf),
        _LAPLACE("noise-cut-off", faulty.BoundedLaplace(0.5), _ANSWER, correct=noise, exact=math.inf, runs=20_000,
            cause="Laplace noise redrawn until it is within three scales, without a δ: no finite ε"),
        _LAPLACE("noise-one-sided", faulty.OneSidedLaplace(0.5), _ANSWER, correct=noise, exact=math.inf),
        _LAPLACE("redrawn-until-nonnegative", faulty.RedrawnUntilNonnegative(0.5), whole, correct=noise,
            exact=math.log(2 * math.exp(0.5) - 1), runs=100_000),
        _LAPLACE("seed-from-the-data", faulty.SeededByTheData(0.5), _COUNT, correct=count, exact=math.inf),
        _LAPLACE("digits-of-the-answer", faulty.SignificantDigitsLaplace(0.5), nine_ten, correct=count, exact=math.inf),
    ]  # fmt: skip


def _counts() -> list[Fault]:
    count = m.GeometricMechanism(0.5, query=len)
    in_range, redrawn = (faulty.RangedCount(0.5, 4, is_redrawn) for is_redrawn in (False, True))
    bits, whole = Rows(values=(0, 1)), NeighbouringPair(0, 1, Within("l1"), Answers(integer=True))
    user = NeighbouringPair([("Ann", 1), ("Bob", 2), ("Bob", 3)], [("Ann", 1)], UserLevel(0))
    one_more = NeighbouringPair([0, 0], [0, 0, 1], _ROWS, bits)
    zero_less = NeighbouringPair([0, 0, 1], [0, 1], _ROWS, bits)
    return [
        _GEOMETRIC("user-with-many-rows", count, user, correct=m.GeometricMechanism(0.5, 2, len), truth=PureDP(1.0),
            cause="A count with noise for one row, for users with up to two rows: 2ε at user level",
            practice="The unit of privacy is a person while the table has one row per event. The bug shows on "
            "neighbours that differ by a user with all their rows."),
        _GEOMETRIC("ratio-squared", m.GeometricMechanism(1.0, query=len), _COUNT, correct=count, claim=count.claim,
            cause="A count with noise of ratio e^{−2ε} instead of e^{−ε}: 2ε instead of ε",
            practice="A factor 2 that belongs below ε, as the sensitivity of a replaced row, is written above it. The "
            "bug shows on every pair of different counts."),
        _GEOMETRIC("one-wrong-entry", faulty.MisprintedTableGeometric(0.5, 1.2, query=len), _COUNT, correct=count,
            exact=0.5 + math.log(1.2), runs=100_000),
        _GEOMETRIC("noise-rounded-to-zero", faulty.TowardsZeroLaplace(0.5), whole, correct=m.GeometricMechanism(0.5),
            exact=0.5 + math.log(2)),
        # The loss is largest between 0 and 1, where the probabilities of being inside the range differ most.
        _GEOMETRIC("redrawn-into-range", redrawn, one_more, correct=in_range, runs=50_000,
            truth=PureDP(m.exact_epsilon(redrawn.distribution([0, 0]), redrawn.distribution([0, 1]))),
            cause="A count from 0 to 4 with geometric noise, redrawn instead of clamped while out of range: up to 2ε",
            practice='"Truncated" noise is renormalised. The probability of being inside the range depends on the '
            "count. The bug shows at an end of the range."),
        _GEOMETRIC("clamped-to-the-rows", faulty.RangedCount(0.5, None, is_redrawn=False), zero_less, correct=in_range,
            truth=None, cause="A noisy count clamped to the exact number of rows, a post-processing that looks at the "
            "data: no finite ε",
            practice="A result above the number of rows looks wrong and is clamped to it. The bug shows when a row "
            "that does not count is added: one more number is possible."),
        _GEOMETRIC("redrawn-to-the-rows", faulty.RangedCount(0.5, None, is_redrawn=True),
            NeighbouringPair([0, 0, 1], [0, 0], _ROWS, bits), correct=in_range, truth=None,
            cause="Noise redrawn until the count is between 0 and the exact number of rows",
            practice="The range that a library requires is taken from the data."),
    ]  # fmt: skip


def _floating_point() -> list[Fault]:
    noise, normal = m.LaplaceMechanism(1.0), faulty.NaiveGaussian(1.0, 0.01)
    euclidean = NeighbouringPair(0.0, 1.0, Within("l2"), Answers())
    fractions = NeighbouringPair(0.1, 0.7, Within("l1"), Answers())
    in_bits: FaultMaker = partial(_FLOATING, runs=20_000, floating_point="test")
    return [
        _FLOATING("uniform-of-few-bits", faulty.FewValuesLaplace(0.5), _ANSWER, correct=m.LaplaceMechanism(0.5),
            exact=math.inf,
            cause="Laplace noise by the inverse CDF of a uniform number of eight bits, 256 values: no finite ε"),
        in_bits("laplace-doubles", faulty.NaiveLaplace(1.0), _ANSWER, correct=noise, exact=math.inf),
        in_bits("normal-doubles", normal, euclidean, correct=normal.on_grid, bound_on="delta"),
        in_bits("single-precision-noise", faulty.SinglePrecisionNoise(1.0), fractions, correct=noise, exact=math.inf),
    ]  # fmt: skip


# The catalogue of bugs in local protocols.

_LOCAL: Final[FaultMaker] = partial(fault, "randomised response")
_ORACLE: Final[FaultMaker] = partial(fault, "frequency oracle")


def response_faults() -> list[Fault]:
    """Bugs of randomised response."""
    right, yes_no = m.RandomisedResponse(1.0), _values(1, 0)
    five, three = _values(0, 4, range(5)), _values(0, 1, range(3))
    two_times = _values((0, 1), (0, 0), ((0, 0), (0, 1), (1, 0), (1, 1)))
    fresh = faulty.RememberedResponse(1.0, is_remembered=False)
    return [
        # With p = e^ε/(e^ε + 1): (p + (1 − p)/2)/((1 − p)/2) = 1 + 2p/(1 − p).
        _LOCAL("truth-among-the-lies", m.RandomisedResponse(math.log1p(2 * math.e)), _values(0, 1), correct=right,
            claim=right.claim,
            cause="The value with probability p = e^ε/(e^ε + k − 1), else any of all k values: ln(1 + k e^ε/(k − 1)) "
            "instead of ε",
            practice='Two descriptions are mixed: "answer truly with probability p, else flip a coin" needs a smaller '
            "p, as the coin may give the true value too. The bug shows on every pair."),
        _LOCAL("odds-for-two-values", m.RandomisedResponse(1.0 + math.log(4), 5), five, claim=right.claim,
            correct=m.RandomisedResponse(1.0, 5),
            cause="The value with the probability for yes and no, e^ε/(1 + e^ε), although there are five: ε + ln 4",
            practice="The code for yes and no is extended to a menu and the formula stays (Kairouz, Bonawitz & Ramage "
            "2016 give the formula for k values)."),
        _LOCAL("biased-coin", faulty.BiasedCoinResponse(), yes_no, correct=m.RandomisedResponse(math.log(3)),
            cause="Warner's two coins, the second of which says yes one time in four: ln 5 instead of ln 3"),
        _LOCAL("only-yes-randomised", faulty.OnlyYesRandomised(1.0), yes_no, correct=right),
        _LOCAL("response-remembered", faulty.RememberedResponse(1.0), two_times, correct=fresh, exact=math.inf),
        _LOCAL("each-bit-at-epsilon", m.UnaryEncoding(2.0, 3), three, correct=m.UnaryEncoding(1.0, 3),
            claim=right.claim,
            cause="A value as k bits, one of them 1, each randomised at ε: 2ε, as two bits change",
            practice='"Each bit is ε-DP" is read as a statement about the whole report; ε/2 for each bit is right.'),
    ]  # fmt: skip


def oracle_faults() -> list[Fault]:
    """Bugs of frequency oracles, for single and for repeated reports."""
    unary, four, eight = m.UnaryEncoding(1.0, 4), _values(0, 1, range(4)), _values(0, 5, range(8))
    optimised, hashing = m.UnaryEncoding(1.0, 4, is_optimised=True), m.LocalHashing(1.0, 8)
    listed, redrawn = faulty.SubsetInOrder(1.0), faulty.RedrawnMemo(1.0, 0.6, k=2, reports=6)
    return [
        _ORACLE("coins-of-two-encodings", BitReports(unary_coins(1.0, False)[0], unary_coins(1.0, True)[1], 4), four,
            correct=optimised, claim=unary.claim, runs=20_000,
            cause="Unary encoding with the 1 kept as in the symmetric form and the 0 as in the optimised one: 3ε/2",
            practice="A switch between SUE and OUE sets only one of the two probabilities. The 1 of SUE adds ε/2 to "
            "the log odds ratio, and the 0 of OUE adds ε."),
        _ORACLE("true-bit-set-twice", faulty.TrueBitSetTwice(1.0), four, correct=optimised, runs=20_000),
        _ORACLE("ones-never-cleared", BitReports(1.0, unary_coins(1.0, False)[1], 4), four, correct=unary,
            claim=unary.claim, truth=None,
            cause="Unary encoding that turns 0s into 1s at random but keeps every 1: no finite ε",
            practice="A loop sets the bits that are to be 1 and leaves the others as they are, in the array that holds "
            "the encoded value. A value whose bit is reported as 0 is then certainly not the true one."),
        _ORACLE("threshold-on-half-the-noise", m.ThresholdedHistogram(2.0, 4), four,
            correct=m.ThresholdedHistogram(1.0, 4), claim=unary.claim, runs=20_000,
            cause="Thresholded histogram encoding with Laplace noise of scale 1/ε for 2/ε: nearly twice the loss",
            practice="The sensitivity of a one-hot vector is taken to be 1, as of an added row; it is 2."),
        _ORACLE("odds-of-binary-hashing", m.LocalHashing(1.0 + math.log(hashing.n_reports - 1), 8, hashing.n_reports),
            eight, correct=hashing, claim=unary.claim,
            cause="Optimised local hashing whose report keeps the hash with the odds of binary hashing: ε + ln(g − 1)",
            practice="Binary local hashing is extended to g hashes and the probability e^ε/(1 + e^ε) stays."),
        _ORACLE("hash-chosen-by-the-value", faulty.HashChosenByTheValue(1.0), eight, correct=hashing),
        # With ω values in the best set and ω′ in this one, the loss is ε + ln(ω(k − ω′)/(ω′(k − ω))), here for 3 and 2.
        _ORACLE("subset-of-wrong-size", m.SubsetSelection(1.0 + math.log(3 * 8 / (2 * 7)), 10, 2),
            _values(0, 9, range(10)), correct=m.SubsetSelection(1.0, 10), claim=unary.claim,
            cause="Subset selection that keeps the value as for the best size but draws a smaller set: ε + .539",
            practice="The size k/(e^ε + 1) is rounded up in one place and down in another."),
        _ORACLE("subset-in-order", listed, _values(0, 1, range(5)),
            correct=m.SubsetSelection(1.0, listed.k, listed.size)),
        # With p = e^ε/(1 + e^ε): (p + (1 − p)/2)/((1 − p)/2) = 1 + 2p/(1 − p).
        _ORACLE("hadamard-or-any-column", m.HadamardResponse(math.log1p(2 * math.e), 7), _values(0, 1, range(7)),
            correct=m.HadamardResponse(1.0, 7), claim=unary.claim,
            cause="Hadamard response that draws any column, not one with −1, in place of one with +1: ln(1 + 2e^ε)",
            practice="A column with +1 with probability e^ε/(1 + e^ε), otherwise at random, is read as any column."),
        _ORACLE("memo-redrawn", redrawn, _values(0, 1), correct=m.MemoisedBits(1.0, 0.6, 2, redrawn.reports)),
        _ORACLE("first-report-for-all", m.MemoisedBits(2.0, 1.0, 4, 4), four, correct=unary, claim=unary.claim,
            cause="Several reports of memoised bits with the loss of one claimed for all: up to ε∞ instead of ε₁",
            practice="The epsilon of one report is published, and the server collects a report a day."),
    ]  # fmt: skip


def _values(x: Any, y: Any, values: Any = (0, 1)) -> NeighbouringPair:
    return NeighbouringPair(x, y, Local(), Values(tuple(values)))
